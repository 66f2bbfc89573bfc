"""How far sinks beside the driver have been given what was committed."""

from __future__ import annotations

import uuid

from thalweg.statelog.location import Location, MissingObject

_MARK, _OWNER = "delivered", "owner"
#: Holds the last entry that sinks had before a run fell back to an older version.
GIVEN = "given"


def read_mark(location: Location) -> int:
    """Give the last version that all sinks have been given."""
    return read_number(location, _MARK)


def write_mark(location: Location, version: int) -> None:
    """Note that all sinks have been given a version."""
    location.write(_MARK, str(version).encode())


def read_number(location: Location, name: str) -> int:
    """Read an object that holds a number; 0 where there is none."""
    try:
        text = location.read(name).to_pybytes()
    except MissingObject:
        return 0
    return int(text) if text.isdigit() else 0


def owner_of(location: Location) -> str:
    """Give the name that tells a state from all others; it is made once, and stays."""
    try:
        return location.read(_OWNER).to_pybytes().decode()
    except MissingObject:
        location.write_new(_OWNER, uuid.uuid4().hex.encode())
        return owner_of(location)
