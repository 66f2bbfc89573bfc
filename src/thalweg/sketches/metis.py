"""Metis with several balance constraints.

pymetis carries the library, but its own function takes one weight per vertex. The library's entry
point takes several; it is called here through ctypes. How wide its numbers are depends on how it
was built, so a tiny graph with a known answer is cut before the first use.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pymetis
from pymetis import _internal

from thalweg.errors import StateError, explain
from thalweg.sketches.graphs import Graph, Ints

Fractions = npt.NDArray[np.float64]
#: (graph, share of each part, allowed imbalance per constraint, seed) -> part of each vertex.
Cutter = Callable[[Graph, Fractions, Fractions, int], Ints]

#: How many options Metis has.
_OPTIONS = 40
_OK = 1


def can_balance_several() -> bool:
    """Say whether :func:`several_cut` can be used."""
    return _several() is not None


def several_cut(graph: Graph, shares: Fractions, slack: Fractions, seed: int) -> Ints:
    """Cut so that each constraint is balanced; ``slack`` is the imbalance allowed for each."""
    cutter = _several()
    if cutter is None:
        text = explain("pymetis", expected="a library with METIS_PartGraphKway", hint="update it")
        raise StateError(text)
    return cutter(graph, shares, slack, seed)


def summed_cut(graph: Graph, shares: Fractions, slack: Fractions, seed: int) -> Ints:
    """Cut by the sum of each vertex's weights, through pymetis' own function."""
    starts, others, weights = graph.rows()
    options = pymetis.Options(seed=seed, ufactor=_thousandths(slack))
    _, parts = pymetis.part_graph(
        len(shares),
        pymetis.CSRAdjacency(starts, others),
        eweights=weights,
        vweights=graph.together(),
        tpwgts=shares.tolist(),
        options=options,
        recursive=False,
    )
    return np.asarray(parts, np.int64)


def _thousandths(slack: Fractions) -> int:
    return max(1, round((float(slack.min()) - 1) * 1000))


@functools.cache
def _several() -> Cutter | None:
    """Find the library's own entry point, if it is there and answers as it must."""
    library = _library()
    if library is None:
        return None
    for floats in (np.float32, np.float64):
        cutter = functools.partial(_called, library, np.dtype(floats))
        if _answers(cutter):
            return cutter
    return None


def _library() -> ctypes.CDLL | None:
    """Load the library that pymetis carries, if it has what is needed."""
    found = importlib.util.find_spec("pymetis._internal")
    if found is None or found.origin is None or not hasattr(_internal, "_idx_type_width"):
        return None
    library = ctypes.CDLL(found.origin)
    return library if hasattr(library, "METIS_PartGraphKway") else None


def _answers(cutter: Cutter) -> bool:
    """Cut two pairs apart; shares and slack prove that fractions are as wide as was thought."""
    weights = np.array([[2, 0], [0, 2], [4, 0], [0, 4], [0, 0]])
    graph = Graph.of(weights, np.array([0, 2]), np.array([1, 3]), np.array([1, 1]))
    try:
        parts = cutter(graph, np.array([1 / 3, 2 / 3]), np.array([1.01, 1.01]), 1)
    except StateError:
        return False
    return parts[:4].tolist() == [0, 0, 1, 1]


def _called(
    library: ctypes.CDLL,
    floats: np.dtype[Any],
    graph: Graph,
    shares: Fractions,
    slack: Fractions,
    seed: int,
) -> Ints:
    ints = np.dtype(f"i{_internal._idx_type_width() // 8}")
    starts, others, edges = (array.astype(ints) for array in graph.rows())
    options = np.full(_OPTIONS, -1, ints)
    options[int(pymetis.OptionKey.SEED)] = seed
    # Matching over two hops costs 1 to 5 points of locality on graphs of keys (measured).
    options[int(pymetis.OptionKey.NO2HOP)] = 1
    counts = np.array([graph.vertices, graph.constraints, len(shares), 0], ints)
    targets = np.repeat(shares, graph.constraints).astype(floats)
    weights, bounds = graph.weights.astype(ints).ravel(), slack.astype(floats)
    parts = np.empty(graph.vertices, ints)
    at = [ctypes.c_void_p(counts.ctypes.data + i * ints.itemsize) for i in range(4)]
    code = library.METIS_PartGraphKway(
        at[0], at[1], _data(starts), _data(others), _data(weights), None, _data(edges),
        at[2], _data(targets), _data(bounds), _data(options), at[3], _data(parts),
    )  # fmt: skip
    if code != _OK:
        raise StateError(explain("Metis", expected="a partition", got=f"error {code}"))
    return parts.astype(np.int64)


def _data(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
