"""Runs the application of the experiments on Spark, phase by phase, and measures each."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Setting:
    """One configuration of the application."""

    places: int
    tuples: TwoKeys
    #: Tuples per batch.
    rows: int
    fuse: bool
    #: Batches that are left out at the beginning of a phase, and those that are measured.
    warm: int = 2
    batches: int = 5


@dataclass
class Phase:
    """What one way of routing came to."""

    seconds: list[float] = field(default_factory=list)
    #: Bytes that Spark read from other hosts and from its own, by batch.
    remote: list[int] = field(default_factory=list)
    local: list[int] = field(default_factory=list)

    def summary(self, rows: int) -> dict[str, Any]:
        """Give tuples per second, and shuffled bytes per tuple."""
        return {
            "tuples_per_second": rows / statistics.median(self.seconds),
            "best": rows / min(self.seconds),
            "remote_bytes_per_tuple": statistics.median(self.remote) / rows,
            "local_bytes_per_tuple": statistics.median(self.local) / rows,
            "seconds": self.seconds,
        }


class Phases:
    """Goes from one way of routing to the next after some batches; counts pairs all the time."""

    def __init__(self, names: Sequence[str], each: int) -> None:
        self._names, self._each = list(names), each
        self._learner = Learner(
            Locality(every=None, deciding=LocalitySettings(gain=0.0, adopts=False))
        )
        self._batches = 0
        self.settled = False

    @property
    def sampling(self) -> float:
        """As the learner wants it."""
        return self._learner.sampling

    @property
    def name(self) -> str:
        """The way of routing of the next batch."""
        return self._names[0]

    @property
    def reason(self) -> str:
        """What the learner said last."""
        return self._learner.last.reason if self._learner.last else ""

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        """Count the batch; at the end of a phase give the tables of the next."""
        self._batches += 1
        ends = self._batches % self._each == 0 and len(self._names) > 1
        if ends:
            self._names.pop(0)
        if ends and self.name == AWARE:
            self._learner.ask(force=True)
        decided = self._learner.after(seen, tables)
        if ends and self.name == WORST:
            return worst(tables)
        return decided


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
    for name in ("first", "second"):
        stream = stream.key_by(name).through(name, CountAndPass(name))
    return flow.build()


def run_phases(
    session: Any, setting: Setting, phases: Sequence[str], folder: str
) -> dict[str, Phase]:
    """Run the application through some ways of routing; its counts are checked at the end."""
    from thalweg.runtimes.spark.exchange import shuffled_bytes  # noqa: PLC0415 (needs pyspark)

    each = setting.warm + setting.batches
    rerouter, stop = Phases(phases, each), threading.Event()
    found = {name: Phase() for name in phases}
    told: list[str] = []
    last = [time.perf_counter(), *shuffled_bytes(session.sparkContext)]
    number = 0

    def listen(event: Event) -> None:
        nonlocal number, last
        if isinstance(event, Noticed):
            told.append(event.text)
        if not isinstance(event, Progress):
            return
        now = [time.perf_counter(), *shuffled_bytes(session.sparkContext)]
        if number % each >= setting.warm:
            phase = found[phases[number // each]]
            phase.seconds.append(now[0] - last[0])
            phase.remote.append(int(now[1] - last[1]))
            phase.local.append(int(now[2] - last[2]))
        number, last = number + 1, [time.perf_counter(), *now[1:]]
        if number == each * len(phases):
            stop.set()

    runtime = Spark(
        session,
        places=setting.places,
        state=f"{folder}/state",
        checkpoint=f"file://{folder}/checkpoint",
        fuse=setting.fuse,
        shorten=False,
        rerouter=rerouter,
    )
    result = topology(setting).run(on=runtime, listen=listen, stop=stop)
    _check(setting, number, result, told)
    return found


def _check(setting: Setting, batches: int, result: Any, told: list[str]) -> None:
    """Make sure that nothing was lost or counted twice on the way."""
    made = result.metrics.component("numbers").emitted
    batch = setting.tuples.make(np.arange(made))
    for name in ("first", "second"):
        expected = dict(Counter(batch.column(name).to_pylist()))
        if result.table(name) != expected:
            got = f"{sum(result.table(name).values()):,} of {made:,} after {batches} batches"
            text = explain(f"table {name!r}", "", "all tuples counted once", got, "; ".join(told))
            raise ThalwegError(text)
