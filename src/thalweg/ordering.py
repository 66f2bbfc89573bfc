"""The order of a serial execution: by source tuple, then branch as declared, then position.

Pure functions on blocks and topologies; runtimes decide when to call them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.blocks import Block, Rows, positions_of
from thalweg.topology import Topology

#: A block on its way to an input of a component, by the input's index.
Arrival = tuple[int, Block]


def traced(topology: Topology) -> frozenset[str]:
    """Find the components whose outputs must know the input row that they stem from.

    That is so where the parts of a block are put together again (several tasks), and upstream of a
    component that brings several ordered inputs together.
    """
    found: set[str] = set()
    in_order = ordered(topology)
    for component in reversed(topology.components):
        joins = len(component.inputs) > 1 and component.name in in_order
        if component.name in found or joins:
            found.update(input_.component for input_ in component.inputs)
        if component.degree > 1:
            found.add(component.name)
    return frozenset(found)


def ordered(topology: Topology) -> frozenset[str]:
    """Find the components that take their input in the order of a serial execution.

    Those are the ones whose inputs promise an order, and all upstream of them: once tuples of one
    source tuple have been scattered over tasks, only their positions tell their order.
    """
    found: set[str] = set()
    for component in reversed(topology.components):
        asked = any(input_.order != "sender" for input_ in component.inputs)
        if asked or component.name in found:
            found.add(component.name)
            found.update(input_.component for input_ in component.inputs)
    return frozenset(found)


def interleave(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Cut blocks from several inputs into runs that are in the order of a serial execution.

    >>> import pyarrow as pa
    >>> from thalweg.blocks import Origin
    >>> a = Block(pa.record_batch({"x": ["a1", "a3"]}), Origin("a"), np.array([1, 3]))
    >>> b = Block(pa.record_batch({"x": ["b1", "b2"]}), Origin("b"), np.array([1, 2]))
    >>> [block.values("x") for _, block in interleave([(0, a), (1, b)])]
    [['a1'], ['b1', 'b2'], ['a3']]
    """
    blocks = [block for _, block in arrivals]
    branches = np.repeat([index for index, _ in arrivals], list(map(len, blocks)))
    serials = np.concatenate([block.serials for block in blocks])
    return [(arrivals[owner][0], run) for owner, run in _runs(blocks, branches, serials)]


def rejoin(parts: Sequence[Block]) -> list[Block]:
    """Cut the parts of one block into runs in its order; each run keeps its own sender.

    >>> import pyarrow as pa
    >>> from thalweg.blocks import Origin
    >>> block = Block.of(pa.record_batch({"x": [1, 2, 3, 4]}), Origin("a"))
    >>> [run.values("x") for run in rejoin(block.split(np.array([1, 0, 0, 1]), 2))]
    [[1], [2, 3], [4]]
    """
    positions = np.concatenate([positions_of(part) for part in parts])
    return [run for _, run in _runs(parts, positions)]


def _runs(blocks: Sequence[Block], *keys: Rows) -> list[tuple[int, Block]]:
    """Sort the rows of blocks by keys, the last one first; give runs of neighbours."""
    sizes = [len(block) for block in blocks]
    owners = np.repeat(np.arange(len(blocks)), sizes)
    rows = np.concatenate([np.arange(size) for size in sizes])
    order = np.lexsort((rows, owners, *keys))
    owners, rows = owners[order], rows[order]
    cuts = (np.flatnonzero((np.diff(owners) != 0) | (np.diff(rows) != 1)) + 1).tolist()
    return [
        (int(owners[start]), blocks[owners[start]].slice(int(rows[start]), int(rows[stop - 1]) + 1))
        for start, stop in zip([0, *cuts], [*cuts, len(order)], strict=True)
    ]
