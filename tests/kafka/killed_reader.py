"""A run that reads a topic and writes another, killed again and again; told by a file of JSON.

Each attempt is a fork of this process, which has loaded everything but started no thread.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import thalweg as tw
from attempts import appending, forked
from thalweg.components import Bolt, Kind
from thalweg.runtimes.spark.pump import PumpSettings


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to run, and how often it is killed after some lines."""

    folder: str
    servers: str
    topic: str
    output: str
    rows: int
    degree: int = 1
    seed: int = 0
    kills: int = 0
    #: Whether it runs on Spark, with batches of this process, its driver.
    spark: bool = False
    #: Jars of Spark's connector, which reads the topic then.
    jars: str = ""


def link(value: int, n: int) -> int:
    """Give the next value of a chain: it tells lost, repeated and swapped rows."""
    return (value * 31 + n) % 1_000_003


class Chain(Bolt):
    """Keeps a chain for each word."""

    kind = Kind.KEYED
    outputs = {"n": int, "word": str, "value": int}
    table = "chains"

    def process(self, t: Any) -> None:
        value = link(self.state.get(t.word, 0), t.n)
        self.state.put(t.word, value)
        self.emit(t.n, t.word, value)


def build(job: Job) -> tw.Topology:
    """Keep a chain per word; send what becomes of it, and write a line for each."""
    builder = tw.TopologyBuilder("killed")
    fields = {"n": int, "word": str}
    source = tw.kafka(job.servers, job.topic, fields=fields, until="now", timeout=120)
    builder.add_spout("rows", source, degree=job.degree)
    builder.add_bolt("chain", Chain(), degree=2).fields("rows", "word")
    sink = tw.to_kafka(job.servers, job.output, key="word", transactional=True, timeout=120)
    builder.add_bolt("sent", sink).global_("chain")
    builder.add_bolt("out", tw.call(appending(Path(job.folder, "out.jsonl")))).global_("chain")
    return builder.build()


def on_local(job: Job) -> tw.Local:
    """Give a runtime with a snapshot every few rows."""
    return tw.Local(
        workers=2,
        block_rows=50,
        most_block_rows=50,
        snapshot_every=0.02,
        checkpoint=f"{job.folder}/checkpoint",
    )


def on_spark(job: Job) -> tw.Spark:
    """Give a runtime with small batches."""
    pump = PumpSettings(rows=100, block_rows=50)
    state = f"{job.folder}/state"
    if not job.jars:
        return tw.Spark(master="local[2]", places=2, state=state, pump=pump)
    return tw.Spark(
        master="local[2]",
        places=2,
        state=state,
        checkpoint=f"{job.folder}/offsets",
        pump=pump,
        kafka="connector",
        config={"spark.jars": job.jars},
    )


def attempt(job: Job) -> None:
    """Run to the end, and write the table down."""
    result = build(job).run(on=on_spark(job) if job.spark else on_local(job))
    Path(job.folder, "tables.json").write_text(json.dumps(result.table("chains")))


def main() -> None:
    """Make attempts until one comes to its end, and write down how often that took."""
    path = Path(sys.argv[1])
    job = msgspec.json.decode(path.read_bytes(), type=Job)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    rng, kills = random.Random(job.seed), 0
    moments = [rng.randint(1, job.rows // (job.kills + 1)) for _ in range(job.kills)]
    once, out = partial(attempt, job), path.parent / "out.jsonl"
    while code := forked(once, out, moments.pop(0) if moments else None):
        if code != -signal.SIGKILL:
            sys.exit(code)
        kills += 1
    (path.parent / "kills").write_text(str(kills))


if __name__ == "__main__":
    main()
