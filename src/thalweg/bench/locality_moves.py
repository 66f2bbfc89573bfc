"""What it costs to move state: batches that carry keys to other places, against those that do not.

One topology on this machine keeps a value of 100 bytes for each of many keys. Some batches in, ten
thousand keys move with one batch; later almost all of them do, within the default byte budget.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.bench.measuring import environment
from thalweg.bench.spark_session import bench_session
from thalweg.components import BlockBolt, Kind, Shared
from thalweg.connectors.frames import spark_source
from thalweg.control.learning import Locality
from thalweg.control.rerouting import Cost, Rerouting, Seen, Tables
from thalweg.errors import ThalwegError, explain
from thalweg.events import Event, Progress
from thalweg.flow import Flow
from thalweg.hashing import Hashes, hash_columns
from thalweg.runtimes.spark.runtime import Spark

PLACES = 2
VALUE = b"v" * 100


@dataclass(frozen=True)
class Sizes:
    """How many keys and batches there are."""

    keys: int = 1_000_000
    rows: int = 200_000
    #: Keys that move at once.
    few: int = 10_000
    calm: int = 10
    repeats: int = 5


QUICK = Sizes(keys=50_000, rows=20_000, few=1_000, calm=4, repeats=2)


class Remember(Shared, BlockBolt):
    """Keeps a value for each key."""

    kind = Kind.KEYED
    commutative = True
    outputs = MappingProxyType({"key": int})
    table = "values"

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Write the keys of a block."""
        self.state.update(batch.column("key").to_pylist(), lambda before: [VALUE] * len(before))


class Schedule:
    """Moves few keys several times, with calm batches between; then as many as there are."""

    sampling = 0.0

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._fill = -(-sizes.keys // sizes.rows)
        self._batches = 0
        #: Seconds of batches: without moves, with a few, with as many as the budget permits.
        self.calm: list[float] = []
        self.few: list[float] = []
        self.many: list[float] = []
        self.moved = 0
        self.stop = threading.Event()

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        """Sort the batch by what it carried, and say what moves next."""
        self._batches += 1
        at = self._batches - self._fill - 2  # the first ones fill the state
        self._note(at, seen)
        if at < self._sizes.calm or seen.moving:
            return None
        turn = at - self._sizes.calm
        if turn < 3 * self._sizes.repeats:
            return None if turn % 3 else self._some(tables, turn, self._sizes.few)
        if self.many:
            self.stop.set()
            return None
        return self._some(tables, 1, self._sizes.keys)

    def _note(self, at: int, seen: Seen) -> None:
        self.moved += seen.moved_keys
        if seen.moved_keys > self._sizes.few or (seen.moved_keys and self.few_done(at)):
            self.many.append(seen.seconds)
        elif seen.moved_keys:
            self.few.append(seen.seconds)
        elif at > 0:
            self.calm.append(seen.seconds)

    def few_done(self, at: int) -> bool:
        """Say whether the small moves are over."""
        return at - self._sizes.calm > 3 * self._sizes.repeats

    def _some(self, tables: Tables, turn: int, number: int) -> Rerouting:
        """Put keys at the place where they are not."""
        table = tables["remember"]
        hashes = _hashes(turn, number)
        away = (table.places_of(hashes) + 1) % table.places
        own = ~np.isin(table.hashes, hashes)
        new = table.with_hashes(
            np.concatenate((table.hashes[own], hashes)),
            np.concatenate((table.key_places[own], away)),
        )
        return Rerouting({"remember": new}, {"remember": Cost(size=150.0)}, Locality().budget)


def _hashes(turn: int, number: int) -> Hashes:
    return hash_columns([pa.array(np.arange(turn, turn + number))])


def locality_moves(quick: bool, report: Callable[[str], None]) -> dict[str, Any]:
    """Batches that move 10,000 keys, and a million keys bit by bit, against calm ones."""
    sizes = QUICK if quick else Sizes()
    schedule = Schedule(sizes)
    with bench_session("locality-moves") as session, tempfile.TemporaryDirectory() as folder:
        _run(session, folder, sizes, schedule)
    calm = statistics.median(schedule.calm)
    added = statistics.median(schedule.few) - calm
    report(f"{calm:.3f} s per batch; {sizes.few:,} keys add {added * 1000:.0f} ms")
    report(
        f"{len(schedule.many)} batches carry the rest, the longest takes {max(schedule.many):.3f} s"
    )
    return {
        "name": "locality-moves",
        "environment": environment() | {"pyspark": version("pyspark"), "quick": quick},
        "results": {"calm": schedule.calm, "few": schedule.few, "many": schedule.many},
        "summary": {
            "calm_seconds": calm,
            "few_keys": sizes.few,
            "added_seconds": added,
            "added_seconds_worst": max(schedule.few) - calm,
            "moved_keys": schedule.moved,
            "longest_vs_median": max(schedule.many) / calm,
        },
    }


def _run(session: Any, folder: str, sizes: Sizes, schedule: Schedule) -> None:
    def numbers(spark: Any) -> Any:
        stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", sizes.rows)
        loaded = stream.option("numPartitions", PLACES).load()
        return loaded.selectExpr(f"value % {sizes.keys} AS key")

    flow = Flow("moves")
    stream = flow.source("numbers", spark_source(numbers), fields={"key": int})
    stream.key_by("key").through("remember", Remember())
    begin = time.monotonic()

    def listen(event: Event) -> None:
        if isinstance(event, Progress) and time.monotonic() - begin > _PATIENCE:
            schedule.stop.set()

    runtime = Spark(
        session,
        places=PLACES,
        state=f"{folder}/state",
        checkpoint=f"{folder}/checkpoint",
        rerouter=schedule,
        fuse=False,
    )
    result = flow.run(on=runtime, listen=listen, stop=schedule.stop)
    found = len(result.table("values"))
    if found != sizes.keys or not schedule.many:
        got = f"{found:,}, and {len(schedule.many)} batches with moves"
        raise ThalwegError(explain("keys with state", "", f"{sizes.keys:,}", got))


#: Seconds after which a run that does not get to its end is given up.
_PATIENCE = 1200.0
