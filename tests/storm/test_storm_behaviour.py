"""Components over the protocol: our classes do what pystorm's do, message for message."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from storm_libraries import NAMES, Parent, component, library


@pytest.fixture(params=NAMES)
def lib(request: pytest.FixtureRequest) -> ModuleType:
    return library(request.param)


@pytest.fixture(params=NAMES)
def both(request: pytest.FixtureRequest) -> tuple[ModuleType, ModuleType]:
    return library(request.param), component(request.param)


@pytest.fixture(params=["json", "msgpack"])
def parent(request: pytest.FixtureRequest, tmp_path: Path) -> Parent:
    made = Parent(tmp_path, request.param)
    made.handshake()
    return made


def commands(heard: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Shorten what a component said."""
    return [
        (
            m["command"],
            *(m[key] for key in ("id", "tuple", "anchors", "stream", "task") if key in m),
        )
        for m in heard
    ]


def sent(*values: Any, anchors: list[str]) -> tuple[Any, ...]:
    return "emit", list(values), anchors


# --- bolts -------------------------------------------------------------------------------------


def test_a_tuple_is_anchored_and_acknowledged(lib: ModuleType, parent: Parent) -> None:
    class Upper(lib.Bolt):
        def process(self, tup: Any) -> None:
            self.emit([tup.values.word.upper()])

    parent.give("a", "ü")
    heard, status = parent.run(Upper)
    assert commands(heard) == [
        sent("A", anchors=["1"]), ("ack", "1"), sent("Ü", anchors=["2"]), ("ack", "2"),
    ]  # fmt: skip
    assert all(m["need_task_ids"] is False for m in heard if m["command"] == "emit")
    assert status == 2  # nobody is there any more


def test_a_bolt_may_acknowledge_and_anchor_by_itself(lib: ModuleType, parent: Parent) -> None:
    class Pairs(lib.Bolt):
        auto_ack = auto_anchor = False
        held: Any = None

        def process(self, tup: Any) -> None:
            if self.held is None:
                self.held = tup
                return
            self.emit([tup.values[0]], stream="pairs", anchors=[self.held, tup.id])
            self.emit(["loose"])
            self.ack(self.held)
            self.fail(tup.id)

    parent.give("a", "b")
    heard, _ = parent.run(Pairs)
    assert commands(heard) == [
        ("emit", ["b"], ["1", "2"], "pairs"),
        sent("loose", anchors=[]),
        ("ack", "1"),
        ("fail", "2"),
    ]


@pytest.mark.parametrize("auto_fail", [True, False])
def test_a_tuple_fails_when_the_bolt_raises_and_the_process_ends(
    lib: ModuleType, parent: Parent, auto_fail: bool
) -> None:
    fails = auto_fail

    class Broken(lib.Bolt):
        auto_fail = fails

        def process(self, tup: Any) -> None:
            text = f"no {tup.values.word}"
            raise ValueError(text)

    parent.give("a", "b")
    heard, status = parent.run(Broken)
    kinds = [m["command"] for m in heard]
    assert kinds == (["error", "sync", "fail"] if auto_fail else ["error", "sync"])
    assert "ValueError" in heard[0]["msg"]
    assert "no a" in heard[0]["msg"]
    assert status == 1


def test_a_bolt_may_go_on_after_an_exception(lib: ModuleType, parent: Parent) -> None:
    class Picky(lib.Bolt):
        exit_on_exception = False

        def process(self, tup: Any) -> None:
            if tup.values.word == "bad":
                raise ValueError

    parent.give("a", "bad", "c")
    heard, status = parent.run(Picky)
    ends = [c for c in commands(heard) if c[0] in ("ack", "fail")]
    assert ends == [("ack", "1"), ("fail", "2"), ("ack", "3")]
    assert status == 2


def test_ticks_and_heartbeats_are_told_from_tuples(lib: ModuleType, parent: Parent) -> None:
    class Ticking(lib.Bolt):
        ticks = 0

        def process_tick(self, tup: Any) -> None:
            assert self.is_tick(tup)
            self.ticks += 1

        def process(self, tup: Any) -> None:
            assert not self.is_tick(tup)
            assert not self.is_heartbeat(tup)
            self.emit([self.ticks])

    parent.heartbeat()
    parent.tick("t1")
    parent.give("a")
    heard, _ = parent.run(Ticking)
    assert commands(heard) == [("sync",), ("ack", "t1"), sent(1, anchors=["1"]), ("ack", "1")]


