"""``thalweg analyze``: what locality-aware routing would bring on data that is there already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer

from thalweg.bench.keyed_data import columns, key_fields, read_keys
from thalweg.cli.bars import bar
from thalweg.cli.output import writing
from thalweg.cli.showing import error_console, print_table, result_console, rows_table
from thalweg.control.keygraph import fitted
from thalweg.control.links import Link, Observed, Pairs, Tables, key_weights
from thalweg.control.measures import imbalance, locality
from thalweg.control.settings import LocalitySettings
from thalweg.drawing.charts import line_chart
from thalweg.errors import UsageError, explain, shorten
from thalweg.events import Event, Progress
from thalweg.hashing import Hashes, hash_columns
from thalweg.keys import Key, key_values
from thalweg.routing.table import RoutingTable
from thalweg.routing.table_file import TableFile, write_table_file
from thalweg.sketches.pairs import PairCounts

#: Heaviest keys shown of each field.
_SHOWN = 3
#: Numbers of pairs in the picture grow by this factor.
_STEP = 4


@dataclass(frozen=True)
class AnalyzeOptions:
    """What to report, and where to write; each field is an option of the command."""

    places: Annotated[int, typer.Option(min=1, metavar="N", help="For how many places.")] = 6
    time: Annotated[
        str, typer.Option(metavar="FIELD", help="Sort the records by this field first.")
    ] = ""
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a routing table (JSON).")
    ] = None
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw locality by pairs kept (SVG).")
    ] = None


class Keys:
    """The key fields of some data: values, hashes, and pairs of neighbouring fields."""

    def __init__(self, table: pa.Table) -> None:
        self.names: Sequence[str] = table.column_names
        self._columns = dict(zip(self.names, columns(table), strict=True))
        self.hashes = {name: hash_columns([column]) for name, column in self._columns.items()}
        self.rows = table.num_rows

    def pairs(self, rows: slice = slice(None)) -> dict[Link, PairCounts]:
        """Count the pairs in some of the records."""
        return {
            Link(one, two): PairCounts.of(self.hashes[one][rows], self.hashes[two][rows])
            for one, two in pairwise(self.names)
        }

    def values(self, name: str) -> tuple[list[Key], Hashes]:
        """Give the distinct values of a field, and their hashes."""
        distinct = pc.unique(self._columns[name])
        return key_values([distinct]), hash_columns([distinct])


def analyze(data: str, key_names: str, what: AnalyzeOptions) -> None:
    """Report on the data, and write the table and the picture that were asked for."""
    for path in (what.table, what.plot):
        if path is not None and not path.parent.is_dir():
            hint = f"make the folder first: mkdir -p {path.parent}"
            text = explain(f"file {str(path)!r}", "", "a file to write", "no folder", hint)
            raise UsageError(text)
    table = _read(data, key_names, what.time)
    with bar("hashing keys", total=4) as done:
        keys = Keys(table)
        even = {name: RoutingTable.even(what.places) for name in keys.names}
        done.step("making a table")
        made = _fitted(keys.pairs(), even)
        done.step("weighing keys")
        tables = [rows_table(_fields(keys, even, made))]
        done.step("comparing with the second half")
        tables.append(rows_table(_links(keys, even, made)))
    with writing():
        console = result_console()
        console.print(f"{keys.rows:,} records, {what.places} places", markup=False)
        for each in tables:
            print_table(console, each)
    if what.table is not None:
        write_table_file(what.table, _table_file(keys, made, what.places))
        _say(f"table written to {what.table}")
    if what.plot is not None:
        _draw(what.plot, keys, even)
        _say(f"picture written to {what.plot}")


def _read(data: str, key_names: str, time: str) -> pa.Table:
    with bar(f"reading {data}", unit="records") as read:

        def listen(event: Event) -> None:
            if isinstance(event, Progress):
                read.reach(event.snapshot.tuples_in)

        return read_keys(data, key_fields(key_names), time, listen)


def _fields(keys: Keys, even: Tables, made: Tables) -> Iterator[Mapping[str, Any]]:
    weights = key_weights(keys.pairs())
    by_hash, by_table = imbalance(weights, even), imbalance(weights, made)
    for name in keys.names:
        values, hashes = keys.values(name)
        known, counts = weights[name]
        heaviest = np.argsort(-counts, kind="stable")[:_SHOWN]
        value_of = dict(zip(hashes.tolist(), values, strict=True))
        shown = [
            f"{shorten(value_of[int(known[i])], 30)} {100 * counts[i] / counts.sum():.1f} %"
            for i in heaviest
        ]
        yield {
            "key": name,
            "distinct": len(values),
            "heaviest": ", ".join(shown),
            "imbalance by hash": round(by_hash[name], 2),
            "with a table": round(by_table[name], 2),
        }


def _links(keys: Keys, even: Tables, made: Tables) -> Iterator[Mapping[str, Any]]:
    """Give locality by hash, with a table of all records, and of the second half with the first.

    The second figure knows what it is measured on; the third is what a stream can hope for.
    """
    half = slice(keys.rows // 2), slice(keys.rows // 2, None)
    later, before = keys.pairs(half[1]), _fitted(keys.pairs(half[0]), even)
    found = [locality(*case) for case in ((keys.pairs(), even), (keys.pairs(), made))]
    learnt = locality(later, before)
    for link in found[0].by_link:
        yield {
            "keys": f"{link.sender} -> {link.reader}",
            "locality by hash": _percent(found[0].by_link[link]),
            "with a table": _percent(found[1].by_link[link]),
            "second half, table of the first": _percent(learnt.by_link[link]),
        }


def _fitted(pairs: Pairs, even: Tables, edges: int | None = None) -> dict[str, RoutingTable]:
    use = LocalitySettings() if edges is None else LocalitySettings(edges=edges)
    return fitted(pairs, Observed(pairs, {}, {}, {}), even, use)


def _table_file(keys: Keys, made: Tables, places: int) -> TableFile:
    fields = {}
    for name in keys.names:
        values, hashes = keys.values(name)
        owners = made[name].places_of(hashes).tolist()
        fields[name] = dict(zip(values, owners, strict=True))
    return TableFile(places, fields)


def _draw(path: Path, keys: Keys, even: Tables) -> None:
    pairs = keys.pairs()
    most = sum(map(len, pairs.values()))
    steps = [*(100 * _STEP**i for i in range(20) if 100 * _STEP**i < most), most]
    line = []
    with bar("drawing", total=len(steps)) as done:
        for edges in steps:
            line.append((edges, locality(pairs, _fitted(pairs, even, edges)).overall))
            done.advance()
    hashed = locality(pairs, even).overall
    series = {"table": line, "hash": [(steps[0], hashed), (most, hashed)]}
    picture = line_chart("Locality by pairs kept", series, "pairs", "share", logarithmic=True)
    try:
        path.write_text(picture, encoding="utf-8")
    except OSError as error:
        text = explain(f"file {str(path)!r}", "", "a file to write", str(error))
        raise UsageError(text) from error


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _say(text: str) -> None:
    error_console().print(text, markup=False, soft_wrap=True)
