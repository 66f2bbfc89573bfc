"""What bolts of Storm inside the run emit outside ``process``: before it, later, in threads."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from storm_libraries import NAMES, library
from test_storm_hosting import known, rows, run, topology

import thalweg as tw
from thalweg.clock import ManualClock
from thalweg.errors import ThalwegError
from thalweg.events import Noticed
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.local.runtime import Local
from thalweg.storm.hosted_bolts import HostedBolt
from thalweg.topology import Topology

#: More than some blocks hold.
MANY = 60


@pytest.fixture(params=NAMES)
def lib(request: pytest.FixtureRequest) -> ModuleType:
    return library(request.param)


@pytest.fixture(params=["inline", "local"])
def runtime(request: pytest.FixtureRequest) -> Any:
    if request.param == "inline":
        return Inline(clock=ManualClock(), block_rows=7)
    return Local(clock=ManualClock(), workers=2, block_rows=7)


def in_thread(call: Callable[[], Any]) -> None:
    """Call something in a thread, and wait for that."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def with_bolt(lib: ModuleType, bolt: type, many: int = MANY) -> Topology:
    """Give a bolt the numbers from 0 on."""

    class Numbers(lib.Spout):
        outputs = ("n",)
        next = 0

        def next_tuple(self) -> None:
            if self.next == many:
                raise SystemExit
            self.emit([self.next])
            self.next += 1

    class Replaying(lib.ReliableSpout):
        outputs = ("n",)
        next = 0

        def next_tuple(self) -> None:
            if self.next < many:
                self.next += 1
                self.emit([self.next - 1], tup_id=self.next)
            elif not self.unacked_tuples:
                raise SystemExit

        def ack(self, tup_id: Any) -> None:
            self.log(f"done {tup_id}")
            super().ack(tup_id)

        def fail(self, tup_id: Any) -> None:
            self.log(f"failed {tup_id}")
            del self.unacked_tuples[tup_id]

    for cls in (Numbers, Replaying, bolt):
        known(cls)
    source = (Numbers if bolt.auto_ack else Replaying).spec()
    return topology(lib, source=source, bolt=bolt.spec(inputs=[source]))


# --- before the first tuple, and by an emit that was kept ----------------------------------------


@pytest.mark.parametrize("fields", [1, 2, 3])
@pytest.mark.parametrize("many", [0, MANY])
def test_what_initialize_emits_comes_first(
    lib: ModuleType, runtime: Any, fields: int, many: int
) -> None:
    class Early(lib.Bolt):
        outputs = tuple("abc"[:fields])

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.emit(["quick"] * fields)
            assert len(self.emit([["general"]] * fields, need_task_ids=True)) == 1
            self.emit(["quick again"] * fields)

        def process(self, tup: Any) -> None:
            self.emit([tup.values.n] * fields)

    outcome, _ = run(with_bolt(lib, Early, many), runtime)
    sent = ["quick", ["general"], "quick again", *range(many)]
    assert rows(outcome, "bolt") == [(value,) * fields for value in sent]


def test_what_initialize_emits_of_one_that_is_made_anew_comes_in_its_place(
    lib: ModuleType, runtime: Any
) -> None:
    class Anew(lib.Bolt):
        outputs = ("n",)

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.emit(["begin"])

        def process(self, tup: Any) -> None:
            self.emit([tup.values.n])
            if tup.values.n == 3:
                raise ValueError("three")

    outcome, _ = run(with_bolt(lib, Anew, 9), runtime)
    sent = ["begin", 0, 1, 2, 3, "begin", 4, 5, 6, 7, 8]
    assert rows(outcome, "bolt") == [(value,) for value in sent]


@pytest.mark.parametrize("fields", [1, 2, 3])
def test_an_emit_that_was_kept_goes_on_working(lib: ModuleType, runtime: Any, fields: int) -> None:
    class Keeping(lib.Bolt):
        outputs = tuple("abc"[:fields])
        kept: Any = None

        def process(self, tup: Any) -> None:
            if self.kept is None:
                self.kept = self.emit
            self.kept([tup.values.n] * fields)

    outcome, _ = run(with_bolt(lib, Keeping), runtime)
    assert rows(outcome, "bolt") == [(n,) * fields for n in range(MANY)]


# --- in threads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [1, 2, 3])
@pytest.mark.parametrize("more", [{}, {"anchors": []}])
def test_what_a_thread_emits_is_sent_in_its_order(
    lib: ModuleType, runtime: Any, fields: int, more: dict[str, Any]
) -> None:
    class Threaded(lib.Bolt):
        outputs = tuple("abc"[:fields])

        def process(self, tup: Any) -> None:
            in_thread(lambda: self.say(tup.values.n))

        def say(self, n: int) -> None:
            row = [[n]] * fields
            self.emit(row)
            row[0].append("changed behind it")
            self.emit([n] * fields, **more)
            self.emit([str(n)] * fields)

    outcome, _ = run(with_bolt(lib, Threaded), runtime)
    sent = [value for n in range(MANY) for value in ([n], n, str(n))]
    assert rows(outcome, "bolt") == [(value,) * fields for value in sent]