def test_task_ids_are_waited_for_and_tuples_that_come_first_are_kept(
    lib: ModuleType, parent: Parent
) -> None:
    class Asking(lib.Bolt):
        def process(self, tup: Any) -> None:
            got = self.emit([tup.values.word], need_task_ids=True)
            self.emit([got])
            self.emit(["there"], direct_task=9)

    parent.give("a", "b")
    parent.said += [[7], [8, 9]]
    heard, _ = parent.run(Asking)
    answers = [m["tuple"] for m in heard if m["command"] == "emit"]
    assert answers == [["a"], [[7]], ["there"], ["b"], [[8, 9]], ["there"]]
    assert [m["task"] for m in heard if "task" in m] == [9, 9]


def test_what_is_no_list_of_values_is_not_emitted(lib: ModuleType, parent: Parent) -> None:
    class Wrong(lib.Bolt):
        def process(self, tup: Any) -> None:
            self.emit("text")

    parent.give("a")
    heard, status = parent.run(Wrong)
    assert "TypeError" in heard[0]["msg"]
    assert status == 1


def test_a_component_knows_who_it_is(lib: ModuleType, tmp_path: Path) -> None:
    class Curious(lib.Bolt):
        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.given = storm_conf, context

        def process(self, tup: Any) -> None:
            conf, context = self.given
            assert conf is self.storm_conf
            assert context is self.context
            about = [self.topology_name, self.task_id, self.component_name, bool(self.debug)]
            self.emit([*about, tup.component, tup.stream, tup.task])

    parent = Parent(tmp_path)
    parent.handshake({"topology.debug": True})
    parent.give("a")
    heard, _ = parent.run(Curious)
    told = ["test", 3, "count", True, "words", "default", 1]
    assert told in [m.get("tuple") for m in heard]


def test_logs_and_metrics_are_sent(lib: ModuleType, tmp_path: Path) -> None:
    class Talking(lib.Bolt):
        def process(self, tup: Any) -> None:
            self.report_metric("seen", 1)
            self.log("hello", level="warn")

    parent = Parent(tmp_path)
    parent.handshake()
    parent.give("a")
    heard, _ = parent.run(Talking)
    assert {"command": "metrics", "name": "seen", "params": 1} in heard
    assert {"command": "log", "msg": "hello", "level": 3} in parent.logged


# --- batches -----------------------------------------------------------------------------------


def batching(lib: ModuleType, **attributes: Any) -> Any:
    class Batches(lib.BatchingBolt):
        def group_key(self, tup: Any) -> Any:
            return tup.values.word[0]

        def process_batch(self, key: Any, tups: Any) -> None:
            if key == "x":
                raise ValueError
            self.emit([key, len(tups)])

    for name, value in attributes.items():
        setattr(Batches, name, value)
    return Batches


def test_batches_are_processed_with_the_second_tick_and_anchored_as_a_whole(
    lib: ModuleType, parent: Parent
) -> None:
    parent.give("a1", "b1", "a2")
    parent.tick("t1")
    parent.tick("t2")
    parent.tick("t3")
    heard, _ = parent.run(batching(lib))
    assert commands(heard) == [
        ("ack", "t1"), ("ack", "t2"),
        sent("a", 2, anchors=["1", "3"]), ("ack", "1"), ("ack", "3"),
        sent("b", 1, anchors=["2"]), ("ack", "2"),
        ("ack", "t3"),
    ]  # fmt: skip


def test_more_ticks_between_batches(lib: ModuleType, parent: Parent) -> None:
    parent.give("a1")
    for _ in range(4):
        parent.tick()
    heard, _ = parent.run(batching(lib, ticks_between_batches=3))
    kinds = [m["command"] for m in heard]
    assert kinds == ["ack"] * 4 + ["emit", "ack"]


