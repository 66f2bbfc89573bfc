"""Reading a committed version: what each component holds in it, little by little.

No topology is needed: the manifest says where everything is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from thalweg.errors import StateError, explain
from thalweg.hashing import hash_key
from thalweg.keys import Key, encode_key
from thalweg.routing.table import RoutingTable
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifest, Manifests
from thalweg.statelog.owners import Owners
from thalweg.statelog.parts import Owns, find_one, hashes_of, merge
from thalweg.statelog.runs import RunRef, Runs
from thalweg.statelog.stores import local_path
from thalweg.statelog.tables import load_tables

#: About how much is merged at once.
_ROWS, _BYTES = 1 << 16, 32 << 20


def versions_at(location: Location) -> list[int]:
    """List the versions whose manifests are there, ascending; raises when there is none."""
    if location.is_local and not os.path.isdir(local_path(location.uri)):
        hint = "give the folder or URI that a run had as its state"
        raise StateError(explain(f"state {location}", "", "a folder", "nothing there", hint))
    stems = [name.removesuffix(".json") for name in location.names("manifests")]
    found = sorted(int(stem) for stem in stems if stem.isdigit())
    if not found:
        hint = "nothing was ever committed there, or it is another folder"
        raise StateError(explain(f"state {location}", "", "a manifest", "none", hint))
    return found


def manifest_at(location: Location, version: int | None = None) -> Manifest:
    """Give the manifest of a version, or the newest one."""
    there = versions_at(location)
    if version is not None and version not in there:
        expected = f"one from {there[0]} to {there[-1]}"
        raise StateError(explain(f"version {version} at {location}", "", expected, "none of it"))
    return Manifests(location).read(there[-1] if version is None else version)


def tables_of(location: Location, manifest: Manifest) -> dict[str, RoutingTable]:
    """Give the tables of a version in which keys have places of their own."""
    ref = manifest.tables
    return {} if ref is None else load_tables(location, ref).tables(ref.step)


@dataclass(frozen=True)
class Version:
    """A committed version, to be read; states have names as in :mod:`thalweg.statelog.owners`."""

    location: Location
    manifest: Manifest
    runs: Runs = field(default_factory=Runs)

    def components(self) -> dict[str, list[str]]:
        """Give the components that have state here, with the names of that state."""
        found: dict[str, list[str]] = {}
        for name in sorted({name for ref in self._all_runs() for name in ref.keys}):
            found.setdefault(self.owners.split(name)[0], []).append(name)
        return found

    @cached_property
    def owners(self) -> Owners:
        """Whose its rows are."""
        manifest, tables = self.manifest, tables_of(self.location, self.manifest)
        return Owners(manifest.topology, manifest.places, manifest.key_groups, tables)

    def runs_of(self, name: str) -> int:
        """Count the runs that have something of this name."""
        return sum(name in ref.keys for ref in self._all_runs())

    def batches(self, name: str, expired_before: int | None = None) -> Iterator[pa.RecordBatch]:
        """Give all rows (see ``parts.SCHEMA``), each key once; a batch at a time is in memory.

        Those written before ``expired_before`` (milliseconds of the batch clock) are left out.
        """
        for parts, owns in self._holders(name):
            for slices in _ranges(parts):
                batch = merge(slices, oldest=True, expired_before=expired_before, keep=owns)
                if batch.num_rows:
                    yield batch

    def look_up(self, name: str, key: Key) -> bytes | None:
        """Give the stored value of a key, or None when it has none."""
        hash_, data = np.uint64(hash_key(key)), encode_key(key)
        for parts, owns in self._holders(name):
            if owns is not None and not owns(np.array([hash_]))[0]:
                continue
            for part in reversed(parts):
                row = find_one(part, hash_, data)
                if row >= 0:
                    stored: bytes | None = part.column("value")[row].as_py()
                    return stored
        return None

    def _all_runs(self) -> Iterable[RunRef]:
        return {ref.name: ref for refs in self.manifest.runs for ref in refs}.values()

    def _holders(self, name: str) -> Iterator[tuple[list[pa.RecordBatch], Owns | None]]:
        """Give the parts at each place that may have rows, and which of those rows count.

        A run that several places share may be out of date for keys of the others.
        """
        owners = self.owners
        if owners.split(name)[0] not in self.manifest.topology:
            # Its component has gone, so nothing has been written since.
            in_turn = sorted(self._all_runs(), key=lambda ref: (ref.last, ref.first))
            yield self._parts(name, in_turn), None
            return
        home = owners.home(name)
        for place, refs in enumerate(self.manifest.runs):
            if home is None and any(ref.shared for ref in refs):
                yield self._parts(name, refs), owners.at_place(name, place)
            elif home is None or home == place:
                yield self._parts(name, refs), None

    def _parts(self, name: str, refs: Sequence[RunRef]) -> list[pa.RecordBatch]:
        opened = [self.runs.open(self.location, ref) for ref in refs if name in ref.keys]
        return [part for run in opened if (part := run.part(name)) is not None]


def _ranges(parts: Sequence[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Cut parts, which ascend by hash, at the same hashes into pieces of bounded size."""
    rows, size = sum(part.num_rows for part in parts), sum(part.nbytes for part in parts)
    count = max(1, rows // _ROWS, size // _BYTES)
    bounds = np.array([(i << 64) // count for i in range(1, count)], dtype=np.uint64)
    cuts = [[0, *np.searchsorted(hashes_of(p), bounds).tolist(), p.num_rows] for p in parts]
    for i in range(count):
        yield [
            part.slice(cut[i], cut[i + 1] - cut[i]) for part, cut in zip(parts, cuts, strict=True)
        ]
