"""Lines over time, made of the records of a run: rates, latencies, degrees."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from thalweg.recording.records import Record

#: Points of one line, by name: seconds since the start, and a value, which is not a number where
#: nothing was measured: there the line has a gap.
Lines = dict[str, list[tuple[float, float]]]

#: Points of a line that are drawn, and lines of one chart; more cannot be told apart.
MOST_POINTS, MOST_LINES = 400, 7
#: Rates and shares are over at least so many seconds, so that they do not jump.
_SMOOTH = 1.0
#: Looks for which a value may be missing before that is a gap in its line.
_MISSED = 3


def rates(looks: Sequence[Record]) -> Lines:
    """Tuples per second, into the topology and out of it.

    >>> looks = [{"at": t, "snapshot": {"elapsed": t, "tuples_in": n, "tuples_out": 0}}
    ...          for t, n in ((0.0, 0), (2.0, 100), (4.0, 500))]
    >>> rates(looks)["in"]
    [(2.0, 50.0), (4.0, 200.0)]
    """
    names = {"in": "tuples_in", "out": "tuples_out"}
    return {line: list(_slopes(looks, name)) for line, name in names.items()}


def latencies(looks: Iterable[Record]) -> Lines:
    """Milliseconds of a block, or of a batch, from arrival to end: of those that ended just now.

    Older recordings only have them of all since the start.
    """
    made: Lines = {"p50": [], "p95": [], "p99": []}
    for look in looks:
        snapshot = look["snapshot"]
        found = snapshot.get("recent", snapshot["latency"]) or {}
        for name, points in made.items():
            seconds = found.get(name)
            points.append((look["at"], math.nan if seconds is None else 1000 * seconds))
    return {name: _bridged(points) for name, points in made.items()}


def waiting(looks: Iterable[Record]) -> Lines:
    """Tuples that wait to be processed."""
    return {"pending": [(look["at"], float(look["snapshot"]["pending"])) for look in looks]}


def degrees(looks: Iterable[Record]) -> Lines:
    """Tasks of each component."""
    return _by_component(looks, lambda component: component["degree"])


def buffers(looks: Iterable[Record]) -> Lines:
    """Blocks of each component's output that wait for earlier ones, where a runtime keeps order."""
    return _by_component(looks, lambda component: component["reordering"])


def busy(looks: Sequence[Record]) -> Lines:
    """Share of its tasks' time that each component has worked."""
    return _shares(looks, "busy")


def pressed(looks: Sequence[Record]) -> Lines:
    """Share of its tasks' time that each component was back-pressured, where that is known."""
    return _shares(looks, "blocked")


def _shares(looks: Sequence[Record], field: str) -> Lines:
    made: Lines = {}
    for before, look in _based(looks):
        passed = look["snapshot"]["elapsed"] - before["snapshot"]["elapsed"]
        earlier = {c["component"]: c for c in before["snapshot"]["components"]}
        for component in look["snapshot"]["components"] if passed > 0 else ():
            name, now = component["component"], component.get(field)
            then = earlier.get(name, {"degree": component["degree"]})
            if now is not None:
                # Somewhere between the two it may have changed.
                tasks = (then["degree"] + component["degree"]) / 2
                share = (now - (then.get(field) or 0.0)) / passed / tasks
                made.setdefault(name, []).append((look["at"], min(1.0, max(0.0, share))))
    return made


def locality(looks: Sequence[Record], keys: Iterable[Record]) -> Lines:
    """Share of the tuples that stayed at their place, and of the sampled pairs at one place."""
    tuples: list[tuple[float, float]] = []
    for before, look in _based(looks):
        local, shuffled = (_grown(before, look, name) for name in ("local", "shuffled"))
        counted = local + shuffled
        tuples.append((look["at"], local / counted if counted > 0 else math.nan))
    made: Lines = {"tuples": tuples}
    for record in keys:
        for link in record["links"]:
            name = f"{link['sender']} to {link['reader']}"
            value = math.nan if link["locality"] is None else link["locality"]
            made.setdefault(name, []).append((record["at"], value))
    return {name: _bridged(points) for name, points in made.items()}