def test_a_batch_that_raises_fails_with_those_that_were_not_done(
    lib: ModuleType, parent: Parent
) -> None:
    parent.give("a1", "x1", "b1", "x2")
    parent.tick("t1")
    parent.tick("t2")
    heard, status = parent.run(batching(lib))
    ends = {c[1]: c[0] for c in commands(heard) if c[0] in ("ack", "fail")}
    assert ends == {"t1": "ack", "t2": "ack", "1": "ack", "2": "fail", "3": "fail", "4": "fail"}
    assert status == 1


def test_a_bolt_that_goes_on_loses_only_the_batch_that_raised(
    lib: ModuleType, parent: Parent
) -> None:
    parent.give("b1", "x1")
    for name in ("t1", "t2"):
        parent.tick(name)
    heard, status = parent.run(batching(lib, exit_on_exception=False))
    ends = {c[1]: c[0] for c in commands(heard) if c[0] in ("ack", "fail")}
    assert (ends["1"], ends["2"]) == ("ack", "fail")
    assert status == 2


def test_after_a_batch_that_raised_the_others_are_processed(tmp_path: Path) -> None:
    # Ours only: pystorm calls process_batch of the one that raised again and again, without tuples.
    parent = Parent(tmp_path)
    parent.handshake()
    parent.give("x1", "b1")
    for name in ("t1", "t2", "t3", "t4"):
        parent.tick(name)
    heard, _ = parent.run(batching(library("ours"), exit_on_exception=False))
    ends = {c[1]: c[0] for c in commands(heard) if c[0] in ("ack", "fail")}
    assert (ends["1"], ends["2"]) == ("fail", "ack")


def test_a_batch_may_be_acknowledged_by_hand(lib: ModuleType, parent: Parent) -> None:
    parent.give("a1")
    parent.tick("t1")
    parent.tick("t2")
    heard, _ = parent.run(batching(lib, auto_ack=False, auto_anchor=False))
    assert commands(heard) == [("ack", "t1"), ("ack", "t2"), sent("a", 1, anchors=[])]


# --- spouts ------------------------------------------------------------------------------------


def test_a_spout_answers_each_command(lib: ModuleType, parent: Parent) -> None:
    class Words(lib.Spout):
        told: Any = ()

        def activate(self) -> None:
            self.told = (*self.told, "on")

        def deactivate(self) -> None:
            self.told = (*self.told, "off")

        def ack(self, tup_id: Any) -> None:
            self.told = (*self.told, tup_id)

        def fail(self, tup_id: Any) -> None:
            self.told = (*self.told, -tup_id)

        def next_tuple(self) -> None:
            self.emit(list(self.told), tup_id=5, stream="out")

    for command, id_ in (("activate", ""), ("ack", 5), ("fail", 6), ("deactivate", "")):
        parent.command(command, id_)
    parent.command("next")
    heard, _ = parent.run(Words)
    emitted = ("emit", 5, ["on", 5, -6, "off"], "out")
    assert commands(heard) == [("sync",)] * 4 + [emitted, ("sync",)]


def test_a_reliable_spout_sends_again_what_failed_up_to_a_limit(
    lib: ModuleType, parent: Parent
) -> None:
    class Reliable(lib.ReliableSpout):
        max_fails = 2

        def next_tuple(self) -> None:
            self.emit(["a"], tup_id="one")

        def ack(self, tup_id: Any) -> None:
            super().ack(tup_id)
            self.send_message(
                {"command": "metrics", "name": "open", "params": len(self.unacked_tuples)}
            )

    parent.command("next")
    for _ in range(3):
        parent.command("fail", "one")
    heard, _ = parent.run(Reliable)
    assert [c for c in commands(heard) if c[0] == "emit"] == [("emit", "one", ["a"])] * 3
    assert heard[-2:] == [{"command": "metrics", "name": "open", "params": 0}, {"command": "sync"}]


def test_a_reliable_spout_needs_an_id(lib: ModuleType, parent: Parent) -> None:
    class Reliable(lib.ReliableSpout):
        def next_tuple(self) -> None:
            self.emit(["a"])

    parent.command("next")
    heard, status = parent.run(Reliable)
    assert "ValueError" in heard[0]["msg"]
    assert status == 1


def test_tuples_are_named_tuples_of_the_library(both: tuple[ModuleType, ModuleType]) -> None:
    _, module = both
    assert module.Tuple._fields == ("id", "component", "stream", "task", "values")
