"""How things look in a terminal: consoles, numbers, tables, the tree in colour."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rich import box
from rich.console import Console, ConsoleDimensions
from rich.highlighter import RegexHighlighter
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from thalweg.cli.output import can_write, writing
from thalweg.drawing.tree import GUIDES, plain
from thalweg.metrics import ComponentMetrics, Latency, Snapshot

_TREE_THEME = Theme(
    {
        "tree.guide": "dim",
        "tree.name": "bold",
        "tree.spout": "blue",
        "tree.keyed": "green",
        "tree.global": "yellow",
        "tree.sink": "magenta",
        "tree.word": "dim",
        "tree.order": "cyan",
        "tree.note": "dim italic",
    }
)


class _TreeHighlighter(RegexHighlighter):
    base_style = "tree."
    highlights: ClassVar[Sequence[str]] = [
        r"^(?P<guide>[│├└─|+ -]+)",
        r"^[│├└─|+ -]*(?P<name>[\w.-]+)(?=   | [·*])",
        r"   (?P<spout>spout), ",
        r"   (?P<keyed>keyed), ",
        r"   (?P<global>global), ",
        r"   (?P<sink>sink), ",
        r"  (?P<word>reads|sends)  ",
        r"(?P<order>order \w+)$",
        r"(?P<note>\((?:nobody reads it|drawn above)\))$",
    ]


#: Columns where there is no terminal: files and pipes need no line breaks.
_FILE_COLUMNS = 200
#: Characters that move a cursor or change colours; what people sent may have them.
_CONTROLS = {n: f"\\x{n:02x}" for n in (*range(32), *range(127, 160)) if chr(n) not in "\n\t"}


def harmless(text: str) -> str:
    r"""Write out what a terminal would obey; lines and tabs stay.

    >>> harmless("\x1b[31mred\x9b\n")
    '\\x1b[31mred\\x9b\n'
    """
    return text.translate(_CONTROLS)


class HarmlessConsole(Console):
    """A console that shows texts, also those in tables, and obeys none of them."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Make of a text what is shown."""
        return super().render_str(harmless(text), **options)


def error_console() -> Console:
    """Make a console on standard error, for everything that is not a result."""
    return _wide_enough(HarmlessConsole(stderr=True, highlight=False))


def result_console() -> Console:
    """Make a console on standard output, for results."""
    return _wide_enough(HarmlessConsole(highlight=False, theme=_TREE_THEME))


def _wide_enough(console: Console) -> Console:
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.size = ConsoleDimensions(_FILE_COLUMNS, console.height)
    return console


def print_tree(picture: str) -> None:
    """Print the tree of a topology, in colour where that is possible."""
    console = result_console()
    highlighter = _TreeHighlighter()
    with writing():
        for line in (picture if can_write(GUIDES) else plain(picture)).splitlines():
            console.print(highlighter(harmless(line)), soft_wrap=True)


def print_table(console: Console, table: Table) -> None:
    """Print a table; without a terminal its lines do not end in blanks."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    text = "\n".join(line.rstrip() for line in captured.get().splitlines())
    console.print(text, markup=False, soft_wrap=True)


def milliseconds(seconds: float) -> str:
    """Write a latency with about two digits.

    >>> milliseconds(0.00042), milliseconds(0.0042), milliseconds(0.42)
    ('0.42 ms', '4.2 ms', '420 ms')
    """
    value = seconds * 1000
    digits = 2 if value < 1 else 1 if value < 10 else 0
    return f"{value:,.{digits}f} ms"


def size_text(count: int) -> str:
    """Write a number of bytes with about three digits.

    >>> size_text(9), size_text(12_345), size_text(4_000_000), size_text(7_890_000_000_000)
    ('9 B', '12.3 kB', '4.0 MB', '7,890.0 GB')
    """
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{count} B" if unit == "B" else f"{value:,.1f} {unit}"


def percentiles(latency: Latency | None) -> str:
    """Write the percentiles of a latency."""
    if latency is None:
        return ""
    pairs = (("p50", latency.p50), ("p95", latency.p95), ("p99", latency.p99))
    return "  ".join(f"{name} {milliseconds(value)}" for name, value in pairs)


def progress_text(snapshot: Snapshot, before: Snapshot | None) -> str:
    """Write the state of a run in one line; the rate is that since the last look."""
    passed = snapshot.elapsed - (before.elapsed if before else 0.0)
    tuples = snapshot.tuples_in - (before.tuples_in if before else 0)
    parts = [
        f"{snapshot.elapsed:6.1f} s",
        f"{snapshot.tuples_in:,} in",
        f"{snapshot.tuples_out:,} out",
        f"{tuples / max(passed, 1e-9):,.0f}/s",
        *_times(snapshot),
        _errors(snapshot.errors),
        f"{snapshot.dropped:,} dropped" if snapshot.dropped else "",
        f"{snapshot.late:,} late" if snapshot.late else "",
    ]
    return "  ".join(part for part in parts if part)


def _times(snapshot: Snapshot) -> list[str]:
    """Write percentiles of now; of batches, which are also counted, the median alone has room."""
    recent = snapshot.recent
    if snapshot.batches:
        return [_batches(snapshot.batches), f"p50 {milliseconds(recent.p50)}" if recent else ""]
    return [percentiles(recent)]


@dataclass
class Peaks:
    """The longest queues that were seen at each component."""

    waiting: dict[str, int] = field(default_factory=dict)
    reordering: dict[str, int] = field(default_factory=dict)

    def look(self, snapshot: Snapshot) -> None:
        """Take in a look at the metrics."""
        for metrics in snapshot.components:
            name, waiting, reordering = metrics.component, metrics.waiting, metrics.reordering
            self.waiting[name] = max(waiting or 0, self.waiting.get(name, 0))
            self.reordering[name] = max(reordering or 0, self.reordering.get(name, 0))


def summary_table(snapshot: Snapshot, peaks: Peaks | None = None) -> Table:
    """Make the table of what each component has done; with peaks, of its queues as well."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("component")
    names = ["tasks", "received", "emitted", "errors", "busy"]
    lost = [name for name in ("dropped", "late") if getattr(snapshot, name)]
    names += lost
    names += ["chosen", "most waiting", "most reordering"] if peaks else []
    for name in names:
        table.add_column(name, justify="right")
    for metrics in snapshot.components:
        errors = Text(f"{metrics.errors:,}", style="red" if metrics.errors else "")
        cells: list[str | Text] = [f"{metrics.received:,}", f"{metrics.emitted:,}", errors]
        cells.append(f"{metrics.busy:.2f} s")
        for count in (getattr(metrics, name) for name in lost):
            cells.append(Text(f"{count:,}", style="red" if count else ""))
        cells += _queue_cells(metrics, peaks) if peaks else []
        table.add_row(metrics.component, str(metrics.degree), *cells)
    return table


