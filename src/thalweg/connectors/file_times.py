"""How far event time has come in files: one that waits to be read holds it at its first time."""

from __future__ import annotations

import os
from contextlib import closing

import pyarrow as pa

from thalweg.connectors.failures import BadFile
from thalweg.connectors.formats import FileFormat
from thalweg.connectors.readers import open_reader
from thalweg.contexts import TaskContext
from thalweg.errors import SchemaError
from thalweg.eventtime import NEVER, EventTime, moments, newest
from thalweg.schemas import Shape
from thalweg.strands import Strands, time_wanted

#: A file is known by its path, or by device and inode.
File = str | tuple[int, int]
# Rows that are looked at for a first time at once, and in all; files without one hold everything.
_ROWS, _MOST = 16, 1024


class FileTimes:
    """The files of a task as strands; their first rows are looked at before they are read."""

    def __init__(self, time: EventTime, shape: Shape, format_: FileFormat) -> None:
        self._time, self._shape, self._format = time, shape, format_
        self._strands = Strands[File]()

    @property
    def reached(self) -> int:
        """How far time has come."""
        return self._strands.reached

    def opens(self, file: File, path: str, alone: bool = False) -> None:
        """Note that there is something to read in a file; one that is alone waits for no other."""
        if alone or self._strands.knows(file):
            self._strands.opens(file)
            return
        first = self._first(path)
        if first is not None:
            self._strands.opens(file, first)

    def gave(self, file: File, batch: pa.RecordBatch | None) -> None:
        """Note what was read of a file."""
        if batch is not None:
            self._strands.gave(file, newest(batch.column(self._time.field), self._time.unit))

    def ends(self, file: File) -> None:
        """Note that a file has been read to its present end."""
        self._strands.ends(file)

    def forget(self, file: File) -> None:
        """Note that a file will not be read any more."""
        self._strands.forget(file)

    def _first(self, path: str) -> int | None:
        """Give the first time in a file; None where there are no rows, or none can be read."""
        if not os.path.isfile(path):  # what is read of a pipe is gone
            return NEVER
        # What is learnt of types here must not decide what others are.
        shape = Shape(self._shape.fields, self._shape.subject)
        try:
            with closing(open_reader(path, self._format, shape, _ignore)) as reader:
                for _ in range(0, _MOST, _ROWS):
                    batch = reader.read(_ROWS)
                    found = None if batch is None else self._oldest(batch)
                    if found is not None:
                        return found
                    if reader.ended:
                        return None
        except (BadFile, SchemaError, OSError):
            return None  # it will be refused when it is read
        return NEVER

    def _oldest(self, batch: pa.RecordBatch) -> int | None:
        found = moments(batch.column(self._time.field), self._time.unit)
        return int(found.micros[found.known].min()) if found.known.any() else None


def times_of_files(context: TaskContext, format_: FileFormat) -> FileTimes | None:
    """Make what notes the times of files, where their source has a time."""
    time = time_wanted(context)
    (shape,) = context.shapes.values()
    return None if time is None else FileTimes(time, shape, format_)


def _ignore(_where: str, _raw: str, _why: str) -> None:
    """Say nothing: what cannot be read is refused when it is read."""
