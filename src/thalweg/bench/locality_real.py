"""Locality on real data, replayed in the order of time.

The data is cut into periods of equal length, each period into batches. Tuples have two keys; a
tuple is local when both are at the same place. Compared are routing by hash, a table made from
the first period (offline), a table made again after each period when that pays (online), and the
same with keys placed with their partners after each batch: those never seen before (new keys), or
all that have found other partners (following). Pairs are counted without sampling.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from thalweg.bench.keyed_data import columns, key_fields, read_keys
from thalweg.bench.measuring import environment
from thalweg.control.adopting import adopt
from thalweg.control.keygraph import fitted
from thalweg.control.links import KeyWeights, Link, Observed, Tables, key_weights
from thalweg.control.locality import Reroute, decide
from thalweg.control.measures import locality, outlook
from thalweg.control.settings import LocalitySettings
from thalweg.drawing.charts import line_chart
from thalweg.errors import UsageError, explain
from thalweg.hashing import Hashes, hash_columns
from thalweg.routing.table import RoutingTable
from thalweg.sketches.pairs import PairCounts, merged

Report = Callable[[str], None]
LINK = Link("first", "second")
BATCHES, QUICK_ROWS = 50, 60_000
#: Share of a period that tables are made from; they are judged by the rest.
FIT = 0.8
#: A tuple and its rate; state of 100 bytes per key is cheap against it, so that drift decides.
TUPLE_BYTES, RATE = 100.0, 10_000.0
WAYS = ("hash", "offline", "online", "online, new keys", "online, following")


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    data: str = ""
    keys: str = ""
    places: int = 6
    periods: int = 12
    #: A field to sort the records by; they are in order already when it is not given.
    time: str = ""
    #: A folder for pictures.
    plots: str = ""


@dataclass(eq=False)
class Way:
    """One way of routing, as it goes through the periods."""

    name: str
    tables: Tables
    rerouted: bool = False
    #: Whether new keys (False) or all keys (True) follow their partners; None for neither.
    follows: bool | None = None
    #: Locality of the present tables on the period that they were made from.
    promised: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    #: Pairs since the tables were made (all that was seen then included, if all keys follow).
    seen: PairCounts = field(default_factory=PairCounts.none)
    known: Mapping[str, Hashes] = field(default_factory=dict)


def locality_real(quick: bool, report: Report, options: Options) -> dict[str, Any]:
    """Locality and imbalance on real data, period by period: hash, offline, online."""
    if not options.data or not options.keys:
        text = "--data PATH --keys FIRST,SECOND"
        raise UsageError(explain("bench 'locality-real'", expected=text))
    table = read_keys(options.data, key_fields(options.keys), options.time)
    first, second = (hash_columns([column]) for column in columns(table)[:2])
    if quick:
        first, second = first[:QUICK_ROWS], second[:QUICK_ROWS]
    report(f"{len(first):,} tuples, {options.periods} periods, {options.places} places")
    ways = replay(first, second, options, report)
    edges = edges_kept(first, second, options)
    results = {"periods": {way.name: way.rows for way in ways}, "edges": edges}
    if options.plots:
        _draw(Path(options.plots), results)
    return {
        "name": "locality-real",
        # Of the data, its name: where it lies is nobody's business.
        "environment": environment() | asdict(options) | {"data": Path(options.data).name},
        "results": results,
        "summary": _summary(ways, edges),
    }


def replay(first: Hashes, second: Hashes, options: Options, report: Report) -> list[Way]:
    """Send the tuples through all ways of routing."""
    even = {name: RoutingTable.even(options.places) for name in LINK}
    ways = [Way(name, even) for name in WAYS]
    ways[2].rerouted = ways[3].rerouted = ways[4].rerouted = True
    ways[3].follows, ways[4].follows = False, True
    for number, rows in enumerate(_cut(len(first), options.periods)):
        period = first[rows], second[rows]
        for way in ways:
            _pass(way, *period)
            way.rows[-1]["promised"] = way.promised
            if way.rerouted or (way.name == "offline" and number == 0):
                _refit(way, *period)
        shown = ", ".join(f"{way.name} {100 * way.rows[-1]['locality']:.1f} %" for way in ways)
        report(f"period {number + 1}: {shown}")
    return ways


def _pass(way: Way, first: Hashes, second: Hashes) -> None:
    """Route a period batch by batch, and adopt keys after each."""
    use = LocalitySettings()
    local, loads = 0, np.zeros((2, way.tables[LINK.sender].places))
    for rows in _cut(len(first), BATCHES):
        places = [way.tables[name].places_of(keys[rows]) for name, keys in _named(first, second)]
        local += int((places[0] == places[1]).sum())
        loads += [np.bincount(p, minlength=loads.shape[1]) for p in places]
        if way.follows is not None and way.promised:
            batch = PairCounts.of(first[rows], second[rows])
            way.seen = merged([way.seen, batch], use.capacity)
            known = {} if way.follows else way.known
            way.tables = adopt({LINK: way.seen}, way.tables, known, use.alpha_adopt) or way.tables
    worst = (loads.max(axis=1) / loads.mean(axis=1)).tolist()
    way.rows.append({"locality": local / len(first), "imbalance": worst})


def _refit(way: Way, first: Hashes, second: Hashes) -> None:
    """Decide on new tables after a period; offline they are simply made."""
    use = LocalitySettings(adopts=way.follows is not None)
    now, cut = PairCounts.of(first, second), int(len(first) * FIT)
    if way.rerouted:
        fit, later = (PairCounts.of(first[s], second[s]) for s in (slice(cut), slice(cut, None)))
        decision = decide(_observed(fit, later), way.tables, use)
        way.rows[-1]["decision"] = decision.reason
        if not isinstance(decision, Reroute):
            return
        way.tables = decision.tables
    else:
        way.tables = fitted({LINK: now}, _observed(now, now), way.tables, use)
    found = outlook({LINK: now}, way.tables)
    way.promised = found.locality.overall
    way.rows[-1]["fitted"] = {
        "locality": way.promised,
        "imbalance": list(found.imbalance.values()),
        "heaviest": _heaviest(key_weights({LINK: now})),
    }
    way.seen = now if way.follows else PairCounts.none()
    none = np.empty(0, np.uint64)
    way.known = {
        name: np.union1d(way.known.get(name, none), keys) for name, keys in _named(first, second)
    }


def edges_kept(first: Hashes, second: Hashes, options: Options) -> list[dict[str, float]]:
    """Give the locality of tables made from so many pairs only, on all pairs of the first half."""
    half = len(first) // 2
    pairs = PairCounts.of(first[:half], second[:half])
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


def _named(first: Hashes, second: Hashes) -> list[tuple[str, Hashes]]:
    return [(LINK.sender, first), (LINK.reader, second)]


def _cut(rows: int, parts: int) -> list[slice]:
    ends = np.linspace(0, rows, parts + 1).astype(int).tolist()
    return [slice(a, b) for a, b in pairwise(ends) if b > a]


def _heaviest(weights: KeyWeights) -> list[float]:
    return [float(counts.max() / counts.sum()) for _, counts in weights.values()]


def _summary(ways: Sequence[Way], edges: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Give means from the third period on, and what the issues of locality ask for."""
    mean = {way.name: _mean(way.rows[2:], "locality") for way in ways}
    online = ways[2]
    summary: dict[str, Any] = {f"locality, {name}": round(mean[name], 3) for name in mean}
    for way in ways:
        worst = [max(row["imbalance"]) for row in way.rows[2:]]
        summary[f"imbalance, {way.name}"] = round(statistics.mean(worst or [1.0]), 2)
    summary["promised by tables"] = round(_mean(online.rows[2:], "promised"), 3)
    gap = _mean(online.rows[2:], "promised") - mean["online"]
    for name in WAYS[3:]:
        summary[f"gap closed, {name}"] = round((mean[name] - mean["online"]) / gap, 2) if gap else 0
    summary["worst imbalance against its bound"] = round(max(_against_bound(ways), default=0.0), 3)
    summary["locality with all pairs"] = round(edges[-1]["locality"], 3)
    return summary


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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, picture in pictures.items():
            (folder / f"{name}.svg").write_text(picture, encoding="utf-8")
    except OSError as error:
        text = explain(f"--plots {str(folder)!r}", "", "a folder to write", str(error))
        raise UsageError(text) from error
