"""Routers: each row to exactly one task (All: to every task), the same way every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from property.strategies import KEY_COLUMNS, arrays, content, numbers
from thalweg import groupings
from thalweg.blocks import Block, Origin, merge, positions_of
from thalweg.errors import ThalwegError
from thalweg.groupings import Grouping
from thalweg.hashing import hash_key
from thalweg.keys import canonical, encode_key
from thalweg.routing.routers import KeyRouter, Router, make_router
from thalweg.routing.table import RoutingTable

# --- what is routed ----------------------------------------------------------------------------

#: Views of text cannot be cut by Arrow, and a null column is not a range.
ROUTABLE = {
    type_: values
    for type_, values in KEY_COLUMNS.items()
    if type_ not in (pa.string_view(), pa.binary_view())
}


class Weighed:
    """A custom rule with a state of its own: by number, shifted at each block."""

    def prepare(self, tasks: int) -> None:
        self.tasks, self.shift = tasks, 0

    def choose(self, batch: pa.RecordBatch) -> Sequence[int]:
        self.shift += 1
        return [(n + self.shift) % self.tasks for n in batch.column("number").to_pylist()]


@st.composite
def streams(draw: st.DrawFn) -> list[Block]:
    """Draw a few blocks with the fields a, b and number; targets from 0 to 99."""
    made = []
    types = {name: draw(st.sampled_from(list(ROUTABLE))) for name in ("a", "b")}
    for _ in range(draw(st.integers(1, 4))):
        rows = draw(st.integers(0, 12))
        columns = [draw(arrays({t: ROUTABLE[t]}, rows)) for t in types.values()]
        number = pa.array(draw(numbers(rows, 50)), pa.int64())
        batch = pa.RecordBatch.from_arrays([*columns, number], ["a", "b", "number"])
        origin = Origin("sender", task=draw(st.integers(0, 5)))
        serials = np.arange(rows, dtype=np.int64)
        targets = np.array(draw(numbers(rows, 100)), dtype=np.int64)
        made.append(Block(batch, origin, serials, targets=targets))
    return made


def fresh(name: str) -> Grouping:
    """Make a grouping by name; custom rules have state, so each router gets its own."""
    made: dict[str, Any] = {
        "shuffle": groupings.Shuffle(),
        "none": groupings.NoGrouping(),
        "load_aware": groupings.LoadAware(),
        "fields": groupings.Fields(("a",)),
        "two fields": groupings.Fields(("b", "a")),
        "range": groupings.Fields(("number",), (10, 20, 20.5, 40)),
        "partial_key": groupings.PartialKey(("a",)),
        "heavy keys": groupings.PartialKey(("a",), "heavy"),
        "local_or_shuffle": groupings.LocalOrShuffle(),
        "global": groupings.Global(),
        "direct": groupings.Direct(),
        "custom": groupings.Custom(Weighed()),
        "all": groupings.All(),
    }
    return made[name]


EXCLUSIVE = [
    "shuffle",
    "none",
    "load_aware",
    "fields",
    "two fields",
    "range",
    "partial_key",
    "heavy keys",
    "local_or_shuffle",
    "global",
    "direct",
    "custom",
]
DEGREES = st.integers(1, 7)


def router(name: str, tasks: int) -> Router:
    return make_router(fresh(name), RoutingTable.even(tasks))


def within(stream: list[Block], tasks: int) -> list[Block]:
    """Give the sender's choices that this degree allows."""
    return [Block(**vars(block) | {"targets": block.targets % tasks}) for block in stream]


def routed(name: str, stream: list[Block], tasks: int) -> list[list[tuple[int, list[int]]]]:
    """Say for each block which task got which rows, in the order they were given."""
    made = router(name, tasks)
    return [
        [(task, positions_of(part).tolist()) for task, part in made.route(block)]
        for block in within(stream, tasks)
    ]


# --- complete, exclusive, deterministic --------------------------------------------------------


@pytest.mark.parametrize("name", EXCLUSIVE)
@settings(max_examples=30)  # for each of them
@given(stream=streams(), tasks=DEGREES)
def test_each_row_goes_to_exactly_one_task(name: str, stream: list[Block], tasks: int) -> None:
    made = router(name, tasks)
    for block in within(stream, tasks):
        parts = list(made.route(block))
        assert all(0 <= task < tasks for task, _ in parts)
        assert len({task for task, _ in parts}) == len(parts)
        rows = [row for _, part in parts for row in positions_of(part).tolist()]
        assert sorted(rows) == list(range(len(block)))
        for _, part in parts:
            assert content(part) == content(block.take(positions_of(part)))
            assert (np.diff(part.serials) > 0).all()
            assert part.origin == block.origin
        if parts:
            assert merge([part for _, part in parts]).serials.tolist() == block.serials.tolist()


@given(stream=streams(), tasks=DEGREES)
def test_all_gives_each_row_to_every_task(stream: list[Block], tasks: int) -> None:
    for parts, block in zip(routed("all", stream, tasks), stream, strict=True):
        assert parts == [(task, list(range(len(block)))) for task in range(tasks)]


@pytest.mark.parametrize("name", [*EXCLUSIVE, "all"])
@settings(max_examples=30)  # for each of them
@given(stream=streams(), tasks=DEGREES)
def test_a_router_decides_the_same_way_every_time(
    name: str, stream: list[Block], tasks: int
) -> None:
    assert routed(name, stream, tasks) == routed(name, stream, tasks)


# --- by key ------------------------------------------------------------------------------------


