"""Equal tuples as one row with a weight, for readers to which only their number matters.

>>> from thalweg.blocks import Origin
>>> block = Block.of(pa.record_batch({"word": ["a", "b", "a"], "line": [1, 2, 3]}), Origin("words"))
>>> weighed(block, ("word",)).batch.to_pydict()
{'word': ['a', 'b'], '__weight': [2, 1]}
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.anyvalues import bare, dressed
from thalweg.blocks import Block

#: Column that says how many tuples each row stands for; without it, each row stands for one.
WEIGHT = "__weight"


def weighed(block: Block, fields: tuple[str, ...]) -> Block:
    """Keep these fields, and one row of each group of equal tuples; their order is lost."""
    chosen = block.batch.select(fields)
    table = pa.Table.from_batches([bare(chosen)])
    groups = pa.TableGroupBy(table, list(fields), use_threads=False)
    counts = groups.aggregate([([], "count_all")])
    columns = [counts.column(name).combine_chunks() for name in (*fields, "count_all")]
    columns[:-1] = map(dressed, columns[:-1], chosen.schema.types)
    batch = pa.RecordBatch.from_arrays(columns, names=[*fields, WEIGHT])
    return Block(batch, block.origin, np.broadcast_to(block.serials[-1], (batch.num_rows,)))


def is_weighed(batch: pa.RecordBatch) -> bool:
    """Say whether rows stand for several tuples."""
    return WEIGHT in batch.schema.names


def tuples_in(batch: pa.RecordBatch) -> int:
    """Say how many tuples a record batch stands for.

    >>> tuples_in(pa.record_batch({"word": ["a", "b"], WEIGHT: [2, 1]}))
    3
    """
    if not is_weighed(batch):
        return int(batch.num_rows)
    return int(pc.sum(batch.column(WEIGHT)).as_py() or 0)
