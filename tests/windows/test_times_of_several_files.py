"""Files that one task reads one after the other: time waits for those that are still to be read."""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.runtimes.spark.pump import PumpSettings

FIELDS = {"at": int, "of": str}
RUNTIMES = {
    "inline": lambda: tw.Inline(block_rows=50),
    "local": lambda: tw.Local(workers=2, block_rows=50),
    "spark": lambda: tw.Spark(spark_session(), places=2, pump=PumpSettings(60, 20)),
}
on_every_runtime = pytest.mark.parametrize(
    "on", ["inline", "local", pytest.param("spark", marks=pytest.mark.spark)]
)


def lines(of: str, times: Iterable[int]) -> str:
    return "".join(json.dumps({"at": at, "of": of}) + "\n" for at in times)


def source(flow: tw.Flow, pattern: Any, **options: Any) -> Any:
    time = tw.event_time("at", delay=options.pop("delay", 0))
    return flow.source("s", tw.files(pattern), fields=FIELDS, time=time, **options)


def counted(on: Any, pattern: Any, **options: Any) -> tuple[dict[int, int], int]:
    """Count by tens of seconds; also how many were late."""
    flow, found = tw.Flow("files"), []
    windows = source(flow, pattern, **options).window(tw.tumbling(10))
    windows.aggregate("w", n=tw.agg.count()).sink("out", tw.collect(found))
    result = flow.run(on=on)
    return {t.start.second + 60 * t.start.minute: t.n for t in found}, result.metrics.late


@on_every_runtime
@pytest.mark.parametrize("degree", [1, 2])
def test_files_of_the_same_hours_lose_nothing(on: str, degree: int, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.jsonl").write_text(lines(name, range(100)))
    found = counted(RUNTIMES[on](), str(tmp_path), degree=degree)
    assert found == (dict.fromkeys(range(0, 100, 10), 30), 0)


@on_every_runtime
def test_it_is_said_how_far_the_newest_tuple_is_ahead_of_time_that_waits(
    on: str, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text(lines("a", range(500)))
    (tmp_path / "b.jsonl").write_text(lines("b", [5, 6]))
    flow, stop, behind = tw.Flow("files"), threading.Event(), list[float]()

    def listen(event: Any) -> None:
        if hasattr(event, "snapshot"):
            told = [each.behind for each in event.snapshot.components]
            behind.extend(each for each in told if each is not None)

    posts = source(flow, str(tmp_path))
    posts.sink("rows", tw.call(lambda t: stop.set() if t.at > 100 else None))
    posts.window(tw.tumbling(10)).aggregate("w", n=tw.agg.count())
    flow.run(on=RUNTIMES[on](), listen=listen, stop=stop)
    assert max(behind) > 90


def test_whatever_their_formats_are(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines("a", range(50)))
    (tmp_path / "b.csv").write_text("of,at\n" + "".join(f"b,{at}\n" for at in range(50)))
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(lines("c", range(50)).encode()))
    pq.write_table(pa.table({"at": range(50), "of": ["d"] * 50}), tmp_path / "d.parquet")
    found = counted(tw.Inline(block_rows=10), str(tmp_path))
    assert found == (dict.fromkeys(range(0, 50, 10), 40), 0)


def told(tmp_path: Path, **files: str) -> list[str]:
    """Give what happens, in its order: the files whose rows come, and windows that are told."""
    for name, text in files.items():
        (tmp_path / f"{name}.jsonl").write_text(text)
    flow, seen = tw.Flow("told"), list[str]()
    rows = source(flow, str(tmp_path), on_error="skip")
    rows.sink("rows", tw.call(lambda t: seen.append(t.of)))
    windows = rows.window(tw.tumbling(10)).aggregate("w", n=tw.agg.count())
    windows.sink("out", tw.call(lambda t: seen.append(f"{t.start.second} {t.n}")))
    flow.run(on=tw.Inline(block_rows=5))
    return [each for at, each in enumerate(seen) if not at or seen[at - 1] != each]


def test_windows_of_files_that_follow_each_other_are_told_as_they_are_read(tmp_path: Path) -> None:
    found = told(
        tmp_path, a=lines("a", range(10)), b=lines("b", range(10, 20)), c=lines("c", range(20, 25))
    )
    assert found == ["a", "0 10", "b", "10 10", "c", "20 5"]


def test_files_without_rows_or_with_lines_that_cannot_be_read_hold_nothing(tmp_path: Path) -> None:
    found = told(
        tmp_path, a=lines("a", range(15)), b="", c="{no json\n", d="[]\n" + lines("d", [15])
    )
    assert found == ["a", "0 10", "d", "10 6"]


def test_a_line_that_cannot_be_read_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines("a", [1]))
    (tmp_path / "b.jsonl").write_text("{no json\n" + lines("b", [2]))
    flow = tw.Flow("bad")
    source(flow, str(tmp_path), on_error="skip").sink("out", tw.collect([]))
    assert flow.run(on="inline").metrics.errors == 1


@on_every_runtime
def test_files_that_are_watched_wait_for_each_other(on: str, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(lines(name, range(100)))
    flow, found, stop = tw.Flow("watched"), Counter[int](), threading.Event()

    def see(t: Any) -> None:
        found[t.start.second + 60 * t.start.minute] += t.n
        if len(found) == 9:  # the last window waits for more
            stop.set()

    watched = tw.files(str(tmp_path), tail="100 ms")
    rows = flow.source("s", watched, fields=FIELDS, time="at")
    rows.window(tw.tumbling(10)).aggregate("w", n=tw.agg.count()).sink("out", tw.call(see))
    late = flow.run(on=RUNTIMES[on](), stop=stop).metrics.late
    assert [found[start] for start in range(0, 90, 10)] == [20] * 9
    assert late == 0


def test_a_run_that_goes_on_knows_the_files_that_are_left(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / f"{name}.jsonl").write_text(lines(name, range(300)))
    found = Counter[float]()

    def run(enough: int) -> tw.Result:
        stop, flow, rows = threading.Event(), tw.Flow("goes-on"), Counter[str]()

        def pass_on(at: int, of: str) -> tuple[int, str]:
            rows["all"] += 1
            if rows["all"] == enough:
                stop.set()
            return at, of

        windows = source(flow, str(tmp_path / "in")).map(pass_on).window(tw.tumbling(10))
        counts = windows.aggregate("w", n=tw.agg.count())
        counts.sink("out", tw.call(lambda t: found.update({t.start.timestamp(): t.n})))
        on = tw.Local(workers=1, block_rows=20, most_block_rows=20, checkpoint=tmp_path / "kept")
        return flow.run(on=on, stop=stop)

    late = run(350).metrics.late + run(10_000).metrics.late
    assert late == 0
    assert sorted(found.values()) == [20] * 30
