"""``thalweg bench``: lists and runs the measurements of :mod:`thalweg.bench`."""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from thalweg.cli.bars import bar
from thalweg.cli.output import writing
from thalweg.cli.showing import error_console, print_table, result_console, rows_table
from thalweg.errors import UsageError, explain, meant

Bench = Callable[..., Mapping[str, Any]]


def known_benches() -> dict[str, Bench]:
    """Give the measurements by name; imported here, because they need more than a run does."""
    return dict(getattr(importlib.import_module("thalweg.bench.catalogue"), "BENCHES", {}))


def list_benches() -> None:
    """Print the names of all measurements, and what they measure."""
    rows = [{"name": name, "measures": _about(bench)} for name, bench in known_benches().items()]
    with writing():
        print_table(result_console(), rows_table(rows))


def run_bench(name: str, json: Path | None, quick: bool, options: Sequence[str] = ()) -> None:
    """Run one measurement, print its summary, and write all results when asked to."""
    benches = known_benches()
    if name not in benches:
        hint = meant(name, benches)
        raise UsageError(explain(f"bench {name!r}", "", f"one of {sorted(benches)}", hint=hint))
    if json is not None and not json.parent.is_dir():
        raise _unwritable(json, "no such folder", f"make it first: mkdir -p {json.parent}")
    given = read_options(benches[name], options, name)
    console = error_console()

    with bar(f"measuring {name}", unit="figures", console=console) as figures:

        def report(text: str) -> None:
            console.print(text, markup=False, soft_wrap=True)
            figures.advance()

        found = benches[name](quick, report, *given)
    if json is not None:
        _write(json, found)
    with writing():
        print_table(result_console(), rows_table(_rows(found.get("summary", {}))))


def read_options(bench: Bench, words: Sequence[str], name: str = "") -> list[Any]:
    """Read ``--hosts 3``: the fields of a measurement's third parameter are its options.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Options:
    ...     hosts: int = 3
    ...     rate: str = "200mbit"
    >>> def bench(quick: bool, report: Any, options: Options): ...
    >>> [found] = read_options(bench, ["--hosts", "4", "--rate=50mbit"])
    >>> found.hosts, found.rate
    (4, '50mbit')
    """
    takes = list(inspect.signature(bench, eval_str=True).parameters.values())[2:]
    fields = typing.get_type_hints(takes[0].annotation) if takes else {}
    known = {f"--{field.replace('_', '-')}": field for field in fields}
    rest = [part for word in words for part in _halves(word)]
    given: dict[str, Any] = {}
    for option, text in zip(rest[::2], [*rest[1::2], None], strict=False):
        field = known.get(option)
        expected = f"options {', '.join(known)}" if known else "no further options"
        if field is None or text is None:
            raise UsageError(explain(f"bench {name!r}", "", expected, f"{option} {text or ''}"))
        try:
            given[field] = fields[field](text)
        except ValueError as error:
            kind = fields[field].__name__
            raise UsageError(explain(f"{option} of {name!r}", "", kind, text)) from error
    return [takes[0].annotation(**given)] if takes else []


def _halves(word: str) -> list[str]:
    option, is_both, value = word.partition("=")
    return [option, value] if word.startswith("--") and is_both else [word]


def _about(bench: Bench) -> str:
    return (inspect.getdoc(bench) or "").partition("\n")[0]


def _write(path: Path, found: Mapping[str, Any]) -> None:
    data = msgspec.json.format(msgspec.json.encode(found, enc_hook=str), indent=2)
    try:
        path.write_bytes(data + b"\n")
    except OSError as error:
        raise _unwritable(path, str(error)) from error


def _unwritable(path: Path, got: str, hint: str = "") -> UsageError:
    return UsageError(explain(f"JSON file {str(path)!r}", "", "a file to write", got, hint))


def _rows(summary: Any) -> list[Mapping[str, Any]]:
    """Read a summary: records, or one value by name."""
    if isinstance(summary, Mapping):
        return [{"measure": name, "value": value} for name, value in summary.items()]
    if isinstance(summary, list | tuple):
        return [row if isinstance(row, Mapping) else {"summary": row} for row in summary]
    return [{"summary": summary}]
