"""Runs: immutable, checksummed objects with the rows of several components.

A run is an Arrow IPC file with one record batch per component. It never changes, so what has been
verified once is good for the life of a process, and a copy is as good as the original.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pyarrow as pa

from thalweg.errors import StateError, explain
from thalweg.statelog.location import Location, MissingObject
from thalweg.statelog.parts import SCHEMA, as_part
from thalweg.statelog.stores import Data

_COMPONENTS = b"thalweg.components"


class CorruptRun(StateError):
    """A run is not what was written: its size or checksum differs."""


class RunRef(msgspec.Struct, frozen=True):
    """Names a run in a manifest, with what is needed to trust it."""

    name: str
    #: Bytes of the whole object.
    size: int
    #: Hexadecimal blake2b-128 of the whole object.
    checksum: str
    #: Rows per component.
    keys: dict[str, int]
    #: First and last version covered, both inclusive.
    first: int
    last: int
    #: Whether its rows belong to several places, so that a reader must choose its own.
    shared: bool = False


def checksum_of(data: Data) -> str:
    """Give the hexadecimal blake2b-128 of some bytes.

    >>> checksum_of(b"")
    'cae66941d9efbd404e4d88758ea67670'
    """
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def write_run(
    location: Location,
    name: str,
    parts: Mapping[str, pa.RecordBatch],
    versions: tuple[int, int],
    *,
    shared: bool = False,
) -> RunRef:
    """Write the parts of several components as one run that covers these versions."""
    components = sorted(parts)
    metadata = {_COMPONENTS: msgspec.json.encode(components)}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, SCHEMA.with_metadata(metadata)) as writer:
        for component in components:
            writer.write_batch(as_part(parts[component]))
    data = sink.getvalue()
    location.write(name, data)
    rows = {component: parts[component].num_rows for component in components}
    return RunRef(name, data.size, checksum_of(data), rows, *versions, shared)


class Run:
    """An opened run."""

    def __init__(self, data: pa.Buffer) -> None:
        reader = pa.ipc.open_file(data)
        names = msgspec.json.decode(reader.schema.metadata[_COMPONENTS], type=list[str])
        self._parts = {name: as_part(reader.get_batch(i)) for i, name in enumerate(names)}

    def part(self, component: str) -> pa.RecordBatch | None:
        """Give the rows of a component, if there are any."""
        return self._parts.get(component)


class Runs:
    """The runs that this process has opened and verified.

    Objects of a local file system are memory-mapped where they are. Those of others are copied
    once into the ``cache`` folder, which several processes may share; without one they are kept
    in memory.
    """

    def __init__(self, cache: Path | None = None) -> None:
        self._cache = None if cache is None else Location.of(cache)
        self._opened: dict[tuple[str, str], Run] = {}

    def open(self, location: Location, ref: RunRef) -> Run:
        """Give a run; its size and checksum are verified when it is first opened."""
        place = location.uri, ref.name
        run = self._opened.get(place)
        if run is None:
            run = self._opened[place] = Run(self._data(location, ref))
        return run

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget all other runs, and delete their cached copies.

        Give the names of all runs still in use at the locations that were opened here.
        """
        wanted = frozenset(names)
        uris = {uri for uri, _ in self._opened}
        self._opened = {place: run for place, run in self._opened.items() if place[1] in wanted}
        if self._cache is None:
            return
        kept = {_flat(name) for name in wanted}
        for folder in map(_folder, sorted(uris)):
            for name in self._cache.names(folder):
                if name not in kept:
                    self._cache.delete(f"{folder}/{name}")

    def _data(self, location: Location, ref: RunRef) -> pa.Buffer:
        if location.is_local or self._cache is None:
            return _verified(location, ref.name, ref)
        copy = f"{_folder(location.uri)}/{_flat(ref.name)}"
        try:
            return _verified(self._cache, copy, ref)
        except (CorruptRun, MissingObject):
            data = _verified(location, ref.name, ref)
            self._cache.write(copy, data)
            return self._cache.read(copy)


def _folder(uri: str) -> str:
    """Name the folder for the copies of one location."""
    return checksum_of(uri.encode())


def _flat(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")


def _verified(location: Location, name: str, ref: RunRef) -> pa.Buffer:
    data = location.read(name)
    # The size comes first: reading behind the end of a mapped file would end the process.
    if data.size != ref.size:
        raise _corrupt(location, name, f"{ref.size} bytes", f"{data.size}")
    found = checksum_of(data)
    if found != ref.checksum:
        raise _corrupt(location, name, f"checksum {ref.checksum}", found)
    return data


def _corrupt(location: Location, name: str, expected: str, got: str) -> CorruptRun:
    hint = "the object was damaged: restore it, or go back to an older version"
    return CorruptRun(explain(f"run {name!r} at {location}", "", expected, got, hint))
