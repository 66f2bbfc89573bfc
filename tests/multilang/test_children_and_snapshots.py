"""What a child is at, or holds, is in no snapshot: neither a stop nor a kill loses it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from children import Seen, collecting, python

import thalweg as tw
from thalweg.errors import ThalwegError
from thalweg.multilang import ShellBolt
from thalweg.storm import BatchingBolt
from thalweg.storm.hosted_bolts import HostedBolt

VALUES = range(12)

#: A run with a checkpoint that is killed while its child is long at a tuple, if that goes on.
KILLED = """
import os, signal, sys, time
from pathlib import Path
import thalweg as tw

out, folder, *command = sys.argv[1:]
begun = []

def take(t):
    with open(out, "a") as file:
        file.write(f"{t.value}\\n")
    begun.append(time.monotonic())
    if begun[-1] > begun[0] + 0.8:  # a third part, behind a snapshot of earlier ones
        os.kill(os.getpid(), signal.SIGKILL)

builder = tw.TopologyBuilder("long")
builder.add_spout("values", tw.items(range(12)), fields={"value": int})
bolt = tw.ShellBolt(command, ["value", "n"], max_pending=4)
builder.add_bolt("it", bolt).shuffle("values")
builder.add_bolt("out", tw.call(take)).shuffle("it")
builder.build().run(on=tw.Local(checkpoint=folder, snapshot_every=0))
"""


def build(source: Any, bolt: Any, sink: Any, **options: Any) -> tw.Topology:
    builder = tw.TopologyBuilder("kept")
    builder.add_spout("values", source, fields={"value": int})
    builder.add_bolt("it", bolt, **options).shuffle("values")
    builder.add_bolt("out", sink).shuffle("it")
    return builder.build()


def stopping(stop: threading.Event) -> Callable[[], Iterable[int]]:
    """Give the values, and stop the run that asks for more."""

    def give() -> Iterable[int]:
        yield from VALUES
        stop.set()

    return give


class Waiting(tw.Spout):
    """Gives values with ids and stops the run; notes how they end."""

    outputs = {"value": int}

    def __init__(self, stop: Callable[[], None], ended: list[tuple[int, str]]) -> None:
        self.stop, self.ended, self.left = stop, ended, list(VALUES)

    def __deepcopy__(self, memo: dict[int, Any]) -> Waiting:
        return Waiting(self.stop, self.ended)

    def next_tuple(self) -> None:
        if self.left:
            value = self.left.pop(0)
            self.emit(value, id=value)
        else:
            self.stop()

    def fail(self, id: int) -> None:
        self.ended.append((id, "fail"))


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_stopped_run_hears_a_child_out_and_the_next_goes_on_behind_it(
    isolation: str, tmp_path: Path
) -> None:
    enough, rows = tmp_path / "enough", list[tuple[int, int]]()
    stop = threading.Event()

    def take(t: Any) -> None:
        rows.append((t.value, t.n))
        stop.set()  # it is in the middle of its first tuple
        enough.touch()

    bolt = ShellBolt(python("long_tuple.py", str(enough)), ["value", "n"], max_pending=4)
    topology = build(tw.items(VALUES), bolt, tw.call(take), isolation=isolation)
    local = tw.Local(checkpoint=tmp_path / "state")
    assert topology.run(on=local, stop=stop).stopped
    assert not topology.run(on=local).stopped
    longest = max(n for _, n in rows)
    assert longest > 0
    assert sorted(rows) == [(0, n) for n in range(longest + 1)] + [(n, 0) for n in VALUES[1:]]


def test_a_snapshot_waits_for_a_child_that_is_long_at_a_tuple(tmp_path: Path) -> None:
    out, enough = tmp_path / "out", tmp_path / "enough"
    child = python("long_tuple.py", str(enough))
    command = [sys.executable, "-c", KILLED, str(out), str(tmp_path / "state"), *child]
    killed = subprocess.run(command, check=False)  # noqa: S603 (this program)
    assert killed.returncode == -signal.SIGKILL
    assert set(out.read_text().split()) == {"0"}
    enough.touch()
    subprocess.run(command, check=True)  # noqa: S603 (this program)
    assert set(out.read_text().split()) == set(map(str, VALUES))


def test_a_child_finishes_what_it_holds_before_a_snapshot(tmp_path: Path) -> None:
    rows, stop = list[int](), threading.Event()
    bolt = ShellBolt(python("holding.py", "99"), ["value"], tick="1 h")  # it gets more if needed
    topology = build(tw.items(stopping(stop)), bolt, collecting(rows))
    local = tw.Local(checkpoint=tmp_path / "state")
    assert topology.run(on=local, stop=stop).stopped
    assert sorted(rows) == list(VALUES)
    topology.run(on=local)
    assert len(rows) == len(VALUES)


class Batches(BatchingBolt):
    """Gathers the values until a tick comes."""

    def process_batch(self, key: Any, tups: Any) -> None:
        self.emit([[tup.values[0] for tup in tups]])


def test_a_batching_bolt_inside_a_run_processes_what_it_has_before_a_snapshot(
    tmp_path: Path,
) -> None:
    batches, stop = list[list[int]](), threading.Event()
    topology = build(tw.items(stopping(stop)), HostedBolt(Batches, ["values"]), collecting(batches))
    local = tw.Local(checkpoint=tmp_path / "state")
    assert topology.run(on=local, stop=stop).stopped
    assert sorted(value for batch in batches for value in batch) == list(VALUES)


def test_a_child_that_does_not_finish_what_it_holds_ends_a_run_with_snapshots(
    tmp_path: Path,
) -> None:
    stop = threading.Event()
    bolt = ShellBolt(python("holding.py", "9999"), ["value"], linger=0.1)
    topology = build(tw.items(stopping(stop)), bolt, collecting([]))
    said = r"'it', before a snapshot: .*all its tuples.*without a checkpoint"
    with pytest.raises(ThalwegError, match=said):
        topology.run(on=tw.Local(checkpoint=tmp_path / "state"), stop=stop)


def test_a_child_may_hold_what_a_spout_waits_for(tmp_path: Path) -> None:
    stop, ended = threading.Event(), list[tuple[int, str]]()
    bolt = ShellBolt(python("holding.py", "9999"), ["value"], linger=60)
    topology = build(Waiting(stop.set, ended), bolt, collecting([]))
    local = tw.Local(checkpoint=tmp_path / "state", snapshot_every=0)
    assert topology.run(on=local, stop=stop).stopped
    assert sorted(ended) == [(value, "fail") for value in VALUES]


def test_what_a_child_is_never_done_with_is_in_no_snapshot(tmp_path: Path) -> None:
    stop, seen = threading.Event(), Seen()
    enough, rows = tmp_path / "enough", list[int]()

    def take(t: Any) -> None:
        rows.append(t.value)
        stop.set()

    bolt = ShellBolt(python("long_tuple.py", str(enough)), ["value", "n"], linger=0.1)
    topology = build(tw.items(VALUES), bolt, tw.call(take))
    local = tw.Local(checkpoint=tmp_path / "state")
    with pytest.raises(ThalwegError, match=r"still sends .* with 12 tuples that it has not finish"):
        topology.run(on=local, stop=stop, listen=seen.events.append)
    assert set(rows) == {0}
    assert not seen.notices
    enough.touch()
    topology.run(on=local)
    assert set(rows) == set(VALUES)
