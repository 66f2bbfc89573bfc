"""Join with a table: each tuple with the rows that belong to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from thalweg.blocks import Rows
from thalweg.components import BlockBolt, Shared
from thalweg.contexts import TaskContext
from thalweg.errors import SchemaError, TopologyError, explain
from thalweg.events import Noticed
from thalweg.operators.conditions import Condition, condition, describe
from thalweg.operators.join_ways import Chooser, Sizes
from thalweg.operators.matching import Matcher
from thalweg.operators.purity import Touch
from thalweg.operators.side_tables import Notice, Version, table_of
from thalweg.schemas import Fields
from thalweg.schemas import fields as fields_of
from thalweg.validation import unknown

How = Literal["inner", "left"]


class TableJoin(Shared, BlockBolt):
    """Puts fields of a table's rows behind those of the tuples that they belong to.

    ``stream`` says which fields come in. A tuple that finds several rows is sent once for each, in
    the order of the table; one that finds none is left out, or sent with nulls (``how="left"``).
    """

    reads_first = True
    #: Measures what blocks take.
    timer = staticmethod(time.perf_counter)

    def __init__(
        self,
        stream: Any,
        table: Any,
        on: Any,
        *,
        how: How = "inner",
        fields: Sequence[str] | None = None,
        prefix: str | None = None,
    ) -> None:
        if how not in get_args(How):
            raise TopologyError(explain("join", expected=f"how as one of {get_args(How)}", got=how))
        self.stream, self.side = fields_of(stream), table_of(table)
        self.condition = condition(on, self.stream, self.side.fields)
        #: Names in the output, and in the table.
        self.added = _added(self.stream, self.side.fields, self.condition, fields, prefix)
        taken = self.side.fields.select(tuple(self.added.values()))
        self.outputs = self.stream.extend(Fields(tuple(self.added), taken.types))
        self.touches = _touches(self.condition, self.added)
        self.how = how
        self.function = self.condition.call or self.process_block
        self._memory = _Memory(self.condition)

    @property
    def chooser(self) -> Chooser:
        """Who knows which way pairs are found; one for all tasks of a process."""
        return self._memory.chooser

    def prepare(self, context: TaskContext) -> None:
        """Read the table, if nobody has; what is wrong with it shows before the first tuple."""
        self.side.current(context.clock.now(), self._notice)

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Find the rows for one block, all in one version of the table."""
        version = self.side.current(self.context.clock.now(), self._notice)
        version, matcher = self._memory.matcher(version, batch.schema, self._notice)
        sizes = Sizes(matcher.rows, batch.num_rows)
        way = self.chooser.next(sizes)
        refused: set[int] = set()

        def refuse(row: int, error: Exception) -> None:
            refused.add(row)
            self.context.refuse(row, error)

        begin = self.timer()
        ours, theirs = matcher.match(batch, way, refuse)
        made = self.chooser.note(way, sizes, self.timer() - begin, len(ours))
        if made is not None:
            self._notice(made.of(self.context.component).reason)
        if self.how == "left":
            ours, theirs = _with_unmatched(ours, theirs, batch.num_rows, refused)
        self._send(batch, version.rows, ours, theirs)

    def _notice(self, text: str) -> None:
        self.context.tell(Noticed(text))

    def _send(self, batch: pa.RecordBatch, rows: pa.RecordBatch, ours: Rows, theirs: Rows) -> None:
        # Most joins find one row for each tuple, and then the tuples stay as they are.
        whole = len(ours) == batch.num_rows and bool((ours[1:] > ours[:-1]).all())
        kept = batch if whole else batch.take(pa.array(ours))
        places = pa.array(theirs, mask=theirs < 0 if self.how == "left" else None)
        found = {name: rows.column(theirs_).take(places) for name, theirs_ in self.added.items()}
        columns = [found[n] if n in found else kept.column(n) for n in self.outputs.names]
        self.emit(pa.RecordBatch.from_arrays(columns, names=self.outputs.names), parents=ours)


class _Memory:
    """What all tasks of a process share: what is made of a version of the table, and the way."""

    def __init__(self, condition_: Condition) -> None:
        self._condition = condition_
        self.chooser = Chooser(condition_.ways)
        self._lock = threading.Lock()
        self._made: tuple[Version, pa.Schema, Matcher] | None = None
        #: A version that cannot be joined with, while an older one can.
        self._bad: Version | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"condition_": self._condition}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc] # as if it were new

    def matcher(
        self, version: Version, schema: pa.Schema, notice: Notice
    ) -> tuple[Version, Matcher]:
        """Give what finds pairs in a version, or in the one before if it is not fit for that."""
        with self._lock:
            made = self._made if self._made is not None and self._made[1] == schema else None
            if made is not None and version in (made[0], self._bad):
                return made[0], made[2]
            try:
                made = version, schema, Matcher(version.rows, self._condition, schema)
            except SchemaError as error:
                if made is None:
                    raise
                self._bad = version
                notice(f"{version.text} is not used, the one before is: {error}")
            self._made = made
            return made[0], made[2]


def _with_unmatched(ours: Rows, theirs: Rows, rows: int, refused: set[int]) -> tuple[Rows, Rows]:
    """Put tuples that have found nothing where they stood, with the row -1."""
    counts = np.bincount(ours, minlength=rows)
    sent = np.maximum(counts, 1)
    sent[list(refused)] = 0
    found = np.full(int(sent.sum()), -1, np.int64)
    found[np.repeat(counts > 0, sent)] = theirs
    return np.repeat(np.arange(rows), sent), found


def _added(
    stream: Fields,
    table: Fields,
    on: Condition,
    chosen: Sequence[str] | None,
    prefix: str | None,
) -> dict[str, str]:
    """Name the fields that are put behind those of the stream, and where they come from."""
    keys = {theirs for _, theirs in on.keys} if on.where is None else set()
    names = [name for name in table.names if name not in keys]
    if chosen is not None:
        names = list(fields_of(chosen).names)
        for name in names:
            if name not in table:
                raise unknown(name, "field", "the table of join", table.names)
    found = {(prefix or "") + name if name in stream else name: name for name in names}
    clash = sorted(set(found) & set(stream.names))
    if clash or len(found) < len(names):
        raise TopologyError(
            explain(
                f"fields {clash or sorted(found)} of the table",
                f"join on {describe(on)}",
                "names that the stream does not have",
                hint='prefix="..." for those that it has, or fields=[...] for some of them',
            )
        )
    return found


def _touches(on: Condition, added: Mapping[str, str]) -> Touch | None:
    """Say what a join reads and writes; None where it could raise, and so has to stay."""
    reads = on.reads
    if not on.pure or reads is None:
        return None
    return Touch(reads, writes=frozenset(added))