@pytest.fixture
def switching() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
@pytest.mark.parametrize("fields", [2, 3])
def test_rows_of_several_threads_are_neither_torn_nor_lost(
    lib: ModuleType, runtime: Any, fields: int
) -> None:
    class Busy(lib.Bolt):
        outputs = tuple("abc"[:fields])

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.threads = [threading.Thread(target=self.say, args=(name,)) for name in "xyz"]
            for thread in self.threads:
                thread.start()

        def say(self, name: str) -> None:
            for n in range(500):
                self.emit([f"{name}{n}"] * fields)

        def process(self, tup: Any) -> None:
            for n in range(20):
                self.emit([tup.values.n * 20 + n] * fields)
            if tup.values.n == MANY - 1:
                for thread in self.threads:
                    thread.join()

    outcome, _ = run(with_bolt(lib, Busy), runtime)
    found = rows(outcome, "bolt")
    assert [row for row in found if len(set(row)) > 1] == []
    said = Counter(first for first, *_ in found)
    assert said == Counter(
        [*range(20 * MANY), *(f"{name}{n}" for name in "xyz" for n in range(500))]
    )


@pytest.mark.parametrize("more", [{}, {"anchors": []}])
def test_what_a_thread_emits_goes_on_though_no_tuple_comes(
    lib: ModuleType, runtime: Any, more: dict[str, Any]
) -> None:
    go, said, seen = threading.Event(), threading.Event(), threading.Event()
    seen_by_then = []

    class Patient(lib.Spout):
        outputs = ("n",)
        asked = 0

        def next_tuple(self) -> None:
            go.set()
            said.wait()
            self.asked += 1
            if seen.is_set() or self.asked == 1000:
                seen_by_then.append(seen.is_set())
                raise SystemExit

    class Speaking(lib.Bolt):
        outputs = ("n",)

        def initialize(self, storm_conf: Any, context: Any) -> None:
            threading.Thread(target=self.say).start()

        def say(self) -> None:
            go.wait()
            self.emit(["by itself"], **more)
            said.set()

        def process(self, tup: Any) -> None:
            pass

    class Seeing(lib.Bolt):
        outputs = ("n",)

        def process(self, tup: Any) -> None:
            self.emit(list(tup.values))
            seen.set()

    for cls in (Patient, Speaking, Seeing):
        known(cls)
    speaking = Speaking.spec(inputs=[(source := Patient.spec())])
    made = topology(lib, source=source, bolt=speaking, seeing=Seeing.spec(inputs=[speaking]))
    outcome, _ = run(made, runtime)
    assert rows(outcome, "seeing") == [("by itself",)]
    assert seen_by_then == [True]


def test_tuples_may_be_acknowledged_or_let_fail_in_threads(lib: ModuleType, runtime: Any) -> None:
    class Threaded(lib.Bolt):
        outputs = ("n",)
        auto_ack = False

        def process(self, tup: Any) -> None:
            in_thread(lambda: self.finish(tup))

        def finish(self, tup: Any) -> None:
            if tup.values.n % 2:
                self.fail(tup)
            else:
                self.emit([tup.values.n], anchors=[tup])
                self.ack(tup)

    outcome, heard = run(with_bolt(lib, Threaded, 20), runtime)
    assert rows(outcome, "bolt") == [(n,) for n in range(0, 20, 2)]
    ends = Counter(text for text in heard.logged() if text.startswith(("done", "failed")))
    assert ends == Counter(f"{'done' if n % 2 else 'failed'} {n}" for n in range(1, 21))


def test_a_class_with_an_emit_of_its_own_may_use_it_in_threads(
    lib: ModuleType, runtime: Any
) -> None:
    class Own(lib.Bolt):
        outputs = ("n",)

        def emit(self, tup: Any, **more: Any) -> Any:
            return super().emit([f"own {value}" for value in tup], **more)

        def process(self, tup: Any) -> None:
            in_thread(lambda: self.emit(list(tup.values)))

    outcome, _ = run(with_bolt(lib, Own), runtime)
    assert rows(outcome, "bolt") == [(f"own {n}",) for n in range(MANY)]


