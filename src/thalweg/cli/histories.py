"""``thalweg history``: which degrees policies changed, or would have changed, and why."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.output import writing
from thalweg.cli.showing import error_console, print_table, result_console, rows_table
from thalweg.control.scaling.history import History, Recorded
from thalweg.errors import UsageError, explain, meant

#: Seconds beyond which a time must be one of day, not one of a simulation: the year 2001.
_TIME_OF_DAY = 1e9


@dataclass(frozen=True)
class HistoryOptions:
    """What is shown of a history; each field is an option of the command."""

    everything: Annotated[bool, typer.Option("--all", help="Decisions for no change as well.")] = (
        False
    )
    no_wishes: Annotated[
        bool, typer.Option("--no-wishes", help="Nothing of policies that were only asked.")
    ] = False
    topology: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only what is of this topology.")
    ] = None

    def chosen(self, recorded: Sequence[Recorded]) -> list[Recorded]:
        """Give those of the topology that was asked for, or all."""
        return [one for one in recorded if self.topology in (None, one.topology)]


def show_history(path: Path, shown: HistoryOptions) -> None:
    """Print the degrees that were changed, or wished, or all decisions, with their reasons."""
    with History(path, writes=False) as history:
        made, wished, origins = history.decisions(), history.wishes(), history.origins()
    names = [*(one.topology for one in (*made, *wished)), *(each.topology for each in origins)]
    _check_topology(path, shown.topology, {name for name in names if name})
    made, wished = shown.chosen(made), [] if shown.no_wishes else shown.chosen(wished)
    recorded = sorted([*made, *wished], key=lambda one: one.time)
    rows = [_row(one) for one in recorded if shown.everything or one.decision.changes]
    if rows:
        with writing():
            print_table(result_console(), rows_table(_telling(rows)))
    told = [_counted("decisions", made), *([_counted("wishes", wished)] if wished else [])]
    error_console().print("; ".join(told))


def _check_topology(path: Path, name: str | None, known: Collection[str]) -> None:
    """Refuse a topology of which nothing was kept."""
    if name is not None and name not in known:
        expected = f"one that it has: {', '.join(sorted(known)) or 'there is none'}"
        where, hint = f"history {str(path)!r}", meant(name, known)
        raise UsageError(explain(f"topology {name!r}", where, expected, hint=hint))


def _counted(what: str, recorded: Sequence[Recorded]) -> str:
    changes = sum(one.decision.changes for one in recorded)
    return f"{len(recorded):,} {what}, {changes:,} of them for a change"


def _telling(rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Leave out columns that say nothing: they would take others their place."""
    dull = {"topology": {""}, "carried out": {"yes"}}
    left = [name for name in rows[0] if {row[name] for row in rows} != dull.get(name)]
    return [{name: row[name] for name in left} for row in rows]


def _row(one: Recorded) -> Mapping[str, str]:
    made = one.decision
    return {
        "time": _time_text(one.time),
        "topology": one.topology or "",
        "policy": one.policy,
        "component": made.component,
        "degree": f"{made.before} -> {made.degree}" if made.changes else str(made.before),
        "carried out": "no" if one.wish else "yes",
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
