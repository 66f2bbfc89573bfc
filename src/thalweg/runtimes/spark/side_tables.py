"""Tables that streams are joined with: the driver reads them, and sends each version once.

A batch has one version, at all of its places and in every attempt at it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark import Broadcast, SparkContext

from thalweg.operators.joining import TableJoin
from thalweg.operators.side_tables import FixedTable, Notice, SideTable, Version
from thalweg.schemas import fields
from thalweg.topology import Topology


@dataclass(frozen=True)
class SentTable:
    """A version on its way: workers unpack it once and keep it."""

    digest: str
    packed: Broadcast[bytes]

    def table(self) -> FixedTable:
        """Give the version as a table that does not change."""
        if self.digest not in _tables:
            while len(_tables) >= _KEPT:
                _tables.pop(next(iter(_tables)))
            rows = pa.ipc.open_stream(self.packed.value).read_next_batch()
            _tables[self.digest] = FixedTable(fields(rows.schema), Version(rows))
        return _tables[self.digest]


# Topologies that run at the same time in one session share the workers.
_KEPT = 16
_tables: dict[str, FixedTable] = {}


class SideTables:
    """The tables of a topology that may change, as its batches see them; beside the driver."""

    def __init__(self, context: SparkContext, topology: Topology, notice: Notice) -> None:
        self._context, self._notice = context, notice
        bodies = {c.name: c.body for c in topology}
        joins = {name: body for name, body in bodies.items() if isinstance(body, TableJoin)}
        # Those that cannot change travel with the program.
        self._tables: dict[str, SideTable] = {
            name: join.side for name, join in joins.items() if not _is_fixed(join.side)
        }
        self._sent: dict[str, tuple[Version, SentTable]] = {}

    def at(self, clock: float) -> Mapping[str, SentTable]:
        """Give the versions for a batch at this time, by join; new ones are sent."""
        for name, table in self._tables.items():
            version, known = table.current(clock, self._notice), self._sent.get(name)
            if known is None or known[0] is not version:
                self._sent[name] = version, self._send(version)
                if known is not None:
                    known[1].packed.unpersist()
        return {name: sent for name, (_, sent) in self._sent.items()}

    def _send(self, version: Version) -> SentTable:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, version.rows.schema) as writer:
            writer.write_batch(version.rows)
        data = sink.getvalue().to_pybytes()
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        return SentTable(digest, self._context.broadcast(data))


def _is_fixed(table: SideTable) -> bool:
    return isinstance(table, FixedTable)
