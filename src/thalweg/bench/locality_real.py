"""Locality on real data, replayed in the order of time.

The data is cut into periods of equal length. Tuples have two keys; a tuple is local when both are
at the same place. Compared are routing by hash, a table made from the first period (offline), a
table made again after each period when that pays (online), and the same with keys that join
their partners: those that the table has not seen (unseen keys), and also those that it has hardly
seen, which is what runtimes do (new keys). They join as soon as in a run, by the time of the data,
or after so many tuples where it has no times. Pairs are counted without sampling.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.bench.keyed_data import columns, key_fields, read_keys
from thalweg.bench.measuring import environment
from thalweg.bench.plotting import write_pictures
from thalweg.clock import seconds
from thalweg.control.adopting import FEW, Adopter
from thalweg.control.keygraph import KeyGraph, fitted
from thalweg.control.links import KeyWeights, Link, Observed, Tables, key_weights
from thalweg.control.locality import Reroute, decide
from thalweg.control.measures import imbalance, locality
from thalweg.control.settings import LocalitySettings
from thalweg.drawing.charts import line_chart
from thalweg.errors import UsageError, explain
from thalweg.hashing import Hashes, hash_columns
from thalweg.routing.table import Places, RoutingTable
from thalweg.sketches.pairs import PairCounts

Report = Callable[[str], None]
LINK = Link("first", "second")
QUICK_ROWS = 60_000
#: Share of a period that tables are made from; they are judged by the rest.
FIT = 0.8
#: A tuple and its rate; state of 100 bytes per key is cheap against it, so that drift decides.
TUPLE_BYTES, RATE = 100.0, 10_000.0
WAYS = ("hash", "offline", "online", "online, unseen keys", "online, new keys")
#: Keys of a period join their partners later if they were seen less often than that.
FEWS = {"online, unseen keys": 1, "online, new keys": FEW}


@dataclass(frozen=True)
class Options:
    """What can be chosen; of data, keys and time several, with a semicolon between them."""

    data: str = ""
    keys: str = ""
    places: int = 6
    periods: int = 12
    #: A field to sort the records by; they are in order already when it is not given.
    time: str = ""
    #: Time between two looks at new keys, by the time of the data.
    adopt_every: str = "5 s"
    #: Tuples between two looks where there is no time.
    batch_rows: int = 100
    #: A folder for pictures.
    plots: str = ""


@dataclass(frozen=True, eq=False)
class Tuples:
    """Tuples in the order of time, and the number of the batch that each comes with."""

    first: Hashes
    second: Hashes
    batch: Places

    def __len__(self) -> int:
        return len(self.batch)

    def __getitem__(self, rows: slice) -> Tuples:
        return Tuples(self.first[rows], self.second[rows], self.batch[rows])

    def sides(self) -> list[tuple[str, Hashes]]:
        """Give the keys of each component."""
        return [(LINK.sender, self.first), (LINK.reader, self.second)]

    def pairs(self) -> PairCounts:
        """Count the pairs of keys."""
        return PairCounts.of(self.first, self.second)


@dataclass(eq=False)
class Way:
    """One way of routing, as it goes through the periods."""

    name: str
    tables: Tables
    rerouted: bool = False
    #: Locality of the present tables on the period that they were made from.
    promised: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    #: From when there are tables, where keys are adopted.
    adopter: Adopter | None = None


def locality_real(quick: bool, report: Report, options: Options) -> dict[str, Any]:
    """Locality and imbalance on real data, period by period: hash, offline, online."""
    sets = list(_sets(options))
    found = {}
    for one in sets:
        report(f"{Path(one.data).name}: {one.keys}")
        found[_name(one)] = _replayed(quick, report, one)
    results = {name: made["results"] for name, made in found.items()}
    summary: Any = [{"data": name} | made["summary"] for name, made in found.items()]
    # Of the data, its name: where it and the pictures lie is nobody's business.
    data = ";".join(Path(one.data).name for one in sets)
    return {
        "name": "locality-real",
        "environment": environment() | asdict(options) | {"data": data, "plots": ""},
        "results": _briefly(results) if len(sets) > 1 else results[_name(sets[0])],
        "summary": summary if len(sets) > 1 else found[_name(sets[0])]["summary"],
    }


def _briefly(results: Mapping[str, Any]) -> dict[str, Any]:
    """Give locality by period only, of each way, for each set of data."""
    return {
        name: {way: [row["locality"] for row in rows] for way, rows in found["periods"].items()}
        for name, found in results.items()
    }


def _sets(options: Options) -> Iterator[Options]:
    """Give the options of each set of data."""
    data, keys, times = (text.split(";") for text in (options.data, options.keys, options.time))
    times = times if options.time else [""] * len(data)
    if not options.data or not options.keys or not len(data) == len(keys) == len(times):
        text = "--data PATH --keys FIRST,SECOND, or as many of both (and of --time) with ; between"
        raise UsageError(explain("bench 'locality-real'", expected=text))
    for path, fields, time in zip(data, keys, times, strict=True):
        yield replace(options, data=path, keys=fields, time=time)


def _name(options: Options) -> str:
    return f"{Path(options.data).name} ({options.keys})"


def _replayed(quick: bool, report: Report, options: Options) -> dict[str, Any]:
    tuples = read_tuples(options)
    if quick:
        tuples = tuples[:QUICK_ROWS]
    report(f"{len(tuples):,} tuples, {options.periods} periods, {options.places} places")
    ways = replay(tuples, options, report)
    edges = edges_kept(tuples, options)
    results = {"periods": {way.name: way.rows for way in ways}, "edges": edges}
    if options.plots:
        _draw(Path(options.plots), results)
    return {"results": results, "summary": _summary(ways, edges)}


def read_tuples(options: Options) -> Tuples:
    """Read keys and times."""
    keys = key_fields(options.keys)
    if not options.time:
        first, second = _hashed(read_keys(options.data, keys))
        return Tuples(first, second, np.arange(len(first)) // options.batch_rows)
    [(time, kind)] = key_fields(options.time, least=1).items()
    table = read_keys(options.data, keys | {time: kind}, time)
    clock = _clock(table[time].combine_chunks())
    return Tuples(*_hashed(table), (clock // seconds(options.adopt_every)).astype(np.int64))


def _hashed(table: pa.Table) -> tuple[Hashes, Hashes]:
    first, second = (hash_columns([column]) for column in columns(table)[:2])
    return first, second


def _clock(times: pa.Array) -> npt.NDArray[np.float64]:
    """Give times in seconds; numbers are taken for such."""
    try:
        if pa.types.is_string(times.type):
            # Differences matter: a time zone that is the same everywhere does not.
            times = pc.replace_substring_regex(times, "Z$", "").cast(pa.timestamp("ms"))
        if pa.types.is_timestamp(times.type):
            times = times.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()).cast(pa.float64())
            return times.to_numpy() / 1000
        return times.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid as error:
        text = "times such as 2013-01-01 05:17:00, or seconds (--time ts:int)"
        raise UsageError(explain("--time", expected=text, got=str(error))) from error


def replay(tuples: Tuples, options: Options, report: Report) -> list[Way]:
    """Send the tuples through all ways of routing."""
    even = {name: RoutingTable.even(options.places) for name in LINK}
    ways = [Way(name, even, name.startswith("online")) for name in WAYS]
    for number, rows in enumerate(_cut(len(tuples), options.periods)):
        period = tuples[rows]
        for way in ways:
            _pass(way, period)
            way.rows[-1]["promised"] = way.promised
            if way.rerouted or (way.name == "offline" and number == 0):
                _refit(way, period)
        shown = ", ".join(f"{way.name} {100 * way.rows[-1]['locality']:.1f} %" for way in ways)
        report(f"period {number + 1}: {shown}")
    return ways


def _pass(way: Way, period: Tuples) -> None:
    """Route a period batch by batch, and adopt keys after each that has new ones."""
    local, loads = 0, np.zeros((2, way.tables[LINK.sender].places))
    for rows in _batches(period, way.adopter):
        batch = period[rows]
        places = [way.tables[name].places_of(keys) for name, keys in batch.sides()]
        local += int((places[0] == places[1]).sum())
        loads += [np.bincount(p, minlength=loads.shape[1]) for p in places]
        if way.adopter:
            way.tables = way.adopter.after({LINK: batch.pairs()}, way.tables) or way.tables
    worst = (loads.max(axis=1) / loads.mean(axis=1)).tolist()
    way.rows.append({"locality": local / len(period), "imbalance": worst})


def _batches(period: Tuples, adopter: Adopter | None) -> list[slice]:
    """Cut behind batches with new keys: behind others, tables stay as they are in any case."""
    if adopter is None:
        return [slice(0, len(period))]
    first, second = (adopter.is_new(name, keys) for name, keys in period.sides())
    new = np.unique(period.batch[first | second])
    ends = np.searchsorted(period.batch, new, side="right")
    return [slice(a, b) for a, b in pairwise([0, *ends.tolist(), len(period)]) if b > a]


def _refit(way: Way, period: Tuples) -> None:
    """Decide on new tables after a period; offline they are simply made."""
    use = LocalitySettings(adopts=way.name in FEWS)
    now, cut = period.pairs(), int(len(period) * FIT)
    if way.rerouted:
        observed = _observed(period[:cut].pairs(), period[cut:].pairs())
        decision = decide(observed, way.tables, use)
        way.rows[-1]["decision"] = decision.reason
        if not isinstance(decision, Reroute):
            return
        way.tables = decision.tables
    else:
        way.tables = fitted({LINK: now}, _observed(now, now), way.tables, use)
    way.promised = measured(period, way.tables)
    weights = key_weights({LINK: now})
    way.rows[-1]["fitted"] = {
        "promise": promise(now, way.tables, use.edges),
        "locality": way.promised,
        "imbalance": list(imbalance(weights, way.tables).values()),
        "heaviest": _heaviest(weights),
    }
    if way.name in FEWS:
        way.adopter = Adopter.since({LINK: now}, way.tables, use.alpha_adopt, FEWS[way.name])


def promise(pairs: PairCounts, tables: Tables, edges: int) -> float:
    """Give the share of its graph that the partition leaves whole: what it says itself."""
    key_graph = KeyGraph.of({LINK: pairs}, _observed(pairs, pairs), edges)
    parts = [tables[name].places_of(keys) for name, keys in key_graph.keys.items()]
    graph = key_graph.graph
    return 1 - graph.cut(np.concatenate(parts)) / max(int(graph.edge_weights.sum()), 1)


def measured(tuples: Tuples, tables: Tables) -> float:
    """Send tuples through tables, one by one, and give the share that stays at one place."""
    first, second = (tables[name].places_of(keys) for name, keys in tuples.sides())
    return float((first == second).mean())


def edges_kept(tuples: Tuples, options: Options) -> list[dict[str, float]]:
    """Give the locality of tables made from so many pairs only, on all pairs of the first half."""
    pairs = tuples[: len(tuples) // 2].pairs()
    even = {name: RoutingTable.even(options.places) for name in LINK}
    found = []
    for edges in _steps(len(pairs)):
        use = LocalitySettings(edges=edges)
        made = fitted({LINK: pairs}, _observed(pairs, pairs), even, use)
        found.append({"edges": edges, "locality": locality({LINK: pairs}, made).overall})
    return found


def _steps(most: int) -> Iterator[int]:
    edges = 100
    while edges < most:
        yield edges
        edges *= 4
    yield most


def _observed(fit: PairCounts, held_out: PairCounts) -> Observed:
    return Observed({LINK: fit}, {LINK: held_out}, {LINK: RATE}, {LINK: TUPLE_BYTES})


def _cut(rows: int, parts: int) -> list[slice]:
    ends = np.linspace(0, rows, parts + 1).astype(int).tolist()
    return [slice(a, b) for a, b in pairwise(ends) if b > a]


def _heaviest(weights: KeyWeights) -> list[float]:
    return [float(counts.max() / counts.sum()) for _, counts in weights.values()]


def _summary(ways: Sequence[Way], edges: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Give means from the third period on, and what the issues of locality ask for."""
    mean = {way.name: _mean(way.rows[2:], "locality") for way in ways}
    _, offline, online, _, shipped = ways
    summary: dict[str, Any] = {f"locality, {name}": round(mean[name], 3) for name in mean}
    for way in ways:
        worst = [max(row["imbalance"]) for row in way.rows[2:]]
        summary[f"imbalance, {way.name}"] = round(statistics.mean(worst or [1.0]), 2)
    reached = _mean(online.rows[2:], "promised")
    gap = reached - mean["online"]
    better = [
        mine["locality"] - other["locality"]
        for mine, other in zip(shipped.rows[2:], offline.rows[2:], strict=True)
    ]
    summary["above offline, least"] = round(min(better, default=0.0), 3)
    summary["above offline, mean"] = round(statistics.mean(better or [0.0]), 3)
    summary["promised by tables"] = round(reached, 3)
    summary["promise missed by"] = round(max(_missed(ways), default=0.0), 4)
    for name in FEWS:
        closed = (mean[name] - mean["online"]) / gap if gap else 0.0
        summary[f"gap closed, {name}"] = round(closed, 3)
    summary["worst imbalance against its bound"] = round(max(_against_bound(ways), default=0.0), 3)
    summary["locality with all pairs"] = round(edges[-1]["locality"], 3)
    return summary


