"""Files as tables that streams are joined with; read again when they change."""

from __future__ import annotations

import os
import threading
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from thalweg.clock import seconds
from thalweg.connectors.failures import BadFile
from thalweg.connectors.formats import FileFormat, file_format
from thalweg.connectors.readers import discover, open_reader
from thalweg.errors import RecordError, ThalwegError, UsageError, explain
from thalweg.operators.side_tables import Notice, Version, as_batch
from thalweg.schemas import Fields, Shape
from thalweg.schemas import fields as fields_of

#: Rows that are read at once.
_ROWS = 100_000
#: What tells one version of a file from another: when it was written, how long it is, and which
#: file it is at all.
_Mark = tuple[int, int, int]


class TableFile:
    """A table in a file; one for all tasks of a process, which read it once for each version."""

    def __init__(
        self, path: str, format_: FileFormat, declared: Fields | None, reload: float | None
    ) -> None:
        self.path, self._format, self._declared = path, format_, declared
        #: Seconds of a period, in each of which one look is taken at the file; None for one look.
        self._reload = reload
        self._lock = threading.Lock()
        self._version: Version | None = None
        #: The file that was looked at last, good or bad, and the number of that look's period.
        self._mark: _Mark | None = None
        self._period = 0

    def __getstate__(self) -> tuple[Any, ...]:
        # Types that the first process has learnt hold for all.
        return self.path, self._format, self.fields, self._reload

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc] # as if it were new

    @cached_property
    def fields(self) -> Fields:
        """Its fields; where types are not declared, the file is read to see them."""
        if self._declared is not None and None not in self._declared.types:
            return self._declared
        self._version, self._mark = self._read(self._names())
        return fields_of(self._version.rows.schema)

    def _names(self) -> Fields:
        if self._declared is not None:
            return self._declared
        try:
            found = discover(self.path, self._format)
        except (BadFile, OSError) as error:
            raise self._bad(str(error)) from error
        if found is None:
            text = "fields={...}, since lines of JSON need not be alike"
            raise UsageError(explain(f"table file {self.path!r}", expected=text))
        return found

    def current(self, now: float, notice: Notice) -> Version:
        """Give the newest version that can be read; looks at the file when it is time to."""
        declared = self.fields
        # Counted from nothing, so that tasks everywhere look at the same time of their clock.
        period = 0 if self._reload is None else int(now // self._reload)
        with self._lock:
            before, self._period = self._period, period
            if self._version is None:
                self._version, self._mark = self._read(declared)
            elif period != before:
                self._look(declared, notice)
            return self._version

    def _look(self, declared: Fields, notice: Notice) -> None:
        mark = _mark(self.path)
        if mark == self._mark:
            return
        try:
            self._version, self._mark = self._read(declared)
            notice(f"{self._version.text} is used from now on")
        except _Unsettled:
            return  # it is being written; the next look may find it complete
        except (ThalwegError, OSError) as error:
            self._mark = mark
            notice(f"{error}; the version before stays in use")

    def _read(self, declared: Fields) -> tuple[Version, _Mark | None]:
        """Read all of the file, if it is one and the same meanwhile."""
        before = _mark(self.path)
        shape = Shape(declared, f"table file {self.path!r}")
        batches: list[pa.RecordBatch] = []
        try:
            reader = open_reader(self.path, self._format, shape, self._refuse)
            try:
                while not reader.ended:
                    batch = reader.read(_ROWS)
                    batches += [] if batch is None else [batch]
            finally:
                reader.close()
        except (BadFile, OSError) as error:
            raise self._bad(str(error)) from error
        if _mark(self.path) != before and self._version is not None:
            raise _Unsettled
        types = [pa.null() if type_ is None else type_ for type_ in shape.types]
        schema = pa.schema(list(zip(shape.names, types, strict=True)))
        rows = as_batch(pa.Table.from_batches([b.cast(schema) for b in batches], schema))
        return Version(rows, f"{self.path!r} with {rows.num_rows} rows"), before

    def _refuse(self, where: str, raw: str, reason: str) -> NoReturn:
        text = f"{where}: {reason}; {raw}"
        raise BadFile(text)

    def _bad(self, got: str) -> RecordError:
        return RecordError(explain(f"table file {self.path!r}", "", "to be readable", got))


class _Unsettled(ThalwegError):
    """The file has changed while it was read."""


def _mark(path: str) -> _Mark | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def table_file(
    path: str | Path,
    *,
    fields: Any = None,
    format: str | None = None,  # noqa: A002 (the word that people look for)
    delimiter: str | None = None,
    reload: float | str | None = "1 s",
) -> TableFile:
    """Make a table of a file (CSV, JSON lines, Parquet), for ``join``.

    ``fields`` names the columns that are wanted, with their types; without types, cells of CSV are
    text. Once in every ``reload`` it is looked whether the file is another one; None: never.

    >>> items = table_file("items.csv", fields={"item": str, "price": float}, reload="10 s")
    """
    declared = None if fields is None else fields_of(fields)
    every = None if reload is None else seconds(reload, "reload")
    where = os.path.abspath(path)  # workers may have another folder
    return TableFile(where, file_format(format, delimiter), declared, every)
