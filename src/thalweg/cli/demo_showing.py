"""How the demo looks in a terminal: a bar for each phase, a table, lines, and plain sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from thalweg.cli.live_line import suits_live_line
from thalweg.cli.output import writing
from thalweg.cli.showing import print_table, result_console
from thalweg.demo.describing import Wave
from thalweg.demo.findings import sentences
from thalweg.demo.phases import MOST, Phase
from thalweg.demo.playing import Played
from thalweg.demo.reporting import HEADS, LEGEND, row
from thalweg.events import Event, RunFinished
from thalweg.events import Progress as Look
from thalweg.workloads.boards import curve


class Hall:
    """Those who look on at a terminal: a bar for each phase; a line where there is none."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drawn = suits_live_line(console)
        self._waiting: list[TaskID] = []
        self._bars = Progress(
            TextColumn("{task.description:<22}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
            console=console,
            refresh_per_second=4,  # hardly disturbs what is measured
            disable=not self._drawn,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(text, markup=False, soft_wrap=not self._console.is_terminal)

    def shows(self, address: str) -> None:
        """Print where the page is; an address that is broken leads nowhere."""
        text = f"watch it live: {address}"
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def waits(self, text: str) -> None:
        """Show that something takes its time, until a phase begins."""
        self._waiting.append(self._bars.add_task(text, total=None, text=""))

    def begins(self, phase: Phase, wave: Wave) -> Callable[[Event], None]:
        """Show the bar of a phase, and let it follow."""
        while self._waiting:
            self._bars.remove_task(self._waiting.pop())
        bar = self._bars.add_task(phase.name, total=wave.rows, text="")

        def hear(event: Event) -> None:
            if isinstance(event, Look | RunFinished):
                self._follow(bar, event)

        return hear

    def _follow(self, bar: TaskID, event: Look | RunFinished) -> None:
        first, last = event.snapshot.components[1], event.snapshot.components[-1]
        degree = f"{first.degree} task{'' if first.degree == 1 else 's'}"
        self._bars.update(bar, completed=last.received, text=f"{last.received:>9,}  {degree:<8}")

    def ends(self, played: Played) -> None:
        """Leave a line where there are no bars."""
        if not self._drawn:
            found = played.finding
            self.say(f"{found.phase.name}: {found.rate:,.0f} tuples/s in the rush")


def _point(console: Console, text: str) -> None:
    """Print a sentence; in a terminal its lines stand below each other."""
    if not console.is_terminal:
        console.print(f"* {text}", markup=False, soft_wrap=True)
        return
    grid = Table.grid(padding=(0, 1))
    grid.add_row("*", Text(text))
    console.print(grid)


def show(played: Sequence[Played], report: Path | None = None) -> None:
    """Print what came of it; the report is None where there is none."""
    findings = [each.finding for each in played]
    console = result_console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, head in enumerate(HEADS):
        table.add_column(head, justify="right" if at else "left")
    for finding in findings:
        table.add_row(*row(finding))
    with writing():
        print_table(console, table)
        console.print(f"{LEGEND}\n", style="dim", soft_wrap=not console.is_terminal)
        console.print("Tasks of each step, from the start to the end")
        for finding in findings:
            line = curve([*finding.degrees, MOST])[:-1]
            low, high = min(finding.degrees), max(finding.degrees)
            bounds = str(low) if low == high else f"{low} to {high}"
            console.print(f"  {finding.phase.name:<22} {line}  {bounds}", soft_wrap=True)
        leading = "  ".join(f"{key} {count:,}" for key, count in played[-1].leading)
        console.print(f"\nLeading: {leading}\n", markup=False, soft_wrap=True)
        for text in sentences(findings):
            _point(console, text)
        if report is not None:
            console.print(f"\nReport with plots: {report}", markup=False, soft_wrap=True)
