"""Manifests: the record of each committed version, and the only commit there is.

A manifest is a line of JSON and a line with its checksum, in an object named after its version.
The object ``latest`` holds the number of the newest one; it saves a listing, nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from thalweg.errors import StateError, explain
from thalweg.hashing import KEY_GROUPS
from thalweg.statelog.arrangements import ArrangementsRef
from thalweg.statelog.location import Location, MissingObject
from thalweg.statelog.objects import checksum_of
from thalweg.statelog.runs import RunRef
from thalweg.statelog.tables import TablesRef

#: The newest format that can be read; the one that is written.
FORMAT = 1
#: Name among the inputs that says how far the write-ahead log of spouts is committed.
LOG = "log"
#: Keys of the notes: whether all inputs had ended, and the runtime, where it is not Spark.
ENDED, RUNTIME = "ended", "runtime"
#: Folder of the manifests of a location.
FOLDER = "manifests"
_LATEST = "latest"


class ComponentMark(msgspec.Struct, frozen=True):
    """What a component was when a version was committed, to notice when it has changed."""

    #: ``stateless``, ``keyed`` or ``global``.
    kind: str
    #: Names of its key fields, and their types in words.
    key: tuple[str, ...]
    key_types: tuple[str, ...]
    #: Its codec in words.
    codec: str
    degree: int
    #: Its grouping in words.
    grouping: str = ""


class StagedRef(msgspec.Struct, frozen=True):
    """Names an object with output that a committed batch has staged for a component's sink."""

    component: str
    place: int
    name: str
    rows: int
    size: int
    checksum: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A committed version: where all state is, and how far the input was read."""

    format: int = FORMAT
    version: int
    epoch: int
    #: Seconds of the batch clock.
    clock: float
    seed: int
    watermark: float | None
    places: int
    #: The host that each place was on; nothing where there was only one.
    hosts: list[str] = []
    key_groups: int = KEY_GROUPS
    #: Which keys have a place of their own; nothing where none has.
    tables: TablesRef | None = None
    #: Degrees and tables that were changed while the local runtime ran; nothing where none was.
    arrangements: ArrangementsRef | None = None
    #: The runs of each place, oldest first.
    runs: list[list[RunRef]]
    #: How far each source is committed.
    inputs: dict[str, int] = {}
    topology: dict[str, ComponentMark] = {}
    #: Newest event time of each task of a source (once of a source), by its name; the tasks that
    #: have ended; and how far components were told that time has come.
    newest: dict[str, int] = {}
    ended: list[str] = []
    told: dict[str, int] = {}
    #: Before these times, of events and of the clock, no timer of a component is due.
    due: dict[str, tuple[int, int]] = {}
    #: Arrow schemas that were learnt, as base64.
    types: dict[str, str] = {}
    staged: list[StagedRef] = []
    notes: dict[str, Any] = {}


class _Format(msgspec.Struct):
    format: int


class Manifests:
    """The manifests at a location."""

    def __init__(self, location: Location) -> None:
        self._location = location

    def commit(self, manifest: Manifest) -> None:
        """Write a manifest; that its version is committed already is an error."""
        newest = self._pointed_at()
        if newest is not None and newest > manifest.version:
            raise StateError(
                explain(
                    f"version {manifest.version} at {self._location}",
                    expected="to be the next one",
                    got=f"version {newest} there already",
                    hint="another run uses the same state; each needs its own",
                )
            )
        line = msgspec.json.encode(manifest)
        self._location.write_new(_name(manifest.version), _signed(line))
        self._location.write(_LATEST, _signed(str(manifest.version).encode()))

    def latest(self) -> Manifest | None:
        """Give the newest manifest, or None when nothing was ever committed."""
        version = self._pointed_at()
        manifest = None if version is None else self._read_if_there(version)
        if manifest is None:
            versions = self._versions()
            return self.read(versions[-1]) if versions else None
        # A crash between the two writes of a commit leaves the pointer behind.
        while following := self._read_if_there(manifest.version + 1):
            manifest = following
        return manifest

    def read(self, version: int) -> Manifest:
        """Give the manifest of a version."""
        name = _name(version)
        line = _content(self._location.read(name).to_pybytes())
        if line is None:
            raise self._corrupt(name, "its checksum")
        try:
            format_ = msgspec.json.decode(line, type=_Format).format
            if format_ > FORMAT:
                raise self._too_new(name, format_)
            return msgspec.json.decode(line, type=Manifest)
        except msgspec.MsgspecError as error:
            raise self._corrupt(name, str(error)) from error

    def older(self, version: int) -> Iterator[Manifest]:
        """Go through the manifests before a version, the newest first."""
        for found in reversed(self._versions()):
            if found < version:
                yield self.read(found)

    def delete(self, version: int) -> None:
        """Delete the manifest of one version."""
        self._location.delete(_name(version))

    def go_back_to(self, version: int) -> None:
        """Make a version the newest again; those behind it are deleted."""
        self._location.write(_LATEST, _signed(str(version).encode()))
        for found in reversed(self._versions()):
            if found > version:
                self.delete(found)

    def _pointed_at(self) -> int | None:
        try:
            line = _content(self._location.read(_LATEST).to_pybytes())
        except MissingObject:
            return None
        return int(line) if line is not None and line.isdigit() else None

    def _read_if_there(self, version: int) -> Manifest | None:
        try:
            return self.read(version)
        except MissingObject:
            return None

    def _versions(self) -> list[int]:
        stems = [name.removesuffix(".json") for name in self._location.names(FOLDER)]
        return sorted(int(stem) for stem in stems if stem.isdigit())

    def _corrupt(self, name: str, reason: str) -> StateError:
        return StateError(
            explain(
                f"manifest {name!r} at {self._location}",
                expected="what was committed",
                got=f"a damaged object: {reason}",
                hint="restore it, or start from an older version",
            )
        )

    def _too_new(self, name: str, found: int) -> StateError:
        return StateError(
            explain(
                f"manifest {name!r} at {self._location}",
                expected=f"format {FORMAT} or older",
                got=f"format {found}",
                hint="it was written by a newer Thalweg: upgrade this one",
            )
        )


def _name(version: int) -> str:
    return f"{FOLDER}/{version:012}.json"


def _signed(line: bytes) -> bytes:
    return line + b"\n" + checksum_of(line).encode() + b"\n"


def _content(data: bytes) -> bytes | None:
    """Give the signed line, or None when it is not what was written."""
    line, _, _ = data.partition(b"\n")
    return line if data == _signed(line) else None
