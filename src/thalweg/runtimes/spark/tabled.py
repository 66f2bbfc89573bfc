"""Routing tables on their way to workers: sent once, however many batches use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark import Broadcast, SparkContext

from thalweg.routing.table import RoutingTable
from thalweg.routing.transition import Moving, Transition
from thalweg.statelog.tables import TablesRef


@dataclass(frozen=True)
class Tabled:
    """The tables that a batch goes by."""

    ref: TablesRef
    packed: Broadcast[bytes]
    #: Whether the batch makes the step that its tables say: then keys move with it.
    moving: bool = False

    @classmethod
    def send(cls, context: SparkContext, ref: TablesRef, transition: Transition) -> Tabled:
        """Send tables to the workers."""
        return cls(ref, context.broadcast(transition.to_bytes()))

    @property
    def pending(self) -> bool:
        """Whether keys are still on their way."""
        return self.ref.step < self.ref.steps

    def next(self) -> Tabled:
        """Give the tables of the next batch: one step further, if there is one."""
        if not self.pending:
            return self
        further = replace_step(self.ref, self.ref.step + 1)
        return replace(self, ref=further, moving=True)

    def committed(self, ref: TablesRef | None) -> Tabled:
        """Go on from what a manifest says; one that was skipped has made no step."""
        return self if ref is None or ref.name != self.ref.name else replace(self, ref=ref)

    def tables(self) -> Mapping[str, RoutingTable]:
        """Give the tables; made at most once per process and step."""
        key = self.ref.name, self.ref.step
        if key not in _tables:
            while len(_tables) >= _KEPT:
                _tables.pop(next(iter(_tables)))
            _tables[key] = self._transition().tables(self.ref.step)
        return _tables[key]

    def moves(self, place: int) -> dict[str, Moving]:
        """Give the keys that leave a place with this batch."""
        return self._transition().moving(self.ref.step, place) if self.moving else {}

    def sources(self) -> list[int]:
        """Give the places that keys leave with this batch."""
        if not self.moving:
            return []
        moving = self._transition().moving(self.ref.step).values()
        return sorted({int(place) for moved in moving for place in moved.sources})

    def _transition(self) -> Transition:
        if self.ref.name not in _transitions:
            while len(_transitions) >= _KEPT:
                _transitions.pop(next(iter(_transitions)))
            _transitions[self.ref.name] = Transition.from_bytes(self.packed.value)
        return _transitions[self.ref.name]


def replace_step(ref: TablesRef, step: int) -> TablesRef:
    """Give the same tables at another step."""
    return TablesRef(ref.name, ref.size, ref.checksum, step, ref.steps)


# Topologies that run at the same time in one session share the workers.
_KEPT = 4
_transitions: dict[str, Transition] = {}
_tables: dict[tuple[str, int], Mapping[str, RoutingTable]] = {}
