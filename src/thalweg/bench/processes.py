"""Components in processes of their own on two cores, against one core without.

*CPU-bound*: a Storm-style bolt that computes for some ten microseconds per tuple, without state and
with a state per key. *Two keys*: records of 2 kB, written as JSON, are read and counted by two of
their fields; the reference is a flat loop that does the same. Every candidate runs in a process of
its own; time counts from the first tuple on, when all processes have begun.
"""

from __future__ import annotations

import json
import os
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import thalweg as tw
from thalweg.bench.inline_wordcount import Arrivals
from thalweg.bench.measuring import apart, environment
from thalweg.errors import ThalwegError

#: Numbers that the CPU-bound bolt adds up for each tuple.
_WORK = 500
#: Records that there are, each with so many letters; they come again and again.
RECORDS, _LETTERS, _KEYS = 20_000, 2000, 1000


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    #: Tuples for the CPU-bound bolts, and records to be counted.
    tuples: int = 300_000
    records: int = 1_500_000
    repeat: int = 3


class Sums(tw.Bolt):
    """Computes."""

    outputs = {"total": int}  # noqa: RUF012 (as users write it)

    def process(self, t: Any) -> None:
        """Add up squares."""
        total = 0
        for i in range(_WORK):
            total += i * t.n
        self.emit(total)


class SumsByKey(Sums):
    """Computes, and keeps a sum for each key."""

    kind = tw.Kind.KEYED

    def process(self, t: Any) -> None:
        """Add up squares, and add those to the sum of the key."""
        total = self.state.get(t.n, 0)
        for i in range(_WORK):
            total += i * t.n
        self.state.put(t.n, total % 1_000_003)
        self.emit(total)


def sums(given: Iterator[int], local: tw.Local, isolation: str, keyed: bool) -> int:
    """Compute with a bolt, in processes or not."""
    arrivals = Arrivals()
    builder = tw.TopologyBuilder("sums")
    builder.add_spout("numbers", tw.items(given), fields={"n": int})
    if keyed:
        degree = {} if isolation == "thread" else {"degree": 2}
        bolt = builder.add_bolt("sums", SumsByKey(), isolation=isolation, **degree)
        bolt.fields("numbers", "n")
    else:
        builder.add_bolt("sums", Sums(), isolation=isolation).shuffle("numbers")
    builder.add_bolt("end", arrivals).shuffle("sums")
    builder.build().run(on=local)
    return arrivals.rows[0]


def records(count: int) -> Iterator[bytes]:
    """Make records of 2 kB, the same for everyone; after some they come again."""
    rng = random.Random(1)  # noqa: S311 (to be repeatable)
    texts = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=_LETTERS)) for _ in range(100)]
    made = [
        json.dumps({"a": rng.randrange(_KEYS), "b": rng.randrange(_KEYS), "text": text}).encode()
        for text in rng.choices(texts, k=RECORDS)
    ]
    return (made[i % RECORDS] for i in range(count))


def flat_loop(given: Iterator[bytes]) -> int:
    """Count records by two fields in one loop."""
    by_a: dict[int, int] = {}
    by_b: dict[int, int] = {}
    for record in given:
        found = json.loads(record)
        by_a[found["a"]] = by_a.get(found["a"], 0) + 1
        by_b[found["b"]] = by_b.get(found["b"], 0) + 1
    return _sum(by_a, by_b)


def two_keys(given: Iterator[bytes], local: tw.Local, isolation: str) -> int:
    """Count records by two fields in a flow; they are read in processes, or not."""
    flow = tw.Flow("two-keys")
    source = flow.source("records", tw.items(given), fields={"record": bytes})
    fields = {"a": int, "b": int, "text": str}
    read = source.map(json.loads, fields=fields, isolation=isolation)
    read.tally("by_a", key="a").tally("by_b", key="b")
    result = flow.run(on=local)
    return _sum(result.table("by_a"), result.table("by_b"))


def _sum(by_a: Mapping[Any, int], by_b: Mapping[Any, int]) -> int:
    return (sum(by_a.values()) + sum(by_b.values())) // 2


ONE, TWO = tw.Local(workers=1), tw.Local(workers=2)

CANDIDATES: dict[str, Callable[[Iterator[Any]], int]] = {
    "stateless, 1 core": lambda given: sums(given, ONE, "thread", keyed=False),
    "stateless, 2 cores": lambda given: sums(given, TWO, "process", keyed=False),
    "keyed, 1 core": lambda given: sums(given, ONE, "thread", keyed=True),
    "keyed, 2 cores": lambda given: sums(given, TWO, "process", keyed=True),
    "two keys, flat loop, 1 core": flat_loop,
    "two keys, 1 core": lambda given: two_keys(given, ONE, "thread"),
    "two keys, 2 cores": lambda given: two_keys(given, TWO, "process"),
}


def run(quick: bool, report: Callable[[str], None], options: Options) -> dict[str, Any]:
    """Components in processes on two cores, against one core: CPU-bound bolts, two-key count."""
    if quick:
        options = replace(options, tuples=40_000, records=200_000, repeat=1)
    results: dict[str, list[dict[str, float]]] = {name: [] for name in CANDIDATES}
    for turn in range(options.repeat):
        for name in CANDIDATES:
            found = apart("thalweg.bench.processes", name, json.dumps(asdict(options)))
            results[name].append(found)
            report(f"{turn + 1}/{options.repeat} {name}: {found['per_second']:,.0f}/s")
    return {
        "name": "processes",
        "environment": environment() | asdict(options),
        "results": results,
        "summary": summary(results),
    }


def summary(results: Mapping[str, list[dict[str, float]]]) -> dict[str, float]:
    """Compare two cores with one, best with best and median with median."""
    found = {}
    for kind, choose in (("", max), ("_median", statistics.median)):
        speed = {name: choose(t["per_second"] for t in turns) for name, turns in results.items()}
        for name in ("stateless", "keyed"):
            found[f"{name}_2_cores_vs_1{kind}"] = (
                speed[f"{name}, 2 cores"] / speed[f"{name}, 1 core"]
            )
        loop = speed["two keys, flat loop, 1 core"]
        found[f"two_keys_2_cores_vs_flat_loop{kind}"] = speed["two keys, 2 cores"] / loop
        found[f"two_keys_1_core_vs_flat_loop{kind}"] = speed["two keys, 1 core"] / loop
    return found


def _measure(name: str, options: Options) -> dict[str, float]:
    if name.endswith("1 core"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    loops = name.startswith("two keys")
    expected = options.records if loops else options.tuples
    given = records(expected) if loops else (n % _KEYS for n in range(expected))
    asked: list[float] = []
    begin = time.perf_counter()
    seen = CANDIDATES[name](_noting(given, asked))
    end = time.perf_counter()
    if seen != expected:
        text = f"{name} saw {seen} tuples instead of {expected}"
        raise ThalwegError(text)
    per_second = expected / (end - asked[0])
    return {"per_second": per_second, "start": asked[0] - begin, "cpu": _cpu()}


def _noting(given: Iterator[Any], asked: list[float]) -> Iterator[Any]:
    """Note when the first one is asked for."""
    asked.append(time.perf_counter())
    yield from given


def _cpu() -> float:
    """Give the seconds at work of this process and of those that it started and that have ended."""
    found = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


if __name__ == "__main__":
    chosen = Options(**json.loads(sys.argv[2]))
    sys.stdout.write(json.dumps(_measure(sys.argv[1], chosen)) + "\n")
