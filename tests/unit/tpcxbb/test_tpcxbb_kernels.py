"""The kernels hold for all columns, whichever way they take inside."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.workloads.tpcxbb import kernels
from thalweg.workloads.tpcxbb.profile import measure

SMALL = st.integers(-3, 3)
#: So far apart that three columns do not fit into one number.
WIDE = st.sampled_from([-(2**40), -1, 0, 1, 2**40])


def columns(rows: list[tuple[int, ...]], count: int) -> list[np.ndarray]:
    return list(np.array(rows, dtype=np.int64).reshape(-1, count).T)


@pytest.mark.parametrize("values", [SMALL, WIDE], ids=["packed", "too wide"])
@given(data=st.data())
def test_rows_are_sorted_by_all_their_columns(
    values: st.SearchStrategy[int], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.tuples(values, values, values), max_size=20))
    found = kernels.sort_rows(*columns(rows, 3))
    assert list(zip(*(c.tolist() for c in found), strict=True)) == sorted(rows)


@pytest.mark.parametrize("wide", [1, 2**45], ids=["packed", "too wide"])
@given(rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**20)), max_size=30))
def test_baskets_give_every_pair_of_different_items_once(
    wide: int, rows: list[tuple[int, int]]
) -> None:
    groups, items = columns(rows, 2)
    a, b = kernels.pairs(*kernels.baskets(groups * wide, items))
    expected = [
        pair
        for group in range(5)
        for pair in combinations(sorted({item for g, item in rows if g == group}), 2)
    ]
    assert list(zip(a.tolist(), b.tolist(), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 2, 2**31 - 1])), max_size=30))
def test_pairs_are_counted_in_order(rows: list[tuple[int, int]]) -> None:
    found = kernels.counted_pairs(*columns(rows, 2))
    counts = sorted((*pair, count) for pair, count in Counter(rows).items())
    assert list(zip(*(c.tolist() for c in found), strict=True)) == counts


#: Also beyond what is tallied.
COUNTS = st.one_of(st.integers(0, 5), st.integers(4094, 4099), st.integers(0, 2**60))


@given(st.lists(COUNTS, max_size=40), st.integers(1, 10))
def test_the_top_are_the_highest_and_of_equals_the_first(counts: list[int], size: int) -> None:
    expected = sorted(range(len(counts)), key=lambda row: (-counts[row], row))[:size]
    assert kernels.top(np.array(counts, dtype=np.int64), size).tolist() == expected


def test_nothing_gives_nothing() -> None:
    none = np.zeros(0, dtype=np.int64)
    no = np.zeros(0, dtype=np.bool_)
    assert [len(column) for column in kernels.sort_rows(none, none)] == [0, 0]
    assert [len(column) for column in kernels.pairs(*kernels.baskets(none, none))] == [0, 0]
    assert [len(column) for column in kernels.counted_pairs(none, none)] == [0, 0, 0]
    assert kernels.top(none, 5).tolist() == []
    assert kernels.visits(kernels.cut_sessions(none, none, 9), no, no).pages.tolist() == []
    assert [len(c) for c in kernels.last_viewed(kernels.Clicks(none, none, none, no), 5, 9)] == [
        0,
        0,
    ]
    assert [len(column) for column in kernels.day_sums(none, none, none)] == [0, 0, 0]
    assert kernels.slope(none, none) is None


def test_the_profile_has_every_query() -> None:
    ticks = iter(range(10_000))
    found = list(measure(3_000, clock=lambda: float(next(ticks))))
    assert {each.step.partition(":")[0] for each in found} >= {"Q1", "Q2", "Q3", "Q4", "Q15"}
    assert {each.rate for each in found} == {3_000.0}
