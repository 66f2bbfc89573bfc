"""``thalweg state``: look at the state that runs have kept, take it out, put it in."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import pyarrow.compute as pc
import typer

from thalweg.cli.bars import Bar, bar
from thalweg.cli.failures import reported
from thalweg.cli.output import writing
from thalweg.cli.rebalancing import located
from thalweg.cli.showing import error_console, print_table, result_console, rows_table, size_text
from thalweg.cli.state_files import Record, check_suffix, write_records
from thalweg.cli.state_import import import_file, origin_of
from thalweg.cli.state_values import Values, key_to_json, keys_meant
from thalweg.errors import UsageError, explain, meant
from thalweg.statelog.reading import Version, manifest_at, versions_at
from thalweg.statelog.runs import Runs

app = typer.Typer(
    help="Look at the state that runs have kept, take it out, put it in.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

State = Annotated[
    str, typer.Argument(metavar="STATE", help="The folder or URI that a run had as its state.")
]
Name = Annotated[str, typer.Argument(metavar="COMPONENT", help="A component with state.")]
Number = Annotated[
    int | None, typer.Option("--version", metavar="N", help="Which version; the newest otherwise.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]


@app.command("ls", short_help="Show versions, and what each component has.")
def list_state(state: State, version: Number = None, debug: Debug = False) -> None:
    """Show which versions there are, and what each component has in one of them."""
    with reported(debug), _opened(state, version) as opened, writing():
        console = result_console()
        names, rows = _stateful(opened), []
        with bar("reading state", len(names), "components") as done:
            for name in names:
                rows.append(_component(opened, name))
                done.advance()
        print_table(console, rows_table([_facts(opened)]))
        print_table(console, rows_table(rows, right=("size",)))


@app.command("get")
def get_value(
    state: State,
    component: Name,
    key: Annotated[str, typer.Argument(metavar="KEY", help='As JSON (5, ["eu", 5]) or as text.')],
    version: Number = None,
    debug: Debug = False,
) -> None:
    """Print the value of a key as JSON."""
    with reported(debug), _opened(state, version) as opened:
        names = _names(opened, component)
        values = _values(opened, component)
        found: dict[str, bytes] = {}
        for one in keys_meant(key):
            looked_up = {name: opened.look_up(name, one) for name in names}
            found = {name: data for name, data in looked_up.items() if data is not None}
            if found:
                break
        if not found:
            where = f"component {component!r}, version {opened.manifest.version}"
            hint = "text that looks like JSON is written in quotes: '\"5\"'"
            raise UsageError(explain(f"key {key}", where, "one that is there", "none", hint))
        with writing():
            for data in found.values():
                typer.echo(json.dumps(values.to_json(data), ensure_ascii=False))


@app.command("export")
def export_state(
    state: State,
    component: Name,
    to: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="A .jsonl or .parquet file to write."),
    ],
    version: Number = None,
    debug: Debug = False,
) -> None:
    """Write all keys and values of a component to a file, as JSON."""
    with reported(debug), _opened(state, version) as opened:
        origin = origin_of(opened.manifest, component)
        with bar(f"writing {to}", unit="keys") as written:
            count = write_records(to, origin, _counted(_records(opened, component), written))
        _say(f"wrote {count:,} keys of version {opened.manifest.version} to {to}")


@app.command("import", short_help="Commit a version with the values of a file.")
def import_state(
    state: State,
    component: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="As export writes it.")],
    debug: Debug = False,
) -> None:
    """Commit a new version in which the keys of a file have its values; others stay."""
    with reported(debug), _opened(state, None) as opened:
        check_suffix(file)
        _names(opened, component)
        with bar(f"reading {file}", unit="keys") as read:
            made, count = import_file(opened, component, file, read.advance)
        _say(f"version {made.version}: {count:,} keys of {component!r} from {file}")


@contextmanager
def _opened(state: str, version: int | None) -> Iterator[Version]:
    location = located(state)
    manifest = manifest_at(location, version)
    # Runs of other file systems are copied here, so that memory stays small.
    with tempfile.TemporaryDirectory(prefix="thalweg-state-") as cache:
        yield Version(location, manifest, Runs(Path(cache)))


def _facts(opened: Version) -> dict[str, Any]:
    manifest, there = opened.manifest, versions_at(opened.location)
    return {
        "version": str(manifest.version),
        "versions there": f"{there[0]} to {there[-1]} ({len(there)})",
        "clock": _time_text(manifest.clock),
        "places": manifest.places,
        "epoch": manifest.epoch,
    }


def _time_text(clock: float) -> str:
    """Write seconds since 1970 as people do; a clock may also count from elsewhere."""
    try:
        return f"{dt.datetime.fromtimestamp(clock, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{clock:,.3f} s"


def _component(opened: Version, component: str) -> dict[str, Any]:
    names = opened.components().get(component, [])
    mark = opened.manifest.topology.get(component)
    rows = size = 0
    for name in names:
        for batch in opened.batches(name):
            rows += batch.num_rows
            size += sum(
                pc.sum(pc.binary_length(batch[column])).as_py() for column in ("key", "value")
            )
    return {
        "component": component,
        "kind": mark.kind if mark else "(gone)",
        "key": ", ".join(mark.key) if mark else "",
        "values": mark.codec if mark else "",
        "keys": rows,
        "size": size_text(size),
        "runs": max((opened.runs_of(name) for name in names), default=0),
    }


def _stateful(opened: Version) -> list[str]:
    marks = opened.manifest.topology
    known = [name for name, mark in marks.items() if mark.kind != "stateless"]
    return [*known, *(name for name in opened.components() if name not in marks)]


def _names(opened: Version, component: str) -> list[str]:
    """Give the names of a component's state; raises when there is no such component."""
    stateful = _stateful(opened)
    if component not in stateful:
        raise UsageError(
            explain(
                f"component {component!r}",
                f"version {opened.manifest.version} at {opened.location}",
                f"one with state: {', '.join(stateful) or 'there is none'}",
                hint=meant(component, stateful),
            )
        )
    return opened.components().get(component, [])


def _values(opened: Version, component: str) -> Values:
    mark = opened.manifest.topology.get(component)
    return Values(mark.codec if mark else "")


def _records(opened: Version, component: str) -> Iterator[list[Record]]:
    values = _values(opened, component)
    for name in _names(opened, component):
        task = opened.owners.split(name)[1]
        more = {} if task is None else {"task": task}
        for batch in opened.batches(name):
            keys, stored = batch.column("key").to_pylist(), batch.column("value").to_pylist()
            yield [
                {"key": key_to_json(key), "value": values.to_json(data), **more}
                for key, data in zip(keys, stored, strict=True)
            ]


def _counted(batches: Iterator[list[Record]], done: Bar) -> Iterator[list[Record]]:
    for batch in batches:
        yield batch
        done.advance(len(batch))


def _say(text: str) -> None:
    error_console().print(text, markup=False, soft_wrap=True)
