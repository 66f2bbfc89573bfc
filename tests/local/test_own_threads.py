"""Bolts that are bound to a thread: each task is called in one, whoever does the work."""

from __future__ import annotations

import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.runtimes.local import own_threads
from thalweg.runtimes.local.effort import Effort
from thalweg.runtimes.local.own_threads import OwnThread, is_bound
from thalweg.runtimes.local.runtime import Local

MANY = 400
WAYS: dict[str, dict[str, Any]] = {
    "hybrid": {"queue": "hybrid"},
    "partitioned": {"queue": "partitioned"},
    "shared": {"queue": "shared"},
    "executors": {"assigning": "executors"},
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
#: By object, since each task has its own: the threads in which it was called.
Seen = dict[int, set[int]]


class Kept:
    """Where bolts note in which threads they are called; tasks have it in common."""

    def __init__(self) -> None:
        self.seen: Seen = {}

    def note(self, bolt: object) -> None:
        self.seen.setdefault(id(bolt), set()).add(threading.get_ident())

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        return self


class Rows(tw.Bolt):
    """Writes to a database, and reads it at the end."""

    outputs = {"n": int}

    def __init__(self, kept: Kept) -> None:
        self.kept = kept

    def prepare(self, context: tw.TaskContext) -> None:
        self.kept.note(self)
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table seen (n int)")

    def process(self, t: Any) -> None:
        self.kept.note(self)
        self.db.execute("insert into seen values (?)", (t.n,))

    def process_end(self) -> None:
        self.kept.note(self)
        for (n,) in self.db.execute("select n from seen").fetchall():
            self.emit(n)

    def cleanup(self) -> None:
        self.kept.note(self)
        self.db.close()


class Blocks(tw.BlockBolt):
    """Does the same with blocks."""

    outputs = {"n": int}

    def __init__(self, kept: Kept) -> None:
        self.kept = kept

    def prepare(self, context: tw.TaskContext) -> None:
        self.kept.note(self)

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.kept.note(self)
        return batch

    def cleanup(self) -> None:
        self.kept.note(self)


def run(bolt: tw.Bolt | tw.BlockBolt, way: dict[str, Any]) -> list[int]:
    out: list[tuple[int]] = []
    builder = tw.TopologyBuilder("bound")
    builder.add_spout("numbers", tw.items(range(MANY)), fields={"n": int})
    builder.add_bolt("bolt", bolt, degree=3).shuffle("numbers")
    builder.add_bolt("out", tw.collect(out)).global_("bolt")
    builder.build().run(on=Local(workers=4, block_rows=8, most_block_rows=8, **way))
    return sorted(n for (n,) in out)


@every_way
@pytest.mark.parametrize("kind", [Rows, Blocks])
def test_a_task_with_a_prepare_of_its_own_is_called_in_one_thread(
    way: dict[str, Any], kind: Callable[[Kept], Any]
) -> None:
    kept = Kept()
    assert run(kind(kept), way) == list(range(MANY))
    assert [len(threads) for threads in kept.seen.values()] == [1, 1, 1]
    assert len(set.union(*kept.seen.values())) == 3  # and each has another


def test_a_bolt_may_say_that_any_thread_will_do() -> None:
    class Anywhere(Rows):
        one_thread = False

        def prepare(self, context: tw.TaskContext) -> None:
            self.kept.note(self)
            self.db = sqlite3.connect(":memory:", check_same_thread=False)
            self.db.execute("create table seen (n int)")

    kept = Kept()
    assert run(Anywhere(kept), WAYS["executors"]) == list(range(MANY))
    assert all(len(threads) > 1 for threads in kept.seen.values())


def test_a_bolt_that_gets_nothing_ready_is_called_by_workers() -> None:
    class Plain(tw.Bolt):
        def process(self, t: Any) -> None: ...

    class Later(Rows): ...

    class Said(Plain):
        one_thread = True

    assert not is_bound(Plain)
    assert not is_bound(type(tw.stdout()))
    assert is_bound(Later)
    assert is_bound(Said)


def test_an_error_in_its_own_thread_names_the_line_of_the_user() -> None:
    class Raises(Rows):
        def process(self, t: Any) -> None:
            raise ValueError("seven")  # here

    with pytest.raises(tw.ThalwegError, match="ValueError: seven") as caught:
        run(Raises(Kept()), {})
    assert "Raises.process" in str(caught.value)


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()
    run(Rows(Kept()), {})
    assert threading.active_count() == before


def test_what_is_called_inside_of_a_call_stays_in_its_thread() -> None:
    own = OwnThread("own")
    inner = own.call(lambda: own.call(threading.get_ident))
    assert inner == own.call(threading.get_ident) != threading.get_ident()
    own.close()
    assert own.call(threading.get_ident) == threading.get_ident()  # there is no other any more


def test_what_it_raises_is_raised_here_whatever_that_is() -> None:
    own = OwnThread("own")

    def leaves() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        own.call(leaves)
    assert own.call(len, "abc") == 3
    own.close()


def interrupted(own: OwnThread, call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody call, and Ctrl-C come instead of the answer."""

    class Interrupted(SimpleQueue):  # type: ignore[type-arg]  # of answers
        def get(self, *_: Any) -> Any:
            raise KeyboardInterrupt

    own.call(int)  # its thread has begun with a queue that is none of these
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(own_threads, "SimpleQueue", Interrupted)
        own.call(call)


def test_the_next_call_waits_for_what_a_caller_has_left_and_is_made_in_the_same_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, go, order = OwnThread("own"), threading.Event(), list[str]()

    def long() -> None:
        go.wait()
        order.append("long")

    interrupted(own, long, monkeypatch)
    go.set()
    order.append(own.call(lambda: threading.current_thread().name))
    own.close()
    assert order == ["long", "own"]


def test_nobody_waits_for_ever_for_what_a_caller_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_threads, "_LINGER", 0.0)
    own, go, done = OwnThread("own"), threading.Event(), threading.Event()

    def long() -> None:
        go.wait()
        done.set()

    interrupted(own, long, monkeypatch)
    assert own.call(threading.get_ident) == threading.get_ident()
    own.close()
    assert not done.is_set()
    go.set()
    assert own._thread is not None
    own._thread.join()
    assert done.is_set()


def test_somebody_may_call_and_close_while_another_waits_for_an_answer() -> None:
    for _ in range(300):
        own, begun, got = OwnThread("own"), threading.Event(), list[str]()

        def calls(own: OwnThread = own, begun: Any = begun, got: list[str] = got) -> None:
            got.append(own.call(lambda: begun.set() or "first"))
            got.append(own.call(lambda: "second"))

        other = threading.Thread(target=calls)
        other.start()
        begun.wait()
        assert own.call(lambda: "mine") == "mine"
        own.close()
        other.join()
        assert got == ["first", "second"]


class Committing(tw.Bolt):
    """Stops the program, as Ctrl-C does, at its third tuple, and keeps what it was given."""

    def __init__(self, path: str) -> None:
        self.path = path

    def prepare(self, context: tw.TaskContext) -> None:
        self.db = sqlite3.connect(self.path)
        self.db.execute("create table seen (n int)")

    def process(self, t: Any) -> None:
        self.db.execute("insert into seen values (?)", (t.n,))
        if t.n == 2:
            signal.raise_signal(signal.SIGINT)

    def cleanup(self) -> None:
        self.db.commit()
        self.db.close()


def test_cleanup_after_ctrl_c_is_called_in_the_thread_of_the_task(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.db")
    builder = tw.TopologyBuilder("bound")
    builder.add_spout("numbers", tw.items(range(MANY)), fields={"n": int})
    builder.add_bolt("bolt", Committing(path)).shuffle("numbers")
    with pytest.raises(KeyboardInterrupt) as caught:
        builder.build().run()
    assert not getattr(caught.value, "__notes__", [])
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("select max(n) >= 2 from seen").fetchone() == (1,)


class Bound:
    """A hook with something that is of use in one thread only."""

    def prepare(self, context: tw.TaskContext) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table seen (n int)")

    def bolt_ack(self, info: Any) -> None:
        self.db.execute("insert into seen values (?)", (info.tuple.n,))

    def cleanup(self) -> None:
        assert self.db.execute("select count(*) from seen").fetchone() == (MANY,)
        self.db.close()


def test_hooks_of_a_task_are_called_in_its_thread_to_the_end() -> None:
    builder = tw.TopologyBuilder("bound")
    builder.add_spout("numbers", tw.items(range(MANY)), fields={"n": int})
    builder.add_bolt("bolt", Rows(Kept()), hooks=[Bound()]).shuffle("numbers")
    builder.build().run()


def test_work_of_the_other_thread_counts_as_that_of_the_caller() -> None:
    own, before = OwnThread("own"), Effort.now()

    def works() -> Effort:
        begin = Effort.now()
        while Effort.now().cpu - begin.cpu < 0.02:
            pass
        return Effort.now() - begin

    spent = own.call(works)
    assert (Effort.now() - before).cpu >= spent.cpu
    own.close()
