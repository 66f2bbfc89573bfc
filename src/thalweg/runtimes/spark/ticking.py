"""When ticks are due."""

from __future__ import annotations

import math

from thalweg.topology import Topology


class Ticks:
    """The next tick of each component that has them; one that was missed is not made up for."""

    def __init__(self, topology: Topology, now: float) -> None:
        self._every = {c.name: c.options.tick for c in topology if c.options.tick}
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
