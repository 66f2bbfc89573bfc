"""Children on Spark: they outlive tasks, and may not keep state that batches cannot take back."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.errors import ThalwegError, TopologyError
from thalweg.events import ChildSaid, Event, Noticed
from thalweg.multilang import ShellBolt
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.storm import BatchingBolt, Bolt, TicklessBatchingBolt
from thalweg.storm.hosted_bolts import HostedBolt

PROGRAMS = Path(__file__).parent.parent / "multilang" / "programs"
PLACES, BATCHES, ROWS = 2, 8, 20


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / program), *arguments]


def on_spark(**settings: Any) -> tw.Spark:
    pump = PumpSettings(rows=ROWS, block_rows=ROWS)
    return tw.Spark(spark_session(), places=PLACES, pump=pump, **settings)


def topology(rows: list[Any], body: ShellBolt, by_key: bool = False) -> Any:
    builder = tw.TopologyBuilder("children")
    builder.add_spout("numbers", tw.items(range(BATCHES * ROWS)), fields={"n": int})
    reads = builder.add_bolt("child", body)
    reads.fields("numbers", "n") if by_key else reads.shuffle("numbers")
    builder.add_bolt(
        "out", tw.call(lambda t: rows.append(t[0] if len(t) == 1 else tuple(t)))
    ).shuffle("child")
    return builder.build()


def test_a_child_serves_many_batches() -> None:
    rows: list[tuple[int, int]] = []
    result = topology(rows, ShellBolt(python("says_pid.py"), ["n", "pid"])).run(on=on_spark())
    assert sorted(n for n, _ in rows) == list(range(BATCHES * ROWS))
    assert result.metrics.batches >= BATCHES
    # At most one for each place in each of Spark's workers, of which there are two.
    assert len({pid for _, pid in rows}) <= PLACES * 2


def test_a_child_with_a_fields_grouping_must_say_that_it_keeps_nothing() -> None:
    with pytest.raises(TopologyError, match="say stateless=True"):
        topology([], ShellBolt(python("odd.py", "0", "nothing"), ["n"]), by_key=True).run(
            on=on_spark()
        )
    rows: list[int] = []
    told: list[Event] = []
    body = ShellBolt(python("odd.py", "0", "nothing"), ["n"], stateless=True)
    topology(rows, body, by_key=True).run(on=on_spark(), listen=told.append)
    assert sorted(rows) == list(range(BATCHES * ROWS))
    assert "about to nothing" in [e.text for e in told if isinstance(e, ChildSaid)]


def with_ids(ended: list[tuple[int, str]]) -> Any:
    """Make a source of numbers with ids that notes how they ended."""

    class Numbers(tw.Spout):
        outputs = {"n": int}

        def __deepcopy__(self, memo: Any) -> Any:
            return type(self)()

        def prepare(self, context: Any) -> None:
            self.next = self.open = 0

        def next_tuple(self) -> None:
            if self.next < COUNT:
                self.emit(self.next, id=self.next)
                self.next += 1
                self.open += 1
            elif not self.open:
                self.finish()

        def ack(self, id: int) -> None:
            self.open -= 1
            ended.append((id, "ack"))

        def fail(self, id: int) -> None:
            self.open -= 1
            ended.append((id, "fail"))

    return Numbers()


COUNT = 50


def gathering(body: Any, ids: bool, rows: list[Any], ended: list[tuple[int, str]]) -> Any:
    builder = tw.TopologyBuilder("gathering")
    if ids:
        builder.add_spout("numbers", with_ids(ended))
    else:
        builder.add_spout("numbers", tw.items(range(COUNT)), fields={"n": int})
    builder.add_bolt("gather", body, degree=2).shuffle("numbers")
    builder.add_bolt("out", tw.call(lambda t: rows.append(t[0]))).shuffle("gather")
    return builder.build()


def hosted(base: type) -> HostedBolt:
    class Gather(base):  # type: ignore[valid-type,misc]  # either of them
        def process_batch(self, key: Any, tups: Any) -> None:
            for tup in tups:
                self.emit([tup.values[0]])

    return HostedBolt(Gather, ["n"])


GATHERING = {
    "by ticks, inside the run": lambda: hosted(BatchingBolt),
    "by time, inside the run": lambda: hosted(TicklessBatchingBolt),
    "by ticks, a child": lambda: ShellBolt(python("holding.py", "9999"), ["n"], tick=1000),
    "by number, a child": lambda: ShellBolt(python("holding.py", "2"), ["n"], tick=1000),
}


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("what", GATHERING)
def test_tuples_that_a_bolt_holds_are_finished_with_their_batch(what: str, ids: bool) -> None:
    rows: list[int] = []
    ended: list[tuple[int, str]] = []
    gathering(GATHERING[what](), ids, rows, ended).run(on=on_spark())
    assert sorted(rows) == list(range(COUNT))
    assert sorted(ended) == ([(n, "ack") for n in range(COUNT)] if ids else [])


@pytest.mark.parametrize("ids", [False, True])
def test_a_batch_whose_tuples_are_held_for_ever_fails_and_says_what_to_do(ids: bool) -> None:
    body = ShellBolt(python("holding.py", "9999"), ["n"], linger=0.2)
    with pytest.raises(ThalwegError, match=r"'gather', at the end of a batch: .*run it on local"):
        gathering(body, ids, [], []).run(on=on_spark())


def test_a_batch_fails_in_which_a_bolt_of_ones_own_would_forget_tuples() -> None:
    class Pairs(tw.AnchoredBolt):
        outputs = ["n"]

        def process_tuples(self, first: int, block: Any) -> None:
            for number in range(first, first + len(block) - 1):
                self.emit([number], anchors=[number])
                self.ack(number)

    with pytest.raises(ThalwegError, match=r"1 that it has neither acknowledged nor let fail"):
        gathering(Pairs(), False, [], []).run(on=on_spark())


def test_a_bolt_that_gathers_until_ticks_what_it_has_acknowledged_is_refused() -> None:
    class Rolling(Bolt):
        outputs = ["n"]

        def process_tick(self, tup: Any) -> None:
            self.emit([1])

    body = HostedBolt(Rolling, ["n"])
    builder = tw.TopologyBuilder("rolling")
    builder.add_spout("numbers", tw.items([1]), fields={"n": int})
    builder.add_bolt("roll", body, tick=1).shuffle("numbers")
    with pytest.raises(TopologyError, match=r"'roll', which does something at ticks: .*on local"):
        builder.build().run(on=on_spark())


@pytest.mark.parametrize("how", ["die", "hang", "half"])
def test_a_child_that_fails_is_replaced_and_no_tuple_is_lost(how: str, tmp_path: Path) -> None:
    rows: list[int] = []
    told: list[Event] = []
    command = python("odd.py", "3", how, str(tmp_path / "once"))
    body = ShellBolt(command, ["n"], timeout=2.0)
    gathering(body, False, rows, []).run(on=on_spark(), listen=told.append)
    assert sorted(rows) == list(range(COUNT))
    assert len([e for e in told if isinstance(e, Noticed) and "started anew" in e.text]) == 1


def test_children_do_not_outlive_the_run() -> None:
    rows: list[tuple[int, int]] = []
    body = ShellBolt(python("says_pid.py"), ["n", "pid"], idle=0.5)
    topology(rows, body).run(on=on_spark())
    for pid in {pid for _, pid in rows}:
        assert has_ended(pid)


def has_ended(pid: int) -> bool:
    """Wait for the end of a process that somebody else started."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [])[0])
    finally:
        os.close(handle)