def _queue_cells(metrics: ComponentMetrics, peaks: Peaks) -> list[str | Text]:
    if metrics.chosen is None:  # a source, or a runtime without queues
        return [""] * 3
    seen = (
        metrics.chosen,
        *(p.get(metrics.component, 0) for p in (peaks.waiting, peaks.reordering)),
    )
    return [f"{count:,}" for count in seen]


def has_stats(snapshot: Snapshot) -> bool:
    """Say whether there is something to show in :func:`stats_table`."""
    return any(metrics.stats for metrics in snapshot.components)


def stats_table(snapshot: Snapshot) -> Table:
    """Make the table of Storm's metrics: the last ten minutes of each component."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="last 10 min", title_justify="left")
    table.add_column("component")
    names = ["transferred", "acked", "failed", "execute", "process", "complete", "capacity"]
    for name in names:
        table.add_column(name, justify="right")
    for metrics in snapshot.components:
        stats = metrics.stats["10 min"]
        counts = [f"{count:,}" for count in (stats.transferred, stats.acked, stats.failed)]
        latencies = (stats.execute_latency, stats.process_latency, stats.complete_latency)
        shown = ["" if value is None else f"{1000 * value:.3f} ms" for value in latencies]
        share = "" if stats.capacity is None else f"{stats.capacity:.3f}"
        table.add_row(metrics.component, *counts, *shown, share)
    return table


def totals_text(snapshot: Snapshot) -> str:
    """Write the totals of a run in one line, and in another its latency or that of its batches."""
    rate = snapshot.tuples_in / max(snapshot.elapsed, 1e-9)
    parts = [
        f"{snapshot.tuples_in:,} tuples in",
        f"{snapshot.tuples_out:,} out",
        f"{snapshot.elapsed:.2f} s",
        f"{rate:,.0f} tuples/s",
        _errors(snapshot.errors),
        f"{snapshot.dropped:,} dropped" if snapshot.dropped else "",
        f"{snapshot.late:,} late" if snapshot.late else "",
    ]
    counts = ", ".join(part for part in parts if part)
    took = f"{_batches(snapshot.batches)}, batch time" if snapshot.batches else "latency"
    return f"{counts}\n{took} {percentiles(snapshot.latency)}" if snapshot.latency else counts


def _batches(count: int) -> str:
    return f"{count:,} batch{'' if count == 1 else 'es'}" if count else ""


def _errors(count: int) -> str:
    return f"{count:,} error{'' if count == 1 else 's'}" if count else ""


def rows_table(rows: Iterable[Mapping[str, Any]], right: Collection[str] = ()) -> Table:
    """Make a table of records; a column for each name that any of them has.

    Numbers stand at the right, and so do the columns ``right``.
    """
    listed = list(rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    names = list(dict.fromkeys(name for row in listed for name in row))
    for name in names:
        numeric = all(isinstance(row.get(name, 0), int | float) for row in listed)
        table.add_column(name, justify="right" if numeric or name in right else "left")
    for row in listed:
        table.add_row(*(Text(_cell(row.get(name, ""))) for name in names))
    return table


def _cell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return harmless(str(value))
    return (
        f"{value:,}"
        if isinstance(value, int)
        else f"{value:,.3g}"
        if abs(value) < 1000
        else f"{value:,.0f}"
    )
