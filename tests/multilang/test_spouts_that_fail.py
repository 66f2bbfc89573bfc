"""A spout's child that dies is replaced, also when the next one dies before it has begun."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from children import RUNTIMES, Seen, collecting, python, run

import thalweg as tw
from thalweg.anchored import AnchoredBolt
from thalweg.events import Activated, ChildSaid, Event, Progress
from thalweg.multilang import ShellSpout
from thalweg.multilang.child import ChildError
from thalweg.topology import Topology

#: What came of the run at hand.
ROWS: list[str] = []


def spouting(folder: Path, *ways: str, **settings: Any) -> Topology:
    """Make a topology whose source dies once at each of some commands."""
    ROWS.clear()
    folder.mkdir()
    builder = tw.TopologyBuilder("spouting")
    command = python("odd_spout.py", str(folder), *ways)
    builder.add_spout("words", ShellSpout(command, ["word"], **settings))
    builder.add_bolt("out", collecting(ROWS)).shuffle("words")
    return builder.build()


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize(
    "ways",
    [("next",), ("activate", "activate"), ("next", "activate"), ("next", "activate", "next")],
)
def test_each_child_that_dies_is_replaced(on: str, ways: tuple[str, ...], tmp_path: Path) -> None:
    seen = run(spouting(tmp_path / "deaths", *ways), on, ROWS)
    assert ROWS == ["to", "be"]
    assert len(seen.notices) == len(ways)


@pytest.mark.parametrize("on", RUNTIMES)
def test_children_that_die_before_they_have_begun_count_as_well(on: str, tmp_path: Path) -> None:
    topology = spouting(tmp_path / "deaths", "next", "activate", "activate", restarts=2)
    with pytest.raises(ChildError, match=r"component 'words', task 0: .*failed, 3 times in a row"):
        run(topology, on)


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("program", ["slow_to_fail.py", "ends_in_next.py"])
def test_children_count_that_fail_late_or_with_something_sent(program: str, on: str) -> None:
    builder = tw.TopologyBuilder("failing")
    spout = ShellSpout(python(program), ["word"], restarts=2)
    builder.add_spout("words", spout)
    builder.add_bolt("out", collecting([])).shuffle("words")
    with pytest.raises(ChildError, match=r"component 'words', task 0: .*failed, 3 times in a row"):
        run(builder.build(), on)


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("when", ["activate", "next"])
def test_a_child_that_only_logs_for_too_long_is_replaced(
    when: str, on: str, tmp_path: Path
) -> None:
    builder = tw.TopologyBuilder("chatting")
    command = python("chatting.py", when, str(tmp_path / "done"))
    builder.add_spout("words", ShellSpout(command, ["word"], timeout=1.5))
    rows: list[str] = []
    builder.add_bolt("out", collecting(rows)).shuffle("words")
    seen = run(builder.build(), on)
    assert rows == ["to", "be"]
    assert "said nothing of its work for 1.5 s" in seen.notices[0]


class Keeping(AnchoredBolt):
    """Holds the first five tuples until others come; then they are done, or fail, as is said."""

    def __init__(self, ok: bool, seen: list[int]) -> None:
        self.ok, self.seen = ok, seen

    def __deepcopy__(self, memo: dict[int, Any]) -> Keeping:
        return self

    def prepare(self, context: Any) -> None:
        self.held: list[int] = []

    def process_tuples(self, first: int, block: Any) -> None:
        for number, value in enumerate(block.values("n"), first):
            self.seen.append(value)
            if len(self.seen) <= 5:
                self.held.append(number)
                continue
            while self.held:
                (self.ack if self.ok else self.fail)(self.held.pop())
            self.ack(number)


def forgetting(tmp_path: Path, how: str, ok: bool, seen: list[int]) -> Topology:
    """Make a topology whose spout dies with five tuples open, which end for its successor."""
    builder = tw.TopologyBuilder("forgetting")
    command = python("forgetful_spout.py", str(tmp_path / "mark"), how)
    builder.add_spout("numbers", ShellSpout(command, ["n"]))
    builder.add_bolt("out", Keeping(ok, seen)).shuffle("numbers")
    return builder.build()


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_successor_hears_of_no_tuple_that_another_has_sent_and_is_done(
    on: str, tmp_path: Path
) -> None:
    seen = run(forgetting(tmp_path, "dies", True, had := []), on)
    assert sorted(had) == list(range(10))
    assert seen.said("numbers") == []
    assert len(seen.notices) == 1


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_successor_may_send_again_what_another_has_sent_and_has_failed(
    on: str, tmp_path: Path
) -> None:
    seen = run(forgetting(tmp_path, "sends", False, had := []), on)
    assert sorted(had) == sorted([*range(10), *range(5)])
    assert sorted(seen.said("numbers")) == [f"fail {n}" for n in range(5)]
    assert len(seen.notices) == 1


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_successor_that_dies_of_what_another_has_sent_hears_no_more_of_it(
    on: str, tmp_path: Path
) -> None:
    seen = run(forgetting(tmp_path, "dies", False, had := []), on)
    assert set(had) == set(range(10))
    assert len(seen.said("numbers")) == 1
    _, notice = seen.notices
    assert "told no more of what one before it has sent" in notice


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("where", ["next", "ack", "deactivate"])
def test_a_spout_that_waits_when_the_run_is_to_end_is_ended_and_not_begun_anew(
    where: str, on: str
) -> None:
    stop, seen = threading.Event(), Seen()
    builder = tw.TopologyBuilder("waiting")
    spout = ShellSpout(python("waiting_spout.py", where), ["n"], linger=1e-6, timeout=30)
    builder.add_spout("numbers", spout)

    def take(t: Any) -> None:
        seen.rows.append(t.n)
        stop.set()

    builder.add_bolt("out", tw.call(take)).shuffle("numbers")
    builder.build().run(on=on, stop=stop, listen=seen.events.append)
    assert seen.rows == [0]
    (notice,) = seen.notices
    assert "component 'numbers', task 0: " in notice
    assert "has not answered 1e-06 s after the run was to end" in notice
    assert "it is not started anew, since the run is to end" in notice


def hearing(path: Path, rows: list[Any], **settings: Any) -> Topology:
    """Make a topology whose spout is at its first `next` until there is a file."""
    builder = tw.TopologyBuilder("hearing")
    spout = ShellSpout(python("hearing_spout.py", str(path)), ["n"], **settings)
    builder.add_spout("numbers", spout)
    builder.add_bolt("out", collecting(rows)).shuffle("numbers")
    return builder.build()


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_pause_does_not_wait_for_a_child_that_is_long_at_its_next(
    on: str, tmp_path: Path
) -> None:
    path, steering, seen = tmp_path / "go", tw.Steering(), Seen()

    def listen(event: Event) -> None:
        if isinstance(event, ChildSaid) and event.text == "next" and not path.exists():
            steering.deactivate()
        elif isinstance(event, Activated) and not event.active:
            path.touch()
            steering.activate()

    topology = hearing(path, seen.rows, restarts=0, timeout=10)
    topology.run(on=on, steering=steering, listen=listen)
    assert path.exists()
    assert seen.rows == [0]


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_child_that_was_long_at_its_next_hears_of_a_pause_and_what_is_done_meanwhile(
    on: str, tmp_path: Path
) -> None:
    path, steering, seen = tmp_path / "go", tw.Steering(), Seen()
    stop = threading.Event()

    def listen(event: Event) -> None:
        seen.events.append(event)
        if isinstance(event, ChildSaid) and event.text == "next":
            steering.deactivate()
        elif isinstance(event, Activated) and not event.active:
            path.touch()
        elif {"ack", "deactivate"} <= set(seen.said("numbers")):
            steering.activate()
        elif sum(isinstance(each, Progress) for each in seen.events) > 300:
            stop.set()  # it has heard of nothing for long

    hearing(path, seen.rows).run(on=on, steering=steering, listen=listen, stop=stop)
    assert seen.said("numbers") == ["activate", "next", "deactivate", "ack", "activate", "next"]
    assert seen.rows == [0]


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_child_that_was_long_at_its_next_hears_of_both_when_a_run_ends_in_a_pause(
    on: str, tmp_path: Path
) -> None:
    path, steering, stop, seen = tmp_path / "go", tw.Steering(), threading.Event(), Seen()

    def listen(event: Event) -> None:
        seen.events.append(event)
        if isinstance(event, ChildSaid) and event.text == "next":
            steering.deactivate()
        elif isinstance(event, Activated):
            stop.set()
            path.touch()

    hearing(path, seen.rows).run(on=on, steering=steering, listen=listen, stop=stop)
    assert seen.said("numbers")[:3] == ["activate", "next", "deactivate"]
    assert seen.notices == []


def test_an_id_that_a_spout_cannot_be_told_again_is_named() -> None:
    builder = tw.TopologyBuilder("ids")
    builder.add_spout("words", ShellSpout(python("surrogate_id.py"), ["n"], restarts=0))
    builder.add_bolt("out", collecting([])).shuffle("words")
    with pytest.raises(ChildError, match=r"id .*ud800.* of a tuple: expected what json can hold"):
        run(builder.build(), "inline")
