"""A bar at the foot of a terminal for commands that take a while, and are no runs.

It is on standard error, goes when the work is done, and is not there at all where standard error
is no terminal, or where a reader of our output uses that terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from thalweg.cli.live_line import suits_live_line
from thalweg.cli.showing import error_console

#: Drawings per second: who measures is hardly disturbed.
_PER_SECOND = 2


class _Done(ProgressColumn):
    """How much is done, in words."""

    def render(self, task: Task) -> Text:
        of = "" if task.total is None else f" of {task.total:,.0f}"
        return Text(f"{task.completed:,.0f}{of} {task.fields['unit']}")


class Bar:
    """How far the work is; without a total it says how much is done."""

    def __init__(self, shown: Progress, what: str, total: float | None, unit: str) -> None:
        self._shown = shown
        self._task = shown.add_task(what, total=total, unit=unit)

    def advance(self, by: float = 1) -> None:
        """Say that so much more is done."""
        self._shown.advance(self._task, by)

    def reach(self, done: float) -> None:
        """Say how much is done in all."""
        self._shown.update(self._task, completed=done)

    def step(self, what: str) -> None:
        """Say what is done now, after what was done before."""
        self._shown.update(self._task, description=what, advance=1)


@contextmanager
def bar(
    what: str, total: float | None = None, unit: str = "", console: Console | None = None
) -> Iterator[Bar]:
    """Show a bar; what is printed on ``console`` meanwhile stands above it."""
    console = console or error_console()
    columns: list[ProgressColumn] = [TextColumn("{task.description}", markup=False), BarColumn(20)]
    if unit:
        columns.append(_Done())
    shown = Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        refresh_per_second=_PER_SECOND,
        disable=not suits_live_line(console),
    )
    with shown:
        yield Bar(shown, what, total, unit)