def _missed(ways: Sequence[Way]) -> Iterator[float]:
    """Give how far the tables' locality on their own period is from what the partition says."""
    for made in (row["fitted"] for way in ways for row in way.rows if "fitted" in row):
        yield abs(made["promise"] - made["locality"])


def _against_bound(ways: Sequence[Way]) -> Iterator[float]:
    """Give the imbalance of tables on what they were made from, over max(1.10, n x heaviest)."""
    for way in ways:
        places = way.tables[LINK.sender].places
        for row in way.rows:
            made = row.get("fitted", {"imbalance": [], "heaviest": []})
            for worst, heaviest in zip(made["imbalance"], made["heaviest"], strict=True):
                yield worst / max(1.10, places * heaviest)


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    return statistics.mean([row[name] for row in rows] or [0.0])


def _draw(folder: Path, results: Mapping[str, Any]) -> None:
    periods = results["periods"]
    lines = {
        "locality": {
            name: [(i + 1, row["locality"]) for i, row in enumerate(rows)]
            for name, rows in periods.items()
        },
        "imbalance": {
            name: [(i + 1, max(row["imbalance"])) for i, row in enumerate(rows)]
            for name, rows in periods.items()
        },
    }
    edges = {"all periods": [(step["edges"], step["locality"]) for step in results["edges"]]}
    pictures = {
        "locality": line_chart("Locality by period", lines["locality"], "period", "share"),
        "imbalance": line_chart("Imbalance by period", lines["imbalance"], "period", "max / mean"),
        "edges": line_chart("Locality by pairs kept", edges, "pairs", "share", logarithmic=True),
    }
    write_pictures(folder, pictures.items())
