"""Cutting graphs with Mt-KaHyPar, where it is installed: slower than Metis, often a better cut.

It balances one sum of weights; the repair that follows every cut balances each constraint.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.errors import UsageError, explain
from thalweg.sketches.graphs import Graph, Ints

Fractions = npt.NDArray[np.float64]


def mtkahypar_cut(graph: Graph, shares: Fractions, slack: Fractions, seed: int) -> Ints:
    """Cut by the sum of each vertex's weights; the same seed gives the same parts."""
    library, started = _library()
    library.set_seed(seed)
    context = started.context_from_preset(library.PresetType.DETERMINISTIC)
    context.set_partitioning_parameters(len(shares), float(slack.min()) - 1, library.Objective.CUT)
    context.logging = False
    weights = graph.together()
    most = np.ceil(shares * weights.sum() * slack.min()).astype(np.int64) + 1
    context.set_individual_target_block_weights(np.maximum(most, weights.max()).tolist())
    edges = list(zip(graph.left.tolist(), graph.right.tolist(), strict=True))
    made = started.create_graph(
        context,
        graph.vertices,
        len(edges),
        edges,
        weights.tolist(),
        graph.edge_weights.tolist(),
    )
    return np.asarray(made.partition(context).get_partition(), np.int64)


@functools.cache
def _library() -> tuple[Any, Any]:
    try:
        library = importlib.import_module("mtkahypar")
    except ImportError as error:
        hint = "pip install 'thalweg[mtkahypar]', or use engine='metis'"
        text = explain("engine 'mtkahypar'", expected="to be installed", got=str(error), hint=hint)
        raise UsageError(text) from error
    return library, library.initialize(1)  # one thread: more would make it depend on timing
