"""Ordered processing: queues under skew, reorder buffers, schedulers, with made-up operators.

An operator has a cost per tuple, which it waits rather than works (two cores cannot show what eight
workers gain in any other way), a selectivity, and keys from N(0, sigma) that are partitioned by
range. Results are counted, and must be in order.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

import thalweg as tw
from thalweg.bench.measuring import environment
from thalweg.errors import ThalwegError
from thalweg.runtimes.local.scheduling import Scheduling

WORKERS, BUCKETS = 8, 100
QUEUES = ("hybrid", "partitioned", "shared")
#: Deviations of the keys; ranges are of equal width between -1 and 1.
SIGMAS = (1.0, 0.4, 0.2, 0.1)
#: Seconds that an operator waits for a tuple.
COSTS = (0.0001, 0.001, 0.01)


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    tuples: int = 4000
    repeat: int = 3


class Waits(tw.Bolt):
    """Waits for each tuple, and sends some."""

    kind = tw.Kind.KEYED
    outputs = {"n": int}  # noqa: RUF012 (as users write it)

    def __init__(self, seconds: float, selectivity: int = 1) -> None:
        self.seconds, self.selectivity = seconds, selectivity

    def process(self, t: Any) -> None:
        """Wait, count, and send."""
        if self.seconds:
            time.sleep(self.seconds)
        self.state.put(t.bucket, self.state.get(t.bucket, 0) + 1)
        for _ in range(self.selectivity):
            self.emit(t.n)


class Light(tw.Bolt):
    """Does next to nothing, and sends some."""

    outputs = {"n": int}  # noqa: RUF012 (as users write it)

    def __init__(self, selectivity: int) -> None:
        self.selectivity = selectivity

    def process(self, t: Any) -> None:
        """Send."""
        for _ in range(self.selectivity):
            self.emit(t.n)


def skewed(count: int, sigma: float) -> list[tuple[int, int]]:
    """Make tuples: a bucket by range of a number from N(0, sigma), and a serial number."""
    drawn = np.random.default_rng(1).normal(0.0, sigma, count).clip(-1.0, 0.999)
    buckets = ((drawn + 1) / 2 * BUCKETS).astype(int)
    return list(zip(buckets.tolist(), range(count), strict=True))


def keyed(rows: list[tuple[int, int]], seconds: float, local: tw.Local) -> tw.Result:
    """Run a keyed operator that waits; its output must be in order."""
    seen: list[Any] = []
    builder = tw.TopologyBuilder("keyed")
    builder.add_spout("rows", tw.items(rows), fields={"bucket": int, "n": int})
    ranges = tuple(range(1, BUCKETS))
    waits = builder.add_bolt("waits", Waits(seconds), degree=BUCKETS)
    waits.fields("rows", "bucket", bounds=ranges)
    builder.add_bolt("out", tw.collect(seen), order="total").global_("waits")
    result = builder.build().run(on=local)
    _check([t.n for t in seen], [n for _, n in rows])
    return result


def light(count: int, selectivity: int, local: tw.Local) -> tw.Result:
    """Run a light operator on several workers; its output must be in order."""
    seen: list[Any] = []
    builder = tw.TopologyBuilder("light")
    builder.add_spout("rows", tw.items(range(count)), fields={"n": int})
    builder.add_bolt("light", Light(selectivity), degree=WORKERS).shuffle("rows")
    builder.add_bolt("out", tw.collect(seen), order="total").global_("light")
    result = builder.build().run(on=local)
    _check([t.n for t in seen], [n for n in range(count) for _ in range(selectivity)])
    return result


def chain(count: int, policy: str) -> tw.Result:
    """Run a chain of operators of different costs with a scheduler."""
    seen: list[Any] = []
    rows = [(n % BUCKETS, n) for n in range(count)]
    builder = tw.TopologyBuilder("chain")
    builder.add_spout("rows", tw.items(rows), fields={"bucket": int, "n": int})
    builder.add_bolt("first", _Passing(0.0001), degree=BUCKETS).fields("rows", "bucket")
    builder.add_bolt("second", _Passing(0.0005), degree=BUCKETS).fields("first", "bucket")
    builder.add_bolt("third", _Passing(0.0002), degree=BUCKETS).fields("second", "bucket")
    builder.add_bolt("out", tw.collect(seen), order="total").global_("third")
    local = tw.Local(workers=WORKERS, block_rows=64, scheduling=Scheduling(policy=policy))
    result = builder.build().run(on=local)
    _check([t.n for t in seen], list(range(count)))
    return result


class _Passing(Waits):
    """Passes its tuples on."""

    outputs = {"bucket": int, "n": int}  # noqa: RUF012 (as users write it)

    def process(self, t: Any) -> None:
        """Wait, and pass on."""
        time.sleep(self.seconds)
        self.emit(t.bucket, t.n)


def run(quick: bool, report: Callable[[str], None], options: Options) -> dict[str, Any]:
    """Queues under skew, latency by cost, reorder buffers, schedulers: what each gives."""
    if quick:
        options = Options(400, 1)
    count = options.tuples
    results = {
        "skew": _skew(count, options.repeat, report),
        "latency": _latency(count, report),
        "reordering": _reordering(count, options.repeat, report),
        "schedulers": _schedulers(count, options.repeat, report),
    }
    strong = results["skew"][str(SIGMAS[-1])]
    summary = {
        "hybrid_vs_partitioned_strong_skew": strong["hybrid"] / strong["partitioned"],
        "hybrid_vs_shared_strong_skew": strong["hybrid"] / strong["shared"],
        **{
            f"non_blocking_vs_locked_{name}": found["non-blocking"] / found["locked"]
            for name, found in results["reordering"].items()
        },
        **{
            f"ct_vs_{policy}": results["schedulers"]["ct"]["per_second"] / found["per_second"]
            for policy, found in results["schedulers"].items()
            if policy != "ct"
        },
    }
    about = environment() | asdict(options) | {"workers": WORKERS, "buckets": BUCKETS}
    return {"name": "ordered", "environment": about, "results": results, "summary": summary}


def _skew(count: int, repeat: int, report: Callable[[str], None]) -> dict[str, Any]:
    found: dict[str, dict[str, float]] = {}
    for sigma in SIGMAS:
        rows = skewed(count, sigma)
        speeds = {
            queue: _best(repeat, partial(keyed, rows, 0.001, _local(queue))) for queue in QUEUES
        }
        found[str(sigma)] = speeds
        report(f"sigma {sigma}: " + ", ".join(f"{q} {v:,.0f}/s" for q, v in speeds.items()))
    return found


def _latency(count: int, report: Callable[[str], None]) -> dict[str, Any]:
    found: dict[str, dict[str, float]] = {}
    for cost in COSTS:
        rows = skewed(max(100, int(count * min(1.0, 0.001 / cost))), 1.0)
        found[str(cost)] = {}
        for queue in QUEUES:
            latency = keyed(rows, cost, _local(queue)).metrics.latency
            found[str(cost)][queue] = latency.p50 * 1000 if latency else 0.0
        shown = ", ".join(f"{q} {ms:.1f} ms" for q, ms in found[str(cost)].items())
        report(f"cost {cost * 1000:g} ms: processing latency p50 {shown}")
    return found


def _reordering(count: int, repeat: int, report: Callable[[str], None]) -> dict[str, Any]:
    found: dict[str, dict[str, float]] = {}
    for name, selectivity, rows in (("light", 1, 20 * count), ("selectivity_50", 50, count)):
        found[name] = {
            kind: _best(repeat, partial(light, rows, selectivity, _reordering_local(locked)))
            for kind, locked in (("non-blocking", False), ("locked", True))
        }
        report(f"{name}: " + ", ".join(f"{k} {v:,.0f}/s" for k, v in found[name].items()))
    return found


def _schedulers(count: int, repeat: int, report: Callable[[str], None]) -> dict[str, Any]:
    found: dict[str, dict[str, float]] = {}
    for policy in ("ct", "lp", "et", "qst"):
        turns = [chain(count, policy) for _ in range(repeat)]
        speeds = [turn.metrics.tuples_in / turn.metrics.elapsed for turn in turns]
        latencies = [turn.metrics.latency.p50 for turn in turns if turn.metrics.latency]
        p50 = statistics.median(latencies) * 1000
        found[policy] = {"per_second": max(speeds), "latency_p50_ms": p50}
        report(f"{policy}: {max(speeds):,.0f}/s, processing latency p50 {p50:.1f} ms")
    return found


def _reordering_local(locked: bool) -> tw.Local:
    return tw.Local(workers=WORKERS, block_rows=64, locked_reordering=locked)


def _local(queue: Any) -> tw.Local:
    return tw.Local(workers=WORKERS, most_workers=WORKERS, block_rows=64, queue=queue)


def _best(repeat: int, run_once: Callable[[], tw.Result]) -> float:
    found = [run_once().metrics for _ in range(repeat)]
    return max(metrics.tuples_in / metrics.elapsed for metrics in found)


def _check(seen: list[int], expected: list[int]) -> None:
    if seen != expected:
        text = f"{len(seen)} tuples came, not in order or not all of {len(expected)}"
        raise ThalwegError(text)
