"""Degrees and routing tables that components have come to, as objects that manifests name.

>>> table = RoutingTable.even(places=2, groups=4).with_keys({"eu": 1})
>>> kept = Arrangement.of(Asked(degree=None, key_groups=4), degree=2, table=table)
>>> same = kept.table
>>> same.epoch, same.groups.tolist(), same.key_places.tolist()
(1, [0, 0, 1, 1], [1])
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import msgspec
import numpy as np

from thalweg.errors import StateError, explain
from thalweg.routing.table import RoutingTable
from thalweg.statelog.location import Location
from thalweg.statelog.objects import checksum_of, verified

#: Folder of arrangements.
ARRANGEMENTS = "arrangements"
# How numbers are written, on every machine.
_HASH, _PLACE = "<u8", "<i8"


class Asked(msgspec.Struct, frozen=True):
    """What a topology and its settings ask for; as long as it is the same, arrangements stay."""

    #: None where nobody says.
    degree: int | None
    key_groups: int
    #: Checksum of the file with the first tables; empty where there is none.
    file: str = ""


class Arrangement(msgspec.Struct, frozen=True):
    """What a component has come to while it ran: its degree, and its table if it has one."""

    asked: Asked
    degree: int
    epoch: int = 0
    #: Arrays as bytes; empty where there is no table.
    groups: bytes = b""
    hashes: bytes = b""
    places: bytes = b""

    @classmethod
    def of(cls, asked: Asked, degree: int, table: RoutingTable | None) -> Arrangement:
        """Write down a degree and a table."""
        if table is None:
            return cls(asked, degree)
        return cls(
            asked,
            degree,
            table.epoch,
            table.groups.astype(_PLACE).tobytes(),
            table.hashes.astype(_HASH).tobytes(),
            table.key_places.astype(_PLACE).tobytes(),
        )

    @property
    def table(self) -> RoutingTable | None:
        """The table; None where keys have none."""
        if not self.groups:
            return None
        return RoutingTable(
            self.epoch,
            self.degree,
            np.frombuffer(self.groups, _PLACE).astype(np.int64),
            np.frombuffer(self.hashes, _HASH).astype(np.uint64),
            np.frombuffer(self.places, _PLACE).astype(np.int64),
        )


class ArrangementsRef(msgspec.Struct, frozen=True):
    """Names the object with the arrangements of a version."""

    name: str
    size: int
    checksum: str


def save_arrangements(
    location: Location, arranged: Mapping[str, Arrangement], version: int
) -> ArrangementsRef | None:
    """Write arrangements that a version will be the first to have; None where there are none."""
    if not arranged:
        return None
    data = msgspec.msgpack.encode(arranged)
    name = f"{ARRANGEMENTS}/{version:012}-{uuid.uuid4().hex}.msgpack"
    location.write(name, data)
    return ArrangementsRef(name, len(data), checksum_of(data))


def load_arrangements(location: Location, ref: ArrangementsRef | None) -> dict[str, Arrangement]:
    """Read the arrangements of a version, by component."""
    if ref is None:
        return {}
    data = verified(location, ref.name, ref.size, ref.checksum)
    try:
        return msgspec.msgpack.decode(data, type=dict[str, Arrangement])
    except msgspec.MsgspecError as error:
        where = f"object {ref.name!r} at {location}"
        raise StateError(explain(where, "", "degrees and tables", str(error))) from error
