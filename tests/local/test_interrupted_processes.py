"""Who interrupts a run does not wait for a process that is stuck."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from thalweg.components import Bolt
from thalweg.contexts import TaskContext
from thalweg.runtimes.local.runtime import Local


class Stuck(Bolt):
    """Waits for ever, in its process, at one of the calls."""

    outputs = {"n": int}

    def __init__(self, begun: Path, call: str) -> None:
        self.begun, self.call = begun, call

    def prepare(self, context: TaskContext) -> None:
        self.wait("prepare")

    def process(self, t: Any) -> None:
        self.wait("process")

    def wait(self, call: str) -> None:
        if call == self.call:
            self.begun.touch()
            threading.Event().wait()


@pytest.fixture
def _interrupts() -> Iterator[None]:
    """Let Ctrl-C do what it does in a program; those who run tests may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupting(when: Path) -> threading.Thread:
    """Interrupt this thread, as Ctrl-C does, as soon as there is a file."""

    def interrupt() -> None:
        while not when.exists():
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    main = threading.get_ident()
    made = threading.Thread(target=interrupt)
    made.start()
    return made


@pytest.mark.usefixtures("_interrupts")
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("call", ["prepare", "process"])
def test_a_run_whose_process_is_stuck_can_be_interrupted(
    call: str, workers: int, tmp_path: Path
) -> None:
    builder = tw.TopologyBuilder("stuck")
    builder.add_spout("numbers", tw.items(range(10)), fields={"n": int})
    stuck = builder.add_bolt("stuck", Stuck(tmp_path / "begun", call), isolation="process")
    stuck.shuffle("numbers")
    builder.add_bolt("out", tw.collect([])).shuffle("stuck")
    topology = builder.build()
    interrupts = interrupting(tmp_path / "begun")
    with pytest.raises(KeyboardInterrupt):
        topology.run(on=Local(workers=workers))
    interrupts.join()
    for thread in threading.enumerate():
        if thread.name.startswith("thalweg-worker"):
            thread.join()


class Telling(Bolt):
    """Stops the run when its input has ended."""

    outputs = {"n": int}

    def __init__(self, stop: threading.Event) -> None:
        self.stop = stop

    def __deepcopy__(self, _memo: object) -> Telling:
        return Telling(self.stop)

    def process(self, t: Any) -> None:
        self.emit(t.n)

    def process_end(self) -> None:
        self.stop.set()


@pytest.mark.parametrize("on", ["inline", "local"])
def test_what_has_come_to_its_end_is_not_stopped_any_more(on: str) -> None:
    stop, found = threading.Event(), list[Any]()
    builder = tw.TopologyBuilder("ended")
    builder.add_spout("numbers", tw.items(range(3)), fields={"n": int})
    builder.add_bolt("telling", Telling(stop)).shuffle("numbers")
    builder.add_bolt("out", tw.collect(found)).shuffle("telling")
    result = builder.build().run(on=on, stop=stop)
    assert stop.is_set()
    assert not result.stopped
    assert [t.n for t in found] == [0, 1, 2]
