"""Word count on the local runtime, against hand-written Python, bytewax and streamz.

Every candidate runs in a process of its own, on one core or two, so that processor time, memory
and threads are its own. All count the same sentences, each word with its running count; but for
the vectorised one, whose counts are a table.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import thalweg as tw
from thalweg.bench import inline_wordcount as chains
from thalweg.bench.measuring import apart, environment, installed
from thalweg.errors import ThalwegError

#: Items that bytewax is given at once; the best of them counts.
BATCHES = (10, 100, 1000, 10_000)
#: Words that every candidate counts before it is measured.
_WARM = 1000
#: Who gets another number of words, because it takes too long, or hardly any time.
_SHARES = {"streamz": 0.1, "generators": 4, "flat_loop": 4, "functions": 4, "vectorised": 8} | {
    "vectorised, 2 cores": 8
}


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    words: int = 1_500_000
    repeat: int = 5


class SplitBlock(tw.BlockBolt):
    """Sentences to words, a block at a time."""

    outputs = {"word": str}  # noqa: RUF012 (as users write it)

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Split with Arrow."""
        words = pc.list_flatten(pc.split_pattern(batch.column("sentence"), " "))
        return self.make_batch([words])


def vectorised_flow(lines: list[str]) -> tw.Flow:
    """Describe the count with bolts on whole blocks; the counts are a table."""
    flow = tw.Flow("wordcount")
    source = flow.source("sentences", tw.items(lines), fields={"sentence": str})
    source.through("split", SplitBlock()).key_by("word").count("words")
    return flow


def vectorised(lines: list[str], on: Any) -> int:
    """Count with bolts on whole blocks."""
    return sum(vectorised_flow(lines).run(on=on).table("words").values())


def bytewax(lines: list[str], batch: int) -> int:
    """Count with bytewax."""
    import bytewax.operators as op  # noqa: PLC0415 (a peer, not always installed)
    from bytewax.dataflow import Dataflow  # noqa: PLC0415 (as above)
    from bytewax.outputs import DynamicSink, StatelessSinkPartition  # noqa: PLC0415 (as above)
    from bytewax.testing import TestingSource, run_main  # noqa: PLC0415 (as above)

    seen = [0]

    class Part(StatelessSinkPartition):
        def write_batch(self, items: list[Any]) -> None:
            seen[0] += len(items)

    class End(DynamicSink):
        def build(self, step_id: str, worker_index: int, worker_count: int) -> Part:
            return Part()

    flow = Dataflow("wordcount")
    stream = op.input("lines", flow, TestingSource(lines, batch))
    words = op.flat_map("split", stream, str.split)
    keyed = op.key_on("key", words, lambda word: word)
    counted = op.stateful_map("count", keyed, lambda n, _word: ((n or 0) + 1, (n or 0) + 1))
    op.output("end", counted, End())
    run_main(flow)
    return seen[0]


def streamz(lines: list[str]) -> int:
    """Count with streamz."""
    from streamz import Stream  # noqa: PLC0415 (a peer, not always installed)

    seen = [0]

    def count(counts: dict[str, int], word: str) -> tuple[dict[str, int], tuple[str, int]]:
        n = counts[word] = counts.get(word, 0) + 1
        return counts, (word, n)

    def arrived(_pair: tuple[str, int]) -> None:
        seen[0] += 1

    source = Stream()
    words = source.map(str.split).flatten()
    words.accumulate(count, start={}, returns_state=True).sink(arrived)
    for line in lines:
        source.emit(line)
    return seen[0]


def _local(count: Callable[[list[str], Any], int], workers: int) -> Callable[[list[str]], int]:
    return lambda lines: count(lines, tw.Local(workers=workers))


CANDIDATES: dict[str, Callable[[list[str]], int]] = {
    "generators": chains.generators,
    "flat_loop": chains.flat_loop,
    "functions": _local(chains.functions, 1),
    "bolts": _local(chains.bolts, 1),
    "vectorised": _local(vectorised, 1),
    "functions, 2 cores": _local(chains.functions, 2),
    "bolts, 2 cores": _local(chains.bolts, 2),
    "vectorised, 2 cores": _local(vectorised, 2),
    **{f"bytewax {size}": partial(bytewax, batch=size) for size in BATCHES},
    "streamz": streamz,
}
PEERS = ("bytewax", "streamz")


def run(quick: bool, report: Callable[[str], None], options: Options) -> dict[str, Any]:
    """Word count on the local runtime, against generators, a flat loop, bytewax and streamz."""
    if quick:
        options = Options(200_000, 1)
    missing = tuple(peer for peer in PEERS if not installed(peer, report))
    names = [name for name in CANDIDATES if not name.startswith(missing)]
    results: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for turn in range(options.repeat):
        for name in names:
            words = int(options.words * _SHARES.get(name, 1))
            found = apart("thalweg.bench.wordcount", name, str(words))
            results[name].append(found)
            report(
                f"{turn + 1}/{options.repeat} {name}: {found['per_second']:,.0f} words/s, "
                f"{found['cpu']:.1f} s of processor, {found['megabytes']:,.0f} MB, "
                f"{found['threads']:.0f} threads"
            )
    return {
        "name": "wordcount",
        "environment": environment() | asdict(options),
        "results": results,
        "summary": summary(results),
    }


def summary(results: Mapping[str, list[dict[str, float]]]) -> dict[str, float]:
    """Compare the best and the median of each with generators and peers, as far as these ran.

    >>> speeds = {"generators": 4.0, "functions": 3.0, "bolts": 2.0, "vectorised": 8.0}
    >>> speeds |= {"bytewax 10": 0.5, "bytewax 100": 1.0}
    >>> found = summary({name: [{"per_second": speed}] for name, speed in speeds.items()})
    >>> found["functions_vs_bytewax"], found["vectorised_vs_generators_median"]
    (3.0, 2.0)
    """
    found = {}
    for kind, choose in (("", max), ("_median", statistics.median)):
        speed = {name: choose(t["per_second"] for t in turns) for name, turns in results.items()}
        against = {"generators": speed["generators"]}
        for peer in PEERS:
            speeds = [value for name, value in speed.items() if name.startswith(peer)]
            against |= {peer: max(speeds)} if speeds else {}
        for name in ("functions", "bolts", "vectorised"):
            for other, theirs in against.items():
                found[f"{name}_vs_{other}{kind}"] = speed[name] / theirs
    return found


def _measure(name: str, words: int) -> dict[str, float]:
    if not name.endswith("2 cores"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    CANDIDATES[name](chains.sentences(_WARM))  # what happens once is not what is measured
    lines = chains.sentences(words)
    begin, cpu = time.perf_counter(), time.process_time()
    seen = CANDIDATES[name](lines)
    took, used = time.perf_counter() - begin, time.process_time() - cpu
    if seen != words:
        text = f"{name} saw {seen} words instead of {words}"
        raise ThalwegError(text)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"per_second": words / took, "cpu": used, "megabytes": memory}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure(sys.argv[1], int(sys.argv[2]))) + "\n")
