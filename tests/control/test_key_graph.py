"""From pairs to tables: the graph of a topology, its balance, and where parts are put."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from localities import A_TO_B, even, groups_of_keys, hashes, observations, observed, pair_counts
from localities import tables as drawn_tables

from thalweg.control.keygraph import KeyGraph, fitted
from thalweg.control.links import KeyBytes, Link, Observed, key_weights, places_of
from thalweg.control.measures import imbalance, locality, moved
from thalweg.control.settings import LocalitySettings
from thalweg.hashing import hash_key
from thalweg.sketches.assignment import assign_tree

PLACES = 3


def test_what_arrives_adds_up_and_what_leaves_was_one_tuple() -> None:
    seen = {
        Link("a", "c"): pair_counts(("x", "z", 5)),
        Link("b", "c"): pair_counts(("y", "z", 3)),
        Link("c", "d"): pair_counts(("z", 1, 4), ("z", 2, 2)),
        Link("c", "e"): pair_counts(("z", 1, 6)),
        Link("@s", "a"): pair_counts((0, "x", 7)),
    }
    weights = {name: counts.tolist() for name, (_, counts) in key_weights(seen).items()}
    assert weights["c"] == [8.0]
    assert weights["a"] == [7.0]
    assert sorted(weights["d"]) == [2.0, 4.0]
    assert "@s" not in weights


def test_a_component_of_its_own_constraint_and_edges_by_bytes() -> None:
    seen = {Link("a", "b"): pair_counts((1, 2, 10)), Link("b", "c"): pair_counts((2, 3, 10))}
    known = Observed(seen, seen, {}, {Link("a", "b"): 100.0, Link("b", "c"): 300.0})
    graph = KeyGraph.of(seen, known, edges=10).graph
    assert graph.weights.tolist() == [[10, 0, 0], [0, 10, 0], [0, 0, 10]]
    assert graph.edge_weights.tolist() == [1000, 3000]


def test_only_the_heaviest_pairs_are_kept_and_only_their_keys() -> None:
    seen = {A_TO_B: pair_counts(*((i, i, 1 + i % 3) for i in range(30)))}
    key_graph = KeyGraph.of(seen, observed(seen), edges=10)
    assert key_graph.graph.edge_weights.tolist() == [3000] * 10
    assert len(key_graph.keys["a"]) == len(key_graph.keys["b"]) == 10


def test_keys_that_travel_together_share_a_place() -> None:
    seen = {A_TO_B: groups_of_keys(groups=6, size=40, seed=1)}
    made = fitted(seen, observed(seen), even(6), LocalitySettings())
    assert locality(seen, made).overall > 0.85
    assert max(imbalance(key_weights(seen), made).values()) <= 1.05


def test_a_chain_of_three_is_balanced_per_component() -> None:
    first, second = (groups_of_keys(groups=6, size=40, seed=s) for s in (1, 2))
    seen = {Link("a", "b"): first, Link("b", "c"): second}
    made = fitted(seen, observed(seen), even(6, "a", "b", "c"), LocalitySettings())
    found = locality(seen, made)
    assert min(found.by_link.values()) > 0.8
    assert max(imbalance(key_weights(seen), made).values()) <= 1.05


def test_all_tables_are_of_the_next_epoch_even_those_without_pairs() -> None:
    seen = {A_TO_B: pair_counts((1, 2, 3))}
    made = fitted(seen, observed(seen), even(2, "a", "b", "alone"), LocalitySettings())
    assert {table.epoch for table in made.values()} == {1}
    assert len(made["alone"].hashes) == 0


def test_parts_are_put_where_most_of_their_state_is() -> None:
    seen = {A_TO_B: groups_of_keys(groups=4, size=20, seed=3)}
    now = fitted(seen, observed(seen), even(4), LocalitySettings())
    again = fitted(seen, observed(seen), now, LocalitySettings(seed=7))
    known = KeyBytes.unknown()
    keys = sum(moved(now[name], again[name], known)[0] for name in now)
    assert keys < 0.2 * sum(len(table.hashes) for table in now.values())


def test_the_partitions_of_a_source_draw_their_keys_to_their_place() -> None:
    link = Link("@s", "a")
    seen = {link: pair_counts(*((key % 3, f"k{key}", 10) for key in range(30)))}
    made = fitted(seen, observed(seen), even(3, "a"), LocalitySettings())
    assert locality(seen, made).overall == 1.0
    assert made["a"].places_of(hashes("k1", "k2")).tolist() == [1, 2]


def test_a_partition_beyond_the_places_lies_nowhere() -> None:
    assert places_of("@s", hashes(0, 2, 3, 99), even(3)).tolist() == [0, 2, -1, -1]


def test_keys_that_leave_the_table_return_to_their_group() -> None:
    key = hash_key("gone")
    group = int(even(2)["a"].places_of(np.array([key], np.uint64))[0])
    now = {name: table.with_keys({"gone": 1 - group}) for name, table in even(2).items()}
    seen = {A_TO_B: pair_counts(("x", "y", 5))}
    made = fitted(seen, observed(seen), now, LocalitySettings())
    assert made["a"].places_of(np.array([key], np.uint64)).tolist() == [group]
    sizes = KeyBytes(np.array([key], np.uint64), np.array([70.0]))
    assert moved(now["a"], made["a"], sizes) == (1, 70.0)


def test_branches_of_a_tree_are_not_torn_apart_by_relabelling() -> None:
    kept = np.zeros((4, 4))
    kept[0, 2] = kept[1, 1] = 10  # parts 0 and 1 share a host, places 2 and 1 do not
    kept[2, 0] = 5
    chosen = assign_tree(((0, 1), (2, 3)), kept)
    assert chosen[0] // 2 == chosen[1] // 2
    assert kept[range(4), chosen].sum() == 15


@given(st.integers(0, 2**32), st.sampled_from([(0, 1, 2, 3), ((0, 1), (2, 3)), ((3, 0, 2), 1)]))
def test_relabelling_never_keeps_less_than_the_identity(seed: int, tree: object) -> None:
    kept = np.random.default_rng(seed).integers(0, 20, (4, 4))
    chosen = assign_tree(tree, kept)  # type: ignore[arg-type]
    assert sorted(chosen.tolist()) == [0, 1, 2, 3]
    assert kept[range(4), chosen].sum() >= np.trace(kept)


@settings(max_examples=60, deadline=None)
@given(observations(), drawn_tables(PLACES))
def test_every_key_has_a_place_that_exists(seen: Observed, now: dict) -> None:
    made = fitted(seen.fit, seen, now, LocalitySettings())
    for name, table in made.items():
        assert table.epoch == now[name].epoch + 1
        assert set(table.key_places.tolist()) <= set(range(PLACES))
    for link, counts in seen.fit.items():
        assert set(counts.right) <= set(made[link.reader].hashes)


@pytest.mark.parametrize("tree", [((0, 1), (2, 3)), None])
def test_locality_is_the_share_of_pairs_at_one_place(tree: object) -> None:
    seen = {A_TO_B: groups_of_keys(groups=4, size=10, seed=4)}
    made = fitted(seen, observed(seen), even(4), LocalitySettings(tree=tree))  # type: ignore[arg-type]
    counts = seen[A_TO_B]
    same = made["a"].places_of(counts.left) == made["b"].places_of(counts.right)
    assert locality(seen, made).overall == pytest.approx(counts.count[same].sum() / counts.total)