def key_of(block: Block, row: int, names: Sequence[str]) -> bytes:
    values = [block.batch.column(name)[row].as_py() for name in names]
    return encode_key(values[0] if len(values) == 1 else tuple(values))


def tasks_of_keys(name: str, fields: Sequence[str], stream: list[Block], tasks: int) -> Any:
    found: dict[bytes, set[int]] = {}
    for parts, block in zip(routed(name, stream, tasks), stream, strict=True):
        for task, rows in parts:
            for row in rows:
                found.setdefault(key_of(block, row, fields), set()).add(task)
    return found


@given(stream=streams(), tasks=DEGREES)
def test_a_key_has_one_task(stream: list[Block], tasks: int) -> None:
    for name, fields in (("fields", ["a"]), ("two fields", ["b", "a"])):
        found = tasks_of_keys(name, fields, stream, tasks)
        assert all(len(where) == 1 for where in found.values())


@given(stream=streams(), tasks=DEGREES)
def test_a_key_is_where_its_key_group_is(stream: list[Block], tasks: int) -> None:
    table = RoutingTable.even(tasks)
    made = KeyRouter(("a",), table)
    for block in stream:
        for task, part in made.route(block):
            keys = part.batch.column("a").to_pylist()
            groups = [hash_key(key) % len(table.groups) for key in keys]
            assert {int(table.groups[group]) for group in groups} <= {task}


@given(stream=streams(), tasks=DEGREES, data=st.data())
def test_keys_with_a_place_of_their_own_go_there_and_the_others_stay(
    stream: list[Block], tasks: int, data: st.DataObject
) -> None:
    keys = {canonical(value) for block in stream for value in block.batch.column("a").to_pylist()}
    # Keys with one hash are routed alike: -2**63 and 2**63 are the same 64 bits.
    assume(len({hash_key(key) for key in keys}) == len(keys))
    places = st.integers(0, tasks - 1)
    moved = {key: data.draw(places) for key in sorted(keys, key=encode_key)[::2]}
    before = RoutingTable.even(tasks)
    after = before.with_keys(moved)
    assert (after.epoch, after.places) == (before.epoch + 1, tasks)
    for block in stream:
        for task, part in KeyRouter(("a",), after).route(block):
            for key in map(canonical, part.batch.column("a").to_pylist()):
                hashes = np.array([hash_key(key)], dtype=np.uint64)
                assert task == moved.get(key, int(before.places_of(hashes)[0]))


@given(stream=streams(), tasks=DEGREES)
def test_a_partial_key_has_two_tasks_at_most(stream: list[Block], tasks: int) -> None:
    found = tasks_of_keys("partial_key", ["a"], stream, tasks)
    assert all(len(where) <= 2 for where in found.values())


@given(stream=streams(), tasks=DEGREES)
def test_ranges_keep_the_order_of_values(stream: list[Block], tasks: int) -> None:
    bounds = (10, 20, 20.5, 40)
    for parts, block in zip(routed("range", stream, tasks), stream, strict=True):
        values = block.values("number")
        for task, rows in parts:
            for row in rows:
                assert task == min(sum(values[row] >= bound for bound in bounds), tasks - 1)


# --- balance and choice ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["shuffle", "none", "load_aware"])
@settings(max_examples=30)  # for each of them
@given(stream=streams(), tasks=DEGREES)
def test_shares_differ_by_one_at_most_in_a_block_and_over_all_blocks(
    name: str, stream: list[Block], tasks: int
) -> None:
    total: Counter[int] = Counter(dict.fromkeys(range(tasks), 0))
    for parts in routed(name, stream, tasks):
        shares: Counter[int] = Counter(dict.fromkeys(range(tasks), 0))
        for task, rows in parts:
            shares[task] += len(rows)
        total += shares
        assert max(shares.values()) - min(shares.values()) <= 1
    sums = [total[task] for task in range(tasks)]
    assert max(sums) - min(sums) <= 1


@given(places=st.integers(1, 50), groups=st.integers(50, 2000))
def test_an_even_table_gives_even_shares_of_the_key_groups(places: int, groups: int) -> None:
    shares = Counter(RoutingTable.even(places, groups).groups.tolist())
    assert len(shares) == places
    assert max(shares.values()) - min(shares.values()) <= 1


@given(stream=streams(), tasks=DEGREES)
def test_direct_and_local_go_where_the_sender_is_or_says(stream: list[Block], tasks: int) -> None:
    for parts, block in zip(routed("direct", stream, tasks), stream, strict=True):
        for task, rows in parts:
            assert {int(block.targets[row]) % tasks for row in rows} == {task}
    for parts, block in zip(routed("local_or_shuffle", stream, tasks), stream, strict=True):
        if block.origin.task < tasks and len(block):
            assert parts == [(block.origin.task, list(range(len(block))))]


@given(stream=streams(), tasks=DEGREES, wrong=st.sampled_from([-1, 7, 10**6]))
def test_a_task_that_does_not_exist_is_an_error(
    stream: list[Block], tasks: int, wrong: int
) -> None:
    class Wrong(Weighed):
        def choose(self, batch: pa.RecordBatch) -> Sequence[int]:
            return [wrong] * batch.num_rows

    for block in filter(len, stream):
        with pytest.raises(ThalwegError):
            make_router(groupings.Custom(Wrong()), RoutingTable.even(tasks)).route(block)
        aimed = Block(**vars(block) | {"targets": np.full(len(block), wrong)})
        with pytest.raises(ThalwegError):
            router("direct", tasks).route(aimed)
