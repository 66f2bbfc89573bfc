"""When ticks and timers are due."""

from __future__ import annotations

import math
from collections.abc import Iterable

from thalweg.eventtime import ALWAYS
from thalweg.runtimes.spark.notes import Note
from thalweg.runtimes.spark.program import Facts
from thalweg.topology import Topology


class Ticks:
    """The next tick of each component that has them; one that was missed is not made up for."""

    def __init__(self, topology: Topology, now: float) -> None:
        self._every = {c.name: c.needed_tick for c in topology if c.needed_tick}
        self._next = {name: now + every for name, every in self._every.items()}

    def due(self, now: float) -> frozenset[str]:
        """Give the components whose tick is due, and wait for their next."""
        found = frozenset(name for name, at in self._next.items() if at <= now)
        for name in found:
            following = self._next[name] + self._every[name]
            self._next[name] = following if following > now else now + self._every[name]
        return found

    def wait(self, now: float) -> float:
        """Give the seconds until the next tick."""
        return min((at - now for at in self._next.values()), default=math.inf)


def next_due(facts: Facts, notes: Iterable[Note]) -> dict[str, tuple[int, int]]:
    """Give before which times no timer of a component is due behind a batch.

    Where one may have been due, all tasks have gone through their timers. Otherwise they know only
    of those that they have set, and what was known before holds for the others.
    """
    found = {name: due for name, due in facts.due.items() if not facts.is_due(name)}
    for note in notes:
        for name, (events, clock) in note.due.items():
            before = found.get(name, (ALWAYS, ALWAYS))
            found[name] = min(events, before[0]), min(clock, before[1])
    return {name: due for name, due in found.items() if min(due) < ALWAYS}
