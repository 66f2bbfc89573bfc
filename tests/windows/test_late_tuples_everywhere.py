"""Late tuples: counted where people look, sent aside, told again, on every runtime."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import thalweg as tw
from thalweg.cli.app import app
from thalweg.cli.showing import summary_table, totals_text
from thalweg.events import Noticed
from thalweg.exporting.prometheus import prometheus_text
from thalweg.runtimes.spark.pump import PumpSettings

FIELDS = {"at": int, "user": str}
#: Tuples that bring time forward; where it goes on beside the stream, so many that it has.
MORE = {"inline": 1, "local": 200, "spark": 4}


def at(seconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)


def runtime(name: str) -> Any:
    if name == "inline":
        return tw.Inline(block_rows=1)
    if name == "spark":
        from sparksession import spark_session  # noqa: PLC0415 (dear)

        return tw.Spark(spark_session(), places=2, pump=PumpSettings(rows=1, block_rows=1))
    return tw.Local(block_rows=1, most_block_rows=1, window=2, workers=1)


on_every_runtime = pytest.mark.parametrize(
    "on", ["inline", "local", pytest.param("spark", marks=pytest.mark.spark)]
)


def rows(on: str) -> list[Any]:
    """Give tuples of which the last but one comes when its window has been told."""
    return [(time, "u") for time in (5, *([25] * MORE[on]), 3, 26)]


def clicks(on: str) -> Any:
    return tw.Flow("late").source("clicks", tw.items(rows(on)), fields=FIELDS, time="at")


def counts(stream: Any, window: Any = None, **how: Any) -> Any:
    made = stream.key_by("user").window(window or tw.tumbling(10), **how)
    return made.aggregate("count", n=tw.agg.count())


def run(stream: Any, on: str) -> tuple[list[Any], Any]:
    found: list[Any] = []
    stream.sink("out", tw.call(lambda t: found.append((t.start, t.n))))
    return found, stream.flow.run(on=runtime(on))


@on_every_runtime
def test_they_are_counted_where_people_look(on: str) -> None:
    found, result = run(counts(clicks(on)), on)
    assert found == [(at(0), 1), (at(20), MORE[on] + 1)]
    assert result.metrics.component("count").late == 1
    assert result.metrics.late == 1
    assert "1 late" in totals_text(result.metrics)
    assert "late" in [column.header for column in summary_table(result.metrics).columns]
    assert 'thalweg_component_late_total{component="count"' in prometheus_text(
        result.metrics, "late"
    )


@on_every_runtime
def test_a_time_that_says_never_makes_none_late(on: str) -> None:
    never = 253_402_300_799
    given = [(5, "u"), (never, "u"), *([(6, "u")] * MORE[on]), (7, "u"), (12, "u")]
    source = tw.Flow("never").source("clicks", tw.items(given), fields=FIELDS, time="at")
    made = source.key_by("user").window(tw.tumbling(10))
    found, result = run(made.aggregate("count", n=tw.agg.count(), on_error="skip"), on)
    assert found == [(at(0), MORE[on] + 2), (at(10), 1)]
    assert (result.metrics.late, result.metrics.errors) == (0, 1)


def test_a_process_of_its_own_counts_them_too() -> None:
    stream = clicks("local").key_by("user").window(tw.tumbling(10))
    made = stream.aggregate("count", n=tw.agg.count(), isolation="process")
    found, result = run(made, "local")
    assert found == [(at(0), 1), (at(20), MORE["local"] + 1)]
    assert result.metrics.component("count").late == 1


@on_every_runtime
def test_those_of_joins_are_counted_too(on: str) -> None:
    flow = tw.Flow("joined")
    left = flow.source("left", tw.items(rows(on)), fields=FIELDS, time="at")
    right = flow.source("right", tw.items([(4, "u")]), fields=FIELDS, time="at")
    joined = left.join_within(right, "user", within=8, prefix="r_", name="join")
    found: list[Any] = []
    joined.sink("out", tw.call(lambda t: found.append(t.at)))
    result = flow.run(on=runtime(on))
    assert found == [5]
    assert result.metrics.component("join").late == 1


@on_every_runtime
def test_they_can_be_a_stream_of_their_own(on: str) -> None:
    stream, late = counts(clicks(on), late="side"), []
    stream.output("late").sink("late", tw.call(lambda t: late.append(t.at)))
    found, _ = run(stream, on)
    assert found == [(at(0), 1), (at(20), MORE[on] + 1)]
    assert late == [3]


#: Starts and numbers of what is told of a window; in those from 10 on are all that bring time on.
KINDS: dict[str, tuple[Any, Any]] = {
    "tumbling": (tw.tumbling(10), [(0, 1), (0, 2), (20, 1)]),
    "sliding": (
        tw.sliding(20, every=10),
        [(-10, 1), (0, 1), (-10, 2), (0, 2), (10, 1), (20, 1)],
    ),
    "session": (tw.session(5), [(5, 1), (3, 2), (25, 1)]),
    "landmark": (tw.landmark(10), [(0, 1), (0, 2), (0, 3)]),
}


@pytest.mark.parametrize(
    ("on", "kind"),
    [
        *((on, kind) for on in ("inline", "local") for kind in KINDS),
        pytest.param("spark", "landmark", marks=pytest.mark.spark),
    ],
)
def test_windows_of_every_kind_are_told_again(on: str, kind: str) -> None:
    window, expected = KINDS[kind]
    found, result = run(counts(clicks(on), window, allowed=100), on)
    assert found == [
        (at(start), n + MORE[on] if start >= 10 or n == 3 else n) for start, n in expected
    ]
    assert result.metrics.late == 0


# --- what is told of them --------------------------------------------------------------------


def notices(stream: Any, on: str) -> list[str]:
    heard: list[str] = []
    stream.sink("out", tw.collect([]))

    def listen(event: Any) -> None:
        if isinstance(event, Noticed) and "too late" in event.text:
            heard.append(event.text)

    stream.flow.run(on=runtime(on), listen=listen)
    return heard


@on_every_runtime
def test_that_they_are_left_out_is_told_once(on: str) -> None:
    (text,) = notices(counts(clicks(on)), on)
    assert text.startswith("1 tuple came too late at 'count'; see delay= of event_time")


@on_every_runtime
def test_nothing_is_told_where_somebody_reads_them_or_there_are_none(on: str) -> None:
    counted = counts(clicks(on), late="side")
    counted.output("late").sink("late", tw.collect([]))
    assert notices(counted, on) == []
    punctual = tw.Flow("all").source("clicks", tw.items([(1, "u")]), fields=FIELDS, time="at")
    assert notices(counts(punctual), on) == []


def test_a_quiet_query_tells_it_beside_its_results(tmp_path: Path) -> None:
    file = tmp_path / "clicks.jsonl"
    times = [5, *([25] * 5000), 3]
    file.write_text("".join(f'{{"at": {time}, "user": "u"}}\n' for time in times))
    query = "SELECT user, COUNT(*) AS n FROM c WINDOW TUMBLING 10 SECONDS GROUP BY user"
    arguments = ["sql", query, "--source", f"c={file}", "--time", "at", "--on", "inline", "-q"]
    shown = CliRunner().invoke(app, arguments)
    assert "1 tuple came too late" in shown.stderr
    assert "too late" not in shown.stdout
