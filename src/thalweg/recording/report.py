"""A recording as one page that needs nothing else: figures, lines over time, what was decided."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from thalweg.drawing.charts import line_chart, steps
from thalweg.recording import series
from thalweg.recording.markup import cell, facts, number, page, table
from thalweg.recording.reading import Recording, Summary
from thalweg.recording.records import Record

#: Rows of a table that are shown, and of what was carried out; the rest is counted.
MOST_ROWS, MOST_DONE = 200, 2000
#: Looks at metrics and keys that are read, however many there are: they are large.
MOST_LOOKS = 4 * series.MOST_POINTS
#: A share that may be further off than this says little.
_FAR = 0.2
_ERRORS = ("tuple_refused", "record_refused", "run_failed")


def report_page(recording: Recording) -> str:
    """Write the page of a recording."""
    return page(f"{recording.topology()['name']}: report", report_parts(recording))


def report_parts(recording: Recording) -> list[str]:
    """Write what is on the page of a recording, its heading first."""
    looks = list(recording.snapshots(MOST_LOOKS))
    last = looks[-1]["snapshot"] if looks else None
    summary = replace(recording.summary(), snapshot=last)
    return [
        *_head(summary),
        *_charts(recording, looks, summary),
        *_components(summary.snapshot),
        *_streams(recording.topology()),
        *_keys(recording),
        *_reconfigurations(recording.records(kinds=["reconfigured"])),
        *_decisions(recording.records(kinds=["decided"])),
        *_errors(recording.records(kinds=_ERRORS)),
        *_notices(recording.records(kinds=["noticed", "activated", "child_said"])),
    ]


def _head(summary: Summary) -> Iterator[str]:
    began = dt.datetime.fromtimestamp(summary.began, dt.UTC)
    policy = f", scaling policy {summary.policy}" if summary.policy else ""
    yield f"<h1>{cell(summary.topology)}</h1>"
    about = f"on {summary.runtime}{policy}, begun {began:%Y-%m-%d %H:%M:%S} UTC"
    yield f'<p class="note">{cell(about)}</p>'
    if summary.end == "failed":
        yield f'<p class="failed">The run failed: {cell(summary.error)}</p>'
    elif summary.end == "open":
        yield '<p class="failed">The recording ends before the run did.</p>'
    yield facts(_figures(summary))
    if summary.lost:
        yield f'<p class="note">{summary.lost:,} looks at the metrics were not kept.</p>'
    if summary.more:
        what = f"{summary.more:,} more refusals and words of children were not kept"
        yield f'<p class="note">{what}.</p>'


def _figures(summary: Summary) -> Iterator[tuple[str, str]]:
    yield "took", f"{summary.seconds:,.1f} s"
    snapshot = summary.snapshot
    if snapshot is None:
        return
    yield "tuples in", f"{snapshot['tuples_in']:,}"
    yield "tuples out", f"{snapshot['tuples_out']:,}"
    yield "tuples in per second", number(summary.rate)
    if latency := snapshot["latency"]:
        what = "batch" if snapshot["batches"] else "latency"
        for name in ("p50", "p95", "p99"):
            yield f"{what} {name}", f"{number(1000 * latency[name])} ms"
    local, shuffled = (sum(c[name] or 0 for c in snapshot["components"]) for name in _TRAVEL)
    if local + shuffled:
        yield "stayed at their place", f"{local / (local + shuffled):.1%}".replace("%", " %")
    yield "errors", f"{snapshot['errors']:,}"
    if snapshot["acked"] or snapshot["failed"]:
        yield "acked / failed", f"{snapshot['acked']:,} / {snapshot['failed']:,}"


_TRAVEL = ("local", "shuffled")
_TOO_SHORT = "<p>The run was too short to draw.</p>"
#: The axis of what holds until it is changed.
_TASKS = "tasks"


def _charts(recording: Recording, looks: Sequence[Record], summary: Summary) -> Iterator[str]:
    batches = bool(summary.snapshot and summary.snapshot["batches"])
    took = "batch time" if batches else "latency"
    yield "<h2>Over time</h2>"
    stayed = series.locality(looks, recording.spread(["keys"], MOST_LOOKS))
    end = summary.seconds
    batch_times = series.phases(recording.records(kinds=["batch_done"]))
    drawn = [
        _chart("tuples per second", series.rates(looks), "tuples/s", end, fmean),
        _chart(f"{took}{_span(looks)}", series.latencies(looks), "ms", end),
        _chart("tuples that wait", series.waiting(looks), "tuples", end),
        _chart("degree", series.degrees(looks), _TASKS, end),
        _chart("busy share of tasks", series.busy(looks), "share", end, fmean),
        _chart("back-pressured share of tasks", series.pressed(looks), "share", end, fmean),
        _chart("tuples that stay at their place", stayed, "share", end, fmean),
        _chart("blocks that wait for earlier ones", series.buffers(looks), "blocks", end),
        _chart("batches", batch_times, "seconds", end),
    ]
    shown = [chart for chart in drawn if chart]
    yield f'<div class="charts">{"".join(shown)}</div>' if shown else _TOO_SHORT


def _span(looks: Sequence[Record]) -> str:
    """Say what the latencies of looks are of."""
    found = (look["snapshot"].get("recent", {"over": None}) for look in reversed(looks))
    over = next((recent["over"] for recent in found if recent), None)
    return f" of the last {over:.0f} s" if over else " since the start"


def _chart(
    title: str,
    lines: Mapping[str, Sequence[tuple[float, float]]],
    up: str,
    end: float,
    of: Callable[[list[float]], float] = max,
) -> str:
    """Draw lines over the whole run; nothing where no line has two points, or all is zero."""
    drawn = series.drawable(lines, of)
    values = [value for points in drawn.values() for _, value in points]
    if max(map(len, drawn.values()), default=0) < 2 or not any(v > 0 for v in values):
        return ""
    hold = steps if up == _TASKS else list
    named = {_short(name): hold(points) for name, points in drawn.items()}
    chart = line_chart(title, named, "seconds since the start", up, span=(0.0, end))
    return f"<figure>{chart}</figure>"


def _short(name: str, most: int = 22) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


#: Figures that not every run has.
_SOMETIMES = ("dropped", "late", "shuffled", "shuffled_bytes", "local", "state_keys", "state_bytes")


def _components(snapshot: Mapping[str, Any] | None) -> Iterator[str]:
    if snapshot is None:
        return
    yield "<h2>Components</h2>"
    names = ("component", "degree", "received", "emitted", "errors", "busy")
    more = [name for name in _SOMETIMES if any(c.get(name) for c in snapshot["components"])]
    heads = [*names, *(name.replace("_", " ") for name in more)]
    rows = ([c[name] or 0 for name in (*names, *more)] for c in snapshot["components"])
    yield table(["busy s" if head == "busy" else head for head in heads], rows)


def _streams(topology: Record) -> Iterator[str]:
    yield "<h2>Streams</h2>"
    names = ("from", "to", "stream", "grouping", "order")
    yield table(names, ([stream[name] for name in names] for stream in topology["streams"]))


def _keys(recording: Recording) -> Iterator[str]:
    """Show which keys were frequent when somebody looked last, and where they were."""
    looks = list(recording.spread(["keys"], 1))
    for link in looks[-1]["links"] if looks else ():
        yield f"<h2>Keys from {cell(link['sender'])} to {cell(link['reader'])}</h2>"
        yield f'<p class="note">{"; ".join(_counted(link))}.</p>'
        pairs = [[p["left"], p["right"], p["count"], _yes(p["local"])] for p in link["pairs"]]
        yield table([link["sender"], link["reader"], "tuples", "at one place"], pairs)


def _counted(link: Mapping[str, Any]) -> Iterator[str]:
    """Say how far what was counted can be relied on; older recordings do not have all of it."""
    yield f"{link['total']:,.0f} tuples counted"
    error = link.get("share_error") or 0.0
    if error > _FAR:
        yield "these are too few to say how frequent keys are among all tuples"
    elif error:
        points = math.ceil(100 * error)
        yield f"among all tuples a share may be up to {points} points higher or lower"
    yield f"of the tuples counted, a count may be too low by {link['lost']:,.0f}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _reconfigurations(records: Iterable[Record]) -> Iterator[str]:
    heads = ["at s", "epoch", "reason", "keys", "bytes", "steps", "pause s"]
    scores = ("before", "predicted", "after")
    rows = []
    for record in records:
        report = record["report"]
        # What came of it may have been waited for; older recordings do not say how long.
        over = record["at"] - report.get("ago", 0.0)
        row = [round(over, 1), *(report.get(name) for name in _REPORT)]
        rows.append([*row, *(_locality(report.get(name)) for name in scores)])
    yield from _section(
        "Reconfigurations", [*heads, *(f"locality {name}" for name in scores)], rows
    )


_REPORT = ("epoch", "reason", "keys", "bytes", "steps", "pause")


def _locality(score: Mapping[str, Any] | None) -> float | None:
    return None if score is None or score["locality"] is None else round(score["locality"], 3)


def _decisions(records: Iterable[Record]) -> Iterator[str]:
    done: list[list[Any]] = []
    wishes = _Wishes()
    for record in records:
        if not record["carried_out"] and record.get("replaces") is None:
            wishes.add(record)
        elif record["text"]:
            done.append([round(record["at"], 1), record["policy"], record["text"]])
    yield from _section("Decisions", ["at s", "policy", "what and why"], done, MOST_DONE)
    heads = ["at s", "until s", "policy", "looks", "what and why"]
    yield from _section("What policies would have done", heads, wishes.rows)


class _Wishes:
    """What policies only wished; what one wishes look after look is one row, with how often."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        #: By policy, what it wished at its last look, and the row of that.
        self._last: dict[str, tuple[Any, list[Any]]] = {}

    def add(self, record: Record) -> None:
        at, policy, text = round(record["at"], 1), record["policy"], record["text"]
        # Reasons have figures, which are others each time.
        changes = [each for each in record["degrees"].items() if each[1][0] != each[1][1]]
        wanted, (before, row) = changes or text, self._last.get(policy, (None, []))
        if not text:
            self._last.pop(policy, None)
        elif before == wanted:
            row[1:] = [at, policy, row[3] + 1, text]
        else:
            self.rows.append([at, at, policy, 1, text])
            self._last[policy] = wanted, self.rows[-1]


