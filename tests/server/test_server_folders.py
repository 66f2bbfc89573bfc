"""What a server keeps on disk can be read whatever has happened to it."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from thalweg.errors import UsageError
from thalweg.metrics import ComponentMetrics, Latency, Snapshot
from thalweg.server.access import make_token
from thalweg.server.client import Client
from thalweg.server.folders import Address, Home, Lock, Root, Status, View, say_holder, write
from thalweg.server.life import Outcome, Program, Record, Refusal, Rules
from thalweg.server.supervisor import Supervisor

COUNTS = ComponentMetrics("count", 2, 10, 9, 1, 0.5, (4, 6), waiting=3)
SNAPSHOT = Snapshot(1.5, (COUNTS,), 10, 9, 1, Latency(0.1, 0.2, 0.3, 7), pending=3)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_what_is_written_is_read_again(home: Home) -> None:
    record = Record("shop", Program("/p/shop.py", "flow", {"a": "b"}), 3.0, kill_at=7.0)
    home.keep(record)
    assert home.record() == record
    status = Status(7, 3.0, "shop", 2.0, active=False, snapshot=SNAPSHOT)
    home.say(status)
    assert home.status() == status
    home.end(Outcome("failed", "why"))
    assert home.outcome() == Outcome("failed", "why")
    home.clear()
    assert (home.status(), home.outcome(), home.record()) == (None, None, record)


@pytest.mark.parametrize(
    ("died", "refused", "alive", "last"),
    [
        ("it died", "a tuple", True, "a tuple"),  # since it was started again
        ("it died", "a tuple", False, "it died"),
        ("it died", "", True, "it died"),
        ("", "a tuple", False, "a tuple"),
        ("", "", True, ""),
    ],
)
def test_the_last_error_is_what_went_wrong_last(
    died: str, refused: str, alive: bool, last: str
) -> None:
    record = Record("shop", Program("/p/shop.py"), 3.0, error=died)
    assert View(record, alive, Status(7, 3.0, refused=refused)).last_error == last


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}'])
def test_what_a_runner_of_another_version_says_is_not_understood(home: Home, text: str) -> None:
    for name in ("status.json", "outcome.json"):
        (home.path / name).write_text(text)
    assert home.status() is None
    assert home.outcome() is None


def test_a_half_written_file_is_never_seen(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.end(Outcome("ended"))

    def power_cut(_descriptor: int) -> None:
        text = "no power"
        raise OSError(text)

    monkeypatch.setattr(os, "fsync", power_cut)
    with pytest.raises(OSError, match="no power"):
        home.end(Outcome("failed", "x" * 10_000))
    assert home.outcome() == Outcome("ended")


def test_files_are_the_owners_alone(home: Home) -> None:
    write(home.path / "record.json", {})
    assert (home.path / "record.json").stat().st_mode & 0o777 == 0o600


def test_a_lock_is_held_until_its_process_lets_go(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock")
    assert not lock.held
    assert not (tmp_path / "lock").exists()
    held = lock.take()
    assert held is not None
    assert lock.take() is None
    say_holder(held, 4711)
    assert (lock.held, lock.holder) == (True, 4711)
    say_holder(held, None)
    assert lock.holder is None
    os.close(held)
    assert not lock.held


def test_a_record_that_cannot_be_read_is_left_alone_and_others_are_not(tmp_path: Path) -> None:
    root = Root(tmp_path / "root")
    root.prepare()
    for name in ("broken", "fine"):
        root.home(name).path.mkdir()
    (root.home("broken").path / "record.json").write_text("{")
    root.home("fine").keep(Record("fine", Program("x"), 1.0, phase="ended"))
    with pytest.raises(UsageError, match="what a server wrote"):
        root.home("broken").record()
    supervisor = Supervisor(root, [tmp_path], Rules())
    supervisor.begin()
    try:
        assert supervisor.names() == ["fine"]
    finally:
        supervisor.end(leave=True)
    assert (root.home("broken").path / "record.json").read_text() == "{"


def test_a_name_is_not_given_away_while_a_process_without_a_record_has_it(tmp_path: Path) -> None:
    root = Root(tmp_path / "root")
    root.prepare()
    home = root.home("shop")
    home.path.mkdir()
    (home.path / "record.json").write_text("{")
    held = home.lock.take()
    assert held is not None
    program = tmp_path / "shop.py"
    program.write_text("")
    supervisor = Supervisor(root, [tmp_path], Rules())
    supervisor.begin()
    try:
        with pytest.raises(Refusal, match=r"'shop'.* a process.* --name, or end") as caught:
            supervisor.submit("shop", Program(str(program)))
        assert caught.value.status == 409
        assert supervisor.names(everything=True) == []
        assert (home.path / "record.json").read_text() == "{"
    finally:
        os.close(held)
        supervisor.end(leave=True)


def test_what_could_not_be_deleted_can_be_forgotten_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Root(tmp_path / "root")
    root.prepare()
    root.home("shop").path.mkdir()
    root.home("shop").keep(Record("shop", Program("x"), 1.0, phase="killed"))
    supervisor = Supervisor(root, [tmp_path], Rules())
    supervisor.begin()

    def in_use(_path: Path) -> None:
        text = "in use"
        raise OSError(text)

    try:
        with monkeypatch.context() as patch, pytest.raises(OSError, match="in use"):
            patch.setattr(shutil, "rmtree", in_use)
            supervisor.forget("shop")
        supervisor.forget("shop")
        assert supervisor.names(everything=True) == []
    finally:
        supervisor.end(leave=True)
    assert not root.home("shop").path.exists()


def test_whoever_listens_where_a_killed_server_did_hears_nothing(tmp_path: Path) -> None:
    root = Root(tmp_path / "root")
    root.prepare()
    make_token(root.token)
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        root.announce(Address("127.0.0.1", stranger.getsockname()[1], os.getpid(), 0.0))
        with pytest.raises(UsageError, match="expected one that answers"):
            Client(root.path).status()
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()


def test_a_lock_that_somebody_only_looks_at_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = Lock(tmp_path / "server")
    looking = [lock.take()]
    take = Lock.take

    def take_while_somebody_looks(tried: Lock) -> int | None:
        held = take(tried)
        if held is None:
            os.close(looking.pop())  # it has seen enough
        return held

    monkeypatch.setattr(Lock, "take", take_while_somebody_looks)
    held = lock.take_patiently()
    assert held is not None
    assert not looking
    os.close(held)
