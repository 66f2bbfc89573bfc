"""A learner sees batches go by, and says when keys should get other places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import thalweg as tw
from thalweg.control.learning import Learner, Locality, in_words
from thalweg.control.locality import NoChange, Reroute
from thalweg.control.rerouting import Rerouting, Seen
from thalweg.hashing import hash_key
from thalweg.routing.table import RoutingTable
from thalweg.sketches.pairs import PairCounts

PLACES = 3
EVEN = {name: RoutingTable.even(PLACES) for name in ("first", "second")}


def pairs(keys: range, rows: int = 600, start: int = 0) -> PairCounts:
    """Each first key comes with its own second one."""
    numbers = [keys[(start + n) % len(keys)] for n in range(rows)]
    left = np.array([hash_key(n) for n in numbers], dtype=np.uint64)
    right = np.array([hash_key(f"second {n}") for n in numbers], dtype=np.uint64)
    return PairCounts.of(left, right)


def seen(clock: float, keys: range = range(60), **more: Any) -> Seen:
    given = {"sent": {"first": (60_000, 600)}, "state": {"first": (6_000, 60)}, "work": 1.0}
    return Seen(clock, 1.0, {("first", "second"): pairs(keys)}, **given | more)


def followed(learner: Learner, batches: list[Seen], tables: Any = EVEN) -> list[Rerouting | None]:
    return [learner.after(batch, tables) for batch in batches]


def test_nothing_is_decided_before_it_is_time() -> None:
    learner = Learner(Locality(every=10))
    assert followed(learner, [seen(float(n)) for n in range(10)]) == [None] * 10
    assert learner.last is None


def test_keys_that_occur_together_get_one_place_when_it_is_time() -> None:
    learner = Learner(Locality(every=10))
    *_, decided = followed(learner, [seen(float(n)) for n in range(11)])
    assert decided is not None
    assert isinstance(learner.last, Reroute)
    assert decided.before is not None
    assert decided.predicted is not None
    assert decided.before.locality < 0.6 < decided.predicted.locality
    for n in range(60):
        sides = (("first", hash_key(n)), ("second", hash_key(f"second {n}")))
        first, second = (
            decided.tables[name].places_of(np.array([hash_], dtype=np.uint64))[0]
            for name, hash_ in sides
        )
        assert first == second


def test_it_waits_to_be_asked_where_there_is_no_time() -> None:
    learner = Learner(Locality(every=None))
    assert followed(learner, [seen(n * 1000.0) for n in range(5)]) == [None] * 5
    learner.ask()
    assert learner.after(seen(5000.0), EVEN) is not None


def test_who_asks_where_there_is_one_place_hears_so_though_nothing_is_counted() -> None:
    learner = Learner(Locality(every=None))
    at_one = {name: table.resized(1) for name, table in EVEN.items()}
    assert learner.after(Seen(1.0, 1.0, {}), at_one) is None
    assert learner.last is None
    learner.ask()
    assert learner.after(Seen(2.0, 1.0, {}), at_one) is None
    assert learner.last == NoChange("all keys are at one place already")


def test_nothing_is_decided_while_keys_are_on_their_way() -> None:
    learner = Learner(Locality(every=2))
    assert followed(learner, [seen(float(n), moving=True) for n in range(9)]) == [None] * 9


def test_what_does_not_pay_is_left_and_said() -> None:
    learner = Learner(Locality(every=2))
    heavy = {"first": (10**12, 600), "second": (10**12, 600)}
    batches = [seen(float(n), range(600), state=heavy) for n in range(3)]
    assert followed(learner, batches) == [None] * 3
    assert isinstance(learner.last, NoChange)
    assert "does not pay" in learner.last.reason


def test_what_was_seen_is_kept_until_it_is_enough() -> None:
    few = [Seen(float(n), 1.0, {("first", "second"): pairs(range(60), 30)}) for n in range(20)]
    learner = Learner(Locality(every=1))
    decisions = followed(learner, few)
    assert isinstance(learner.last, Reroute) or any(decisions)


def test_it_is_done_all_the_same_when_forced() -> None:
    learner = Learner(Locality(every=None))
    heavy = {"first": (10**12, 60), "second": (10**12, 60)}
    followed(learner, [seen(float(n), state=heavy) for n in range(3)])
    learner.ask(force=True)
    assert learner.after(seen(4.0, state=heavy), EVEN) is not None


def test_tables_that_are_good_already_stay() -> None:
    learner = Learner(Locality(every=2))
    *_, decided = followed(learner, [seen(float(n)) for n in range(3)])
    assert decided is not None
    assert followed(learner, [seen(float(n)) for n in range(3, 9)], decided.tables) == [None] * 6
    assert isinstance(learner.last, NoChange)


def test_new_keys_join_their_partners_between_decisions() -> None:
    learner = Learner(Locality(every=100, adopt_every=1))
    learner.ask()
    followed(learner, [seen(float(n)) for n in range(2)])
    learner.ask()
    decided = learner.after(seen(2.0), EVEN)
    assert decided is not None
    known, new = pairs(range(60)), hash_key("never seen")
    # A new second key comes with a first one that is known.
    both = PairCounts.of(
        np.append(known.left, known.left[:1]), np.append(known.right, np.uint64(new))
    )
    batch = Seen(4.0, 1.0, {("first", "second"): both})
    adopted = learner.after(batch, decided.tables)
    assert adopted is not None
    assert "1 new keys" in adopted.reason
    places = [
        int(adopted.tables[name].places_of(np.array([hash_], dtype=np.uint64))[0])
        for name, hash_ in (("first", known.left[0]), ("second", new))
    ]
    assert places[0] == places[1]
    assert learner.after(Seen(6.0, 1.0, {("first", "second"): both}), adopted.tables) is None


def test_keys_that_are_too_heavy_for_a_place_are_named() -> None:
    learner = Learner(Locality(every=2))
    skewed = [Seen(float(n), 1.0, {("first", "second"): heavy_pairs()}) for n in range(3)]
    followed(learner, skewed)
    assert learner.last is not None
    assert "keys too heavy for a place: one of 'first' with 60.0 %" in in_words(learner.last)
    assert "(spread=True on an aggregate, or partial_key(choices='heavy')" in in_words(learner.last)


def heavy_pairs() -> PairCounts:
    """Three of five tuples have one first key; their second keys differ."""
    numbers = [0 if n % 5 < 3 else n for n in range(600)]
    left = np.array([hash_key(n) for n in numbers], dtype=np.uint64)
    right = np.array([hash_key(f"second {n % 60}") for n in range(600)], dtype=np.uint64)
    return PairCounts.of(left, right)


def test_counting_becomes_rarer_when_it_costs_too_much() -> None:
    learner = Learner(Locality(sampling=0.4, cost=0.02))
    learner.after(seen(0.0, counting=0.08), EVEN)
    assert learner.sampling == pytest.approx(0.075)
    learner.after(seen(1.0, counting=0.001), EVEN)
    assert learner.sampling == pytest.approx(0.15)


def test_counting_becomes_rarer_when_tables_change() -> None:
    learner = Learner(Locality(every=2, sampling=0.4))
    within = [seen(float(n), counting=0.015) for n in range(3)]
    *_, decided = followed(learner, within)
    assert decided is not None
    assert learner.sampling == pytest.approx(0.2)


@pytest.mark.parametrize("wrong", [{"cost": 0}, {"sampling": 2.0}, {"decay": -1.0}])
def test_shares_are_shares(wrong: dict[str, float]) -> None:
    with pytest.raises(tw.UsageError, match=r"locality .*above 0, at most 1"):
        Locality(**wrong)