def _errors(records: Iterable[Record]) -> Iterator[str]:
    """Show what was refused, and the end; for one component and reason that is one row."""
    heads = ["at s", "component", "task", "times kept", "reason", "last kept"]
    rows: dict[tuple[str, str | None, str], list[Any]] = {}
    for record in records:
        reason = record.get("reason") or record.get("text", "")
        like = record["kind"], record["component"], reason
        times = rows.pop(like, [0] * len(heads))[3] + 1
        what = record.get("tuple_text") or record.get("raw", "")
        about = [round(record["at"], 1), record["component"], record.get("task")]
        rows[like] = [*about, times, reason, what]
    yield from _section("Errors", heads, list(rows.values()))


def _notices(records: Iterable[Record]) -> Iterator[str]:
    rows = [[round(record["at"], 1), _said(record)] for record in records]
    yield from _section("Log", ["at s", "what"], rows)


def _said(record: Record) -> str:
    if record["kind"] == "activated":
        return f"sources are {'asked again' if record['active'] else 'not asked for now'}"
    if record["kind"] == "child_said":
        return f"{record['component']}, task {record['task']}: {record['text']}"
    return str(record["text"])


def _section(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], most: int = MOST_ROWS
) -> Iterator[str]:
    """Write a table under a heading; the last rows of one that is long."""
    if not rows:
        return
    yield f"<h2>{title}</h2>"
    if len(rows) > most:
        yield f'<p class="note">The last {most:,} of {len(rows):,}.</p>'
    yield table(heads, rows[-most:])
