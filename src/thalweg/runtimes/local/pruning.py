"""Which columns of a stream anybody looks at: the others need not cross from another process.

A reader says what it looks at (``takes``, and its key); one that passes its tuples on looks at what
its own readers do. One that may refuse tuples and go on wants all of them, to be able to show them.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM
from thalweg.components import BlockBolt
from thalweg.groupings import Custom
from thalweg.topology import Component, Input, Topology

#: Names of columns by stream.
Columns = Mapping[str, frozenset[str]]


def read_columns(topology: Topology, component: Component) -> dict[str, frozenset[str]]:
    """Name the columns of each output stream of a component that somebody looks at."""
    return {
        stream: _read(topology, component.name, stream, frozenset(fields.names))
        for stream, fields in component.outputs.items()
    }


def _read(topology: Topology, name: str, stream: str, columns: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    for reader, input_ in topology.readers(name, stream):
        found |= _read_by(topology, reader, input_, columns)
    return columns & found


def _read_by(
    topology: Topology, reader: Component, input_: Input, columns: frozenset[str]
) -> frozenset[str]:
    body = reader.body
    takes = body.takes if isinstance(body, BlockBolt) else None
    if takes is None or reader.options.on_error != "fail" or isinstance(input_.grouping, Custom):
        return columns
    own = frozenset((*takes, *input_.key))
    if not getattr(body, "passes_on", False):
        return own
    return own | _read(topology, reader.name, DEFAULT_STREAM, columns)


def without_unread(batch: pa.RecordBatch, columns: frozenset[str]) -> pa.RecordBatch:
    """Put nulls, which take next to no room, into the columns that nobody looks at.

    >>> batch = pa.record_batch({"a": [1, 2], "text": ["long", "longer"]})
    >>> without_unread(batch, frozenset(["a"])).to_pylist()
    [{'a': 1, 'text': None}, {'a': 2, 'text': None}]
    """
    if columns.issuperset(batch.schema.names):
        return batch
    arrays = [
        column if name in columns else pa.nulls(batch.num_rows, column.type)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
