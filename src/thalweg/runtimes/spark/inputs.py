"""What a batch takes in: entries of the write-ahead log, a DataFrame, or nothing but time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec
from pyspark import SparkContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from thalweg.runtimes.segments import Entry, Segment
from thalweg.runtimes.spark.exchange import Lane, arrow_batches, descriptors
from thalweg.runtimes.spark.program import Frame
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import LOG
from thalweg.topology import Component, task_name, task_names

# A slice of a segment has at least this many rows, so that small entries stay whole.
SLICE_ROWS = 8192


class Entered(msgspec.Struct, frozen=True, array_like=True):
    """Some rows of a segment of the write-ahead log, as the first stage reads them."""

    entry: str
    segment: Segment
    start: int
    stop: int


@dataclass(frozen=True)
class BatchInput:
    """What a batch takes in, and when."""

    clock: float
    #: Makes the lane that the first stage reads; None when there is nothing to read.
    lane: Callable[[], Lane] | None = None
    frame: Frame | None = None
    #: How far each source will have been read.
    inputs: Mapping[str, int] = field(default_factory=dict)
    tracked: bool = False
    ticks: frozenset[str] = frozenset()
    end: bool = False
    #: Names of tasks of sources: those that have something in it, those that have ended with it,
    #: and those that have had nothing for too long.
    tasks: frozenset[str] = frozenset()
    ended: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    #: How far event time has come with it, at tasks of sources that say so themselves.
    reached: Mapping[str, int] = field(default_factory=dict)
    #: Keeps the input in a folder of a location; None when there is nothing to keep.
    save: Callable[[Location, str], None] | None = None
    #: Serial numbers of its tuples, where it is known.
    serials: range = range(0)


def from_entry(
    context: SparkContext, entry: Entry, places: int, least: int = SLICE_ROWS
) -> BatchInput:
    """Take in an entry of the write-ahead log, spread over as many tasks as there are places.

    A slice for a task has ``least`` rows or more, as far as there are so many.
    """
    slices = [part for segment in entry.segments for part in _slices(entry, segment, places, least)]
    payloads = [msgspec.msgpack.encode(part) for part in slices]
    return BatchInput(
        clock=entry.clock,
        lane=(lambda: descriptors(context, payloads, places)) if payloads else None,
        inputs={LOG: entry.number},
        tasks=frozenset(task_name(part.component, part.task) for part in entry.segments),
        ended=frozenset(entry.finished),
        reached=entry.reached,
        tracked=any(segment.tracked for segment in entry.segments),
        save=partial(_save_entry, entry),
        serials=range(entry.next_serial - entry.rows, entry.next_serial),
    )


def _save_entry(entry: Entry, location: Location, folder: str) -> None:
    location.write(f"{folder}/{entry.name.replace('/', '-')}", location.read(entry.name))


def _slices(entry: Entry, segment: Segment, places: int, least: int) -> list[Entered]:
    size = max(least, -(-segment.rows // places))
    return [
        Entered(entry.name, segment, start, min(start + size, segment.rows))
        for start in range(0, segment.rows, size)
    ]


def from_frame(frame: DataFrame, source: Component, number: int, clock: float) -> BatchInput:
    """Take in a DataFrame as the given batch of its source."""
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    schema = to_arrow_schema(frame.schema, timezone=zone)
    return BatchInput(
        clock=clock,
        lane=lambda: arrow_batches(frame),
        frame=Frame(source.name, schema.serialize().to_pybytes()),
        inputs={source.name: number},
        tasks=frozenset(task_names(source)),
        save=partial(_save_frame, frame),
    )


def _save_frame(frame: DataFrame, location: Location, folder: str) -> None:
    frame.write.mode("overwrite").parquet(f"{location.for_hadoop}/{folder}/rows.parquet")
