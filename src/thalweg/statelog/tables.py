"""Routing tables as objects: saved before they are used, named by the manifests that use them."""

from __future__ import annotations

import uuid

import msgspec

from thalweg.routing.transition import Transition
from thalweg.statelog.location import Location, MissingObject
from thalweg.statelog.objects import CorruptRun, checksum_of, verified

#: Folder of routing tables.
TABLES = "tables"


class TablesRef(msgspec.Struct, frozen=True):
    """Names the object with the routing tables of a version, and how far it has got in them."""

    name: str
    size: int
    checksum: str
    #: Steps made, and in all; where they differ, keys are still on their way.
    step: int
    steps: int


def save_tables(location: Location, transition: Transition, version: int) -> TablesRef:
    """Write tables that a version will be the first to use; no step is made yet."""
    data, name = transition.to_bytes(), f"{TABLES}/{version:012}-{uuid.uuid4().hex}.arrow"
    location.write(name, data)
    return TablesRef(name, len(data), checksum_of(data), 0, transition.steps)


def load_tables(location: Location, ref: TablesRef) -> Transition:
    """Read tables; as bad as a damaged run when they are not what was written."""
    try:
        return Transition.from_bytes(verified(location, ref.name, ref.size, ref.checksum))
    except MissingObject as error:
        raise CorruptRun(str(error)) from error
