"""Joins with a table: by hash, by comparing each with each, as chosen, and Arrow's own join.

Every tuple finds one row. Keys are whole numbers or text; *range* looks for the one range that a
number is in. What Arrow needs for one join of all tuples at once, whose order it does not keep, is
the limit. Where comparing each with each would take long, it gets fewer tuples, or is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

import thalweg as tw
from thalweg.bench.inline_wordcount import Arrivals
from thalweg.bench.measuring import environment, side_by_side
from thalweg.operators.matching import Matcher

_SIZES = (1, 2, 4, 8, 16, 64, 256, 1000, 10_000, 100_000)
_KINDS = ("int", "text", "range")
_BLOCK = 8192
#: Comparisons of a run that compares each with each, and rows from which on that is left out.
_COMPARISONS, _TOO_MANY = 100_000_000, 1000
#: Blocks for which it is measured what finding rows takes.
_TURNS = 10


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    tuples: int = 4_000_000
    repeat: int = 3


class Blocks(tw.BlockSpout):
    """Gives the same record batch again and again."""

    def __init__(self, batch: pa.RecordBatch, count: int) -> None:
        self._batch, self._left = batch, count
        self.outputs = batch.schema

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give it, or what is left to give."""
        rows = min(limit, self._left, self._batch.num_rows)
        self._left -= rows
        if not self._left:
            self.finish()
        return self._batch.slice(0, rows) if rows else None


def table(kind: str, rows: int) -> pa.Table:
    """Make a table with a key, or a range, and two more fields."""
    numbers = np.arange(rows)
    found = {"price": numbers * 0.5, "weight": numbers % 7}
    if kind == "range":
        return pa.table({"low": numbers * 10, "high": numbers * 10 + 10} | found)
    return pa.table({"key": _keys(kind, numbers)} | found)


def stream(kind: str, rows: int) -> pa.RecordBatch:
    """Make a block of tuples, each of which finds one row."""
    chosen = np.random.default_rng(1).integers(0, rows, _BLOCK)
    keys = chosen * 10 + chosen % 10 if kind == "range" else _keys(kind, chosen)
    return pa.record_batch({"key": keys, "n": np.arange(_BLOCK)})


def _keys(kind: str, numbers: Any) -> Any:
    spread_out = numbers * 7919
    return pa.array([f"item-{n}" for n in spread_out]) if kind == "text" else spread_out


@dataclass
class Data:
    """Tuples and a table, and the way that was taken."""

    tuples: pa.RecordBatch
    rows: pa.Table
    picked: str = ""

    @property
    def _on(self) -> Any:
        if "low" in self.rows.schema.names:
            return (tw.row("low") <= tw.col("key")) & (tw.col("key") < tw.row("high"))
        return "key"

    def join(self, count: int, way: str | None = None) -> int:
        """Join so many tuples on this machine, one way only if that is said; gives how many."""
        bolt, arrivals = tw.TableJoin(self.tuples.schema, self.rows, self._on), Arrivals()
        if way is not None:
            bolt.chooser.ways = (way,)
        builder = tw.TopologyBuilder("join")
        builder.add_spout("tuples", Blocks(self.tuples, count))
        builder.add_bolt("join", bolt).shuffle("tuples")
        builder.add_bolt("end", arrivals).shuffle("join")
        builder.build().run(on=tw.Local(block_rows=_BLOCK))
        if way is None:  # the last block may be a small one
            self.picked = max(bolt.chooser.look(), key=lambda seen: seen.sizes.block).way
        return arrivals.rows[0]

    def matching(self, way: str) -> float:
        """Give the least nanoseconds per tuple that finding the rows for a block takes."""
        bolt = tw.TableJoin(self.tuples.schema, self.rows, self._on)
        matcher = Matcher(bolt.side.current(0.0, print).rows, bolt.condition, self.tuples.schema)
        took = []
        for _ in range(_TURNS):
            begin = time.perf_counter()
            matcher.match(self.tuples, way, _never)
            took.append(time.perf_counter() - begin)
        return 1e9 * min(took) / _BLOCK

    def arrow(self, count: int) -> int:
        """Join so many tuples with Arrow, all at once."""
        batches = [self.tuples] * -(-count // _BLOCK)
        left = pa.Table.from_batches(batches).slice(0, count)
        return int(left.join(self.rows, "key", join_type="inner").num_rows)


def _never(_row: int, error: Exception) -> None:
    raise error


def measure(kind: str, rows: int, options: Options, report: Callable[[str], None]) -> Any:
    """Compare the ways, the choice, and Arrow."""
    index, data = (
        "range" if kind == "range" else "hash",
        Data(stream(kind, rows), table(kind, rows)),
    )
    few = max(_BLOCK, min(options.tuples, _COMPARISONS // rows))
    candidates: dict[str, Callable[[], int]] = {
        index: lambda: data.join(options.tuples, index),
        "chosen": lambda: data.join(options.tuples),
    }
    if rows <= _TOO_MANY:
        candidates["loop"] = lambda: data.join(few, "loop")
    if kind != "range":
        candidates["arrow"] = lambda: data.arrow(options.tuples)
    found = side_by_side(candidates, options.repeat, lambda text: report(f"{kind} {rows}: {text}"))
    speeds = {name: value["best"] for name, value in found.items()}
    best = max(speeds[index], speeds.get("loop", 0.0))
    matching = {way: data.matching(way) for way in (index, "loop") if way in candidates}
    return {
        "kind": kind,
        "table": rows,
        "events_per_s": speeds,
        "picked": data.picked,
        "matching_ns": matching,
        "picked_vs_best_matching": min(matching.values()) / matching[data.picked],
        "chosen_vs_best": speeds["chosen"] / best,
        "chosen_vs_arrow": speeds["chosen"] / speeds["arrow"] if "arrow" in speeds else None,
    }


def run(quick: bool, report: Callable[[str], None], options: Options) -> dict[str, Any]:
    """Measure joins with tables of 1 to 100,000 rows: hash, nested loop, the choice, Arrow."""
    sizes: tuple[int, ...] = _SIZES
    if quick:
        options, sizes = replace(options, tuples=200_000, repeat=1), (1, 16, 1000)
    results = [measure(kind, rows, options, report) for kind in _KINDS for rows in sizes]
    return {
        "name": "join",
        "environment": environment() | asdict(options),
        "results": results,
        "summary": summary(results),
    }


def summary(results: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Say how good the choice is at worst, and how far from Arrow's own join."""
    limits = [r["chosen_vs_arrow"] for r in results if r["chosen_vs_arrow"] is not None]
    found: dict[str, Any] = {
        "picked_vs_best_matching_worst": min(r["picked_vs_best_matching"] for r in results),
        "chosen_vs_best_worst": min(r["chosen_vs_best"] for r in results),
        "chosen_vs_arrow_worst": min(limits),
        "chosen_vs_arrow_best": max(limits),
    }
    for each in results:
        name = f"{each['kind']}_{each['table']}"
        found[f"{name}_events_per_s"] = each["events_per_s"]["chosen"]
        found[f"{name}_picked"] = each["picked"]
    return found
