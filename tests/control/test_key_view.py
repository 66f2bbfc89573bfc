"""What people are shown of keys: the frequent ones, pairs, places, and how much that may cost."""

from __future__ import annotations

from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.control.keyview import ENOUGH, MOST, KeyView
from thalweg.events import Keys
from thalweg.hashing import hash_columns, hash_key
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.pairing import LONGEST_NAME, Naming
from thalweg.sketches.pairs import PairCounts

TABLE = RoutingTable.even(places=2)
ENDS = ("by_region", "by_tag")


def hashes(keys: list[str]) -> np.ndarray:
    return hash_columns([pa.array(keys)])


def pairs(*found: tuple[str, str]) -> dict[tuple[str, str], PairCounts]:
    left, right = ([pair[i] for pair in found] for i in (0, 1))
    return {ENDS: PairCounts.of(hashes(left), hashes(right))}


def instant() -> float:
    return 0.0


def view() -> KeyView:
    made = KeyView(instant)
    made.name({hash_key(key): key for key in ("eu", "us", "rock", "jazz")})
    return made


def seen(made: KeyView, found: dict[tuple[str, str], PairCounts], now: float = 0.0) -> Keys:
    told = made.note(now, found, {"by_region": TABLE, "by_tag": TABLE.with_keys({"rock": 1})}, 0.1)
    assert told is not None
    return told


def test_the_most_frequent_come_first_with_their_places() -> None:
    told = seen(view(), pairs(*[("eu", "rock")] * 3, ("us", "rock"), ("us", "jazz")))
    (link,) = told.links
    assert (link.sender, link.reader, link.total, link.lost) == (*ENDS, 5.0, 0.0)
    assert [(key.key, key.count) for key in link.left] == [("eu", 3.0), ("us", 2.0)]
    assert (link.right[0].key, link.right[0].count, link.right[0].place) == ("rock", 4.0, 1)
    assert (link.pairs[0].left, link.pairs[0].right, link.pairs[0].count) == ("eu", "rock", 3.0)
    assert (told.sampling, told.listed) == (0.1, {"by_region": 0, "by_tag": 1})


def test_locality_is_the_share_of_pairs_at_one_place() -> None:
    told = seen(view(), pairs(*[("eu", "rock")] * 3, ("us", "jazz")))
    (link,) = told.links
    local = sum(pair.count for pair in link.pairs if pair.local)
    assert link.locality == local / link.total


def test_a_key_without_a_name_is_asked_for_and_shown_by_its_hash() -> None:
    made = view()
    (link,) = seen(made, pairs(("eu", "polka"))).links
    assert link.right[0].key == f"0x{hash_key('polka'):016x}"
    assert made.unnamed == {hash_key("polka")}
    made.name({hash_key("polka"): "polka"})
    assert made.unnamed == frozenset()
    assert seen(made, pairs(("eu", "polka")), now=60.0).links[0].right[0].key == "polka"


def test_partitions_of_a_source_are_numbers() -> None:
    counts = PairCounts.of(hash_columns([pa.array([0, 1])]), hashes(["eu", "us"]))
    told = view().note(0.0, {("@posts", "by_region"): counts}, {"by_region": TABLE}, 1.0)
    assert told is not None
    assert {key.key for key in told.links[0].left} == {"0", "1"}


def test_a_share_may_be_the_further_off_the_fewer_tuples_were_counted() -> None:
    few, many = (seen(view(), pairs(*[("eu", "rock")] * number)) for number in (90, 900))
    assert few.links[0].share_error == pytest.approx(0.1)  # of one tuple of ten
    assert many.links[0].share_error == pytest.approx(0.1 / 10**0.5)


def test_where_all_tuples_are_counted_no_share_is_off() -> None:
    tables = {"by_region": TABLE, "by_tag": TABLE}
    told = view().note(0.0, pairs(("eu", "rock")), tables, sampling=1.0)
    assert told is not None
    assert told.links[0].share_error == 0.0


def test_neighbours_that_are_counted_at_once_say_as_much_as_one_tuple() -> None:
    tables, found = {"by_region": TABLE, "by_tag": TABLE}, pairs(*[("eu", "rock")] * 640)
    told = view().note(0.0, found, tables, sampling=0.0, burst=64)
    assert told is not None
    assert told.links[0].share_error == pytest.approx(0.1**0.5)  # ten draws


def test_a_component_without_a_table_is_left_out() -> None:
    told = view().note(0.0, pairs(("eu", "rock")), {"by_region": TABLE}, 1.0)
    assert told is not None
    assert told.links == ()


def test_looks_are_rare_enough_to_cost_little() -> None:
    clock = count()  # a look takes a second by this timer
    made = KeyView(lambda: float(next(clock)))
    tables = {"by_region": TABLE, "by_tag": TABLE}
    told = [made.note(float(now), pairs(("eu", "rock")), tables, 1.0) for now in range(300)]
    assert [now for now, each in enumerate(told) if each is not None] == [0, 100, 200]


def test_nothing_is_told_of_nothing() -> None:
    assert view().note(0.0, {}, {"by_region": TABLE}, 1.0) is None
    assert view().note(0.0, pairs(("eu", "rock")), {}, 1.0) is None


@given(st.lists(st.integers(1, 3 * ENOUGH), min_size=1, max_size=8))
def test_enough_pairs_are_kept_and_hardly_more(sizes: list[int]) -> None:
    made, tables = KeyView(instant), {"by_region": TABLE, "by_tag": TABLE}
    for size in sizes[:-1]:
        made.note(-1.0, weighed(size), {}, 1.0)
    told = made.note(0.0, weighed(sizes[-1]), tables, 1.0)
    assert told is not None
    total = told.links[0].total
    assert total >= min(ENOUGH, sum(sizes))
    assert total - ENOUGH < max(sizes)


def weighed(size: int) -> dict[tuple[str, str], PairCounts]:
    return {ENDS: PairCounts.of(hashes(["eu"]), hashes(["rock"]), np.array([size]))}


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=300))
def test_counts_are_those_of_the_tuples(numbers: list[tuple[int, int]]) -> None:
    found = [(f"r{left}", f"t{right}") for left, right in numbers]
    made = KeyView(instant)
    made.name({hash_key(key): key for pair in found for key in pair})
    (link,) = seen(made, pairs(*found)).links
    assert len(link.pairs) == min(MOST, len(set(found)))
    assert all(found.count((pair.left, pair.right)) == pair.count for pair in link.pairs)
    lefts = [left for left, _ in found]
    assert all(lefts.count(key.key) == key.count for key in link.left)


def test_names_are_found_among_tuples_that_come_by() -> None:
    naming = Naming([hash_key(("a", 1)), hash_key(("b" * 999, 2))])
    columns = [pa.array(["a", "x", "b" * 999, "a"]), pa.array([1, 1, 2, 1])]
    naming.look(hash_columns(columns), columns)
    found = naming.take()
    assert found[hash_key(("a", 1))] == "a, 1"
    assert len(found[hash_key(("b" * 999, 2))]) == LONGEST_NAME
    naming.look(hash_columns(columns), columns)
    assert naming.take() == {}
