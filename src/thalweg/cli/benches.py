"""``thalweg bench``: lists and runs the measurements of :mod:`thalweg.bench`."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from thalweg.cli.output import writing
from thalweg.cli.showing import error_console, print_table, result_console, rows_table
from thalweg.errors import UsageError, explain

Bench = Callable[[bool, Callable[[str], None]], Mapping[str, Any]]


def known_benches() -> dict[str, Bench]:
    """Give the measurements by name; imported here, because they need more than a run does."""
    return dict(getattr(importlib.import_module("thalweg.bench"), "BENCHES", {}))


def list_benches() -> None:
    """Print the names of all measurements, and what they measure."""
    rows = [{"name": name, "measures": _about(bench)} for name, bench in known_benches().items()]
    with writing():
        print_table(result_console(), rows_table(rows))


def run_bench(name: str, json: Path | None, quick: bool) -> None:
    """Run one measurement, print its summary, and write all results when asked to."""
    benches = known_benches()
    if name not in benches:
        close = difflib.get_close_matches(name, benches, 1)
        hint = f"did you mean {close[0]!r}?" if close else ""
        raise UsageError(explain(f"bench {name!r}", "", f"one of {sorted(benches)}", hint=hint))
    if json is not None and not json.parent.is_dir():
        raise _unwritable(json, "no such folder")
    console = error_console()
    found = benches[name](quick, lambda text: console.print(text, markup=False, soft_wrap=True))
    if json is not None:
        _write(json, found)
    with writing():
        print_table(result_console(), rows_table(_rows(found.get("summary", {}))))


def _about(bench: Bench) -> str:
    return (inspect.getdoc(bench) or "").partition("\n")[0]


def _write(path: Path, found: Mapping[str, Any]) -> None:
    data = msgspec.json.format(msgspec.json.encode(found, enc_hook=str), indent=2)
    try:
        path.write_bytes(data + b"\n")
    except OSError as error:
        raise _unwritable(path, str(error)) from error


def _unwritable(path: Path, got: str) -> UsageError:
    return UsageError(explain(f"JSON file {str(path)!r}", expected="a file to write", got=got))


def _rows(summary: Any) -> list[Mapping[str, Any]]:
    """Read a summary: records, or one value by name."""
    if isinstance(summary, Mapping):
        return [{"measure": name, "value": value} for name, value in summary.items()]
    if isinstance(summary, list | tuple):
        return [row if isinstance(row, Mapping) else {"summary": row} for row in summary]
    return [{"summary": summary}]
