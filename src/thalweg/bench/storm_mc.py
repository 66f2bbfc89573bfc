"""The topologies of the Storm-MC document at degrees 1 to 10, as in its tables 5.1 to 5.6.

Each topology runs in a process of its own for a fixed time: tuples of every component, processor
time, resident size and threads, beside what the document reports for Storm-MC and for Storm.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from thalweg.bench import storm_parts
from thalweg.bench.measuring import apart, environment
from thalweg.bench.storm_mc_published import COUNTED, TABLES, threads
from thalweg.bench.watching import watched
from thalweg.errors import UsageError, explain
from thalweg.topology import Topology
from thalweg.workloads.stormmc.mail import mail
from thalweg.workloads.stormmc.mails import mails, write_mails
from thalweg.workloads.stormmc.sorting import rolling_sort, rolling_sort_blocks
from thalweg.workloads.stormmc.words import wordcount, wordcount_blocks


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    #: One topology, or all.
    topology: str = "all"
    degrees: str = "1,2,3,4,5,6,7,8,9,10"
    #: Seconds that are measured, and seconds before that.
    seconds: float = 5.0
    warm: float = 1.0
    repeat: int = 3
    #: Mails of the file that is read again and again.
    mails: int = 5000


QUICK = Options(degrees="1,2", seconds=0.6, warm=0.2, repeat=1, mails=500)

#: By name: the table it belongs to, and how it is made of a degree and a file of mails.
CASES: dict[str, tuple[str, Callable[[int, Path], Topology]]] = {
    "wordcount": ("wordcount", lambda degree, _: wordcount(degree)),
    "wordcount_acked": ("wordcount", lambda degree, _: wordcount(degree, acking=True)),
    "wordcount_blocks": ("wordcount", lambda degree, _: wordcount_blocks(degree)),
    "mail": ("mail", lambda degree, path: mail(path, degree, again=True)),
    "rolling_sort": ("rolling-sort", lambda degree, _: rolling_sort(degree)),
    "rolling_sort_blocks": ("rolling-sort", lambda degree, _: rolling_sort_blocks(degree)),
}

#: Before names of components on our classes, where streamparse's would be used otherwise.
_OWN = "own_"
#: Candidates on all cores: others of these have one, so that what is compared has equal means.
_FREE = "all_cores_"
#: Components as streamparse's users write them, by name: how a topology is made of them, and the
#: component whose tuples count. *one* has the counting bolt alone.
_PARTS: Mapping[str, tuple[Callable[[], Topology], str]] = {
    f"{name}_{way}": (partial(storm_parts.whole, name, way), last)
    for name, (_, last) in storm_parts.TOPOLOGIES.items()
    for way in storm_parts.HOSTINGS
} | {f"one_{way}": (partial(storm_parts.one_bolt, way), "count") for way in storm_parts.HOSTINGS}
PARTS = {
    **_PARTS,
    **{_OWN + name: p for name, p in _PARTS.items() if name.startswith(("wordcount", "one"))},
    **{_FREE + name: p for name, p in _PARTS.items() if name.startswith("wordcount")},
}

_WAYS = ("multilang_json", "multilang_msgpack")
#: What comes behind the names of ratios, where it is not the topology.
_ENDS = {
    "wordcount": "",
    "one": "_one_bolt",
    "own_wordcount": "_own",
    "own_one": "_own_one_bolt",
    "all_cores_wordcount": "_all_cores",
}
# Left out where it has to be quick: children take a second to begin.
_SLOW = ("mail_multilang", "rolling_sort_multilang")


def run(quick: bool, report: Callable[[str], None], options: Options) -> dict[str, Any]:
    """Storm-MC's WordCount, mail and RollingSort: tuples, CPU, memory and threads by degree."""
    names = _names(options.topology)
    if quick:
        options = replace(QUICK, topology=options.topology)
        names = [name for name in names if not name.startswith(_SLOW)]
    degrees = dict.fromkeys(names, _degrees(options.degrees)) | {name: [1] for name in PARTS}
    turns: dict[str, dict[int, list[dict[str, Any]]]]
    turns = {name: {degree: [] for degree in degrees[name]} for name in names}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mails"
        if "mail" in names:
            write_mails(path, mails(options.mails))
        for turn in range(options.repeat):
            for name in names:
                for degree in degrees[name]:
                    found = _apart(name, degree, path, options)
                    turns[name][degree].append(found)
                    told = _line(found) + _beside(name, degree)
                    report(f"{turn + 1}/{options.repeat} {name} {degree}: {told}")
    results = {name: _table(name, by_degree) for name, by_degree in turns.items()}
    return {
        "name": "storm-mc",
        "environment": environment() | asdict(options),
        "results": results,
        "summary": summary(results),
    }


