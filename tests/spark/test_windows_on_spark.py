"""Windows over many batches: told before the end, late tuples left out, and across a restart."""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import thalweg as tw
from sparksession import spark_session
from thalweg.components import Spout
from thalweg.contexts import TaskContext
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests

ROWS = 10
FIELDS = {"at": int, "user": str}
CLICKS = [(second, f"u{second % 3}") for second in range(0, 200, 2)]


def at(seconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)


def on_spark(**settings: Any) -> tw.Spark:
    pump = PumpSettings(rows=ROWS, block_rows=ROWS)
    return tw.Spark(spark_session(), places=2, pump=pump, **settings)


def flow(clicks: list[tuple[int, str]], see: Any, window: Any = None) -> tw.Flow:
    made = tw.Flow("windows")
    stream = made.source("clicks", tw.items(clicks), fields=FIELDS, time="at")
    counts = (
        stream.key_by("user").window(window or tw.tumbling(20)).aggregate("n", n=tw.agg.count())
    )
    counts.sink("out", tw.call(see))
    return made


def test_windows_are_told_before_the_end_and_late_tuples_are_left_out() -> None:
    seen: list[Any] = []
    told_at: list[int] = []
    progress: list[int] = []

    def see(t: Any) -> None:
        seen.append((t.user, t.start, t.n))
        told_at.append(progress[-1] if progress else 0)

    def listen(event: Any) -> None:
        if hasattr(event, "snapshot"):
            progress.append(event.snapshot.batches)

    late = [*CLICKS[:60], (1, "u0"), *CLICKS[60:]]
    metrics = flow(late, see).run(on=on_spark(), listen=listen).metrics
    assert metrics.late == 1
    # All that came was committed, and no component is behind it.
    marks = {each.component: (each.watermark, each.behind) for each in metrics.components}
    assert marks == {"clicks": (198.0, 0.0), "n": (198.0, 0.0), "out": (None, None)}
    assert metrics.recent is not None
    assert (metrics.recent.over, metrics.latency.over) == (60.0, None)
    expected = Counter((user, at(second // 20 * 20)) for second, user in CLICKS)
    assert {(u, s): n for u, s, n in seen} == expected
    assert len(seen) == len(expected)  # each once: nobody was told of the late one
    assert told_at[0] < max(progress) - 3


def test_a_session_goes_on_after_a_restart(tmp_path: Path) -> None:
    stop = threading.Event()
    clicks = [(s, f"u{s % 2}") for s in range(100)] + [(s, "u0") for s in range(150, 200)]
    seen: list[Any] = []

    def listen(event: Any) -> None:
        if hasattr(event, "snapshot") and event.snapshot.batches >= 4:
            stop.set()

    def see(t: Any) -> None:
        seen.append((t.user, t.start, t.end, t.n))

    first = flow(clicks, see, tw.session(20)).run(
        on=on_spark(state=str(tmp_path)), stop=stop, listen=listen
    )
    assert first.stopped
    assert not seen
    newest = Manifests(Location(str(tmp_path))).latest()
    assert newest is not None
    assert 0 < newest.newest["clicks/0"] < 100_000_000
    flow(clicks, see, tw.session(20)).run(on=on_spark(state=str(tmp_path)))
    assert sorted(seen) == [
        ("u0", at(0), at(118), 50),
        ("u0", at(150), at(219), 50),
        ("u1", at(1), at(119), 50),
    ]


class Apart(Spout):
    """Two tasks, of which the first is far ahead; each in order."""

    outputs = FIELDS

    def prepare(self, context: TaskContext) -> None:
        first = 100 if context.task == 0 else 0
        self.rows = [(first + second, "u") for second in range(20)]

    def next_tuple(self) -> None:
        if self.rows:
            self.emit(*self.rows.pop(0))
        else:
            self.finish()


def test_time_is_that_of_the_slowest_task_of_a_source() -> None:
    seen: list[Any] = []
    made = tw.Flow("apart")
    stream = made.source("clicks", Apart(), fields=FIELDS, time="at", degree=2)
    counts = stream.key_by("user").window(tw.tumbling(10)).aggregate("n", n=tw.agg.count())
    counts.sink("out", tw.call(lambda t: seen.append((t.start, t.n))))
    made.run(on=on_spark())
    assert sorted(seen) == [(at(0), 10), (at(10), 10), (at(100), 10), (at(110), 10)]


def test_a_source_that_has_ended_keeps_nobody_waiting(tmp_path: Path) -> None:
    seen: list[Any] = []
    progress: list[int] = []
    made = tw.Flow("ended")
    short = made.source("short", tw.items([(1, "u"), (2, "u")]), fields=FIELDS, time="at")
    long = made.source("long", tw.items([(s, "u") for s in range(100)]), fields=FIELDS, time="at")
    counts = short.merge(long).window(tw.tumbling(10)).aggregate("n", n=tw.agg.count())
    counts.sink("out", tw.call(lambda t: seen.append((t.start, t.n, len(progress)))))
    listen = lambda event: progress.append(1) if hasattr(event, "snapshot") else None  # noqa: E731
    made.run(on=on_spark(state=str(tmp_path)), listen=listen)
    assert [(start, n) for start, n, _ in seen] == [
        (at(10 * ten), 10 if ten else 12) for ten in range(10)
    ]
    assert seen[0][2] < len(progress) - 3
    last = Manifests(Location(str(tmp_path))).latest()
    assert last is not None
    assert last.ended == ["long/0", "short/0"]
