"""What a reconfiguration has come to is said with how far off that may be."""

from __future__ import annotations

import pytest
from localities import even, pair_counts

from thalweg.control.achieved import PATIENCE, Achieved
from thalweg.control.rerouting import Seen

TABLES = even(2)
TOGETHER = {name: table.with_keys({"x": 1, "y": 0}) for name, table in TABLES.items()}


def seen(tuples: float, burst: int = 1) -> Seen:
    """Three of four tuples have two equal keys, which have one place in the tables."""
    counts = pair_counts(("x", "x", 0.75 * tuples), ("x", "y", 0.25 * tuples))
    return Seen(0.0, 1.0, {("a", "b"): counts}, burst=burst)


def test_it_is_measured_on_thousands_of_tuples() -> None:
    achieved = Achieved(0.0)
    for _ in range(4):
        assert not achieved.is_known(1.0)
        achieved.note(seen(1250))
    assert achieved.is_known(1.0)
    score = achieved.score(TOGETHER)
    assert score is not None
    assert score.locality == pytest.approx(0.75)
    assert score.error == pytest.approx(1 / 5000**0.5)


def test_neighbours_may_all_be_alike_so_more_of_them_are_needed() -> None:
    achieved = Achieved(0.0)
    achieved.note(seen(5000, burst=64))
    assert not achieved.is_known(1.0)
    achieved.note(seen(64 * 400, burst=64))
    assert achieved.is_known(1.0)


def test_what_there_is_counts_when_it_was_waited_for_long_enough() -> None:
    achieved = Achieved(5.0)
    achieved.note(seen(3200, burst=64))
    assert not achieved.is_known(5.0 + 0.9 * PATIENCE)
    assert achieved.is_known(5.0 + PATIENCE)
    score = achieved.score(TOGETHER)
    assert score is not None
    assert score.error == pytest.approx(1 / 50**0.5)


@pytest.mark.parametrize("few", [seen(99), seen(640, burst=64)])
def test_a_few_tuples_say_nothing(few: Seen) -> None:
    achieved = Achieved(0.0)
    achieved.note(few)
    assert achieved.score(TOGETHER) is None


def test_streams_whose_ends_have_no_tables_any_more_do_not_count() -> None:
    achieved = Achieved(0.0)
    achieved.note(seen(5000))
    assert achieved.score({"b": TOGETHER["b"]}) is None
