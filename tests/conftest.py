"""After every test: nothing is left behind, and invariants hold.

A test that leaves a thread, a child process or an open file behind fails, and so does one in
which an object with a ``validate`` method ends up in a state that must not be. Both checks cost
a few tens of microseconds per test; garbage is collected only when something seems to be left.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from rich.live import _RefreshThread

from nursery import Nursery
from quickjava import java_options
from sparksession import spark_session
from thalweg.acking import Acker
from thalweg.runtimes.local import isolation

#: Classes whose objects are validated at the end of each test that made them.
CHECKED: tuple[type[Any], ...] = (Acker,)

#: Names of threads that libraries start once and keep: (prefix, why).
LASTING_THREADS = (
    "pytest_timeout",  # watches over the whole session
    "execnet",  # pytest-xdist talks to its main process
    "asyncio_",  # the default executor of an event loop
)
#: Targets of file descriptors that libraries open once and keep.
LASTING_FILES = ("/dev/null", "/dev/urandom", "anon_inode:[eventfd]", "anon_inode:[eventpoll]")

# In the background of a script Ctrl-C is ignored, also by commands that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Drivers that tests start, also those of commands, need not start slowly.
os.environ.setdefault("SPARK_SUBMIT_OPTS", java_options())
# Runs share two cores with others, so no example is judged by its time. In continuous
# integration the examples are the same every time; on a desk they are new ones.
settings.register_profile(
    "thalweg", deadline=None, max_examples=100, derandomize="CI" in os.environ, print_blob=True
)
settings.load_profile("thalweg")
# Python watches over shared memory in a process that stays until the end.
resource_tracker.ensure_running()

_DESCRIPTORS = Path("/proc/self/fd")
_TASKS = Path("/proc/self/task")
_SPARK = Path(__file__).with_name("spark")
#: A runtime in the name of a test; what follows another / is the name of a file.
_ON_SPARK = re.compile(r"(?<!/)spark/")


@pytest.fixture(autouse=True)
def _nothing_is_left(request: pytest.FixtureRequest, _invariants_hold: None) -> Iterator[None]:
    if _uses_spark(request.node):
        spark_session()  # begins before the test and stays for all others
    threads, children, files = _threads(), _children(), _descriptors()
    yield
    left = [
        *_left("thread", _threads, threads),
        *_left("child process", _children, children),
        *_left("file descriptor", _descriptors, files),
    ]
    # Threads have connections of their own to a session.
    if _uses_spark(request.node) or "cluster" in request.node.keywords:
        left = [name for name in left if "(socket:" not in name]
    assert not left, f"the test left behind: {', '.join(left)}"


@pytest.fixture(scope="session")
def _nursery() -> Iterator[Nursery]:
    made = Nursery("conformance.test_conformance")
    yield made
    made.close()


@pytest.fixture
def forked(_nursery: Nursery, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let worker processes of the local runtime be forked, which saves time; none may be left."""
    monkeypatch.setattr(isolation, "launch", _nursery.launch)
    yield
    assert _nursery.left == 0


def _uses_spark(test: pytest.Item) -> bool:
    """Say whether a test uses the session: by its folder, its mark, or the runtime in its name."""
    marked = test.get_closest_marker("spark") is not None
    return marked or _SPARK in test.path.parents or bool(_ON_SPARK.search(test.name))


@pytest.fixture
def _invariants_hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made: list[weakref.ref[Any]] = []
    for kind in CHECKED:
        monkeypatch.setattr(kind, "__init__", _noting(kind.__init__, made))
    yield
    for reference in made:
        alive = reference()
        if alive is not None:
            alive.validate()


def _noting(init: Callable[..., None], made: list[weakref.ref[Any]]) -> Callable[..., None]:
    def noting_init(self: Any, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **options)
        made.append(weakref.ref(self))

    return noting_init


def _left(what: str, look: Callable[[], dict[Any, str]], before: dict[Any, str]) -> list[str]:
    """Name what is there now and was not before, once garbage is gone."""
    if not look().items() - before.items():
        return []
    gc.collect()
    new = look().items() - before.items()
    return [f"{what} {name}" for _, name in sorted(new, key=str)]


def _threads() -> dict[Any, str]:
    for thread in threading.enumerate():
        if isinstance(thread, _RefreshThread) and thread.done.is_set():
            thread.join()  # rich tells those that draw to end, and does not wait for them
    return {
        thread.ident: thread.name
        for thread in threading.enumerate()
        if not thread.name.startswith(LASTING_THREADS)
    }


def _children() -> dict[Any, str]:
    """Find child processes, also those that have ended but were never waited for."""
    found = {}
    for task in _listed(_TASKS):
        try:
            children = (_TASKS / task / "children").read_text().split()
        except OSError:  # the thread has ended, or this system does not tell
            continue
        found.update((child, f"with id {child}") for child in children)
    return found


def _descriptors() -> dict[Any, str]:
    found = {}
    for number in _listed(_DESCRIPTORS):
        try:
            target = os.readlink(_DESCRIPTORS / number)
        except OSError:  # the one that lists the directory
            continue
        if target not in LASTING_FILES:
            found[number] = f"{number} ({target})"
    return found


def _listed(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.exists() else []
