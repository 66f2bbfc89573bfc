"""Output that waits beside the state until its batch is committed: blocks for sinks, dead letters.

A staged object is a sequence of payloads, each behind its length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from thalweg.blocks import Block
from thalweg.components import AnyBolt
from thalweg.runtimes.spark.planning import Edge
from thalweg.runtimes.spark.wire import Address, pack_block
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import StagedRef
from thalweg.statelog.staged import STAGED, StagedBatch, read_staged

#: An object is written when it has grown to this size.
_OBJECT_BYTES = 32 << 20
LETTERS = "letters"


@dataclass
class _Waiting:
    payloads: list[bytes] = field(default_factory=list)
    size: int = 0
    rows: int = 0


@runtime_checkable
class StagingSink(Protocol):
    """A sink that writes at places, before the commit, and makes it known after it."""

    at_places: bool

    def finish_batch(self, batch: StagedBatch) -> list[StagedRef]:
        """Write what the task has taken in, under names that no other attempt uses."""

    def commit_batch(self, session: Any, batch: StagedBatch, refs: list[StagedRef]) -> None:
        """Make what was staged visible, beside the driver; the same batch may come again."""


@runtime_checkable
class BatchSink(Protocol):
    """A sink beside the driver that is told which rows are one batch."""

    def for_batches(self) -> AnyBolt:
        """Give a sink that waits until it is told."""

    def end_batch(self, batch: StagedBatch, refs: Sequence[StagedRef]) -> None:
        """Write what was taken in as a batch, unless it was written before."""


class Staging:
    """Gathers what one task of Spark has for sinks beside the driver."""

    def __init__(self, location: Location, version: int, place: int) -> None:
        self._batch = StagedBatch(location, version, place)
        self._waiting: dict[tuple[str, str], _Waiting] = {}
        self._written: list[StagedRef] = []

    def add(self, edge: Edge, block: Block, in_order: bool) -> None:
        """Take a block for a sink."""
        for payload in pack_block(Address(edge.reader, edge.index, 0), block, in_order):
            self._add(STAGED, edge.reader, payload, len(block))

    def add_letter(self, component: str, line: bytes) -> None:
        """Take a dead letter."""
        self._add(LETTERS, component, line, 1)

    def _add(self, folder: str, component: str, payload: bytes, rows: int) -> None:
        waiting = self._waiting.setdefault((folder, component), _Waiting())
        waiting.payloads.append(payload)
        waiting.size += len(payload)
        waiting.rows += rows
        if waiting.size >= _OBJECT_BYTES:
            self._write(folder, component)

    def write(self) -> list[StagedRef]:
        """Write what is left, and name all objects."""
        for folder, component in list(self._waiting):
            self._write(folder, component)
        return self._written

    def _write(self, folder: str, component: str) -> None:
        waiting = self._waiting.pop((folder, component))
        data = b"".join(
            part for p in waiting.payloads for part in (len(p).to_bytes(8, "little"), p)
        )
        self._written += self._batch.stage(component, [(waiting.rows, data)], folder=folder)


def payloads(location: Location, ref: StagedRef) -> Iterator[pa.Buffer]:
    """Give the payloads of a staged object, after a look at its checksum."""
    data = read_staged(location, ref)
    start = 0
    while start < data.size:
        length = int.from_bytes(memoryview(data)[start : start + 8], "little")
        yield data.slice(start + 8, length)
        start += 8 + length
