"""Which files a table consists of: its manifests, and nothing else, say so.

A table has versions 1, 2, 3 ... Version n adds files. Its manifest names those of a whole range of
versions that ends with n: as many as the largest power of ten that divides n. So the manifests of
1200, 1100 and 1000 cover a table of 1200 versions; nine per digit are the most that have to be
read, and a file is named about once per digit.

>>> [covered_from(version) for version in (7, 10, 11, 1200)]
[7, 1, 11, 1101]
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from thalweg.errors import StateError, explain
from thalweg.statelog.location import Location, MissingObject
from thalweg.statelog.objects import checksum_of

#: The newest format that can be read; the one that is written.
FORMAT = 1
_FOLDER, _LATEST = "manifests", "latest"


class TableFile(msgspec.Struct, frozen=True):
    """A Parquet file of a table."""

    #: Below the folder of the table.
    name: str
    rows: int
    size: int
    #: Hexadecimal blake2b-128 of the whole file.
    checksum: str
    #: Which of the manifest's schemas it has.
    schema: str = ""


class TableManifest(msgspec.Struct, frozen=True):
    """The files that some versions of a table have added."""

    #: First and last version covered, both inclusive.
    first: int
    version: int
    files: list[TableFile]
    #: Arrow schemas of the files in base64, by checksum.
    schemas: dict[str, str] = {}
    format: int = FORMAT


def covered_from(version: int) -> int:
    """Say with which version the range begins that the manifest of a version covers."""
    size = 1
    while version % (size * 10) == 0:
        size *= 10
    return version - size + 1


@dataclass(frozen=True)
class TableManifests:
    """The manifests of the table at a location."""

    location: Location

    def latest(self) -> int:
        """Give the newest version; 0 when there is none."""
        try:
            pointed = self.location.read(f"{_FOLDER}/{_LATEST}").to_pybytes()
            version = int(pointed) if pointed.isdigit() else 0
        except MissingObject:
            version = 0
        # A crash between the two writes of a commit leaves the pointer behind.
        while self.location.exists(_name(version + 1)):
            version += 1
        return version

    def whole(self, version: int) -> TableManifest:
        """Put together what the table consists of at a version."""
        return self._from(1, version)

    def commit(self, files: Mapping[TableFile, pa.Schema]) -> int:
        """Add files as the next version; that somebody else has taken its number is an error."""
        version = self.latest() + 1
        before = self._from(covered_from(version), version - 1)
        schemas = dict(before.schemas)
        named = list(before.files)
        for file, schema in files.items():
            data = schema.serialize().to_pybytes()
            digest = checksum_of(data)
            schemas[digest] = base64.b64encode(data).decode()
            named.append(msgspec.structs.replace(file, schema=digest))
        made = TableManifest(before.first, version, named, schemas)
        self.location.write_new(_name(version), msgspec.json.encode(made))
        self.location.write(f"{_FOLDER}/{_LATEST}", str(version).encode())
        return version

    def _from(self, first: int, version: int) -> TableManifest:
        """Put together what the versions from ``first`` on have added."""
        found: list[TableManifest] = []
        at = version
        while at >= first:
            found.append(self._read(at))
            at = found[-1].first - 1
        files = [file for manifest in reversed(found) for file in manifest.files]
        schemas = {digest: text for m in found for digest, text in m.schemas.items()}
        return TableManifest(first, version, files, schemas)

    def _read(self, version: int) -> TableManifest:
        subject = f"manifest {_name(version)!r} of table {self.location}"
        data = self.location.read(_name(version)).to_pybytes()
        try:
            manifest = msgspec.json.decode(data, type=TableManifest)
        except msgspec.MsgspecError as error:
            got = f"a damaged object: {error}"
            raise StateError(explain(subject, "", "what was committed", got)) from error
        if manifest.format > FORMAT:
            hint = "it was written by a newer Thalweg: upgrade this one"
            got = f"format {manifest.format}"
            raise StateError(explain(subject, "", f"format {FORMAT} or older", got, hint))
        return manifest


def _name(version: int) -> str:
    return f"{_FOLDER}/{version:012}.json"


def file_system(location: Location) -> tuple[fs.FileSystem, str]:
    """Open the file system of a location, and give the path of its folder there."""
    opened, folder = fs.FileSystem.from_uri(location.uri)
    return opened, folder.rstrip("/")


def schema_of(location: Location, name: str) -> pa.Schema:
    """Read the Arrow schema of a Parquet file; of remote ones only the end is read."""
    opened, folder = file_system(location)
    try:
        return pq.read_schema(f"{folder}/{name}", filesystem=opened)
    except (OSError, pa.ArrowException) as error:
        text = explain(f"file {name!r} at {location}", "", "a Parquet file", str(error))
        raise StateError(text) from error


def schemas_of(manifest: TableManifest) -> list[pa.Schema]:
    """Give the different schemas of a table's files."""
    stored = [pa.py_buffer(base64.b64decode(text)) for text in manifest.schemas.values()]
    return [pa.ipc.read_schema(data) for data in stored]
