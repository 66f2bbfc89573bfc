"""What rows stem from: the blocks of a task's emissions, and whom readers take for the sender."""

from __future__ import annotations

import numpy as np

from thalweg.blocks import Block, Origin, Rows
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.spark.planning import Edge
from thalweg.topology import Component


def asked(edge: Edge, origin: Origin) -> Origin:
    """Say who a reader takes the sender of a block for."""
    return origin if edge.stands_for is None else Origin(edge.stands_for)


def output_block(
    component: Component, task: int, block: Block, emission: Emission, branch: int | None
) -> Block:
    """Make the block of an emission; its rows stem from rows of the block that was processed."""
    origin = Origin(component.name, emission.stream, task)
    parents = emission.parents
    if parents is None:  # nobody needs to know
        serials = np.broadcast_to(block.serials[-1], (emission.batch.num_rows,))
        return Block(emission.batch, origin, serials, None, None, emission.targets, emission.lists)
    path = [level[parents] for level in block.path]
    if branch is not None:
        path.insert(0, np.full(len(parents), branch, dtype=np.int64))
    return Block(
        batch=emission.batch,
        origin=origin,
        serials=block.serials[parents],
        targets=emission.targets,
        lists=emission.lists,
        path=(*path, _places_among_siblings(parents)),
    )


def _places_among_siblings(parents: Rows) -> Rows:
    """Give each child its place among the children of its parent.

    >>> _places_among_siblings(np.array([0, 0, 1, 3, 3, 3])).tolist()
    [0, 1, 0, 0, 1, 2]
    """
    order = np.argsort(parents, kind="stable")
    sorted_parents = parents[order]
    first = np.searchsorted(sorted_parents, sorted_parents)
    places = np.empty(len(parents), dtype=np.int64)
    places[order] = np.arange(len(parents)) - first
    return places