def test_a_batching_bolt_may_emit_in_threads(lib: ModuleType, runtime: Any) -> None:
    class Gathering(lib.BatchingBolt):
        outputs = ("key", "many")

        def group_key(self, tup: Any) -> Any:
            return tup.values.n % 3

        def process_batch(self, key: Any, tups: Any) -> None:
            in_thread(lambda: self.emit([key, len(tups)]))

    outcome, _ = run(with_bolt(lib, Gathering), runtime)
    assert sorted(rows(outcome, "bolt")) == [(key, MANY // 3) for key in range(3)]


# --- what cannot be done is said -----------------------------------------------------------------


def test_who_gets_a_tuple_is_told_to_no_other_thread(lib: ModuleType, runtime: Any) -> None:
    refused = []

    class Asking(lib.Bolt):
        outputs = ("n",)

        def process(self, tup: Any) -> None:
            in_thread(self.ask)

        def ask(self) -> None:
            with pytest.raises(ThalwegError, match="need_task_ids: expected the thread") as found:
                self.emit([1], need_task_ids=True)
            refused.append(found.value)

    _, heard = run(with_bolt(lib, Asking, 3), runtime)
    assert len(refused) == 3
    assert heard.noticed() == [str(refused[0])]


@pytest.mark.parametrize("row", [[1], [[1]]])
@pytest.mark.parametrize("what", ["emit", "ack", "fail"])
def test_what_a_thread_says_behind_the_end_is_refused_and_told(
    lib: ModuleType, runtime: Any, row: list[Any], what: str
) -> None:
    kept: list[Any] = []

    class Late(lib.Bolt):
        outputs = ("n",)

        def process(self, tup: Any) -> None:
            kept[:] = [getattr(self, what)]

    _, heard = run(with_bolt(lib, Late), runtime)
    assert heard.noticed() == []
    for _ in range(2):
        with pytest.raises(ThalwegError, match="a component at work, got one that has ended"):
            kept[0](row)
    (noticed,) = heard.noticed()
    assert "another thread of component 'bolt', task 0" in noticed


@pytest.mark.parametrize("checkpoint", [True, False])
def test_what_a_thread_has_said_before_a_run_is_stopped_goes_on(
    lib: ModuleType, checkpoint: bool, tmp_path: Path
) -> None:
    stopping, said = threading.Event(), threading.Event()

    class Stop(threading.Event):
        def is_set(self) -> bool:
            if super().is_set():  # and the run hears of it
                stopping.set()
                said.wait()
            return super().is_set()

    class Speaking(lib.Bolt):
        outputs = ("n",)
        stateless = True

        def initialize(self, storm_conf: Any, context: Any) -> None:
            threading.Thread(target=self.say).start()

        def say(self) -> None:
            stopping.wait()
            self.emit([-1])
            said.set()

        def process(self, tup: Any) -> None:
            stop.set()

    stop, found, heard = Stop(), list[Any](), list[Any]()
    builder = tw.TopologyBuilder("stopped")
    builder.add_spout("numbers", tw.items(range(1_000_000_000)), fields={"n": int})
    builder.add_bolt("bolt", HostedBolt(Speaking, {"n": int})).shuffle("numbers")
    builder.add_bolt("out", tw.collect(found)).shuffle("bolt")
    runtime = Local(workers=2, checkpoint=tmp_path if checkpoint else None)
    assert builder.build().run(on=runtime, stop=stop, listen=heard.append).stopped
    assert [t.n for t in found] == [-1]
    assert [event.text for event in heard if isinstance(event, Noticed)] == []


LEAVING = """
import queue, sys, threading, types
from thalweg.storm import Bolt, Spout, Topology, topology_of

parts = sys.modules["parts"] = types.ModuleType("parts")

class Numbers(Spout):
    outputs = ["n"]
    next = 0

    def next_tuple(self):
        if self.next == 100:
            raise SystemExit
        self.next += 1
        self.emit([self.next])

class Leaving(Bolt):
    outputs = list("abc")[:int(sys.argv[2])]

    def initialize(self, storm_conf, context):
        self.left = queue.Queue()
        threading.Thread(target=self.say, args=(self.emit, self.ack), daemon=True).start()

    def say(self, emit, ack):
        while self.left.get():
            emit([1] * len(self.outputs))
            self.logger.info("said")

    def process(self, tup):
        self.left.put(True)
        self.emit([tup.values.n] * len(self.outputs))

for cls in (Numbers, Leaving):
    cls.__module__ = "parts"
    setattr(parts, cls.__name__, cls)

class Words(Topology):
    numbers = Numbers.spec()
    leaving = Leaving.spec(inputs=[numbers])

topology_of(Words).run(on=sys.argv[1])
"""


@pytest.mark.parametrize("on", ["inline", "local"])
@pytest.mark.parametrize("fields", ["1", "2", "3"])
def test_a_thread_that_is_left_when_the_process_ends_keeps_nothing_of_the_run(
    on: str, fields: str
) -> None:
    command = [sys.executable, "-c", LEAVING, on, fields]
    ended = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 (the program above)
    assert b"leaked" not in ended.stderr


@pytest.mark.parametrize("what", ["ack", "fail"])
def test_an_id_that_is_none_is_named(lib: ModuleType, runtime: Any, what: str) -> None:
    class Wrong(lib.Bolt):
        outputs = ("n",)
        auto_ack = False

        def process(self, tup: Any) -> None:
            getattr(self, what)("nosuch")

    expected = f"{what} of tuple 'nosuch': expected a tuple that it has been given"
    with pytest.raises(ThalwegError, match=expected):
        run(with_bolt(lib, Wrong), runtime)


def test_an_anchor_that_is_none_is_named(lib: ModuleType, runtime: Any) -> None:
    class Wrong(lib.Bolt):
        outputs = ("n",)
        auto_ack = False

        def process(self, tup: Any) -> None:
            in_thread(lambda: self.emit([1], anchors=["nosuch"]))

    with pytest.raises(ThalwegError, match="anchor of tuple 'nosuch': expected a tuple"):
        run(with_bolt(lib, Wrong), runtime)
