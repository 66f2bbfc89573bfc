"""The figures of the ordered multi-core document, with the operators of :mod:`.ordered`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import thalweg as tw
from thalweg.bench.inline_wordcount import SENTENCE, sentences
from thalweg.bench.measuring import environment, side_by_side
from thalweg.bench.ordered import BUCKETS, Chain, Found, even, skewed, words
from thalweg.bench.ordered_plots import pictures
from thalweg.bench.plotting import write_pictures
from thalweg.runtimes.local.scheduling import Scheduling

Report = Callable[[str], None]
#: What a figure is made of: by value across, by candidate, what was measured.
Figure = dict[str, dict[str, dict[str, float]]]

WORKERS = (1, 2, 4, 8)
MOST = WORKERS[-1]
QUEUES = ("hybrid", "partitioned", "shared")
#: Deviations of the keys; ranges are of equal width between -1 and 1.
SIGMAS = (1.0, 0.4, 0.2, 0.1)
#: Seconds that an operator waits for a tuple; less than 50 microseconds cannot be waited.
COSTS = (0.0001, 0.001, 0.01)
POLICIES = ("ct", "lp", "et", "qst")
BUFFERS = {"non-blocking": False, "locked": True}
#: Ways to count words with an order, and whether with bolts of plain Python.
COUNTS = {"tally": False, "bolts": True}


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    tuples: int = 2000
    words: int = 1_000_000
    repeat: int = 3
    #: Folder for pictures.
    plots: str = ""


def run(quick: bool, report: Report, options: Options) -> dict[str, Any]:
    """Queues under skew, latency by cost, reorder buffers, schedulers, and the cost of order."""
    if quick:
        options = replace(options, tuples=200, words=100_000, repeat=1)
    measure = Measure(options, report)
    results = {
        "schedulers": measure.schedulers(),
        "skew": measure.skew(),
        "latency": measure.latency(),
        "light": measure.light(),
        "selectivity": measure.selectivity(),
        "order": measure.order(),
    }
    if options.plots:
        write_pictures(Path(options.plots), pictures(results))
    about = environment() | asdict(options) | {"workers": MOST, "buckets": BUCKETS}
    about.pop("plots")
    found = summary(results)
    return {"name": "ordered", "environment": about, "results": results, "summary": found}


@dataclass(frozen=True)
class Measure:
    """Makes the figures."""

    options: Options
    report: Report

    def schedulers(self) -> Figure:
        """Figure 8: a chain of three operators, by workers, with each scheduler."""
        rows = even(self.options.tuples // 4)

        def chain(workers: int, policy: str) -> Found:
            local = replace(_local(workers, rows=16), scheduling=Scheduling(policy=policy))
            made = Chain(rows).stateless(0.0004, workers).keyed(0.002)
            return made.keyed(0.0008).run(local)

        return self._figure("figure 8, workers", WORKERS, POLICIES, chain)

    def skew(self) -> Figure:
        """Figure 9: a keyed operator of 4 ms, by deviation of the keys, with each queue."""

        def keyed(sigma: float, queue: str) -> Found:
            rows = skewed(self.options.tuples // 2, sigma)
            return Chain(rows).keyed(0.004).run(_local(MOST, queue=queue))

        return self._figure("figure 9, sigma", SIGMAS, QUEUES, keyed)

    def latency(self) -> Figure:
        """Figure 10: processing latency of a keyed operator by its cost, with each queue."""

        def keyed(cost: float, queue: str) -> Found:
            count = max(100, round(self.options.tuples * min(1.0, 0.001 / cost)))
            rows = skewed(count, SIGMAS[0])
            return Chain(rows).keyed(cost).run(_local(MOST, rows=1, queue=queue))

        return self._figure("figure 10, seconds", COSTS, QUEUES, keyed)

    def light(self) -> Figure:
        """Figure 12: a light operator, by workers, with each reorder buffer."""
        rows = even(5 * self.options.tuples)

        def light(workers: int, buffer: str) -> Found:
            local = replace(_local(workers, rows=16), locked_reordering=BUFFERS[buffer])
            return Chain(rows).stateless(0.00001, workers).run(local)

        return self._figure("figure 12, workers", WORKERS, tuple(BUFFERS), light)

    def selectivity(self) -> Figure:
        """Figure 13: an operator that sends 50 tuples for each, and a keyed one behind it."""
        rows = even(max(20, self.options.tuples // 20))

        def pipeline(workers: int, buffer: str) -> Found:
            local = replace(_local(workers, rows=1), locked_reordering=BUFFERS[buffer])
            return Chain(rows).stateless(0.0001, workers, 50).keyed(0.0001).run(local)

        return self._figure("figure 13, workers", WORKERS, tuple(BUFFERS), pipeline)

    def order(self) -> dict[str, dict[str, Any]]:
        """Words per second into a sink that asks for an order, and one that does not."""
        lines = sentences(self.options.words)
        candidates = {
            f"{name}, {order}": partial(words, lines, bolts, order)
            for name, bolts in COUNTS.items()
            for order in ("sender", "total")
        }
        found = side_by_side(candidates, self.options.repeat + 2, self.report)
        return {"words": {"count": len(lines) * SENTENCE}, **found}

    def _figure(
        self,
        name: str,
        values: Sequence[Any],
        candidates: Sequence[str],
        run_once: Callable[[Any, str], Found],
    ) -> Figure:
        """Measure all candidates for each value, in turn."""
        found: Figure = {}
        for value in values:
            turns: dict[str, list[Found]] = {candidate: [] for candidate in candidates}
            for _ in range(self.options.repeat):
                for candidate in candidates:
                    turns[candidate].append(run_once(value, candidate))
            found[str(value)] = {candidate: _summed(turns[candidate]) for candidate in candidates}
            shown = ", ".join(_shown(*item) for item in found[str(value)].items())
            self.report(f"{name} {value}: {shown}")
        return found


def _shown(candidate: str, found: Mapping[str, float]) -> str:
    return f"{candidate} {found['per_second']:,.0f}/s {found['latency_ms']:.1f} ms"


def _summed(turns: Sequence[Found]) -> dict[str, float]:
    """Give the best throughput, and medians."""
    speeds = [turn.per_second for turn in turns]
    return {
        "per_second": max(speeds),
        "per_second_median": statistics.median(speeds),
        "latency_ms": statistics.median(turn.latency_ms for turn in turns),
        "cost_us": statistics.median(turn.cost for turn in turns) * 1e6,
    }


def _local(workers: int, rows: int = 16, queue: Any = "hybrid") -> tw.Local:
    return tw.Local(
        workers=workers,
        most_workers=workers,
        block_rows=rows,
        most_block_rows=rows,
        queue=queue,
    )


def summary(results: Mapping[str, Any]) -> dict[str, float]:
    """Compare what matters, best with best and (``_median``) median with median."""
    found: dict[str, float] = {}
    strong, most = results["skew"][str(SIGMAS[-1])], str(MOST)
    for suffix in ("", "_median"):
        speed = f"per_second{suffix}"
        for queue in QUEUES[1:]:
            name = f"hybrid_vs_{queue}_strong_skew{suffix}"
            found[name] = strong["hybrid"][speed] / strong[queue][speed]
        for figure in ("light", "selectivity"):
            both = results[figure][most]
            ratio = both["non-blocking"][speed] / both["locked"][speed]
            found[f"non_blocking_vs_locked_{figure}{suffix}"] = ratio
        for policy in POLICIES[1:]:
            both = results["schedulers"][most]
            found[f"ct_vs_{policy}{suffix}"] = both["ct"][speed] / both[policy][speed]
        kind = "median" if suffix else "best"
        for name in COUNTS:
            sender, total = (results["order"][f"{name}, {o}"][kind] for o in ("sender", "total"))
            found[f"total_vs_sender_{name}{suffix}"] = total / sender
    return found
