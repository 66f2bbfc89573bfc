"""Partitions: complete, balanced on every constraint, few edges cut, the same for a seed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import UsageError
from thalweg.sketches import metis
from thalweg.sketches import partition as partitioning
from thalweg.sketches.balance import Moving, limits
from thalweg.sketches.partition import Graph, even, partition, partition_tree


@st.composite
def key_graphs(draw: st.DrawFn, most: int = 40) -> Graph:
    """Graphs of keys: each vertex belongs to one component, or to none (a source's partition)."""
    components = draw(st.integers(1, 3))
    kinds = draw(st.lists(st.integers(-1, components - 1), max_size=most))
    heavy = draw(st.lists(st.integers(1, 1000), min_size=len(kinds), max_size=len(kinds)))
    weights = np.zeros((len(kinds), components))
    for vertex, (kind, weight) in enumerate(zip(kinds, heavy, strict=True)):
        if kind >= 0:
            weights[vertex, kind] = weight
    ends = st.integers(0, max(len(kinds) - 1, 0))
    edges = draw(st.lists(st.tuples(ends, ends, st.integers(0, 100)), max_size=3 * len(kinds)))
    left, right, cost = (np.array([edge[i] for edge in edges], np.int64) for i in range(3))
    return Graph.of(weights, left, right, cost)


def fair(graph: Graph, shares: np.ndarray, alpha: float) -> np.ndarray:
    """What can be reached for certain: heavy ones first, each where it hurts least."""
    most = limits(graph, shares, alpha)
    loads = np.zeros(most.shape)
    for constraint in range(graph.constraints):
        for weight in sorted(graph.weights[:, constraint].tolist(), reverse=True):
            after = (loads[:, constraint] + weight) / np.maximum(most[:, constraint], 1)
            loads[after.argmin(), constraint] += weight
    return np.maximum((loads / np.maximum(most, 1)).max(axis=0, initial=0.0), 1.0)


SHARES = st.lists(st.sampled_from([1, 1, 2, 3]), min_size=1, max_size=6).map(np.array)


@settings(max_examples=200, deadline=None)
@given(key_graphs(), SHARES, st.sampled_from([1.0, 1.03, 1.2]))
def test_every_constraint_is_as_balanced_as_it_can_be_made(
    graph: Graph, sizes: np.ndarray, alpha: float
) -> None:
    shares = sizes / sizes.sum()
    parts = partition(graph, shares, alpha)
    assert parts.shape == (graph.vertices,)
    assert set(parts.tolist()) <= set(range(len(shares)))
    loads = graph.loads(parts, len(shares))
    if len(shares) > 1 and graph.vertices:
        reached = (loads / np.maximum(limits(graph, shares, alpha), 1)).max(axis=0)
        assert (reached <= fair(graph, shares, alpha) + 1e-9).all()


@settings(max_examples=50, deadline=None)
@given(key_graphs(), st.integers(1, 5), st.integers(1, 1000))
def test_a_seed_gives_the_same_parts_again(graph: Graph, places: int, seed: int) -> None:
    once = partition(graph, even(places), seed=seed)
    assert once.tolist() == partition(graph, even(places), seed=seed).tolist()


def communities(groups: int, size: int, seed: int = 1) -> Graph:
    """Two components whose keys belong to groups; nine of ten edges stay within one."""
    rng = np.random.default_rng(seed)
    keys = groups * size
    left = rng.integers(0, keys, 20 * keys)
    other = rng.integers(0, keys, len(left))
    same = left % groups + groups * rng.integers(0, size, len(left))
    right = np.where(rng.random(len(left)) < 0.9, same, other)
    weights = np.zeros((2 * keys, 2))
    weights[:keys, 0] = np.bincount(left, minlength=keys)
    weights[keys:, 1] = np.bincount(right, minlength=keys)
    return Graph.of(weights, left, keys + right, np.ones(len(left)))


def share_cut(graph: Graph, parts: np.ndarray) -> float:
    return graph.cut(parts) / float(graph.edge_weights.sum())


@pytest.mark.parametrize("size", [1, 50])
def test_keys_that_travel_together_are_kept_together(size: int) -> None:
    graph = communities(groups=6, size=size)
    parts = partition(graph, even(6), alpha=1.2)
    assert share_cut(graph, parts) < 0.12


def test_without_the_library_of_metis_it_is_as_balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metis, "_several", lambda: None)
    graph = communities(groups=6, size=50)
    parts = partition(graph, even(6))
    loads = graph.loads(parts, 6)
    assert (loads.max(axis=0) <= 1.03 * loads.mean(axis=0)).all()
    assert share_cut(graph, parts) < 0.12


