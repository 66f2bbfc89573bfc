"""``thalweg train``: what policy ``learning`` goes by, from traces and from earlier runs."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.bars import bar
from thalweg.cli.output import writing
from thalweg.cli.showing import error_console, print_table, result_console, rows_table
from thalweg.connectors.traces import trace
from thalweg.control.scaling.history import History
from thalweg.control.scaling.learning import Lesson, Table, learnt, train
from thalweg.control.scaling.values import Sample
from thalweg.errors import UsageError, explain

_SQLITE = b"SQLite format 3\0"
#: Rates at which the table that was learnt is shown.
_SHOWN = 8


@dataclass(frozen=True)
class TrainOptions:
    """What is known of a component and its trace; each field is an option of the command."""

    component: Annotated[
        str | None, typer.Option(metavar="NAME", help="The component that gets these tuples.")
    ] = None
    cost: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="What one of its tasks takes for a tuple."),
    ] = None
    most: Annotated[int, typer.Option(min=1, metavar="N", help="Its highest degree.")] = 8
    every: Annotated[
        str, typer.Option(metavar="TIME", help="The time that each count of the trace is for.")
    ] = "1 s"
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of a CSV file; else the last.")
    ] = None
    period: Annotated[
        float, typer.Option(min=0.001, metavar="SECONDS", help="The sample period of a policy.")
    ] = 10.0


def train_table(source: Path, to: Path, how: TrainOptions) -> None:
    """Learn from a file, in addition to what the table knows that is there already."""
    known = Table.load(to) if to.exists() else None
    with bar(f"learning from {source}"):
        if _is_history(source):
            table = _from_history(source, known, how)
        else:
            table = _from_trace(source, known, how)
    table.save(to)
    with writing():
        print_table(result_console(), rows_table(_rows(table)))
    error_console().print(f"written to {to}: thalweg run --scale learning:{to}", soft_wrap=True)


def _is_history(source: Path) -> bool:
    try:
        with source.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        expected = "a trace, or the history of a run"
        raise UsageError(explain(f"file {str(source)!r}", "", expected, str(error))) from error


def _from_history(source: Path, known: Table | None, how: TrainOptions) -> Table:
    name, without = f"history {str(source)!r}", TrainOptions()
    every = [option.name for option in fields(how)]
    given = [f"--{each}" for each in every if getattr(how, each) != getattr(without, each)]
    if given:
        expected, hint = "no options of a trace", "its samples say all that"
        raise UsageError(explain(name, "", expected, ", ".join(given), hint))
    table = known
    with History(source, writes=False) as history:
        for origin in history.origins():
            # Sources have no latency: nothing is decided about them.
            all_samples = history.samples(origin=origin)
            samples = [s for s in all_samples if s.latency_mean is not None]
            if samples:
                table = learnt(samples, table, period=origin.period or _period(samples))
    if table is known:
        raise UsageError(explain(name, "", "samples of a run", "none"))
    return table or Table()


def _period(samples: list[Sample]) -> float:
    """Find out how far samples are apart.

    >>> _period([Sample("count", time, 1, 0, 0) for time in (0.0, 10.0, 20.0, 90.0)])
    10.0
    """
    times = sorted({sample.time for sample in samples})
    return statistics.median_low([b - a for a, b in pairwise(times)] or [10.0])


def _from_trace(source: Path, known: Table | None, how: TrainOptions) -> Table:
    if how.component is None or how.cost is None or not 0 < how.cost < math.inf:
        expected = (
            "--component and --cost above 0, and finite, of the component that gets these tuples"
        )
        raise UsageError(explain(f"trace {str(source)!r}", "", expected))
    profile = trace(source, how.column, how.every)
    steps = range(max(1, round(profile.end / how.period)))
    # The last one is as long as what is left, however short a trace is.
    times = [*(step * how.period for step in steps), profile.end]
    ends = pairwise((time, profile.count_by(time)) for time in times)
    rates = [(after - before) / (end - begin) for (begin, before), (end, after) in ends]
    return train([Lesson(how.component, rates, how.cost, how.most)], known, period=how.period)


def _rows(table: Table) -> list[dict[str, object]]:
    """Show which degree is the best at which rate."""
    found: list[dict[str, object]] = []
    for component, bands in table.rewards.items():
        listed = sorted(bands)
        for band in listed[:: max(1, len(listed) // _SHOWN)]:
            rate = table.growth ** (band + 0.5) - 1
            best = table.best(component, rate)
            found.append({"component": component, "tuples/s": rate, "degree": best})
    return found