def _bridged(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Leave out what is missing for a few looks: a line is drawn across that.

    >>> some = [math.nan, 1.0, math.nan, 2.0, *[math.nan] * 4, 3.0]
    >>> [at for at, _ in _bridged(list(enumerate(some)))]
    [1, 3, 4, 5, 6, 7, 8]
    """
    made: list[tuple[float, float]] = []
    missing: list[tuple[float, float]] = []
    for point in points:
        if math.isnan(point[1]):
            missing.append(point)
        else:
            made += [*(missing if len(missing) > _MISSED else ()), point]
            missing = []
    return made


def phases(batches: Iterable[Record]) -> Lines:
    """Seconds of each batch, by phase."""
    made: Lines = {"all": []}
    for record in batches:
        made["all"].append((record["at"], record["seconds"]))
        for name, seconds in record["phases"].items():
            made.setdefault(name, []).append((record["at"], seconds))
    return made


def drawable(
    lines: Mapping[str, Sequence[tuple[float, float]]], of: Callable[[list[float]], float] = max
) -> Lines:
    """Give the largest lines, with few points each; those without points go."""
    known = {name: list(points) for name, points in lines.items() if _values(points)}
    largest = sorted(known, key=lambda name: -max(_values(known[name])))[:MOST_LINES]
    return {name: thinned(known[name], of) for name in known if name in largest}


def thinned(
    points: Sequence[tuple[float, float]], of: Callable[[list[float]], float] = max
) -> list[tuple[float, float]]:
    """Give at most :data:`MOST_POINTS` points: of each stretch the highest value, or the mean.

    A point stands where its stretch ends; a stretch without values is a gap.

    >>> from statistics import fmean
    >>> points = [(float(i), 9.0 if i == 501 else 1.0) for i in range(1000)]
    >>> highest, means = thinned(points), thinned(points, fmean)
    >>> len(highest) <= MOST_POINTS, highest[-1], max(value for _, value in highest)
    (True, (999.0, 1.0), 9.0)
    >>> round(fmean(value for _, value in means), 3)
    1.008
    """
    if len(points) <= MOST_POINTS:
        return list(points)
    step = -(-len(points) // MOST_POINTS)
    stretches = [points[i : i + step] for i in range(0, len(points), step)]
    return [(each[-1][0], of(_values(each) or [math.nan])) for each in stretches]


def _values(points: Iterable[tuple[float, float]]) -> list[float]:
    return [value for _, value in points if not math.isnan(value)]


def _based(looks: Sequence[Record]) -> Iterator[tuple[Record, Record]]:
    """Give each look with one before it, at least a second earlier where there is one."""
    base = 0
    for at in range(1, len(looks)):
        elapsed = looks[at]["snapshot"]["elapsed"]
        while base + 1 < at and elapsed - looks[base + 1]["snapshot"]["elapsed"] >= _SMOOTH:
            base += 1
        yield looks[base], looks[at]


def _slopes(looks: Sequence[Record], name: str) -> Iterator[tuple[float, float]]:
    for before, look in _based(looks):
        passed = look["snapshot"]["elapsed"] - before["snapshot"]["elapsed"]
        if passed > 0:
            grown = look["snapshot"][name] - before["snapshot"][name]
            yield look["at"], max(0.0, grown / passed)


def _by_component(
    looks: Iterable[Record], value: Callable[[Mapping[str, Any]], float | None]
) -> Lines:
    made: Lines = {}
    for look in looks:
        for component in look["snapshot"]["components"]:
            found = value(component)
            if found is not None:
                made.setdefault(component["component"], []).append((look["at"], float(found)))
    return made


def _grown(before: Record, look: Record, name: str) -> int:
    now, then = (
        sum(component[name] or 0 for component in each["snapshot"]["components"])
        for each in (look, before)
    )
    return now - then