def _degrees(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1:
        raise UsageError(explain("--degrees of 'storm-mc'", "", "numbers like 1,2,4", text))
    return found


def _names(topology: str) -> list[str]:
    tables = {name: table for name, (table, _) in CASES.items()} | dict.fromkeys(PARTS, "parts")
    found = [name for name, table in tables.items() if topology in ("all", name, table)]
    if not found:
        known = f"one of {['all', *TABLES, 'parts']}"
        raise UsageError(explain("--topology of 'storm-mc'", "", known, topology))
    return found


def _apart(name: str, degree: int, path: Path, options: Options) -> dict[str, Any]:
    times = (str(options.warm), str(options.seconds))
    os.environ[storm_parts.LIBRARY] = "own" if name.startswith(_OWN) else ""
    return apart("thalweg.bench.storm_mc", name, str(degree), str(path), *times)


def _line(found: Mapping[str, Any]) -> str:
    return (
        f"{found['per_second']:,.0f} tuples/s, {found['cpu']:.2f} cores, "
        f"{found['megabytes']:,.0f} MB, {found['threads']} threads"
    )


def _table(name: str, turns: Mapping[int, list[dict[str, Any]]]) -> dict[str, Any]:
    """Give a table: by degree what was measured, and what the document has."""
    rows = {}
    for degree, found in turns.items():
        rates = [each["per_second"] for each in found]
        rows[str(degree)] = {
            "best": max(rates),
            "median": statistics.median(rates),
            "turns": found,
            "published": _published(name, degree),
        }
    return rows


def _beside(name: str, degree: int) -> str:
    """Say what the document reports."""
    found = _published(name, degree).items()
    told = (f"{system.replace('_', '-')} {row['per_second']:,.0f}" for system, row in found)
    return f" (published: {', '.join(told)})" if found else ""


def _published(name: str, degree: int) -> dict[str, Any]:
    """Give what the document reports for a degree, by system."""
    if name not in CASES:
        return {}
    table = CASES[name][0]
    tasks = {"wordcount": 3, "mail": 5, "rolling-sort": 2}[table] * degree + (table == "mail")
    return {
        system: asdict(rows[degree - 1])
        | {"per_second": rows[degree - 1].per_second, "threads": threads(system, tasks)}
        for system, rows in TABLES[table].items()
        if degree <= len(rows)
    }


def summary(results: Mapping[str, Any]) -> dict[str, float]:
    """Compare ways to run the same components; give the speed of each topology.

    >>> rows = {"1": {"best": 2.0, "median": 1.0}, "2": {"best": 4.0, "median": 3.0}}
    >>> summary({"mail": rows})["mail_best_per_second"]
    4.0
    """
    found = _parts_summary(results)
    for name, rows in results.items():
        first, best = next(iter(rows)), max(rows, key=lambda degree: rows[degree]["best"])
        found[f"{name}_degree_{first}_per_second"] = rows[first]["best"]
        found[f"{name}_degree_{first}_per_second_median"] = rows[first]["median"]
        if len(rows) > 1:
            found[f"{name}_best_per_second"] = rows[best]["best"]
            found[f"{name}_best_degree"] = int(best)
    return found


def _parts_summary(results: Mapping[str, Any]) -> dict[str, float]:
    """Compare components inside the run with the same ones as children."""
    found = {}
    for suffix, kind in (("", "best"), ("_median", "median")):
        speed = {name: results[name]["1"][kind] for name in PARTS if name in results}
        for name in dict.fromkeys([*storm_parts.TOPOLOGIES, *_ENDS]):
            more = _ENDS.get(name, f"_{name}")
            for way in _WAYS:
                inside, outside = f"{name}_in_process", f"{name}_{way}"
                if inside in speed and outside in speed:
                    found[f"in_process_vs_{way}{more}{suffix}"] = speed[inside] / speed[outside]
        for way in _WAYS:
            if f"{_FREE}wordcount_{way}" in speed and "1" in results.get("wordcount", {}):
                ratio = results["wordcount"]["1"][kind] / speed[f"{_FREE}wordcount_{way}"]
                found[f"bolts_vs_{way}{suffix}"] = ratio
            for start in ("", _OWN):
                if f"{start}one_{way}" in speed:
                    found[f"{start}{way}_tuples_per_s{suffix}"] = speed[f"{start}one_{way}"]
    return found


def _measure(name: str, degree: int, path: Path, warm: float, seconds: float) -> dict[str, Any]:
    if name in PARTS:
        if not name.startswith(_FREE):  # its children neither
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        make_parts, last = PARTS[name]
        return watched(make_parts(), last, warm, seconds)
    table, make = CASES[name]
    return watched(make(degree, path), COUNTED[table][-1], warm, seconds)


if __name__ == "__main__":
    which, tasks, file, before, during = sys.argv[1:]
    measured = _measure(which, int(tasks), Path(file), float(before), float(during))
    sys.stdout.write(json.dumps(measured) + "\n")
