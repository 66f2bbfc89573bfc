"""``thalweg history``: what was decided about degrees, and why."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

from thalweg.cli.output import writing
from thalweg.cli.showing import error_console, print_table, result_console, rows_table
from thalweg.control.scaling.history import History, Recorded

#: Seconds beyond which a time must be one of day, not one of a simulation: the year 2001.
_TIME_OF_DAY = 1e9


def show_history(path: Path, everything: bool) -> None:
    """Print the degrees that were changed, or all decisions, with their reasons."""
    with History(path, writes=False) as history:
        recorded = history.decisions()
    rows = [_row(one) for one in recorded if everything or one.decision.changes]
    if rows:
        with writing():
            print_table(result_console(), rows_table(rows))
    changes = sum(one.decision.changes for one in recorded)
    error_console().print(f"{len(recorded):,} decisions, {changes:,} of them for a change")


def _row(one: Recorded) -> Mapping[str, str]:
    made = one.decision
    return {
        "time": _time_text(one.time),
        "policy": one.policy,
        "component": made.component,
        "degree": f"{made.before} -> {made.degree}" if made.changes else str(made.before),
        "reason": made.reason,
    }


def _time_text(time: float) -> str:
    """Write a time of day in UTC, or the seconds of another clock.

    >>> _time_text(1_700_000_000.0), _time_text(120.0)
    ('2023-11-14 22:13:20', '120.0 s')
    """
    if time < _TIME_OF_DAY:
        return f"{time:.1f} s"
    return dt.datetime.fromtimestamp(time, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
