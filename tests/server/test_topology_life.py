"""The life of a topology on a server: what is decided, whatever was seen."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.server.life import (
    OVER,
    Outcome,
    Program,
    Record,
    Refusal,
    Rules,
    Seen,
    activated,
    killed,
    led,
    revived,
    step,
    submitted,
)

RULES = Rules(restarts=3, delay=1.0, longest_delay=8.0, healthy=60.0, grace=5.0)
NEW = Record("shop", Program("shop.py"), submitted=0.0)
GONE, HERE = Seen(alive=False), Seen(alive=True, running=True)
FAILED = Seen(alive=False, outcome=Outcome("failed", "it broke"))
REFUSED = Seen(alive=False, outcome=Outcome("refused", "no such module"))


def launched(record: Record = NEW, now: float = 0.0) -> Record:
    return step(record, GONE, now, RULES).record


def test_what_was_submitted_is_started_once() -> None:
    first = step(NEW, GONE, 1.0, RULES)
    assert (first.order, first.record.launched) == ("start", 1.0)
    assert step(first.record, Seen(alive=True), 2.0, RULES).order == "nothing"


def test_one_whose_sources_end_is_not_started_again() -> None:
    ended = step(launched(), Seen(alive=False, outcome=Outcome("ended")), 9.0, RULES)
    assert (ended.record.phase, ended.order) == ("ended", "nothing")


def test_one_that_cannot_begin_has_failed_at_once() -> None:
    failed = step(launched(), REFUSED, 1.0, RULES).record
    assert (failed.phase, failed.error) == ("failed", "no such module")


def test_one_that_has_run_before_is_tried_again_when_it_cannot_begin() -> None:
    proven = step(launched(), HERE, 1.0, RULES).record
    assert step(proven, REFUSED, 2.0, RULES).record.phase == "waiting"


def test_one_that_dies_is_restarted_later_and_later_and_then_has_failed() -> None:
    record, now, delays = launched(), 0.0, []
    while record.phase != "failed":
        record = step(record, FAILED, now, RULES).record
        if record.phase == "waiting":
            delays.append(record.not_before - now)
            assert step(record, GONE, record.not_before - 0.01, RULES).order == "nothing"
            now = record.not_before
            again = step(record, GONE, now, RULES)
            assert again.order == "start"
            record = again.record
    assert delays == [1.0, 2.0, 4.0]
    assert record.error == "it broke"


def test_deaths_that_are_far_apart_are_not_counted_together() -> None:
    record = step(launched(), FAILED, 0.0, RULES).record
    record = step(record, GONE, 10.0, RULES).record
    assert step(record, HERE, 69.0, RULES).record.failures == 1
    assert step(record, HERE, 70.0, RULES).record.failures == 0


def test_one_that_died_without_a_word_says_so() -> None:
    assert "without a word" in step(launched(), GONE, 1.0, RULES).record.error


def test_one_that_was_stopped_with_its_server_is_started_again() -> None:
    stopped = Seen(alive=False, outcome=Outcome("stopped"))
    again = step(launched(), stopped, 3.0, RULES)
    assert (again.order, again.record.failures) == ("start", 0)


def test_killing_pauses_sources_then_asks_then_forces() -> None:
    ending = killed(launched(), wait=30.0, now=100.0)
    assert (ending.active, ending.phase) == (False, "killing")
    orders = [step(ending, HERE, now, RULES).order for now in (101.0, 130.0, 134.9, 135.0)]
    assert orders == ["nothing", "stop", "stop", "force"]
    assert step(ending, GONE, 135.1, RULES).record.phase == "killed"


def test_killing_again_can_only_make_it_sooner() -> None:
    ending = killed(launched(), wait=30.0, now=100.0)
    assert killed(ending, wait=0.0, now=101.0).kill_at == 101.0
    assert killed(ending, wait=300.0, now=101.0).kill_at == 130.0


def test_one_that_waits_to_be_restarted_is_killed_at_once() -> None:
    waiting = step(launched(), FAILED, 0.0, RULES).record
    ending = killed(waiting, wait=30.0, now=0.1)
    assert step(ending, GONE, 0.1, RULES).record.phase == "killed"


@pytest.mark.parametrize("phase", sorted(OVER))
def test_a_name_is_free_when_its_topology_is_over(phase: str) -> None:
    over = msgspec.structs.replace(NEW, phase=phase)
    assert submitted(over, NEW) is NEW
    with pytest.raises(Refusal, match="one that runs"):
        killed(over, 1.0, 0.0)
    with pytest.raises(Refusal, match="one that runs"):
        activated(over, active=False)


@pytest.mark.parametrize("phase", ["running", "waiting", "killing"])
def test_a_name_is_taken_while_its_topology_lives(phase: str) -> None:
    with pytest.raises(Refusal, match="--name") as refused:
        submitted(msgspec.structs.replace(NEW, phase=phase), NEW)
    assert refused.value.status == 409


def test_a_policy_is_noted_with_who_asked_and_not_for_what_ends() -> None:
    noted = led(NEW, "ds2", "a test")
    assert (noted.policy, noted.policy_by, noted.phase) == ("ds2", "a test", NEW.phase)
    for ending in (killed(NEW, 0.0, 1.0), msgspec.structs.replace(NEW, phase="ended")):
        with pytest.raises(Refusal) as refused:
            led(ending, "ds2", "a test")
        assert refused.value.status == 409


def test_what_is_being_killed_is_not_activated() -> None:
    with pytest.raises(Refusal, match="one that ends"):
        activated(killed(NEW, 10.0, 0.0), active=True)


OUTCOMES = st.none() | st.builds(
    Outcome, st.sampled_from(["ended", "stopped", "refused", "failed"]), st.just("why")
)
SEEN = st.builds(Seen, st.booleans(), st.booleans(), OUTCOMES)
ASKED = st.sampled_from(["look", "look", "look", "kill", "pause", "server restarts"])


@given(st.lists(st.tuples(ASKED, SEEN, st.floats(0, 20)), max_size=40))
def test_whatever_happens(happens: list[tuple[str, Seen, float]]) -> None:
    """Nothing is started beside another one, after it is over, or while it is being killed."""
    record, now = NEW, 0.0
    for asked, seen, passed in happens:
        now += passed
        before = record
        if asked == "kill" and not record.over:
            record = killed(record, passed, now)
        elif asked == "pause" and not record.over and record.phase != "killing":
            record = activated(record, active=not record.active)
        elif asked == "server restarts":
            record = revived(record)
        made = step(record, seen, now, RULES)
        assert msgspec.json.decode(msgspec.json.encode(made.record), type=Record) == made.record
        if made.order == "start":
            assert not seen.alive
            assert record.phase in ("running", "waiting")
            assert now >= record.not_before  # time only goes forward here
        if made.order in ("stop", "force"):
            assert seen.alive
            assert record.phase == "killing"
            assert now >= record.kill_at
        if before.over:
            assert made.order == "nothing"
            assert made.record == before
        assert made.record.failures <= RULES.restarts + 1
        assert made.record.active or made.record.phase == "killing" or not record.active
        assert made.reason or made.order == "nothing"
        record = made.record
