"""Which keys have another place after a reconfiguration: all are counted, the frequent are told."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thalweg.control.differences import MOST, difference
from thalweg.hashing import hash_key
from thalweg.migration.plan import Held
from thalweg.routing.table import RoutingTable

PLACES = 3
START = RoutingTable.even(PLACES)
#: By key: its place before and after, and how often it occurs.
keys = st.dictionaries(
    st.integers(0, 999),
    st.tuples(st.integers(0, PLACES - 1), st.integers(0, PLACES - 1), st.integers(0, 5)),
    max_size=300,
)


def held(found: dict[int, tuple[int, int, int]]) -> Held:
    hashes = np.array([hash_key(key) for key in found], np.uint64)
    heat = np.array([count for _, _, count in found.values()], np.float64)
    order = np.argsort(hashes)
    return Held(hashes[order], np.ones(len(found), np.int64), heat[order])


def table(found: dict[int, tuple[int, int, int]], side: int) -> RoutingTable:
    return START.with_keys({key: places[side] for key, places in found.items()})


@given(keys, st.sets(st.integers(0, 999)))
def test_keys_that_moved_are_told_the_most_frequent_first(
    found: dict[int, tuple[int, int, int]], named: set[int]
) -> None:
    old, new = ({"count": table(found, side)} for side in (0, 1))
    moved = {key: each for key, each in found.items() if each[0] != each[1]}
    names = {hash_key(key): str(key) for key in named}
    made = difference(old, new, {"count": held(found)})
    told = made.named(names)

    assert (told.keys, told.groups) == (len(moved), 0)
    assert len(told.moves) == min(len(moved), MOST)
    texts = {names.get(hash_key(k), f"0x{hash_key(k):016x}"): each for k, each in moved.items()}
    for move in told.moves:
        assert (move.before, move.after, move.count) == texts[move.key]
        assert move.component == "count"
    # By count, and of equal ones those with a name.
    ranks = [(-move.count, move.key.startswith("0x")) for move in told.moves]
    assert ranks == sorted(ranks)
    left = sorted(-each[2] for each in moved.values())[MOST:]
    assert all(-move.count <= min(left, default=0) for move in told.moves)


def test_the_names_of_frequent_keys_are_worth_looking_for() -> None:
    found = {1: (0, 1, 9), 2: (0, 1, 0), 3: (1, 1, 9)}
    made = difference({"a": table(found, 0)}, {"a": table(found, 1)}, {"a": held(found)})
    assert made.counted == {hash_key(1)}


def test_key_groups_that_changed_are_counted_too() -> None:
    new = START.resized(PLACES + 1)
    moved = int(np.count_nonzero(START.groups != new.groups))
    told = difference({"a": START}, {"a": new}, {"a": Held.nothing()}).named({})
    assert (told.keys, told.groups, told.moves) == (0, moved, ())


def test_without_tables_nothing_has_changed() -> None:
    assert difference({}, {}, {}).named({}).keys == 0
