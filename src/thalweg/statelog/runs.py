"""Runs: immutable, checksummed objects with the rows of several components.

A run is an Arrow IPC file with one record batch per component. It never changes, so what has been
verified once is good for the life of a process, and a copy is as good as the original.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pyarrow as pa

from thalweg.routing.table import RoutingTable
from thalweg.statelog.location import Location, MissingObject
from thalweg.statelog.objects import CorruptRun, checksum_of, verified
from thalweg.statelog.parts import SCHEMA, as_part, hashes_of
from thalweg.statelog.tables import TablesRef, load_tables

_COMPONENTS = b"thalweg.components"


class Only(msgspec.Struct, frozen=True):
    """The place that a shared run was at: of moved keys, it knows those that were there then."""

    place: int
    tables: TablesRef


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
    #: Whose rows count, where keys had places of their own when it was shared; None for all.
    only: Only | None = None


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

    def narrowed(self, place: int, tables: Mapping[str, RoutingTable]) -> Run:
        """Leave out the keys that these tables have at other places."""
        made = object.__new__(Run)
        made._parts = dict(self._parts)
        for name in self._parts.keys() & tables.keys():
            mine = tables[name].places_of(hashes_of(self._parts[name])) == place
            made._parts[name] = self._parts[name].filter(pa.array(mine))
        return made


class Runs:
    """The runs that this process has opened and verified.

    Objects of a local file system are memory-mapped where they are. Those of others are copied
    once into the ``cache`` folder, which several processes may share; without one they are kept
    in memory.
    """

    def __init__(self, cache: Path | None = None) -> None:
        self._cache = None if cache is None else Location.of(cache)
        self._opened: dict[tuple[str, str], Run] = {}
        self._narrowed: dict[tuple[str, str, Only], Run] = {}

    def open(self, location: Location, ref: RunRef) -> Run:
        """Give a run; its size and checksum are verified when it is first opened."""
        place = location.uri, ref.name
        run = self._opened.get(place)
        if run is None:
            run = self._opened[place] = Run(self._data(location, ref))
        return run if ref.only is None else self._narrow(run, location, ref.name, ref.only)

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget all other runs, and delete their cached copies.

        Give the names of all runs still in use at the locations that were opened here.
        """
        wanted = frozenset(names)
        uris = {uri for uri, _ in self._opened}
        self._opened = {place: run for place, run in self._opened.items() if place[1] in wanted}
        self._narrowed = {place: run for place, run in self._narrowed.items() if place[1] in wanted}
        if self._cache is None:
            return
        kept = {_flat(name) for name in wanted}
        for folder in map(_folder, sorted(uris)):
            for name in self._cache.names(folder):
                if name not in kept:
                    self._cache.delete(f"{folder}/{name}")

    def _narrow(self, run: Run, location: Location, name: str, only: Only) -> Run:
        place = location.uri, name, only
        if place not in self._narrowed:
            tables = load_tables(location, only.tables).tables(only.tables.step)
            self._narrowed[place] = run.narrowed(only.place, tables)
        return self._narrowed[place]

    def _data(self, location: Location, ref: RunRef) -> pa.Buffer:
        if location.is_local or self._cache is None:
            return verified(location, ref.name, ref.size, ref.checksum)
        copy = f"{_folder(location.uri)}/{_flat(ref.name)}"
        try:
            return verified(self._cache, copy, ref.size, ref.checksum)
        except (CorruptRun, MissingObject):
            data = verified(location, ref.name, ref.size, ref.checksum)
            self._cache.write(copy, data)
            return self._cache.read(copy)


def _folder(uri: str) -> str:
    """Name the folder for the copies of one location."""
    return checksum_of(uri.encode())


def _flat(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")
