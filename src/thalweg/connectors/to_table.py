"""A sink that adds to a table of Parquet files, each batch or run as a whole or not at all.

>>> import tempfile, thalweg as tw
>>> with tempfile.TemporaryDirectory() as folder:
...     flow = tw.Flow("words")
...     words = flow.source("words", tw.items(["to", "be"]), fields={"word": str})
...     words.sink("out", tw.to_table(folder))
...     ran = flow.run()
...     tw.read_table(folder).to_table().to_pydict()
{'word': ['to', 'be']}
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from thalweg.components import BlockBolt
from thalweg.connectors.parquet_parts import ParquetParts
from thalweg.connectors.table_manifests import (
    TableFile,
    TableManifest,
    TableManifests,
    file_system,
    schema_of,
    schemas_of,
)
from thalweg.contexts import TaskContext
from thalweg.errors import SchemaError, StateError, explain
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import StagedRef
from thalweg.statelog.objects import checksum_of
from thalweg.statelog.staged import StagedBatch

if TYPE_CHECKING:
    import pyarrow.dataset as ds

#: Begins the names of staged files that are not at the state's location.
ELSEWHERE = "@table/"
_DATA = "data"


class TableSink(BlockBolt):
    """Writes files at each place, and commits those of a batch to the table as one version.

    This is what a topology has. A copy of it, for a task in the same process, makes the whole run
    one version; where it is sent to other processes, batches are committed beside the driver.
    """

    at_places: ClassVar[bool] = True
    fixed_degree: ClassVar[bool] = True

    def __init__(self, location: Location) -> None:
        self._location = location
        self._written: list[StagedRef] = []
        #: What tasks of a run in this process have written, once they have ended.
        self._ended: dict[int, list[StagedRef]] = {}
        #: The state's location and the last batch of it that this object has committed.
        self._last: tuple[str, int] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> TableSink:
        return _RunSink(self._location, self._ended)

    def __reduce__(self) -> tuple[Any, ...]:
        return _PlaceSink, (self._location,)

    # --- at a place --------------------------------------------------------------------------

    def prepare(self, context: TaskContext) -> None:
        """Begin a batch, or a run."""
        self._parts = ParquetParts(f"table {self._location}")

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Take rows."""
        self._parts.add(batch)
        if self._parts.is_full:
            self._parts.spill()

    def cleanup(self) -> None:
        """Delete what was written and then not committed."""
        self._parts.close()
        for ref in self._written:
            with contextlib.suppress(StateError):
                self._location.delete(_file_name(ref))
        self._written = []

    def for_batches(self) -> TableSink:
        """Give a sink that leaves it to others to commit what it has written."""
        return _PlaceSink(self._location)

    def hand_over(self) -> TableSink | None:
        """Give what was taken in so far to a sink of its own, if there is any, and begin anew."""
        if self._parts.is_empty:
            return None
        made = _PlaceSink(self._location)
        made.context, made._parts = self.context, self._parts
        self.prepare(self.context)
        return made

    def finish_batch(self, batch: StagedBatch) -> list[StagedRef]:
        """Write the files of a batch."""
        self._write(_folder(batch, self.context.component), batch.place)
        written, self._written = self._written, []
        return written

    def _write(self, folder: str, place: int) -> None:
        for rows, data in self._parts.take():
            name = f"{ELSEWHERE}{folder}/{place:04}-{uuid.uuid4().hex}.parquet"
            component = self.context.component
            ref = StagedRef(component, place, name, rows, data.size, checksum_of(data))
            self._location.write(_file_name(ref), data)
            self._written.append(ref)

    # --- beside the driver -------------------------------------------------------------------

    def commit_batch(self, session: Any, batch: StagedBatch, refs: list[StagedRef]) -> None:
        """Make the files of a batch part of the table, unless they are."""
        del session
        staged = [ref for ref in refs if ref.name.startswith(ELSEWHERE)]
        if staged and not (self._may_come_again(batch) and self._has(staged)):
            self._commit(staged)
        self._last = batch.location.uri, batch.version
        if staged:
            self._clear(_folder(batch, staged[0].component), staged)

    def _may_come_again(self, batch: StagedBatch) -> bool:
        """Say whether a batch may have been committed before: not when we have just come to it."""
        if self._last is None:
            return True
        location, version = self._last
        return location != batch.location.uri or version >= batch.version

    def _clear(self, folder: str, staged: Sequence[StagedRef]) -> None:
        """Delete what attempts that failed have left: no other one of this batch will be committed.

        A state that began again has the same folders, with files of the table in them.
        """
        with contextlib.suppress(StateError):  # they are in nobody's way
            left = {f"{folder}/{name}" for name in self._location.names(folder)}
            left -= {_file_name(ref) for ref in staged}
            for name in sorted(left - self._named()) if left else ():
                self._location.delete(name)

    def _named(self) -> set[str]:
        manifests = TableManifests(self._location)
        return {file.name for file in manifests.whole(manifests.latest()).files}

    def _has(self, staged: Sequence[StagedRef]) -> bool:
        there = self._named()
        return any(_file_name(ref) in there for ref in staged)

    def _commit(self, refs: Sequence[StagedRef]) -> None:
        files = [TableFile(_file_name(ref), ref.rows, ref.size, ref.checksum) for ref in refs]
        schemas = {file: schema_of(self._location, file.name) for file in files}
        TableManifests(self._location).commit(schemas)