def test_when_metis_gives_up_keys_are_placed_greedily(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> np.ndarray:
        raise RuntimeError("METIS_ERROR")

    monkeypatch.setattr(metis, "_several", lambda: None)
    monkeypatch.setattr(metis, "summed_cut", fails)
    graph = communities(groups=6, size=50)
    loads = graph.loads(partition(graph, even(6)), 6)
    assert (loads.max(axis=0) <= 1.03 * loads.mean(axis=0)).all()


def test_metis_is_called_with_several_constraints() -> None:
    """Guards the call through ctypes: one weight per vertex could not balance both."""
    assert metis.can_balance_several()
    rng = np.random.default_rng(3)
    weights = np.zeros((600, 2))
    weights[:300, 0], weights[300:, 1] = rng.integers(1, 9, 300), rng.integers(1, 9, 300)
    # Left keys hang together, and so do right keys: by the sum of weights, halves are best.
    within = rng.integers(0, 300, (2, 2000))
    left = np.concatenate((within[0], within[0] + 300, np.arange(300)))
    right = np.concatenate((within[1], within[1] + 300, np.arange(300) + 300))
    graph = Graph.of(weights, left, right, np.ones(len(left)))
    parts = metis.several_cut(graph, even(2), np.array([1.03, 1.03]), 1)
    loads = graph.loads(parts, 2)
    assert (loads.max(axis=0) <= 1.05 * loads.mean(axis=0)).all()
    summed = graph.loads(metis.summed_cut(graph, even(2), np.array([1.03, 1.03]), 1), 2)
    assert (summed.max(axis=0) > 1.9 * summed.mean(axis=0)).all()


def test_shares_reach_metis() -> None:
    graph = communities(groups=8, size=30)
    parts = metis.several_cut(graph, np.array([0.25, 0.75]), np.array([1.03, 1.03]), 1)
    loads = graph.loads(parts, 2) / graph.weights.sum(axis=0)
    assert np.abs(loads[0] - 0.25).max() < 0.03


def test_a_key_heavier_than_a_share_has_a_part_for_itself() -> None:
    weights = [[50, 0]] + [[1, 0]] * 50 + [[0, 1]] * 51
    graph = Graph.of(weights, np.zeros(51, np.int64), np.arange(51, 102), np.ones(51))
    parts = partition(graph, even(4))
    loads = graph.loads(parts, 4)
    assert loads[:, 0].max() == 50
    assert loads[:, 1].max() <= 14


def test_repair_moves_what_loses_least() -> None:
    # Part 0 holds three keys of one component; the one with the cheapest edge must go.
    edges = (np.array([0, 1, 2]), np.array([4, 5, 6]))
    graph = Graph.of([[1], [1], [1], [1], [0], [0], [0]], *edges, [9, 2, 9])
    moving = Moving.of(graph, np.array([0, 0, 0, 1, 0, 0, 0]), np.array([[2], [2]]))
    moving.repair()
    assert moving.parts.tolist() == [0, 1, 0, 1, 0, 0, 0]


def test_distances_count_outer_branches_first() -> None:
    # Eight groups of keys; groups 2i and 2i+1 exchange much, others little.
    rng = np.random.default_rng(5)
    keys = np.arange(400)
    own = rng.permutation(keys) // 8 * 8 + keys % 8
    neighbour = keys // 8 * 8 + (keys % 8 ^ 1)
    other = rng.permutation(keys)
    left = np.concatenate((keys, keys, keys))
    right = np.concatenate((own, neighbour, other)) + 400
    cost = np.repeat([10, 6, 1], 400)
    weights = np.zeros((800, 2))
    weights[:400, 0] = weights[400:, 1] = 1
    graph = Graph.of(weights, left, right, cost)
    parts = partition_tree(graph, ((0, 1), (2, 3), (4, 5), (6, 7)))
    loads = graph.loads(parts, 8)
    assert (loads.max(axis=0) <= 1.1 * loads.mean(axis=0)).all()
    assert share_cut(graph, parts // 2) < 0.15


def test_a_tree_names_each_place_once() -> None:
    graph = communities(groups=2, size=2)
    assert set(partition_tree(graph, ((1,), (0, (2,))))) == {0, 1, 2}
    assert partition_tree(graph, 0).tolist() == [0] * 8
    with pytest.raises(UsageError, match="each of the places 0 to 2 once"):
        partition_tree(graph, ((0, 1), (1,)))


def test_wrong_shares_are_refused() -> None:
    graph = communities(groups=2, size=2)
    for shares, alpha in (([], 1.0), ([1, 0], 1.0), ([1, 1], 0.9)):
        with pytest.raises(UsageError, match="one share above 0 per part"):
            partition(graph, shares, alpha)


@pytest.mark.skipif(importlib.util.find_spec("mtkahypar") is not None, reason="it is installed")
def test_an_engine_that_is_not_installed_says_so() -> None:
    with pytest.raises(UsageError, match=r"pip install 'thalweg\[mtkahypar\]'"):
        partition(communities(groups=6, size=50), even(6), engine="mtkahypar")


@pytest.mark.skipif(importlib.util.find_spec("mtkahypar") is None, reason="not installed")
def test_mtkahypar_cuts_as_well() -> None:
    graph = communities(groups=6, size=50)
    parts = partition(graph, even(6), engine="mtkahypar")
    assert share_cut(graph, parts) < 0.12
    assert (graph.loads(parts, 6).max(axis=0) <= limits(graph, even(6), 1.03)[0]).all()


def test_large_weights_are_scaled_so_that_metis_can_add_them() -> None:
    graph = Graph.of([[1e15], [1.0]], np.array([0]), np.array([1]), [1e18])
    assert graph.weights.sum() <= 1 << 30
    assert graph.weights.min() == 1
    assert partitioning.partition(graph, even(2)).tolist() in ([0, 1], [1, 0])
