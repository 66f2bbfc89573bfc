"""What a runtime tells of a batch to whoever gives keys their places, and what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from thalweg.hashing import Hashes
from thalweg.migration.plan import Held
from thalweg.migration.report import Score
from thalweg.routing.table import RoutingTable, is_in, united
from thalweg.sketches.pairs import PairCounts, Weights

#: Both ends of a link: a keyed component, its sibling, or ``@source``; and a keyed component.
Ends = tuple[str, str]
Tables = Mapping[str, RoutingTable]


@dataclass(frozen=True)
class Seen:
    """What a committed batch was like."""

    #: Seconds of the batch clock, and those that the batch took.
    clock: float
    seconds: float
    #: Pairs of keys that occurred together, on a share of the tuples.
    pairs: Mapping[Ends, PairCounts] = field(default_factory=dict)
    #: Neighbours that were chosen at once for that.
    burst: int = 1
    #: Seconds that tasks worked, and those of them that counting pairs took.
    work: float = 0.0
    counting: float = 0.0
    #: Bytes and tuples that each component sent to other places.
    sent: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: Bytes and keys of each component's state.
    state: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: Keys that moved with the batch, and the bytes of their state.
    moved_keys: int = 0
    moved_bytes: int = 0
    #: Whether keys are still on their way from one place to another.
    moving: bool = False


@dataclass(frozen=True, eq=False)
class Cost:
    """What it takes to move keys of a component."""

    #: Hashes, ascending, and how often each key occurs; others hardly do.
    hashes: Hashes = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    heat: Weights = field(default_factory=lambda: np.empty(0))
    #: Mean bytes of state per key.
    size: float = 1.0

    def held(self, old: RoutingTable, new: RoutingTable) -> Held:
        """Say what the keys hold that either table singles out, as far as it is known."""
        hashes = united(old.hashes, new.hashes)
        heat, there = np.zeros(len(hashes)), is_in(self.hashes, hashes)
        heat[np.searchsorted(hashes, self.hashes[there])] = self.heat[there]
        return Held(hashes, np.full(len(hashes), max(1, round(self.size))), heat)


@dataclass(frozen=True)
class Rerouting:
    """New tables for some components, and what it costs to move which key."""

    tables: Tables
    costs: Mapping[str, Cost] = field(default_factory=dict)
    #: Bytes of state that move with one batch.
    budget: int = 1 << 62
    reason: str = ""
    #: The present tables, and what is expected of the new ones; None where nobody looked.
    before: Score | None = None
    predicted: Score | None = None


class Rerouter(Protocol):
    """Decides, batch by batch, whether keys get other places.

    One that has an attribute ``takes_time`` that is true is asked beside the batches; what it
    decides then comes some batches later.
    """

    @property
    def sampling(self) -> float:
        """The share of the tuples on which pairs are to be counted; 0 for none."""

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        """Take note of a batch; give new tables, or None to go on as before."""
