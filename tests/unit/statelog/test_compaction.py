"""Compaction: few runs, little rewriting, the same state."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from statelog.building import GONE, part, ref, run, settings
from thalweg.errors import StateError, UsageError
from thalweg.hashing import hash_key
from thalweg.statelog import (
    CompactionLimits,
    Location,
    Merge,
    RunRef,
    Runs,
    Trim,
    VersionedState,
    compact,
    plan,
    replaced,
    write_run,
)


@pytest.fixture
def location(tmp_path: Path) -> Location:
    return Location.of(tmp_path)


def state_of(location: Location, refs: list[RunRef]) -> dict[object, object]:
    opened = [Runs().open(location, ref).part("count") for ref in refs]
    return dict(VersionedState([p for p in opened if p is not None], settings()).items())


def rows_of(location: Location, reference: RunRef) -> int:
    found = Runs().open(location, reference).part("count")
    return 0 if found is None else found.num_rows


# --- planning -------------------------------------------------------------------------------------


def test_nothing_is_planned_while_there_are_few_runs() -> None:
    refs = [ref(f"r{i}") for i in range(12)]
    assert plan(refs) is None
    assert plan([*refs, ref("r12")]) == Merge((*refs, ref("r12")), oldest=True)


def test_a_large_run_is_not_rewritten_for_small_ones() -> None:
    refs = [ref("large", 10_000), *(ref(f"r{i}") for i in range(3))]
    assert plan(refs, CompactionLimits(max_runs=3)) == Merge(tuple(refs[1:]), oldest=False)


def test_a_merge_reaches_back_as_far_as_it_pays() -> None:
    refs = [ref("large", 10_000), ref("a", 100), ref("b", 100), ref("tiny", 10), ref("c", 100)]
    assert plan(refs, CompactionLimits(max_runs=4)) == Merge(tuple(refs[1:]), oldest=False)


@pytest.mark.parametrize("newest", [1, 2**10])
def test_many_runs_at_once_are_brought_below_the_limit(newest: int) -> None:
    refs = [*(ref(f"r{i}", 10 ** (40 - i)) for i in range(38)), ref("x", newest), ref("y", newest)]
    planned = plan(refs, CompactionLimits(max_runs=5))
    assert planned is not None
    assert len(replaced(refs, planned, ref("new"))) <= 5


def test_a_place_keeps_at_least_one_run() -> None:
    with pytest.raises(UsageError, match="max_runs"):
        CompactionLimits(max_runs=0)


def simulate(
    batches: int, size: Callable[[int], int], live: float = math.inf, max_runs: int = 12
) -> tuple[int, float]:
    """Give the most runs there were, and bytes rewritten per byte written."""
    refs: list[RunRef] = []
    written = rewritten = most = 0
    for version in range(batches):
        refs.append(ref(f"r{version}", size(version), version))
        written += refs[-1].size
        planned = plan(refs, CompactionLimits(max_runs))
        if planned:
            merged = int(min(sum(part.size for part in planned.refs), live))
            rewritten += merged
            refs = replaced(refs, planned, ref(f"m{version}", merged, version))
        most = max(most, len(refs))
    return most, rewritten / written


def random_sizes(version: int) -> int:
    return int(10 ** random.Random(version).uniform(3, 7))


@pytest.mark.parametrize(
    ("size", "live"),
    [
        (lambda _: 1000, math.inf),
        (lambda _: 1000, 10**6),
        (lambda version: 10**9 if version == 0 else 1000, 10**9),
        (lambda version: 10**6 if version % 13 == 0 else 1000, math.inf),
        (random_sizes, math.inf),
        (lambda version: 1 + 10**9 // (version + 1) ** 2, math.inf),
    ],
    ids=["growing", "steady", "large base", "bursts", "random", "shrinking"],
)
def test_over_10000_batches_runs_stay_few_and_rewriting_is_bounded(
    size: Callable[[int], int], live: float
) -> None:
    most, amplification = simulate(10_000, size, live)
    assert most <= 12
    assert amplification <= math.log2(10_000)


# --- merging runs ---------------------------------------------------------------------------------


def test_a_merged_run_says_what_its_runs_said(location: Location) -> None:
    refs = [
        run(location, 1, {"a": 1, "b": 1}),
        run(location, 2, {"b": 2, "c": 2}),
        run(location, 3, {"c": GONE}),
    ]
    new = compact(location, Runs(), Merge(tuple(refs), oldest=True), "runs/new")
    assert state_of(location, [new]) == state_of(location, refs) == {"a": 1, "b": 2}
    assert (new.first, new.last, new.keys) == (1, 3, {"count": 2})
    assert all(location.exists(old.name) for old in refs)


def test_a_merge_above_the_oldest_run_still_hides_what_was_deleted(location: Location) -> None:
    refs = [
        run(location, 1, {"a": 1, "b": 1}),
        run(location, 2, {"a": 2}),
        run(location, 3, {"a": GONE}),
    ]
    merge = Merge(tuple(refs[1:]), oldest=False)
    new = compact(location, Runs(), merge, "runs/new")
    assert rows_of(location, new) == 1
    assert state_of(location, replaced(refs, merge, new)) == {"b": 1}


def test_components_that_are_in_some_runs_only_are_kept(location: Location) -> None:
    refs = [
        write_run(location, "1", {"count": part({"a": 1})}, (1, 1)),
        write_run(location, "2", {"total": part({None: 5}), "gone": part({"x": GONE})}, (2, 2)),
    ]
    new = compact(location, Runs(), Merge(tuple(refs), oldest=True), "3")
    assert new.keys == {"count": 1, "total": 1}


def test_expired_rows_and_those_of_others_are_left_out(location: Location) -> None:
    keys = [f"k{i}" for i in range(20)]
    parts = [part(dict.fromkeys(keys, 1), now=1.0), part({"k1": 2}, now=2.0)]
    refs = [
        write_run(location, str(i), {"count": p}, (i, i), shared=True) for i, p in enumerate(parts)
    ]
    whole = Merge(tuple(refs), oldest=True)
    fresh = compact(location, Runs(), whole, "fresh", Trim(expired_before={"count": 1500}))
    assert state_of(location, [fresh]) == {"k1": 2}
    assert fresh.shared
    odd = Trim(owns={"count": lambda hashes: hashes % np.uint64(2) == 1})
    own = compact(location, Runs(), whole, "own", odd)
    assert set(state_of(location, [own])) == {key for key in keys if hash_key(key) % 2}
    assert not own.shared


def test_runs_added_meanwhile_are_kept() -> None:
    old, new, later = [ref("a"), ref("b"), ref("c")], ref("bc"), ref("d")
    merge = Merge((old[1], old[2]), oldest=False)
    assert replaced([*old, later], merge, new) == [old[0], new, later]


@pytest.mark.parametrize("names", ["", "a", "ac", "bac", "xab"])
def test_a_merge_of_runs_that_are_gone_is_refused(names: str) -> None:
    merge = Merge((ref("a"), ref("b")), oldest=True)
    with pytest.raises(StateError, match="drop this merge"):
        replaced([ref(name) for name in names], merge, ref("new"))
