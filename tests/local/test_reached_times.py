"""Sources that know how far event time has come: none of their tuples is late, whatever waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.components import BlockSpout, Shared
from thalweg.eventtime import SECOND
from thalweg.runtimes.local.runtime import Local

ROWS = 600


class Pushed(Shared, BlockSpout):
    """Gives rows faster than they are taken, and says that it has come as far as they have."""

    slowable = False
    outputs = {"at": int}

    def prepare(self, context: Any) -> None:
        self.next = 0

    def next_block(self, limit: int) -> pa.RecordBatch:
        numbers = list(range(self.next, min(ROWS, self.next + 100)))
        self.next += len(numbers)
        self.reached = (self.next - 1) * SECOND
        if self.next == ROWS:
            self.finish()
        return self.make_batch([numbers])


@pytest.mark.parametrize("room", [10 * ROWS, ROWS // 3])
def test_time_does_not_overtake_what_waits_of_a_source_that_cannot_be_slowed(room: int) -> None:
    flow = tw.Flow("pushed")
    posts = flow.source("posts", Pushed(), time="at", overflow="drop_oldest")
    posts.window(tw.tumbling("10 s")).aggregate("windows", n=tw.agg.count())
    runtime = Local(workers=1, block_rows=10, most_block_rows=10, queue_rows=room)
    metrics = flow.run(on=runtime).metrics
    assert metrics.component("windows").received == ROWS - metrics.component("posts").dropped
    assert metrics.component("windows").late == 0


class Strands(Shared, BlockSpout):
    """Gives the hours of one strand, then those of the other, each once: both wait for the last."""

    replays = False
    outputs = {"at": int}

    def __init__(self) -> None:
        self.left = ["a", "b"]

    def next_block(self, limit: int) -> pa.RecordBatch:
        if len(self.left) == 1:
            self.left.append("again")
            raise ConnectionError("gone")
        self.left.pop(0)
        self.reached = 0 if self.left else 9 * 3600 * SECOND
        if not self.left or self.left == ["again"]:
            self.finish()
        return self.make_batch([[3600 * hour for hour in range(10)]])


def test_what_was_logged_moves_time_no_further_than_its_source_had_said(tmp_path: Path) -> None:
    def run(source: Strands) -> Any:
        flow = tw.Flow("stranded")
        posts = flow.source("posts", source, time="at")
        posts.window(tw.tumbling("1 hour")).aggregate("windows", n=tw.agg.count())
        return flow.run(on=Local(checkpoint=tmp_path / "checkpoint", snapshot_every=3600))

    source = Strands()
    with pytest.raises(tw.ComponentError, match="gone"):
        run(source)
    metrics = run(source).metrics
    assert metrics.component("windows").received == 20
    assert metrics.component("windows").late == 0
