"""Objects that must be what was written: read with their size and checksum."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from thalweg.errors import StateError, explain
from thalweg.statelog.location import Location
from thalweg.statelog.stores import Data


class CorruptRun(StateError):
    """An object is not what was written: its size or checksum differs."""


def checksum_of(data: Data) -> str:
    """Give the hexadecimal blake2b-128 of some bytes.

    >>> checksum_of(b"")
    'cae66941d9efbd404e4d88758ea67670'
    """
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def verified(location: Location, name: str, size: int, checksum: str) -> pa.Buffer:
    """Read an object, and make sure that it is what was written."""
    data = location.read(name)
    # The size comes first: reading behind the end of a mapped file would end the process.
    if data.size != size:
        raise _corrupt(location, name, f"{size} bytes", f"{data.size}")
    found = checksum_of(data)
    if found != checksum:
        raise _corrupt(location, name, f"checksum {checksum}", found)
    return data


def _corrupt(location: Location, name: str, expected: str, got: str) -> CorruptRun:
    hint = "the object was damaged: restore it, or go back to an older version"
    return CorruptRun(explain(f"object {name!r} at {location}", "", expected, got, hint))
