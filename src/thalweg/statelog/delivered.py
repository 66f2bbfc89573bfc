"""How far sinks beside the driver have been given what was committed."""

from __future__ import annotations

from thalweg.statelog.location import Location, MissingObject

_MARK = "delivered"


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
