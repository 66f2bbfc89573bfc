"""Word count on the local runtime, against hand-written Python and bytewax.

Every candidate runs in a process of its own, on one core or two, so that processor time, memory
and threads are its own. All count the same sentences, each word with its running count.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import thalweg as tw
from thalweg.bench import inline_wordcount as chains
from thalweg.bench.measuring import environment
from thalweg.errors import ThalwegError

#: Items that bytewax is given at once; the best of them counts.
BATCHES = (10, 100, 1000, 10_000)


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    words: int = 2_000_000
    repeat: int = 3


class SplitBlock(tw.BlockBolt):
    """Sentences to words, a block at a time."""

    outputs = {"word": str}  # noqa: RUF012 (as users write it)

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Split with Arrow."""
        words = pc.list_flatten(pc.split_pattern(batch.column("sentence"), " "))
        return self.make_batch([words])


def functions(lines: list[str], on: Any) -> int:
    """Count with plain functions in the fluent API."""
    arrivals = chains.Arrivals()
    flow = tw.Flow("wordcount")
    source = flow.source("sentences", tw.items(lines), fields={"sentence": str})
    words = source.flat_map(lambda sentence: sentence.split(), fields={"word": str})
    words.key_by("word").scan(0, lambda n: n + 1, into="n").sink("end", arrivals)
    flow.run(on=on)
    return arrivals.rows[0]


def bolts(lines: list[str], on: Any) -> int:
    """Count with Storm-style bolts."""
    arrivals = chains.Arrivals()
    builder = tw.TopologyBuilder("wordcount")
    builder.add_spout("sentences", tw.items(lines), fields={"sentence": str})
    builder.add_bolt("split", chains.Split()).shuffle("sentences")
    builder.add_bolt("count", chains.Count()).fields("split", "word")
    builder.add_bolt("end", arrivals).shuffle("count")
    builder.build().run(on=on)
    return arrivals.rows[0]


def vectorised(lines: list[str], on: Any) -> int:
    """Count with bolts on whole blocks; the counts are a table."""
    flow = tw.Flow("wordcount")
    source = flow.source("sentences", tw.items(lines), fields={"sentence": str})
    source.through("split", SplitBlock()).key_by("word").count("words")
    return sum(flow.run(on=on).table("words").values())


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


def _local(count: Callable[[list[str], Any], int], workers: int) -> Callable[[list[str]], int]:
    return lambda lines: count(lines, tw.Local(workers=workers))


CANDIDATES: dict[str, Callable[[list[str]], int]] = {
    "generators": chains.generators,
    "flat_loop": chains.flat_loop,
    "functions": _local(functions, 1),
    "bolts": _local(bolts, 1),
    "vectorised": _local(vectorised, 1),
    "functions, 2 cores": _local(functions, 2),
    "bolts, 2 cores": _local(bolts, 2),
    "vectorised, 2 cores": _local(vectorised, 2),
    **{f"bytewax {size}": partial(bytewax, batch=size) for size in BATCHES},
}


def run(quick: bool, report: Callable[[str], None], options: Options) -> dict[str, Any]:
    """Word count on the local runtime, against generators, a flat loop and bytewax."""
    if quick:
        options = Options(100_000, 1)
    results: dict[str, list[dict[str, float]]] = {name: [] for name in CANDIDATES}
    for turn in range(options.repeat):
        for name in CANDIDATES:
            found = _apart(name, options.words)
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
        "summary": _summary(results),
    }


def _summary(results: dict[str, list[dict[str, float]]]) -> dict[str, float]:
    """Compare the best and the median of each with the peers."""
    summary = {}
    for kind, choose in (("", max), ("_median", statistics.median)):
        speed = {name: choose(t["per_second"] for t in turns) for name, turns in results.items()}
        peer = max(speed[f"bytewax {size}"] for size in BATCHES)
        for name in ("functions", "bolts", "vectorised"):
            summary[f"{name}_vs_generators{kind}"] = speed[name] / speed["generators"]
            summary[f"{name}_vs_bytewax{kind}"] = speed[name] / peer
    return summary


def _apart(name: str, words: int) -> dict[str, float]:
    """Measure one candidate in a process of its own."""
    command = [sys.executable, "-m", "thalweg.bench.wordcount", name, str(words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (this program)
    if done.returncode:
        text = f"{name} failed: {done.stderr.strip().splitlines()[-1:]}"
        raise ThalwegError(text)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _measure(name: str, words: int) -> dict[str, float]:
    if not name.endswith("2 cores"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    lines = chains.sentences(words)
    begin, cpu = time.perf_counter(), time.process_time()
    seen = CANDIDATES[name](lines)
    took, used = time.perf_counter() - begin, time.process_time() - cpu
    if seen != words:
        text = f"{name} saw {seen} words instead of {words}"
        raise ThalwegError(text)
    threads = threading.active_count()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"per_second": words / took, "cpu": used, "megabytes": memory, "threads": threads}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure(sys.argv[1], int(sys.argv[2]))) + "\n")
