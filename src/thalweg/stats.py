"""Built-in metrics as Storm has them: counts and latencies of tasks, over sliding windows.

Totals only grow; looks at them are kept at intervals, and what happened in a window is the
difference to the look at its beginning. So nothing is done per tuple, and memory is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Generic, NamedTuple, TypeVar

#: Windows by name, in seconds.
WINDOWS: Mapping[str, float] = {
    "10 min": 600.0,
    "3 h": 10_800.0,
    "1 day": 86_400.0,
    "all time": inf,
}
#: Looks that are kept for each window.
BUCKETS = 20

K = TypeVar("K", bound=Hashable)


class Totals(NamedTuple):
    """What a task has done since the beginning; seconds are sums over tuples."""

    emitted: int = 0
    transferred: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0
    #: Seconds inside a bolt.
    execute: float = 0.0
    #: Seconds from when a bolt is given a tuple until it acknowledges it, over ``acked`` tuples.
    process: float = 0.0
    #: Seconds from a spout's tuple until its spout hears that all is done, over ``acked`` tuples.
    complete: float = 0.0

    def plus(self, other: Totals) -> Totals:
        """Add."""
        return Totals._make(a + b for a, b in zip(self, other, strict=True))

    def minus(self, other: Totals) -> Totals:
        """Give what has come since another look."""
        return Totals._make(a - b for a, b in zip(self, other, strict=True))


@dataclass(frozen=True)
class Stats:
    """What a task, or all tasks of a component, did in a window; latencies are means in seconds."""

    #: Seconds that were looked at: a window, or less while a run is younger than that.
    seconds: float
    emitted: int
    transferred: int
    executed: int
    acked: int
    failed: int
    execute_latency: float | None = None
    process_latency: float | None = None
    complete_latency: float | None = None
    #: Share of the time that a task was executing; of a component, that of its busiest task.
    capacity: float | None = None

    @classmethod
    def of(cls, totals: Totals, seconds: float) -> Stats:
        """Make means of sums.

        >>> stats = Stats.of(Totals(executed=100, acked=50, execute=2.0, process=5.0), 10.0)
        >>> stats.execute_latency, stats.process_latency, stats.complete_latency, stats.capacity
        (0.02, 0.1, None, 0.2)
        """
        bolt = totals.executed > 0
        return cls(
            seconds,
            *totals[:5],
            _mean(totals.execute, totals.executed),
            _mean(totals.process, totals.acked) if totals.process else None,
            _mean(totals.complete, totals.acked) if totals.complete else None,
            totals.execute / seconds if bolt and seconds > 0 else None,
        )


def _mean(total: float, number: int) -> float | None:
    return total / number if number > 0 else None


def together(tasks: Iterable[tuple[Totals, float]]) -> Stats:
    """Make the stats of a component of the totals of its tasks, with the seconds looked at."""
    listed = list(tasks)
    total = Totals()
    for each, _ in listed:
        total = total.plus(each)
    seconds = max((seconds for _, seconds in listed), default=0.0)
    busiest = [stats.capacity for stats in (Stats.of(*pair) for pair in listed) if stats.capacity]
    made = Stats.of(total, seconds)
    return made if made.capacity is None else _with_capacity(made, max(busiest, default=0.0))


def _with_capacity(stats: Stats, capacity: float) -> Stats:
    return Stats(**{**vars(stats), "capacity": capacity})


class Windows(Generic[K]):
    """Looks at totals, as many as windows need.

    >>> windows = Windows(0.0)
    >>> for minute in range(60):
    ...     windows.look(60.0 * minute, {"a": Totals(executed=100 * minute)})
    >>> seconds, totals = windows.since("10 min", 3540.0, {"a": Totals(executed=5900)})
    >>> seconds, totals["a"].executed
    (600.0, 1000)
    """

    def __init__(self, start: float) -> None:
        self._start = start
        self._looks: dict[str, deque[tuple[float, Mapping[K, Totals]]]] = {
            name: deque([(start, {})]) for name, length in WINDOWS.items() if length < inf
        }

    @property
    def due(self) -> float:
        """When the next look should be taken."""
        return min(looks[-1][0] + _width(name) for name, looks in self._looks.items())

    def look(self, now: float, totals: Mapping[K, Totals]) -> None:
        """Keep a look, where the last one is old enough; forget those that no window begins at."""
        for name, looks in self._looks.items():
            if now >= looks[-1][0] + _width(name):
                looks.append((now, totals))
                _prune(looks, now - WINDOWS[name])

    def since(
        self, name: str, now: float, totals: Mapping[K, Totals]
    ) -> tuple[float, dict[K, Totals]]:
        """Give the seconds of a window up to now, and what was done in them.

        A window is as long as its name says, or up to a twentieth longer: that is how often
        somebody looks.
        """
        begin, before = self._start, {}
        for moment, seen in self._looks.get(name, ()):
            if moment > now - WINDOWS[name]:
                break
            begin, before = moment, dict(seen)
        nothing = Totals()
        return now - begin, {
            key: all_.minus(before.get(key, nothing)) for key, all_ in totals.items()
        }


def _width(name: str) -> float:
    return WINDOWS[name] / BUCKETS


def _prune(looks: deque[tuple[float, Mapping[K, Totals]]], before: float) -> None:
    while len(looks) > 1 and looks[1][0] <= before:
        looks.popleft()
