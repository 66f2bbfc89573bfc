"""A run with a checkpoint that is killed again and again; told what to do by a file of JSON.

Each attempt is a fork of this process, which has loaded everything but started no thread. What an
attempt leaves behind becomes a child of this process and is waited for, so nothing can outlive it.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import thalweg as tw
from attempts import appending, forked
from thalweg.components import Bolt, Kind, Spout
from thalweg.control.rerouting import Rerouting
from thalweg.statelog.arrangements import Arrangement, load_arrangements
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests

FIELDS = {"n": int, "word": str, "tag": str}
_SUBREAPER = 36


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to run, and how often it is killed."""

    folder: str
    rows: int
    #: Settings of the runtime.
    settings: dict[str, Any] = field(default_factory=dict)
    isolation: str = "thread"
    #: Seed and number of kills after some lines, besides those of failpoints.
    seed: int = 0
    kills: int = 0
    #: Whether rows come from a queue that has each once, to be acknowledged.
    queue: bool = False
    #: Whether keys get other tasks, and components other degrees, all the time.
    changing: bool = False


def row(n: int) -> tuple[int, str, str]:
    """Give the n-th row of the input."""
    return n, f"w{n * 7919 % 97}", f"t{n * 31 % 41}"


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


class Inbox(Spout):
    """Gives the rows that nobody has acknowledged; a file knows which."""

    outputs = FIELDS

    def __init__(self, folder: str, rows: int) -> None:
        self.path, self.rows = f"{folder}/acknowledged", rows

    def prepare(self, context: Any) -> None:
        self.file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        done = set(os.pread(self.file, 1 << 24, 0).split(b"\n"))
        self.left = [n for n in range(self.rows) if str(n).encode() not in done]
        self.open = set(self.left)

    def next_tuple(self) -> None:
        if self.left:
            n = self.left.pop(0)
            self.emit(*row(n), id=n)
        elif not self.open:
            self.finish()

    def ack(self, id: Any) -> None:
        os.write(self.file, f"{id}\n".encode())
        self.open.discard(id)

    def cleanup(self) -> None:
        os.close(self.file)


def build(job: Job) -> tw.Topology:
    """Two counts and a chain per key; a table, and a file that each line is added to."""
    folder = Path(job.folder)
    source = Inbox(job.folder, job.rows) if job.queue else items(job.rows)
    builder = tw.TopologyBuilder("killed")
    builder.add_spout("rows", source, fields=FIELDS)
    chain = builder.add_bolt("chain", Chain(), degree=2, isolation=job.isolation)
    chain.fields("rows", "word")
    builder.add_bolt("kept", tw.to_table(folder / "kept")).global_("chain")
    builder.add_bolt("out", tw.call(appending(folder / "out.jsonl"))).global_("chain")
    return builder.build()


def items(rows: int) -> Any:
    """Give rows from memory."""
    return tw.items(partial(map, row, range(rows)))


class Changing:
    """Makes changes at random; the first table that it is shown must be that of the snapshot."""

    sampling = 0.0

    def __init__(self, job: Job) -> None:
        location = Location.of(f"{job.folder}/checkpoint/state")
        last = Manifests(location).latest()
        self.expected = load_arrangements(location, last.arrangements if last else None)
        self.steering, self.shown = tw.Steering(), False
        self.wanted = self.expected["chain"].degree if self.expected else 2
        with open(f"{job.folder}/begun", "a") as file:
            self.random = random.Random(file.tell())  # another seed for each attempt
            file.write(f"{self.wanted}\n")

    def after(self, _seen: Any, tables: Any) -> Rerouting | None:
        """Compare, and change something."""
        table = tables["chain"]
        if self.expected and not self.shown:
            kept = self.expected["chain"]
            assert Arrangement.of(kept.asked, table.places, table) == kept
        self.shown = True
        if table.places != self.wanted:
            return None  # another degree comes first
        if self.random.random() < 0.5:
            self.wanted = self.random.choice((1, 3, 4))
            self.steering.rebalance("chain", self.wanted)
            return None
        places = {f"w{n}": self.random.randrange(table.places) for n in range(97)}
        return Rerouting({"chain": table.with_keys(places)})


def attempt(job: Job) -> None:
    """Run to the end, and write the table down."""
    chosen = {"workers": 2, "block_rows": 100, "most_block_rows": 100, "snapshot_every": 0.005}
    changing = Changing(job) if job.changing else None
    runtime = tw.Local(
        **chosen | job.settings, checkpoint=f"{job.folder}/checkpoint", rerouter=changing
    )
    result = build(job).run(on=runtime, steering=changing.steering if changing else None)
    Path(job.folder, "tables.json").write_text(json.dumps(result.table("chains")))


def wait_for_orphans() -> None:
    """Wait for the processes that attempts have left behind; each must end by itself."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def main() -> None:
    """Make attempts until one comes to its end, and write down how often that took."""
    path = Path(sys.argv[1])
    job = msgspec.json.decode(path.read_bytes(), type=Job)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    rng, kills = random.Random(job.seed), 0
    most = job.rows // (job.kills + 2) if job.kills else 0
    moments = [rng.randint(0, most) for _ in range(job.kills)]
    once, out = partial(attempt, job), path.parent / "out.jsonl"
    while code := forked(once, out, moments.pop(0) if moments else None):
        if code != -signal.SIGKILL:
            sys.exit(code)
        kills += 1
        wait_for_orphans()
    wait_for_orphans()
    (path.parent / "kills").write_text(str(kills))


if __name__ == "__main__":
    main()
