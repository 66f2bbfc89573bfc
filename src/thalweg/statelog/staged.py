"""Output of sinks that waits beside the state until its batch, or its snapshot, is committed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from thalweg.statelog.location import Location
from thalweg.statelog.manifests import StagedRef
from thalweg.statelog.objects import checksum_of, verified
from thalweg.statelog.stores import Data

#: The folder of what waits.
STAGED = "staged"


@dataclass(frozen=True)
class StagedBatch:
    """The batch, or the snapshot, of which a sink stages its part, or that it makes known."""

    location: Location
    version: int
    #: The place, or the task, whose part it is.
    place: int = 0
    #: Whether the state stays after the run, so that the batch may come again.
    lasting: bool = True

    def stage(
        self,
        component: str,
        parts: Iterable[tuple[int, Data]],
        suffix: str = "",
        folder: str = STAGED,
    ) -> list[StagedRef]:
        """Write parts, each with its number of rows, under names that no other attempt uses.

        By name they are in order: by version, by place, and as they are given.
        """
        staged = []
        for number, (rows, data) in enumerate(parts):
            stem = f"{self.version:012}-{self.place:04}-{number:04}-{uuid.uuid4().hex}"
            name = f"{folder}/{stem}{suffix}"
            self.location.write(name, data)
            size, checksum = len(data), checksum_of(data)
            staged.append(StagedRef(component, self.place, name, rows, size, checksum))
        return staged


def read_staged(location: Location, ref: StagedRef) -> pa.Buffer:
    """Read what was staged, and make sure that it is what was written."""
    return verified(location, ref.name, ref.size, ref.checksum)
