"""Frequent pairs of keys: what a count promises, in whatever order parts are merged."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import StateError
from thalweg.sketches.pairs import PairCounts, merged

Pair = tuple[int, int]
KEYS = st.integers(0, 5) | st.just(2**64 - 1)
BATCHES = st.lists(st.lists(st.tuples(KEYS, KEYS), max_size=30), min_size=1, max_size=6)


def counted(pairs: list[Pair]) -> PairCounts:
    left, right = (np.array([pair[i] for pair in pairs], np.uint64) for i in (0, 1))
    return PairCounts.of(left, right)


def as_dict(counts: PairCounts) -> dict[Pair, float]:
    found = zip(counts.left.tolist(), counts.right.tolist(), counts.count.tolist(), strict=True)
    return {(left, right): count for left, right, count in found}


@given(BATCHES)
def test_with_enough_room_counts_are_exact(batches: list[list[Pair]]) -> None:
    together = merged(map(counted, batches), capacity=49)
    assert as_dict(together) == Counter(pair for batch in batches for pair in batch)
    assert together.lost == 0


@given(BATCHES, st.integers(1, 10), st.randoms(use_true_random=False))
def test_the_bound_holds_for_any_order_of_merging(
    batches: list[list[Pair]], capacity: int, random: object
) -> None:
    parts = [counted(batch) for batch in batches]
    while len(parts) > 1:
        random.shuffle(parts)  # type: ignore[attr-defined]
        parts = [merged(parts[:2], capacity), *parts[2:]]
    (found,) = parts if parts[0].lost else [merged(parts, capacity)]
    truth = Counter(pair for batch in batches for pair in batch)
    kept = as_dict(found)
    assert len(kept) <= capacity
    assert found.total == sum(truth.values())
    assert found.lost <= found.total / (capacity + 1)
    for pair in truth.keys() | kept.keys():
        assert kept.get(pair, 0) <= truth[pair] <= kept.get(pair, 0) + found.lost


@given(BATCHES)
def test_equal_pairs_give_equal_arrays_whatever_their_order(batches: list[list[Pair]]) -> None:
    pairs = [pair for batch in batches for pair in batch]
    one, other = counted(pairs), counted(pairs[::-1])
    for name in ("left", "right", "count"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()


@given(BATCHES)
def test_marginals_add_up_to_what_was_seen(batches: list[list[Pair]]) -> None:
    pairs = [pair for batch in batches for pair in batch]
    counts = counted(pairs)
    for (keys, weights), side in ((counts.left_weights(), 0), (counts.right_weights(), 1)):
        found = dict(zip(keys.tolist(), weights.tolist(), strict=True))
        assert found == Counter(pair[side] for pair in pairs)
        assert keys.tolist() == sorted(keys.tolist())


def test_pairs_that_mix_to_the_same_number_stay_apart() -> None:
    # left * constant ^ swapped(right) is 0 for both.
    constant = 0x9E3779B97F4A7C15
    swapped = (constant >> 32 | constant << 32) & (2**64 - 1)
    assert as_dict(counted([(0, 0), (1, swapped), (0, 0)])) == {(0, 0): 2, (1, swapped): 1}


def test_weights_say_how_many_tuples_a_row_stands_for() -> None:
    keys = np.array([1, 1, 2], np.uint64)
    counts = PairCounts.of(keys, keys, weights=[10, 5, 0])
    assert as_dict(counts) == {(1, 1): 15}
    assert counts.total == 15


def test_rows_that_do_not_fit_together_are_refused() -> None:
    keys = np.array([1, 1, 2], np.uint64)
    with pytest.raises(StateError, match="as many left as right"):
        PairCounts.of(keys, keys[:2])
    with pytest.raises(StateError, match="no weight below 0"):
        PairCounts.of(keys, keys, weights=[1, -1, 1])
    with pytest.raises(StateError, match="at least 1, got 0"):
        merged([], 0)


def test_decay_lets_all_weigh_less() -> None:
    counts = merged([counted([(1, 2)] * 4 + [(3, 4)] * 2 + [(5, 6)])], capacity=2).decayed(0.5)
    assert as_dict(counts) == {(1, 2): 1.5, (3, 4): 0.5}
    assert (counts.total, counts.lost) == (3.5, 0.5)
    assert as_dict(counts.decayed(0)) == {}


def test_the_heaviest_are_those_seen_most() -> None:
    counts = counted([(1, 2)] * 4 + [(3, 4)] * 2 + [(5, 6)])
    assert as_dict(counts.heaviest(2)) == {(1, 2): 4, (3, 4): 2}
    assert counts.heaviest(2).lost == 1
    assert counts.heaviest(3) is counts


@given(BATCHES)
def test_bytes_come_back_the_same(batches: list[list[Pair]]) -> None:
    counts = merged(map(counted, batches), capacity=3)
    found = PairCounts.from_bytes(counts.to_bytes())
    assert as_dict(found) == as_dict(counts)
    assert (found.total, found.lost) == (counts.total, counts.lost)


@given(st.data())
def test_damaged_bytes_are_refused(data: st.DataObject) -> None:
    good = counted([(1, 2), (3, 4)]).to_bytes()
    at = data.draw(st.integers(0, len(good) - 1))
    broken = bytearray(good)
    broken[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(StateError, match="stored pairs of keys"):
        PairCounts.from_bytes(bytes(broken))
    with pytest.raises(StateError):
        PairCounts.from_bytes(good[:at])
