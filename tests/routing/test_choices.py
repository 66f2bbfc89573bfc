"""More than two tasks for heavy keys: what is counted, what is needed, and how even it gets."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg import groupings
from thalweg.blocks import Block, Origin
from thalweg.groupings import Grouping
from thalweg.hashing import Hashes, hash_columns
from thalweg.routing.choices import Frequent, HeavyChoices, TwoChoices, filled, needed_choices
from thalweg.routing.routers import make_router
from thalweg.routing.table import RoutingTable

BLOCKS = st.lists(st.lists(st.integers(0, 12), max_size=30), max_size=8)


def hashes(keys: list[int]) -> Hashes:
    return hash_columns([pa.array(keys, pa.int64())])


def zipf(exponent: float, rows: int = 40_000) -> list[int]:
    drawn = np.random.default_rng(7).zipf(exponent, rows)
    return np.minimum(drawn, 100_000).tolist()


# --- what is counted ---------------------------------------------------------------------------


@given(blocks=BLOCKS, capacity=st.integers(1, 6))
def test_counts_are_never_too_high_and_too_low_by_a_bounded_share(
    blocks: list[list[int]], capacity: int
) -> None:
    seen, exact = Frequent.none(capacity), Counter[int]()
    for block in blocks:
        given_now = np.array(block, dtype=np.uint64)
        seen, exact = seen.plus(given_now), exact + Counter(block)
    assert len(seen.hashes) <= capacity
    assert seen.total == exact.total()
    kept = dict(zip(seen.hashes.tolist(), seen.counts.tolist(), strict=True))
    for key, number in exact.items():
        assert number - seen.total / (capacity + 1) <= kept.get(key, 0) <= number
    assert kept.keys() <= exact.keys()


# --- what is needed ----------------------------------------------------------------------------

SHARES = st.lists(st.floats(0.01, 0.5), min_size=1, max_size=12).map(
    lambda given_: np.array(given_) / max(sum(given_), 1.0)
)


@given(shares=SHARES, tasks=st.integers(1, 40))
def test_a_heavy_key_gets_tasks_for_its_share_and_no_more_than_there_are(
    shares: np.ndarray, tasks: int
) -> None:
    choices = needed_choices(shares, tasks)
    assert min(2, tasks) <= choices <= tasks
    assert choices == tasks or shares.max() <= 1.05 * choices / tasks


def test_without_heavy_keys_two_choices_do() -> None:
    assert needed_choices(np.empty(0), tasks=50) == 2


# --- who gets it -------------------------------------------------------------------------------


@given(loads=st.lists(st.integers(0, 20), min_size=1, max_size=6), rows=st.integers(0, 60))
def test_rows_are_shared_as_if_each_went_to_the_least_loaded(loads: list[int], rows: int) -> None:
    one_by_one = list(loads)
    for _ in range(rows):
        one_by_one[one_by_one.index(min(one_by_one))] += 1
    shares = filled(loads, rows)
    assert min(shares) >= 0
    assert sum(shares) == rows
    after = [load + share for load, share in zip(loads, shares, strict=True)]
    assert sorted(after) == sorted(one_by_one)


@given(blocks=BLOCKS, tasks=st.integers(1, 9))
def test_loads_are_what_was_given(blocks: list[list[int]], tasks: int) -> None:
    choices, given_ = HeavyChoices(tasks), Counter[int]()
    for block in blocks:
        given_.update(choices.choose(hashes(block)).tolist())
    assert choices.sent == [given_[task] for task in range(tasks)]


def test_light_keys_have_the_two_tasks_that_they_have_without_heavy_ones() -> None:
    rows = ["hot"] * 3000 + [f"w{n % 997}" for n in range(3000)]
    keys = hash_columns([pa.array(rows)])
    tasks = tasks_of(HeavyChoices(12), keys)
    two = {int(key): allowed(int(key), 12) for key in keys}
    hot = int(keys[0])
    assert len(tasks.pop(hot)) > 2
    assert all(found <= two[key] for key, found in tasks.items())


def test_a_key_that_becomes_heavy_keeps_the_tasks_that_it_has() -> None:
    hot = hash_columns([pa.array(["hot"] * 900)])
    others = hash_columns([pa.array([f"w{n}" for n in range(900)])])
    choices, found = HeavyChoices(10), []
    for share in (0, 20, 300, 900):
        given_ = choices.choose(np.concatenate((others, hot[:share])))
        found.append(set(given_[len(others) :].tolist()))
    assert allowed(int(hot[0]), 10) <= found[-1]
    assert len(found[-1]) > 2
    assert found[1] <= found[2] <= found[3]


def test_a_handful_of_tuples_has_no_heavy_keys() -> None:
    few = hashes([1, 2, 3, 1])
    assert HeavyChoices(8).choose(few).tolist() == TwoChoices(8).choose(few).tolist()


def allowed(key: int, tasks: int) -> set[int]:
    """Give the two tasks of a key by having it come often."""
    return set(TwoChoices(tasks).choose(np.full(10, key, np.uint64)).tolist())


def tasks_of(choices: TwoChoices, keys: Hashes) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        for key, task in zip(part.tolist(), choices.choose(part).tolist(), strict=True):
            found.setdefault(key, set()).add(task)
    return found


# --- how even it gets --------------------------------------------------------------------------


def imbalance(grouping: Grouping, keys: list[int], tasks: int, block: int = 4000) -> float:
    router = make_router(grouping, RoutingTable.even(tasks))
    loads = [0] * tasks
    for start in range(0, len(keys), block):
        batch = pa.record_batch({"key": keys[start : start + block]})
        for task, part in router.route(Block.of(batch, Origin("sender"))):
            loads[task] += len(part)
    return max(loads) * tasks / sum(loads)


@pytest.mark.parametrize("tasks", [8, 20])
def test_much_skew_is_balanced_where_two_choices_are_not_enough(tasks: int) -> None:
    keys = zipf(2.0)
    assert imbalance(groupings.Fields(("key",)), keys, tasks) > 3
    assert imbalance(groupings.PartialKey(("key",)), keys, tasks) > 1.3
    assert imbalance(groupings.PartialKey(("key",), "heavy"), keys, tasks) <= 1.2


@pytest.mark.parametrize("exponent", [1.1, 1.5, 3.0])
@pytest.mark.parametrize("block", [100, 40_000])
def test_it_is_as_even_with_other_skews_and_sizes_of_blocks(exponent: float, block: int) -> None:
    heavy = groupings.PartialKey(("key",), "heavy")
    assert imbalance(heavy, zipf(exponent), tasks=16, block=block) <= 1.2
