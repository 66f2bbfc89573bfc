"""Latency of single tuples at a steady rate, from the time at which each was due.

A source gives 10,000 tuples per second, each with the time at which it was due; they pass a map and
a keyed count, and the sink compares its clock with that time. What comes late because something
else took long therefore counts as late. bytewax does the same in a process of its own.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import thalweg as tw
from thalweg.bench.measuring import apart, environment, installed

KEYS = 1000
#: Share of the tuples at the beginning that do not count: things are started then.
_WARM = 0.2


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    rate: int = 10_000
    seconds: float = 10.0
    repeat: int = 3
    #: Runtime of ours that is measured.
    on: str = "local"


class Due(tw.BlockSpout):
    """Gives the tuples that are due: (key, time at which it was due)."""

    def __init__(self, rate: int, seconds: float) -> None:
        self.outputs = {"key": int, "due": float}
        self.rate, self.count = rate, round(rate * seconds)

    def prepare(self, context: tw.TaskContext) -> None:
        """Begin now."""
        self.begin, self.given = time.perf_counter(), 0

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give what is due."""
        due = int((time.perf_counter() - self.begin) * self.rate)
        stop = min(self.count, due, self.given + limit)
        if stop <= self.given:
            if self.given >= self.count:
                self.finish()
            return None
        numbers = np.arange(self.given, stop)
        self.given = stop
        times = self.begin + (numbers + 1) / self.rate
        return self.make_batch([pa.array(numbers % KEYS), pa.array(times)])

    def wait_hint(self) -> float:
        """Give the time until the next one is due."""
        next_due = self.begin + (self.given + 1) / self.rate
        return max(next_due - time.perf_counter(), 1e-6)


class Arrivals(tw.BlockBolt):
    """Notes how late tuples are."""

    def __init__(self) -> None:
        self.late: list[Any] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Arrivals:
        return self

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Compare the clock with what they bring along."""
        self.late.append(time.perf_counter() - batch.column("due").to_numpy())


def ours(options: Options) -> list[float]:
    """Measure a flow of ours; seconds of each tuple."""
    arrivals = Arrivals()
    flow = tw.Flow("latency")
    source = flow.source("due", Due(options.rate, options.seconds))
    moved = source.map(lambda key, due: (key + 1, due), fields={"key": int, "due": float})
    counted = moved.key_by("key").scan(0, lambda n, due: n + 1, into="n")
    counted.sink("end", arrivals)
    flow.run(on=options.on)
    return [float(late) for late in np.concatenate(arrivals.late)]


def bytewax(options: Options) -> list[float]:
    """Measure the same in bytewax."""
    import bytewax.operators as op  # noqa: PLC0415 (a peer, not always installed)
    from bytewax.dataflow import Dataflow  # noqa: PLC0415 (as above)
    from bytewax.inputs import DynamicSource, StatelessSourcePartition  # noqa: PLC0415 (as above)
    from bytewax.outputs import DynamicSink, StatelessSinkPartition  # noqa: PLC0415 (as above)
    from bytewax.testing import run_main  # noqa: PLC0415 (as above)

    late: list[float] = []
    count = round(options.rate * options.seconds)

    class Part(StatelessSourcePartition):
        def __init__(self) -> None:
            self.begin, self.given = time.perf_counter(), 0

        def next_batch(self) -> list[tuple[int, float]]:
            if self.given >= count:
                raise StopIteration
            due = int((time.perf_counter() - self.begin) * options.rate)
            stop = min(count, max(due, self.given))
            numbers, self.given = range(self.given, stop), stop
            return [(n % KEYS, self.begin + (n + 1) / options.rate) for n in numbers]

    class Source(DynamicSource):
        def build(self, step_id: str, worker_index: int, worker_count: int) -> Part:
            return Part()

    class EndPart(StatelessSinkPartition):
        def write_batch(self, items: list[Any]) -> None:
            now = time.perf_counter()
            late.extend(now - due for _, (_, due) in items)

    class End(DynamicSink):
        def build(self, step_id: str, worker_index: int, worker_count: int) -> EndPart:
            return EndPart()

    flow = Dataflow("latency")
    stream = op.input("due", flow, Source())
    moved = op.map("map", stream, lambda t: (t[0] + 1, t[1]))
    keyed = op.key_on("key", moved, lambda t: str(t[0]))
    counted = op.stateful_map("count", keyed, lambda n, t: ((n or 0) + 1, ((n or 0) + 1, t[1])))
    op.output("end", counted, End())
    run_main(flow)
    return late


CANDIDATES: dict[str, Callable[[Options], list[float]]] = {"ours": ours, "bytewax": bytewax}


def run(quick: bool, report: Callable[[str], None], options: Options) -> dict[str, Any]:
    """Latency of tuples at a steady rate, against bytewax."""
    if quick:
        options = Options(options.rate, 2.0, 1, options.on)
    names = ["ours", *(["bytewax"] if installed("bytewax", report) else [])]
    results: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(options.repeat):
        for name in names:
            found = apart("thalweg.bench.latency", name, json.dumps(asdict(options)))
            results[name].append(found)
            shown = ", ".join(f"{key} {value:.2f}" for key, value in found.items())
            report(f"{name}: {shown}")
    return {
        "name": "latency",
        "environment": environment() | asdict(options),
        "results": results,
        "summary": summary(results),
    }


def summary(results: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, float]:
    """Give the best of the repetitions, and ours against the peer's where it was measured.

    >>> turn = {"p50_ms": 0.5, "p99_ms": 2.0, "p999_ms": 3.0}
    >>> summary({"ours": [turn], "bytewax": [turn]})["p99_vs_bytewax"]
    1.0
    """
    found: dict[str, float] = {}
    for key in ("p50_ms", "p99_ms", "p999_ms"):
        best = {name: min(turn[key] for turn in turns) for name, turns in results.items()}
        found[key] = best["ours"]
        if "bytewax" in best:
            found[f"bytewax_{key}"] = best["bytewax"]
            found[f"{key[:-3]}_vs_bytewax"] = best["ours"] / best["bytewax"]
    return found


def percentiles(late: list[float]) -> dict[str, float]:
    """Give percentiles in milliseconds, without those at the beginning.

    >>> percentiles([1.0] * 20 + [0.001] * 80)["p50_ms"]
    1.0
    """
    counted = np.array(late[round(_WARM * len(late)) :]) * 1000
    p50, p99, p999 = np.percentile(counted, [50, 99, 99.9]).tolist()
    return {"p50_ms": p50, "p99_ms": p99, "p999_ms": p999}


if __name__ == "__main__":
    chosen = Options(**json.loads(sys.argv[2]))
    sys.stdout.write(json.dumps(percentiles(CANDIDATES[sys.argv[1]](chosen))) + "\n")
