"""Tables of a committed version, read when they are asked for."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from thalweg.runtimes.making import codec_of
from thalweg.runtimes.spark.planning import state_name
from thalweg.statelog.keying import decode_keys
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifest
from thalweg.statelog.parts import milliseconds
from thalweg.statelog.reading import Version
from thalweg.timers import plain_items
from thalweg.topology import Component, Topology


class OwnFolder:
    """A folder for state that nobody asked to keep; it goes when nothing refers to it any more."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="thalweg-state-")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Tables(Mapping[str, Mapping[Any, Any]]):
    """The tables of a topology, by name; keeps the folder that they are in, if it is our own."""

    def __init__(
        self,
        topology: Topology,
        location: Location,
        manifest: Manifest,
        folder: OwnFolder | None = None,
    ) -> None:
        self._components = topology.tables
        self._location, self._manifest, self._folder = location, manifest, folder
        self._read: dict[str, dict[Any, Any]] = {}

    def __getitem__(self, name: str) -> Mapping[Any, Any]:
        if name not in self._read:
            component = self._components[name]
            self._read[name] = read_table(self._location, self._manifest, component)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._components)

    def __len__(self) -> int:
        return len(self._components)


def read_table(location: Location, manifest: Manifest, component: Component) -> dict[Any, Any]:
    """Read the state of a component as a dictionary from key to value."""
    version, codec = Version(location, manifest), codec_of(component)
    combine = getattr(component.body, "merge", None)
    ttl = component.options.ttl
    expired = None if ttl is None else milliseconds(manifest.clock) - milliseconds(ttl)
    table: dict[Any, Any] = {}
    for name in dict.fromkeys(state_name(component, task) for task in range(component.degree)):
        for batch in version.batches(name, expired):
            values = batch.column("value").to_pylist()
            keys, decoded = decode_keys(batch.column("key")), map(codec.decode, values)
            for key, value in plain_items(zip(keys, decoded, strict=True)):
                # Only a partial key is at two tasks; its component has a merge (validation.py).
                table[key] = combine(table[key], value) if combine and key in table else value
    return table
