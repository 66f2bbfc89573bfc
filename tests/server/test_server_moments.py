"""What happens to a server, and to what it runs, in the one moment in which it could be missed."""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from serverhost import until
from typer.testing import CliRunner

from thalweg.cli.app import app
from thalweg.execution import Steering
from thalweg.server import folders
from thalweg.server.client import Client
from thalweg.server.daemon import ServerSettings, serve
from thalweg.server.folders import Address, Home, Lock, Root, View, say_holder
from thalweg.server.life import Program, Record, Rules
from thalweg.server.runner import Runner, log
from thalweg.server.supervisor import Supervisor

ENDLESS = """
import signal
import thalweg as tw


def told(n):
    if n == 0:
        signal.raise_signal(signal.SIGTERM)


flow = tw.Flow("endless")
numbers = tw.rate(tw.constant(100), lambda n: n)
flow.source("numbers", numbers, fields={"n": int}).sink("out", tw.call(lambda t: told(t.n)))
"""
SHORT = """
import thalweg as tw

flow = tw.Flow("short")
flow.source("numbers", tw.items(range(3)), fields={"n": int}).sink("out", tw.collect([]))
"""
#: Dies, and leaves a process that has all that it had open.
FORKING = "import os, signal; os.fork() or signal.pause(); os._exit(1)"


@pytest.fixture(autouse=True)
def _same_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are loaded in this process, with their folder; other tests must not find it."""
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.path.mkdir()
    return made


@pytest.fixture
def _signals() -> Iterator[None]:
    """Let a runner have the signals of this process."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def program(home: Home, text: str) -> Record:
    file = home.path / "program.py"
    file.write_text(text)
    record = Record("shop", Program(str(file)), 1.0)
    home.keep(record)
    return record


@pytest.mark.usefixtures("_signals")
def test_a_change_is_seen_however_close_it_follows_another(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The times of files are those of a clock that ticks every few milliseconds."""
    write = folders.write

    def write_in_the_same_tick(path: Path, value: Any, lasting: bool = True) -> None:
        write(path, value, lasting)
        os.utime(path, ns=(1, 1))

    monkeypatch.setattr(folders, "write", write_in_the_same_tick)
    wanted: list[str] = []
    changed = threading.Event()

    class Noting(Steering):
        def deactivate(self) -> None:
            wanted.append("deactivated")
            home.keep(msgspec.structs.replace(paused, active=True))

        def activate(self) -> None:
            wanted.append("activated")
            changed.set()

    monkeypatch.setattr("thalweg.server.runner.Steering", Noting)
    monkeypatch.setattr(Runner, "_run", lambda _self: changed.wait())
    paused = msgspec.structs.replace(program(home, SHORT), active=False)
    home.keep(paused)
    Runner(home).run()
    assert wanted == ["deactivated", "activated"]


@pytest.mark.usefixtures("_signals")
def test_a_runner_that_is_told_to_stop_again_while_it_hears_it_stops(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server tells it ten times a second, until it has ended."""
    program(home, ENDLESS)
    notify_all, heard = threading.Condition.notify_all, list[threading.Condition]()

    def told_again(condition: threading.Condition) -> None:
        """Be told by whoever hears something in the thread that signals interrupt."""
        hears = threading.get_ident() == threading.main_thread().ident
        if hears and condition not in heard and callable(signal.getsignal(signal.SIGTERM)):
            heard.append(condition)
            signal.raise_signal(signal.SIGTERM)
        notify_all(condition)

    runner = Runner(home)
    monkeypatch.setattr(threading.Condition, "notify_all", told_again)
    assert runner.run().how == "stopped"


@pytest.mark.usefixtures("_signals")
def test_a_topology_that_has_come_to_its_end_was_not_stopped_by_a_signal_after_that(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(home, SHORT)
    runner = Runner(home)
    listen = runner._listen

    def told_at_the_end(event: Any) -> None:
        listen(event)
        if type(event).__name__ == "RunFinished":
            runner._stop.set()

    monkeypatch.setattr(runner, "_listen", told_at_the_end)
    assert runner.run().how == "ended"


def test_who_stops_a_server_does_not_wait_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Root(tmp_path / "root")
    root.prepare()
    held = root.lock.take()
    assert held is not None
    say_holder(held, os.getpid())  # the next one, which was quick
    ended = {"server": {"pid": os.getpid() + 1}, "topologies": []}
    monkeypatch.setattr(Client, "status", lambda _self: ended)
    monkeypatch.setattr(Client, "stop", lambda _self, _leave: None)
    said = CliRunner().invoke(app, ["server", "stop", "--root", str(root.path)])
    assert said.exit_code == 0, said.output
    os.close(held)


def test_who_kills_a_topology_does_not_wait_for_the_next_one_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killing = View(Record("shop", Program("shop.py"), 1.0, phase="killing"), alive=True)
    next_ = View(Record("shop", Program("shop.py"), 2.0), alive=True)
    views = itertools.chain([killing], itertools.repeat(next_))
    monkeypatch.setattr(Client, "kill", lambda *_asked: killing)
    monkeypatch.setattr(Client, "view", lambda *_asked: next(views))
    said = CliRunner().invoke(app, ["server", "kill", "shop", "--root", str(tmp_path)])
    assert (said.exit_code, said.output) == (0, "'shop' is killed\n")


def test_a_process_that_dies_is_missed_though_what_it_has_forked_lives(tmp_path: Path) -> None:
    root = Root(tmp_path / "root")
    root.prepare()
    home = root.home("shop")
    home.path.mkdir()
    home.keep(Record("shop", Program("shop.py"), 1.0, launched=1.0, proven=True))
    held = home.lock.take()
    assert held is not None
    dying = subprocess.Popen(  # noqa: S603 (a program of this test)
        [sys.executable, "-c", FORKING], pass_fds=(held,), start_new_session=True
    )
    say_holder(held, dying.pid)
    os.close(held)
    dying.wait()
    assert home.lock.held
    supervisor = Supervisor(root, [tmp_path], Rules(restarts=0))
    supervisor.begin()
    try:
        until(lambda: supervisor.view("shop").record.over)
        assert supervisor.view("shop").record.error == "its process ended without a word"
        assert not home.lock.held
    finally:
        supervisor.end(leave=True)


def test_a_full_disk_does_not_make_a_topology_deaf(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    log("nobody can read this")


def test_two_who_look_at_a_lock_do_not_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = Lock(path)
    assert not lock.held  # there is no such file yet
    path.touch()
    looking = os.open(path, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)  # as somebody does who looks
    assert not lock.held
    os.close(looking)
    held = lock.take()
    assert held is not None
    assert lock.held
    os.close(held)


def test_a_server_takes_its_address_away_before_it_waits_for_topologies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, seen = Root(tmp_path / "root"), list[object]()
    root.prepare()
    root.announce(Address("127.0.0.1", 1, 1, 0.0))  # of one that was killed
    begin, end = Supervisor.begin, Supervisor.end

    def look_and_begin(made: Supervisor) -> None:
        seen.append(root.address())
        begin(made)
        signal.raise_signal(signal.SIGTERM)

    def look_and_end(made: Supervisor, leave: bool) -> None:
        seen.append(root.address())
        end(made, leave)

    monkeypatch.setattr(Supervisor, "begin", look_and_begin)
    monkeypatch.setattr(Supervisor, "end", look_and_end)
    serve(ServerSettings(root.path, (tmp_path,)))
    assert seen == [None, None]
