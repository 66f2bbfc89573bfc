"""How the topologies of a server look in a terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence

from thalweg.cli.showing import (
    print_table,
    result_console,
    rows_table,
    summary_table,
    totals_text,
)
from thalweg.server.folders import View

_SHORT = 60
#: Seconds without a word after which a runner may hang.
_SILENCE = 10.0


def print_list(views: Sequence[View]) -> None:
    """Print a line for each topology."""
    console = result_console()
    if not views:
        console.print("no topologies (thalweg server submit FILE)", markup=False)
        return
    print_table(console, rows_table(map(_row, views), right=("up",)))


def print_details(view: View) -> None:
    """Print what is known of a topology, and what its components have done."""
    console, record, status = result_console(), view.record, view.status
    program = record.program
    target = f"{program.file}:{program.target}" if program.target else program.file
    lines = [f"{record.name}: {phase_text(view)}", f"program {target}"]
    lines += [f"set {key}={value}" for key, value in program.settings.items()]
    lines += [f"process {view.pid}"] if view.pid else []
    lines += [f"policy {status.policy}"] if status is not None and status.policy else []
    lines += [f"last error: {view.last_error}"] if view.last_error else []
    console.print("\n".join(lines), markup=False, soft_wrap=True)
    if status is not None and status.snapshot is not None:
        print_table(console, summary_table(status.snapshot))
        console.print(totals_text(status.snapshot), markup=False, soft_wrap=True)


def phase_text(view: View) -> str:
    """Say in a word or two how a topology is."""
    record, status = view.record, view.status
    if record.phase != "running":
        return record.phase
    if not view.alive or status is None or status.since is None:
        return "starting"
    silent = time.time() - status.updated
    if silent > _SILENCE:
        return f"silent for {silent:.0f} s"
    return "running" if status.active else "inactive"


def _row(view: View) -> dict[str, str | int]:
    record, status = view.record, view.status
    snapshot = status.snapshot if status else None
    since = status.since if status and view.alive else None
    error = next(iter(view.last_error.splitlines()), "")
    return {
        "name": record.name,
        "state": phase_text(view),
        "up": "" if since is None else f"{time.time() - since:,.0f} s",
        "in": snapshot.tuples_in if snapshot else 0,
        "out": snapshot.tuples_out if snapshot else 0,
        "pending": snapshot.pending if snapshot else 0,
        "deaths": record.failures,
        "last error": error if len(error) <= _SHORT else error[: _SHORT - 1] + "…",
    }
