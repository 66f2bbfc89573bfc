"""A run with durable state that tests interrupt; told what to do by a file of JSON.

What it must come to is in ``killing.py``, worked out without Thalweg.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import thalweg as tw
from thalweg.control.rerouting import Cost, Rerouting, Seen, Tables
from thalweg.runtimes.spark.limits import Limits, Retries
from thalweg.runtimes.spark.pump import PumpSettings

FIELDS = {"n": int, "word": str, "tag": str}
#: What a line of the file takes: where a process is killed, a write ends between two pages.
LINE_BYTES = 64


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to run, and where."""

    folder: str
    rows: int
    master: str = "local[2]"
    places: int = 2
    #: Rows per batch.
    batch: int = 50
    #: Whether the rows come from Structured Streaming, which reads them from files.
    frame: bool = False
    config: dict[str, str] = field(default_factory=dict)
    #: Options of the JVMs that are started for it.
    java: str = ""
    runs: int = 3
    versions: int = 4
    #: Name of a failure that waits: it goes on when the sink is given something after it.
    release: str = ""
    #: Seed of places that keys get at random, again and again; None for keys that stay.
    reroute: int | None = None
    #: Bytes of state that move with one batch; each key has ten.
    budget: int = 600


def row(n: int) -> tuple[int, str, str]:
    """Give the n-th row of the input; most keys have none in a batch, and keep what they had."""
    return n, f"w{n * 7919 % 97}", f"t{n * 31 % 41}"


def link(value: int, n: int) -> int:
    """Give the next value of a chain: it tells lost, repeated and swapped rows."""
    return (value * 31 + n) % 1_000_003


def build(job: Job) -> tw.Flow:
    """Two keyed tallies in a row, a chain in order of its key, a table and a file."""
    folder = Path(job.folder)
    flow = tw.Flow("interrupted")
    rows = flow.source("rows", source(job), fields=FIELDS)
    tallied = rows.tally("by_word", key="word").tally("by_tag", key="tag")
    tallied.sink("kept", tw.to_table(folder / "kept"))
    rows.key_by("word").scan(0, link, into="value").sink("out", tw.call(writer(job)))
    return flow


class Wandering:
    """Gives keys places at random whenever none is on its way; the epoch says which."""

    sampling = 0.0

    def __init__(self, seed: int, budget: int) -> None:
        self.seed, self.budget = seed, budget

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        """Take some keys of each component, and give each any place; others go back."""
        if seen.moving:
            return None
        new = {}
        for name, table in tables.items():
            rng = random.Random(f"{self.seed}/{name}/{table.epoch}")
            _, words, tags = zip(*map(row, range(200)), strict=True)
            keys = sorted(set(tags if name == "by_tag" else words))
            chosen = rng.sample(keys, rng.randint(len(keys) // 2, len(keys)))
            new[name] = table.with_keys({key: rng.randrange(table.places) for key in chosen})
        return Rerouting(new, {name: Cost(size=10.0) for name in new}, self.budget)


def source(job: Job) -> Any:
    """Give the rows: from here, or from files that Structured Streaming reads one by one."""
    if not job.frame:
        return tw.items(partial(map, row, range(job.rows)))
    schema = "n bigint, word string, tag string"
    folder = f"{job.folder}/input"
    return tw.spark_source(
        lambda spark: spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(folder)
    )


def writer(job: Job) -> Any:
    """Write each tuple as one line; a line is there or not, for none crosses a page of the file."""
    path, failpoints = f"{job.folder}/out.jsonl", Path(job.folder, "failpoints")

    def write(t: Any) -> None:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, json.dumps([t.n, t.word, t.value]).encode().ljust(LINE_BYTES - 1) + b"\n")
        os.close(file)
        if job.release and (failpoints / job.release).exists():
            (failpoints / "go").touch()

    return write


def runtime(job: Job, session: Any = None) -> tw.Spark:
    """Give a runtime whose state outlives the process."""
    where: dict[str, Any] = {"master": job.master, "config": job.config}
    if job.frame:
        where |= {"checkpoint": f"{job.folder}/checkpoint", "trigger": "available-now"}
    return tw.Spark(
        **(where if session is None else where | {"session": session}),
        places=job.places,
        state=f"{job.folder}/state",
        pump=PumpSettings(rows=job.batch, block_rows=job.batch, seconds=60.0),
        limits=Limits(runs=job.runs, versions=job.versions),
        retries=Retries(attempts=10, backoff=0.01),  # several kills may meet in one batch
        shorten=False,  # three stages, so that there is something between them
        rerouter=None if job.reroute is None else Wandering(job.reroute, job.budget),
    )


def run(job: Job, session: Any = None) -> dict[str, dict[str, int]]:
    """Run to the end, and give the tables."""
    result = build(job).run(on=runtime(job, session))
    return {name: dict(result.table(name)) for name in ("by_word", "by_tag")}


def main(path: Path) -> None:
    """Run the job that a file describes, and write its tables beside it."""
    job = msgspec.json.decode(path.read_bytes(), type=Job)
    failpoints = path.parent / "failpoints"
    failpoints.mkdir(exist_ok=True)
    (failpoints / "driver").write_text(str(os.getpid()))
    tables = run(job)
    (path.parent / "tables.json").write_text(json.dumps(tables))
