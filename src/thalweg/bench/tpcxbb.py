"""The TPCx-BB queries: events per second and latency, by scheduler, workers, queue and buffer.

Figures 8, 11 and 14 of the ordered multi-core document, on blocks of Arrow columns and two cores,
with DuckDB's answer to the same rows, all at hand, as the limit. Every candidate has a process of
its own; they take turns. The answer of every run is compared with DuckDB's.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from thalweg.bench.measuring import apart, environment, installed
from thalweg.bench.tpcxbb_runs import Case
from thalweg.errors import ThalwegError, UsageError, explain
from thalweg.workloads.tpcxbb.topologies import QUERIES

Report = Callable[[str], None]
#: By query and candidate, what each turn gave.
Turns = dict[str, dict[str, list[dict[str, Any]]]]

#: Events per second that are asked for on two cores; latency is measured at half of them.
REQUIRED = {"q1": 1e6, "q2": 0.5e6, "q3": 0.5e6, "q4": 1e6, "q15": 1e6}
POLICIES = ("ct", "lp", "et", "qst")
#: What others are compared with.
BEST = "ct, 2 workers"


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    #: One query, or all.
    query: str = "all"
    #: Rows of each run, and of those on Spark.
    rows: int = 1_500_000
    spark_rows: int = 500_000
    #: Seconds of a run at half of the rate.
    seconds: float = 3.0
    repeat: int = 2


def run(quick: bool, report: Report, options: Options) -> dict[str, Any]:
    """TPCx-BB's Q1 to Q4 and Q15: events/s and latency by scheduler, queue and buffer; DuckDB."""
    names = _names(options.query)
    if quick:
        options = replace(options, rows=100_000, seconds=0.5, repeat=1)
    turns: Turns = {name: {} for name in names}
    for turn in range(options.repeat):
        for name in names:
            for candidate, case in candidates(name, options, quick, turn).items():
                if case.on == "spark" and not installed("pyspark", report):
                    continue
                found = apart("thalweg.bench.tpcxbb_runs", name, json.dumps(asdict(case)))
                turns[name].setdefault(candidate, []).append(found)
                report(f"{turn + 1}/{options.repeat} {name} {candidate}: {_line(found)}")
        check(turns)
    results = {
        name: {candidate: _summed(found) for candidate, found in of.items()}
        for name, of in turns.items()
    }
    return {
        "name": "tpcxbb",
        "environment": environment() | asdict(options),
        "results": results,
        "summary": summary(results),
    }


def _names(query: str) -> list[str]:
    wanted = query.lower()
    found = [name for name in QUERIES if wanted in ("all", name, name.removeprefix("q"))]
    if not found:
        raise UsageError(explain("--query of 'tpcxbb'", "", f"one of {['all', *QUERIES]}", query))
    return found


def candidates(name: str, options: Options, quick: bool, turn: int) -> dict[str, Case]:
    """Give what is compared; Spark, which takes long to begin, has one turn."""
    case, rate = Case(name, options.rows), REQUIRED[name] / 2
    steady = replace(case, on="paced", rate=rate, rows=round(rate * options.seconds))
    found = {"duckdb": replace(case, on="duckdb"), BEST: case, "half rate": steady}
    if quick:
        return found
    for policy in POLICIES:
        for workers in (1, 2):
            plural = "s" if workers > 1 else ""
            found[f"{policy}, {workers} worker{plural}"] = replace(
                case, policy=policy, workers=workers
            )
    found |= {"partitioned": replace(case, queue="partitioned")}
    found |= {"locked": replace(case, locked=True)}
    found |= {"half rate, 1 worker": replace(steady, workers=1)}
    return found if turn else found | {"spark": replace(case, on="spark", rows=options.spark_rows)}


def check(turns: Turns) -> None:
    """Refuse answers that are not DuckDB's."""
    for name, of in turns.items():
        for candidate, found in of.items():
            for each in found:
                expected = each.get("expected", of["duckdb"][0]["digest"])
                if "digest" in each and each["digest"] != expected:
                    text = f"{name} {candidate}: the answer is not the one that DuckDB gives"
                    raise ThalwegError(text)


def _line(found: Mapping[str, Any]) -> str:
    told = [f"{found['events_per_s']:,.0f} events/s"] if "events_per_s" in found else []
    for key, words in (("p50_ms", "end to end"), ("processing_p50_ms", "processing")):
        if key in found:
            p99 = found[key.replace("p50", "p99")]
            told.append(f"{words} p50 {found[key]:.2f} ms, p99 {p99:.1f} ms")
    return ", ".join(told)


def _summed(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Give best and median of each measure: the most events, the least milliseconds."""
    found: dict[str, Any] = {"turns": list(turns)}
    for key in (key for key in turns[0] if key == "events_per_s" or key.endswith("_ms")):
        values = [turn[key] for turn in turns]
        best = max(values) if key == "events_per_s" else min(values)
        found[key] = {"best": best, "median": statistics.median(values)}
    return found


def summary(results: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Give what was asked for, and compare: best with best and (``_median``) median with median.

    >>> speed = {"events_per_s": {"best": 3.0, "median": 2.0}}
    >>> summary({"q1": {BEST: speed, "locked": {"events_per_s": {"best": 2.0, "median": 2.0}}}})
    {'q1_events_per_s': 3.0, 'q1_non_blocking_vs_locked': 1.5, 'q1_events_per_s_median': 2.0, \
'q1_non_blocking_vs_locked_median': 1.0}
    """
    found: dict[str, float] = {}
    for name, of in results.items():
        for suffix, kind in (("", "best"), ("_median", "median")):
            for key, value in _of_query(of, kind):
                found[f"{name}_{key}{suffix}"] = value
    return found


def _of_query(of: Mapping[str, Any], kind: str) -> list[tuple[str, float]]:
    speeds = {c: f["events_per_s"][kind] for c, f in of.items() if "events_per_s" in f}
    ours = speeds[BEST]
    found = [("events_per_s", ours)]
    for start, candidate in (("", "half rate"), ("1_worker_", "half rate, 1 worker")):
        late = of.get(candidate, {})
        found += [(start + key, late[key][kind]) for key in ("p50_ms", "p99_ms") if key in late]
    compared = {"vs_duckdb": "duckdb", "2_workers_vs_1": "ct, 1 worker"}
    compared |= {f"ct_vs_{policy}": f"{policy}, 2 workers" for policy in POLICIES[1:]}
    compared |= {"hybrid_vs_partitioned": "partitioned", "non_blocking_vs_locked": "locked"}
    found += [(key, ours / speeds[other]) for key, other in compared.items() if other in speeds]
    return found + [("spark_events_per_s", speeds[c]) for c in speeds if c == "spark"]