class _PlaceSink(TableSink):
    """A sink at a place: somebody else commits."""

    def __deepcopy__(self, memo: dict[int, Any]) -> TableSink:
        return _PlaceSink(self._location)


class _RunSink(TableSink):
    """One task of a run that is one version; the task that ends last commits for all of them."""

    def __init__(self, location: Location, ended: dict[int, list[StagedRef]]) -> None:
        super().__init__(location)
        self._ended = ended

    def prepare(self, context: TaskContext) -> None:
        """Begin a run; what one before it has left counts no more."""
        super().prepare(context)
        self._ended.pop(context.task, None)

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Take rows; files are written as soon as they are full."""
        self._parts.add(batch)
        if self._parts.is_full:
            self._write_next()

    def process_end(self) -> None:
        """Write what is left."""
        self._write_next()
        self._ended[self.context.task] = self._written
        if len(self._ended) == self.context.degree:
            written = [ref for _, refs in sorted(self._ended.items()) for ref in refs]
            if written:
                self._commit(written)
            for refs in self._ended.values():
                refs.clear()  # they are committed: no task deletes them
            self._ended.clear()

    def _write_next(self) -> None:
        self._write(_DATA, self.context.task)


def _folder(batch: StagedBatch, component: str) -> str:
    """Name the folder for the files of a batch; sinks and states that share a table have others."""
    writer = checksum_of(f"{batch.location} {component}".encode())[:12]
    return f"{_DATA}/{batch.version:012}-{writer}"


def _file_name(ref: StagedRef) -> str:
    return ref.name.removeprefix(ELSEWHERE)


def to_table(path: str | os.PathLike[str]) -> TableSink:
    """Make a sink that adds its tuples to a table of Parquet files (a folder or a URI).

    On Spark the places write, and each batch is in the table exactly once; so is each snapshot of a
    local run with a checkpoint. Otherwise a run is in it as a whole when it has ended.
    :func:`read_table` never sees anything else.
    """
    return TableSink(Location.of(path))


def read_table(
    path: str | os.PathLike[str], *, version: int | None = None, verify: bool = False
) -> ds.Dataset:
    """Read what :func:`to_table` has written, as a ``pyarrow.dataset.Dataset``.

    It consists of committed files alone, as of its newest version or an older one. With ``verify``
    their checksums are compared first.
    """
    location = Location.of(path)
    manifests = TableManifests(location)
    latest = manifests.latest()
    if not latest:
        hint = "nothing was ever committed there, or it is another folder"
        raise StateError(explain(f"table {location}", "", "a manifest", "none", hint))
    if version is not None and not 1 <= version <= latest:
        expected = f"a version from 1 to {latest}"
        raise StateError(explain(f"table {location}", "", expected, str(version)))
    manifest = manifests.whole(latest if version is None else version)
    for file in manifest.files if verify else ():
        _check(location, file)
    import pyarrow.dataset as ds  # noqa: PLC0415 (loads pandas, which takes a third of a second)

    opened, folder = file_system(location)
    parquet = ds.ParquetFileFormat()
    fragments = [parquet.make_fragment(f"{folder}/{file.name}", opened) for file in manifest.files]
    return ds.FileSystemDataset(fragments, _schema(location, manifest), parquet, opened)


def _check(location: Location, file: TableFile) -> None:
    data = location.read(file.name)
    found = checksum_of(data)
    if (data.size, found) != (file.size, file.checksum):
        expected = f"{file.size} bytes with checksum {file.checksum}"
        got = f"{data.size} with {found}"
        raise StateError(explain(f"file {file.name!r} of table {location}", "", expected, got))


def _schema(location: Location, manifest: TableManifest) -> pa.Schema:
    try:
        return pa.unify_schemas(schemas_of(manifest), promote_options="permissive")
    except (pa.ArrowException, ValueError) as error:
        expected = "files whose columns fit together"
        hint = "read an older version, or declare the types of the fields"
        raise SchemaError(explain(f"table {location}", "", expected, str(error), hint)) from error
