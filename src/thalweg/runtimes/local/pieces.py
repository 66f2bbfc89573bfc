"""Blocks of long tuples, piece by piece: what Python makes of a piece stays in the caches.

A block that crosses to another process should be large, because each crossing takes time. A
component that makes Python objects of every tuple is quickest on little at once. So the process
gets a large block, shows it to its component in pieces, and puts together what was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from thalweg.blocks import Block, Rows
from thalweg.runtimes.outputs import Emission

# Bytes of a piece, and tuples that it has at least: to begin one takes time as well.
_BYTES, _LEAST = 256 << 10, 64


def in_pieces(block: Block) -> Iterator[Block]:
    """Cut a block into pieces of equal length, where it is large enough.

    One after the other, so that the memory of what Python makes of a piece is used again.

    >>> from thalweg.blocks import Origin
    >>> block = Block.of(pa.record_batch({"text": ["long" * 1000] * 200}), Origin("a"))
    >>> [len(piece) for piece in in_pieces(block)]
    [65, 65, 65, 5]
    """
    rows = max(_LEAST, int(len(block) * _BYTES / max(1, block.batch.nbytes)))
    return (block.slice(start, start + rows) for start in range(0, len(block), rows))


def together(sent: list[tuple[int, list[Emission]]]) -> list[Emission]:
    """Put together what pieces have sent, each with the row that it began at."""
    if len(sent) == 1:
        return sent[0][1]
    moved = [_moved(emission, first) for first, emissions in sent for emission in emissions]
    runs: dict[tuple[str, str], list[Emission]] = {}
    for emission in moved:
        # Types may be learnt on the way: what differs stays apart.
        runs.setdefault((emission.stream, str(emission.batch.schema)), []).append(emission)
    return [_one(run) for run in runs.values()]


def _moved(emission: Emission, first: int) -> Emission:
    if emission.parents is None or not first:
        return emission
    parents, lists = emission.parents + first, emission.lists
    whole, targets = emission.whole, emission.targets
    return Emission(emission.stream, emission.batch, parents, whole, targets, lists=lists)


def _one(run: list[Emission]) -> Emission:
    return Emission(
        run[0].stream,
        pa.concat_batches([emission.batch for emission in run]),
        _rows(run, lambda emission: emission.parents),
        run[0].whole,
        _rows(run, lambda emission: emission.targets),
    )


def _rows(run: list[Emission], of: Callable[[Emission], Rows | None]) -> Rows | None:
    found = [rows for emission in run if (rows := of(emission)) is not None]
    return np.concatenate(found) if len(found) == len(run) else None
