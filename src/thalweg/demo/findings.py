"""What a phase came to, read from its recording, and what that says in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from thalweg.demo.describing import Wave
from thalweg.demo.phases import Phase
from thalweg.recording.reading import SNAPSHOTS, Recording
from thalweg.recording.records import Record

#: Points of a line in the terminal.
COLUMNS = 44
#: What is called as fast: noise of one short run.
_EVEN = 0.1
#: Differences of shares that are not worth a word.
_NOTHING = 0.02
DOCS = "docs/locality.md"

Point = tuple[float, float]


@dataclass(frozen=True)
class Finding:
    """What was seen in one phase."""

    phase: Phase
    #: Tuples per second in the rush.
    rate: float
    #: Share of the tuples between the two steps that went to another place; None where a runtime
    #: does not count them.
    shuffled: float | None
    #: Share of the sampled pairs of keys that were at one place, while there were several places.
    locality: float | None
    reconfigurations: int
    #: Tasks of each step over time, in equal intervals, and the mean over the run.
    degrees: tuple[int, ...]
    tasks: float
    #: Tuples per second in the last third of the rush.
    late: float
    #: Tasks of each step, the mean over the rush.
    rush_tasks: float

    @property
    def per_task(self) -> float:
        """Tuples per second of a task of a step, in the rush."""
        return self.rate / max(self.rush_tasks, 1.0)


def found(phase: Phase, wave: Wave, recording: Recording) -> Finding:
    """Read what a phase came to."""
    looks = list(recording.records(kinds=SNAPSHOTS))
    first, last = wave.calm.rows, wave.calm.rows + wave.rush.rows
    done = [(look["at"], float(_last_step(look)["received"])) for look in looks]
    begin, end = (reached(done, rows) for rows in (first, last))
    late = last - wave.rush.rows // 3
    degree = [(look["at"], float(_first_step(look)["degree"])) for look in looks]
    keys = [look for look in recording.records(kinds=["keys"]) if at_last(degree, look["at"]) > 1]
    locality = _locality(keys, begin, end)
    several = [look for look in looks if look["at"] >= begin and _first_step(look)["degree"] > 1]
    rush = [look for look in several if look["at"] <= end]
    return Finding(
        phase=phase,
        rate=_rate(first, last, begin, end),
        late=_rate(late, last, reached(done, late), end),
        shuffled=_shuffled(rush if len(rush) > 1 else several),
        locality=locality,
        reconfigurations=sum(1 for _ in recording.records(kinds=["reconfigured"])),
        degrees=tuple(round(value) for value in sampled(degree, COLUMNS)),
        tasks=mean(degree),
        rush_tasks=mean(within(degree, begin, end)),
    )


def _rate(first: int, last: int, begin: float, end: float) -> float:
    return (last - first) / (end - begin) if end > begin else last / max(end, 1e-9)


def _first_step(look: Record) -> Any:
    return look["snapshot"]["components"][1]


def _last_step(look: Record) -> Any:
    return look["snapshot"]["components"][-1]


def _shuffled(looks: Sequence[Record]) -> float | None:
    """Give the share of the tuples that did not stay behind the first step, where it is known."""
    if len(looks) < 2 or _first_step(looks[-1])["shuffled"] is None:
        return None
    stayed, went = (
        _first_step(looks[-1])[name] - (_first_step(looks[0])[name] or 0)
        for name in ("local", "shuffled")
    )
    return went / (stayed + went) if stayed + went else None


def _locality(keys: Iterable[Record], begin: float, end: float) -> float | None:
    """Give the locality of the tuples counted during the rush; or else behind it, or before."""
    told = [(record["at"], link) for record in keys for link in record["links"]]
    behind = [(at, link) for at, link in told if at > begin] or told
    within = [link for at, link in behind if at <= end] or [link for _, link in behind]
    total = sum(link["total"] for link in within)
    return sum(link["total"] * link["locality"] for link in within) / total if total else None


def reached(points: Sequence[Point], value: float) -> float:
    """Give the time at which a count that grows has come to a value.

    >>> reached([(0.0, 0.0), (1.0, 0.0), (2.0, 100.0)], 50.0)
    1.5
    """
    for (at, before), (later, after) in pairwise(points):
        if before <= value <= after and after > before:
            return at + (later - at) * (value - before) / (after - before)
    return points[-1][0] if points else 0.0


def sampled(points: Sequence[Point], columns: int) -> list[float]:
    """Give what was last seen at so many equally distant times.

    >>> sampled([(0.0, 1.0), (1.0, 4.0), (4.0, 1.0)], 5)
    [1.0, 4.0, 4.0, 4.0, 1.0]
    """
    if not points:
        return []
    begin, end = points[0][0], points[-1][0]
    times = (begin + (end - begin) * i / max(1, columns - 1) for i in range(columns))
    return [at_last(points, time) for time in times]


def at_last(points: Sequence[Point], time: float) -> float:
    """Give the value at a time: that of the last point until then, or of the first.

    >>> [at_last([(1.0, 2.0), (3.0, 4.0)], time) for time in (0.0, 2.0, 3.0)]
    [2.0, 2.0, 4.0]
    """
    known = [value for at, value in points if at <= time]
    return known[-1] if known else points[0][1]


def within(points: Sequence[Point], begin: float, end: float) -> list[Point]:
    """Give the values between two times: at both, and wherever they change between them.

    >>> within([(0.0, 1.0), (2.0, 4.0), (5.0, 2.0)], 1.0, 3.0)
    [(1.0, 1.0), (2.0, 4.0), (3.0, 4.0)]
    """
    inner = [(at, value) for at, value in points if begin < at < end]
    return [(begin, at_last(points, begin)), *inner, (end, at_last(points, end))]


def mean(points: Sequence[Point]) -> float:
    """Give the mean over time of a value that stays until the next point.

    >>> mean([(0.0, 1.0), (1.0, 4.0), (3.0, 1.0)])
    3.0
    """
    if len(points) < 2 or points[-1][0] == points[0][0]:
        return points[-1][1] if points else 0.0
    area = sum(value * (later - at) for (at, value), (later, _) in pairwise(points))
    return area / (points[-1][0] - points[0][0])


def sentences(findings: Sequence[Finding]) -> Iterator[str]:
    """Say what was seen: also what did not pay."""
    for runtime in dict.fromkeys(finding.phase.runtime for finding in findings):
        both = {f.phase.aware: f for f in findings if f.phase.runtime == runtime}
        if len(both) == 2:
            yield from _compared(both[False], both[True])
    yield (
        "On one machine there is no network to save, so moving fewer tuples gains little. "
        f"Between hosts it gains more: {DOCS} has what was measured there."
    )
    yield "Each ran once, for seconds: on a machine that does other things too, rates differ a lot."


def _compared(plain: Finding, aware: Finding) -> Iterator[str]:
    name = aware.phase.name.partition(",")[0]
    if plain.locality is not None and aware.locality is not None:
        text = (
            f"by hash the keys of {percent(plain.locality)} of the tuples were at one place, "
            f"locality-aware those of {percent(aware.locality)}"
        )
        better = aware.locality > plain.locality + _NOTHING
        tail = _shuffling(plain, aware) if better else "; they do not occur together enough"
        yield f"{name}: {text}{tail}."
    yield f"{name}: {_speed(plain.rate, aware.rate)}; {_tasks(plain, aware)}."
    yield (
        f"{name}: a task of a step did {aware.per_task:,.0f} tuples/s in the rush locality-aware, "
        f"when there were {aware.rush_tasks:.1f} of them, and {plain.per_task:,.0f} by hash, with "
        f"{plain.rush_tasks:.1f}; how many there are is the scaling."
    )
    yield (
        f"{name}: in the last third of the rush it was {aware.late:,.0f} tuples/s locality-aware, "
        f"and {plain.late:,.0f} by hash."
    )


def _shuffling(plain: Finding, aware: Finding) -> str:
    if plain.shuffled is None or aware.shuffled is None:
        return ""
    if aware.shuffled > plain.shuffled - _NOTHING:
        return "; tuples as small as these are shuffled all the same"
    return (
        f"; so {percent(aware.shuffled)} of the tuples were shuffled between the two steps, "
        f"not {percent(plain.shuffled)}"
    )


def _speed(plain: float, aware: float) -> str:
    ratio = aware / plain if plain else 1.0
    if ratio > 1 + _EVEN:
        return f"locality-aware, the rush went {ratio:.1f} times as fast"
    if ratio < 1 - _EVEN:
        return (
            f"locality-aware, the rush went at {ratio:.2f} of the rate: "
            "tasks came and keys moved while it lasted"
        )
    return "the rush went about as fast either way"


def _tasks(plain: Finding, aware: Finding) -> str:
    low, high = min(aware.degrees), max(aware.degrees)
    if low == high:
        return f"each step had {low} tasks all the time, {plain.tasks:.0f} by hash"
    spared = 1 - aware.tasks / plain.tasks
    tail = f", {percent(spared)} fewer over the run" if spared > _NOTHING else ""
    return f"each step had {low} to {high} tasks, not {plain.tasks:.0f} as by hash{tail}"


def percent(share: float) -> str:
    """Write a share.

    >>> percent(0.256)
    '26 %'
    """
    return f"{100 * share:.0f} %"
