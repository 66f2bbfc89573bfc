"""Files as a source: CSV, JSON lines, Parquet and plain text, listed once or watched for more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

import pyarrow as pa

from thalweg.clock import seconds
from thalweg.components import AT_ONCE, BlockSpout
from thalweg.connectors.failures import BadFile, MissingField
from thalweg.connectors.file_times import FileTimes, times_of_files
from thalweg.connectors.formats import FileFormat, file_format
from thalweg.connectors.lines import MAX_RECORD
from thalweg.connectors.patterns import Pattern, matching, matching_or_fail, patterns_of
from thalweg.connectors.readers import LineReader, Reader, discover, line_reader, open_reader
from thalweg.connectors.tailing import Tail
from thalweg.connectors.watched import GrowingFile, Watched, WholeFile
from thalweg.contexts import TaskContext
from thalweg.errors import RecordError, UsageError, explain
from thalweg.schemas import Fields


class Listed:
    """A list of files, read one after the other."""

    def __init__(
        self, paths: Sequence[str], open_file: Callable[[str], Reader], times: FileTimes | None
    ) -> None:
        self._paths = deque(paths)
        self._open_file = open_file
        self._reader: Reader | None = None
        self._times = times
        if times is not None:
            for path in paths:
                times.opens(path, path, alone=len(paths) == 1)

    @property
    def ended(self) -> bool:
        """Whether all files have been read."""
        return not self._paths

    def read(self, limit: int) -> pa.RecordBatch | None:
        """Give up to ``limit`` rows of the file at hand."""
        try:
            if self._reader is None:
                self._reader = self._open_file(self._paths[0])
            batch = self._reader.read(limit)
        except BadFile as error:
            error.path = self._paths[0]
            self._next_file()
            raise
        if self._times is not None:
            self._times.gave(self._paths[0], batch)
        if self._reader.ended:
            self._next_file()
        return batch

    def wait(self) -> float:
        """Ask again at once."""
        return AT_ONCE

    def close(self) -> None:
        """Close the file at hand."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _next_file(self) -> None:
        self.close()
        path = self._paths.popleft()
        if self._times is not None:
            self._times.forget(path)


class _Work(Protocol):
    """What a task reads: a list of files, or all that match and will match."""

    @property
    def ended(self) -> bool: ...

    def read(self, limit: int) -> pa.RecordBatch | None: ...

    def wait(self) -> float: ...

    def close(self) -> None: ...


class Files(BlockSpout):
    """Reads files, each a strand of its own; task k of n takes every n-th one."""

    def __init__(
        self, patterns: Sequence[str], format_: FileFormat, tail: float | None = None
    ) -> None:
        self.patterns = patterns
        self.format = format_
        self.tail = tail
        self.ends = tail is None
        self._work: _Work | None = None
        self._times: FileTimes | None = None
        self._fields_found = False

    def discover_fields(self) -> Fields | None:
        """Read the fields from the first file: its header or schema; None when it has neither."""
        found = self.present()
        if not found:
            expected = "a file to read the fields from, or fields=..."
            raise UsageError(explain(f"files {list(self.patterns)}", "", expected, "no file yet"))
        try:
            return discover(found[0], self.format)
        except (BadFile, OSError) as error:
            text = explain("fields", found[0], "a header or schema", str(error))
            raise RecordError(text) from error

    def present(self) -> list[str]:
        """List the files that are there; none need be where more are looked for."""
        return matching(self.patterns) if self.tail else matching_or_fail(self.patterns)

    def prepare(self, context: TaskContext) -> None:
        """Find the files of this task."""
        self._times = times_of_files(context, self.format)
        if self.tail is not None:
            share = context.task, context.degree
            self._work = Tail(self.patterns, self.tail, context.clock, self._watch, share)
            self._work.times = self._times
            return
        found = matching_or_fail(self.patterns)
        for path in found:
            self.format.of(path)
        self._work = Listed(found[context.task :: context.degree], self._open, self._times)

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Read the next records; one that cannot be read is refused alone."""
        if self._work is None or self._work.ended:
            self.finish()
            return None
        batch = None
        try:
            batch = self._work.read(limit)
        except BadFile as error:
            self._refuse_file(error)
        self._fields_found = self._fields_found or batch is not None
        if self._times is not None:
            self.reached = self._times.reached
        if self._work.ended:
            self.finish()
        return batch

    def wait_hint(self) -> float:
        """Give the time until the next look at the folder."""
        return max(self._work.wait(), AT_ONCE) if self._work else 0.0

    def cleanup(self) -> None:
        """Close what is open."""
        if self._work is not None:
            self._work.close()

    def _open(self, path: str) -> Reader:
        if not self.format.knows(path):
            raise BadFile(explain("file", expected="a name that says its format"))
        (shape,) = self.context.shapes.values()
        return open_reader(path, self.format, shape, partial(self._refuse, path))

    def _watch(self, path: str) -> Watched:
        known = self.format.knows(path)
        if not known or path.endswith(".gz") or self.format.of(path) == "parquet":
            return WholeFile(path, self._open)
        (shape,) = self.context.shapes.values()

        def make(name: str) -> LineReader:
            return line_reader(name, self.format, shape, partial(self._refuse, name), growing=True)

        return GrowingFile(path, make)

    def _refuse(self, path: str, where: str, raw: str, why: str) -> None:
        self.context.refuse_record(raw, f"{path}, {where}: {why}")

    def _refuse_file(self, error: BadFile) -> None:
        """Let the policy decide, unless the fields seem to be wrong rather than the file."""
        if isinstance(error, MissingField) and not self._fields_found:
            text = f"file {error.path!r} of source {self.context.component!r}: {error}"
            raise RecordError(text) from error
        self.context.refuse_record(error.path, f"{error.path}: {error}")


def files(
    pattern: Pattern | Iterable[Pattern],
    *,
    format: str | None = None,  # noqa: A002 (the word that people look for)
    tail: float | str | None = None,
    delimiter: str | None = None,
    max_record: int = MAX_RECORD,
) -> Files:
    """Make a source of files: CSV (or TSV), JSON lines, Parquet, or plain text (field ``line``).

    ``pattern`` is a path, a folder, a pattern such as ``posts/*.jsonl``, or a list of them; the
    ends of the names tell the format unless ``format`` does, and ``.gz`` is unpacked. With
    ``tail="1 s"`` new files and new lines are looked for at that interval, without end. A record
    of more than ``max_record`` bytes is refused, as is any other that cannot be read.

    >>> posts = files("posts/*.jsonl")
    >>> log = files("/var/log/app", format="text", tail="1 s")
    """
    chosen = file_format(format, delimiter, max_record)
    every = None if tail is None else seconds(tail, "tail")
    return Files(patterns_of(pattern), chosen, every)
