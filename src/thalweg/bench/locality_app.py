"""Runs the application of the experiments on Spark, phase by phase, and measures each."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thalweg.connectors.frames import spark_source
from thalweg.control.learning import Learner, Locality
from thalweg.control.rerouting import Rerouting, Seen, Tables
from thalweg.control.settings import LocalitySettings
from thalweg.errors import ThalwegError, explain
from thalweg.events import Event, Noticed, Progress
from thalweg.flow import Flow
from thalweg.runtimes.spark.runtime import Spark
from thalweg.topology import Topology
from thalweg.workloads.two_keys import CountAndPass, Pad, TwoKeys

#: What keys are routed by, in the order of the phases.
HASH, AWARE, WORST = "hash", "aware", "worst"
#: The keyed counts, one behind the other; each counts the field of its name.
TABLES = ("first", "second")
#: Tuples that are made at once when counts are checked.
_STEP = 1 << 20


@dataclass(frozen=True)
class Setting:
    """One configuration of the application."""

    places: int
    tuples: TwoKeys
    #: Tuples per batch.
    rows: int
    fuse: bool
    #: Batches that are left out at the beginning of a phase.
    warm: int = 2


@dataclass(frozen=True)
class Batch:
    """What one batch was like."""

    #: What keys were routed by, and whether it counts: the first ones of a phase do not.
    way: str
    counts: bool
    #: Seconds since the run began, since the end of the batch before it, and of its job alone.
    at: float
    seconds: float
    job: float
    #: Bytes that Spark read from other hosts and from its own.
    remote: int
    local: int
    #: Keys that moved with it.
    moved: int
    #: Seconds that tasks worked, and those of them that statistics took.
    work: float
    statistics: float


def summary(batches: Iterable[Batch], way: str, rows: int) -> dict[str, Any]:
    """Give what one way of routing came to: tuples per second, and shuffled bytes per tuple."""
    found = [batch for batch in batches if batch.way == way and batch.counts]
    seconds = [batch.seconds for batch in found]
    return {
        "tuples_per_second": rows / statistics.median(seconds),
        "best": rows / min(seconds),
        "remote_bytes_per_tuple": statistics.median(batch.remote for batch in found) / rows,
        "local_bytes_per_tuple": statistics.median(batch.local for batch in found) / rows,
        "statistics_share": statistics_share(found),
        "rows": rows,
        "seconds": seconds,
        "job_seconds": [batch.job for batch in found],
    }


def statistics_share(batches: Sequence[Batch]) -> float:
    """Give the share of the working time of tasks that counting pairs of keys took."""
    work = sum(batch.work for batch in batches)
    return sum(batch.statistics for batch in batches) / work if work else 0.0


class Phases:
    """Goes from one way of routing to the next after some batches; counts pairs all the time."""

    def __init__(self, batches: Mapping[str, int]) -> None:
        #: The way of routing of each batch.
        self.ways = [way for way, number in batches.items() for _ in range(number)]
        self._learner = Learner(
            Locality(every=None, deciding=LocalitySettings(gain=0.0, adopts=False))
        )
        #: All batches so far.
        self.seen: list[Seen] = []

    @property
    def sampling(self) -> float:
        """As the learner wants it."""
        return self._learner.sampling

    @property
    def reason(self) -> str:
        """What the learner said last."""
        return self._learner.last.reason if self._learner.last else "nothing was decided"

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        """Note the batch; at the end of a phase give the tables of the next."""
        # Pairs are for the learner alone: all of them would take much memory.
        self.seen.append(replace(seen, pairs={}))
        next_ = self.ways[len(self.seen) - 1 : len(self.seen) + 1]
        begins = next_[1] if len(set(next_)) == 2 else None
        if begins == AWARE:
            self._learner.ask(force=True)
        decided = self._learner.after(seen, tables)
        return worst(tables) if begins == WORST else decided


class Watch:
    """Listens to a run: notes each batch, and stops it after the last."""

    def __init__(
        self,
        phases: Phases,
        warm: int,
        shuffled: Callable[[], tuple[int, int]],
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._phases, self._warm, self._shuffled, self._now = phases, warm, shuffled, now
        self._begin = self._last = now()
        self._read = shuffled()
        self.batches: list[Batch] = []
        self.told: list[str] = []
        self.stop = threading.Event()

    def __call__(self, event: Event) -> None:
        """Note a batch that has ended."""
        if isinstance(event, Noticed):
            self.told.append(event.text)
        number = len(self.batches)
        if not isinstance(event, Progress) or number == len(self._phases.ways):
            return
        now, seen, way = self._now(), self._phases.seen[number], self._phases.ways[number]
        read = self._shuffled()
        remote, local = (after - before for after, before in zip(read, self._read, strict=True))
        self.batches.append(
            Batch(
                way=way,
                counts=number - self._phases.ways.index(way) >= self._warm,
                at=now - self._begin,
                seconds=now - self._last,
                job=seen.seconds,
                remote=remote,
                local=local,
                moved=seen.moved_keys,
                work=seen.work,
                statistics=seen.counting,
            )
        )
        if len(self.batches) == len(self._phases.ways):
            self.stop.set()
        # Asking Spark for its metrics is no part of the next batch.
        self._read, self._last = read, self._now()


def worst(tables: Tables) -> Rerouting:
    """Put the second key of each pair that belongs together at another place than the first."""
    second = tables["second"]
    away = (second.key_places + 1) % second.places
    return Rerouting({"second": second.with_hashes(second.hashes, away)})


def topology(setting: Setting) -> Topology:
    """Describe the application: a source, and two keyed counts one behind the other."""
    places = setting.places
    # Otherwise partition i would begin with another number in each batch.
    rows = setting.rows // places * places

    def numbers(session: Any) -> Any:
        stream = session.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
        return stream.option("numPartitions", places).load().select("value")

    flow = Flow("two-keys")
    stream = flow.source("numbers", spark_source(numbers), fields={"value": int})
    stream = stream.through("tuples", Pad(setting.tuples))
    for name in TABLES:
        stream = stream.key_by(name).through(name, CountAndPass(name))
    return flow.build()


def run_phases(
    session: Any, setting: Setting, batches: Mapping[str, int], folder: str
) -> list[Batch]:
    """Run so many batches by each way of routing; the counts are checked at the end."""
    from thalweg.runtimes.spark.exchange import shuffled_bytes  # noqa: PLC0415 (needs pyspark)

    phases = Phases(batches)
    watch = Watch(phases, setting.warm, lambda: shuffled_bytes(session.sparkContext))
    runtime = Spark(
        session,
        places=setting.places,
        state=f"{folder}/state",
        checkpoint=f"file://{folder}/checkpoint",
        fuse=setting.fuse,
        shorten=False,
        rerouter=phases,
    )
    result = topology(setting).run(on=runtime, listen=watch, stop=watch.stop)
    check_moved(watch.batches, phases.reason)
    _check(setting, result, watch)
    return watch.batches


def check_moved(batches: Iterable[Batch], reason: str) -> None:
    """Make sure that tables were made, where they are asked for; else hash is compared to hash."""
    moved = [batch.moved for batch in batches if batch.way == AWARE]
    if moved and not any(moved):
        text = explain("a run that learns", "", "keys that move", "none", reason)
        raise ThalwegError(text)


def _check(setting: Setting, result: Any, watch: Watch) -> None:
    """Make sure that nothing was lost or counted twice on the way."""
    made = result.metrics.component("numbers").emitted
    for name, expected in expected_counts(setting.tuples, made).items():
        if result.table(name) != expected:
            got = (
                f"{sum(result.table(name).values()):,} of {made:,} in {len(watch.batches)} batches"
            )
            told = "; ".join(watch.told)
            raise ThalwegError(explain(f"table {name!r}", "", "all counted once", got, told))


def expected_counts(tuples: TwoKeys, made: int) -> dict[str, dict[int, int]]:
    """Count the keys of the first tuples, by table.

    >>> expected_counts(TwoKeys(keys=2, locality=1.0, padding=9), 100)["second"].keys()
    dict_keys([2, 3])
    """
    bare, width = replace(tuples, padding=0), 2 * tuples.keys
    counts = {name: np.zeros(width, dtype=np.int64) for name in TABLES}
    for start in range(0, made, _STEP):
        batch = bare.make(np.arange(start, min(start + _STEP, made)))
        for name in TABLES:
            counts[name] += np.bincount(batch.column(name).to_numpy(), minlength=width)
    return {
        name: {key: count for key, count in enumerate(found.tolist()) if count}
        for name, found in counts.items()
    }
