"""The order of a serial execution: by source tuple, then branch as declared, then position.

Pure functions on blocks and topologies; runtimes decide when to call them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.blocks import Block
from thalweg.topology import Topology

#: A block on its way to an input of a component, by the input's index.
Arrival = tuple[int, Block]


def traced(topology: Topology) -> frozenset[str]:
    """Find the components whose outputs must know the input row that they stem from.

    That is so where the parts of a block are put together again (several tasks), and upstream of a
    component that brings several ordered inputs together.
    """
    found: set[str] = set()
    for component in reversed(topology.components):
        joins = len(component.inputs) > 1 and component.inputs[0].order != "sender"
        if component.name in found or joins:
            found.update(input_.component for input_ in component.inputs)
        if component.options.degree > 1:
            found.add(component.name)
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
    sizes = [len(block) for _, block in arrivals]
    serials = np.concatenate([block.serials for _, block in arrivals])
    branches = np.repeat([index for index, _ in arrivals], sizes)
    owners = np.repeat(np.arange(len(arrivals)), sizes)
    rows = np.concatenate([np.arange(size) for size in sizes])
    order = np.lexsort((rows, owners, branches, serials))
    owners, rows = owners[order], rows[order]
    cuts = (np.flatnonzero((np.diff(owners) != 0) | (np.diff(rows) != 1)) + 1).tolist()
    return [
        (arrivals[owners[start]][0], arrivals[owners[start]][1].slice(*_span(rows, start, stop)))
        for start, stop in zip([0, *cuts], [*cuts, len(order)], strict=True)
    ]


def _span(
    rows: np.ndarray[tuple[int], np.dtype[np.int64]], start: int, stop: int
) -> tuple[int, int]:
    return int(rows[start]), int(rows[stop - 1]) + 1
