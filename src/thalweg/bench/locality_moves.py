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
#: What a batch carries: no keys, some at once, or as many as the budget permits.
CALM, FEW, MANY = "calm", "few", "many"
VALUE = b"v" * 100


@dataclass(frozen=True)
class Sizes:
    """How many keys and batches there are."""

    keys: int = 1_000_000
    rows: int = 200_000
    #: Keys that move at once.
    few: int = 10_000
    calm: int = 10
    repeats: int = 15


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
    takes_time = True

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._fill = -(-sizes.keys // sizes.rows) + 2  # batches that fill the state
        #: What each batch carried.
        self.kinds: list[str] = []
        self.moved = 0
        self.stop = threading.Event()

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        """Note what the batch carried, and say what moves next."""
        turn = len(self.kinds) - self._fill - self._sizes.calm
        self.moved += seen.moved_keys
        self.kinds.append(self._kind(turn, seen.moved_keys))
        if turn < 0 or seen.moving:
            return None
        if turn < 3 * self._sizes.repeats:
            return None if turn % 3 else self._some(tables, turn, self._sizes.few)
        if MANY in self.kinds:
            self.stop.set()
            return None
        # Once: it is decided beside the batches, and more of them come meanwhile.
        self._asked, asked = True, self._asked
        return None if asked else self._some(tables, 1, self._sizes.keys)

    _asked = False

    def _kind(self, turn: int, moved: int) -> str:
        if moved:
            return FEW if moved <= self._sizes.few and not self._asked else MANY
        return CALM if len(self.kinds) >= self._fill else "fill"

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
        took = _run(session, folder, sizes, schedule)
    # From the end of a batch to that of the next: nothing between them is left out.
    by_kind: dict[str, list[float]] = {}
    for kind, seconds in zip(schedule.kinds[1:], np.diff(took).tolist(), strict=False):
        by_kind.setdefault(kind, []).append(seconds)
    calm, longest = statistics.median(by_kind[CALM]), max(by_kind[MANY])
    added = statistics.median(by_kind[FEW]) - calm
    report(f"{calm:.3f} s per batch; {sizes.few:,} keys add {added * 1000:.0f} ms")
    report(f"{len(by_kind[MANY])} batches carry the rest, the longest takes {longest:.3f} s")
    return {
        "name": "locality-moves",
        "environment": environment() | {"pyspark": version("pyspark"), "quick": quick},
        "results": by_kind,
        "summary": {
            "calm_seconds": calm,
            "calm_seconds_longest": max(by_kind[CALM]),
            "few_keys": sizes.few,
            "added_seconds": added,
            "added_seconds_worst": max(by_kind[FEW]) - calm,
            "moved_keys": schedule.moved,
            "longest_vs_median": longest / calm,
        },
    }


def _run(session: Any, folder: str, sizes: Sizes, schedule: Schedule) -> list[float]:
    """Run it; gives when each batch ended."""

    def numbers(spark: Any) -> Any:
        stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", sizes.rows)
        loaded = stream.option("numPartitions", PLACES).load()
        return loaded.selectExpr(f"value % {sizes.keys} AS key")

    flow = Flow("moves")
    stream = flow.source("numbers", spark_source(numbers), fields={"key": int})
    stream.key_by("key").through("remember", Remember())
    ends: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, Progress):
            ends.append(time.perf_counter())
            if ends[-1] - ends[0] > _PATIENCE:
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
    if found != sizes.keys or MANY not in schedule.kinds:
        got = f"{found:,}, after {len(ends)} batches"
        raise ThalwegError(explain("keys with state", "", f"{sizes.keys:,}", got))
    return ends


#: Seconds after which a run that does not get to its end is given up.
_PATIENCE = 1200.0
