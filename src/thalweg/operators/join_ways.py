"""Which way a join finds its pairs: by what is known of the table, and then by what is measured.

The first guess goes by sizes. Then a few blocks go each way, and the cheaper one stays; for a table
or blocks of another size it is measured anew.

>>> first_way(Sizes(table=1, block=1000), ("hash", "loop"))
'loop'
>>> seen = Seen("loop", {"hash": 20e-9, "loop": 90e-9}, Sizes(table=40, block=1000), matches=1.5)
>>> choose(seen).reason
'hash instead of loop: 20 ns instead of 90 ns per tuple; a table of 40 rows, 1.5 matches each'
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

#: Rows of a table up to which each is compared with each, until something is measured.
_FEW = 1
#: Blocks that go each way before it is decided, and the part of its cost that has to be gained.
_TRIES, _GAIN = 4, 0.1
#: What a comparison takes at least, and how many times dearer a way may look that is tried.
_COMPARISON, _DEARER = 1e-9, 3.0
#: Blocks after which there is another round.
_AGAIN = 500


@dataclass(frozen=True)
class Sizes:
    """Rows of the table, and of a block."""

    table: int
    block: int

    @property
    def kind(self) -> tuple[int, int]:
        """Name sizes that are about the same: twice as large a table, eight times a block."""
        return self.table.bit_length(), self.block.bit_length() // 3


@dataclass(frozen=True)
class Seen:
    """What is known of a join: its way, and what each way costs, in seconds per tuple."""

    way: str
    costs: Mapping[str, float]
    sizes: Sizes
    #: Rows of the table that a tuple has found, in the mean.
    matches: float = 0.0


@dataclass(frozen=True)
class Way:
    """The way that a join should find its pairs, and why. It may be the one that it has."""

    way: str
    before: str
    reason: str
    sizes: Sizes
    component: str = ""

    @property
    def changes(self) -> bool:
        """Whether anything is to be done."""
        return self.way != self.before

    def of(self, component: str) -> Way:
        """Say which join it is about."""
        return replace(self, component=component, reason=f"{component}: {self.reason}")


def first_way(sizes: Sizes, ways: Sequence[str]) -> str:
    """Guess, while nothing is measured."""
    return "loop" if sizes.table <= _FEW or len(ways) == 1 else ways[0]


def choose(seen: Seen) -> Way:
    """Take the cheaper way; a little is no reason to change."""
    costs, before = seen.costs, seen.way
    best = min(costs, key=lambda way: (costs[way], way != before), default=before)
    if before not in costs or costs[best] > (1 - _GAIN) * costs[before]:
        return Way(before, before, f"{before} costs least, or nearly so", seen.sizes)
    text = (
        f"{best} instead of {before}: {_time(costs[best])} instead of {_time(costs[before])} per "
        f"tuple; a table of {seen.sizes.table} rows, {seen.matches:.2g} matches each"
    )
    return Way(best, before, text, seen.sizes)


def _time(seconds: float) -> str:
    return f"{1e9 * seconds:.3g} ns"


@dataclass
class _Measured:
    """A round in which blocks of about one size go each way, and how long ago it was.

    Ways are compared by what they cost at about the same time, whatever else the machine does.
    """

    sizes: Sizes
    way: str
    #: Seconds per tuple of the last round, by way.
    costs: dict[str, list[float]] = field(default_factory=dict)
    matches: float = 0.0
    #: Whether the round is over, and the blocks since then.
    over: bool = False
    blocks: int = 0

    def seen(self) -> Seen:
        # The first block of each way also makes what is kept, such as an index. Of the others the
        # quickest counts: whatever else the machine does makes blocks slower, and none quicker.
        costs = {way: min(c[1:]) for way, c in self.costs.items() if len(c) > _TRIES}
        return Seen(self.way, costs, self.sizes, self.matches)

    def next(self, ways: Sequence[str]) -> str:
        """Name the way of the next block."""
        if not self.over:
            left = self.left(ways) or [self.way]
            return min(left, key=lambda way: (len(self.costs.get(way, ())), way != self.way))
        self.blocks += 1
        if self.blocks >= _AGAIN:
            self.costs, self.over, self.blocks = {}, False, 0
        return self.way

    def left(self, ways: Sequence[str]) -> list[str]:
        """Name the ways that have to be tried in this round."""
        return [w for w in ways if len(self.costs.get(w, ())) <= _TRIES and self._may_pay(w)]

    def _may_pay(self, way: str) -> bool:
        """Say whether a way may be worth trying, going by what it does at least."""
        known, now = self.costs.get(way, ()), self.costs.get(self.way, ())
        if way == self.way or len(now) < 2:
            return way == self.way
        least = min(known) if len(known) > 1 else _COMPARISON * self.sizes.table * (way == "loop")
        return least <= _DEARER * min(now[1:])


class Chooser:
    """Says which way the next block goes, and learns from each; for all tasks of a process.

    >>> chooser, sizes = Chooser(("hash", "loop")), Sizes(table=10, block=1000)
    >>> for _ in range(11):
    ...     way = chooser.next(sizes)
    ...     _ = chooser.note(way, sizes, 5e-5 if way == "hash" else 1e-4)
    >>> [seen] = chooser.look()
    >>> chooser.next(sizes), {way: f"{cost:.0e}" for way, cost in seen.costs.items()}
    ('hash', {'hash': '5e-08', 'loop': '1e-07'})
    """

    def __init__(self, ways: Sequence[str]) -> None:
        self.ways = tuple(ways)
        #: Whether somebody else decides, by what is measured here.
        self.steered = False
        self._known: dict[tuple[int, int], _Measured] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        # What was measured in one process says little about another.
        return {"ways": self.ways}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc] # as if it were new

    def next(self, sizes: Sizes) -> str:
        """Give the way of the next block."""
        if len(self.ways) == 1:
            return self.ways[0]
        with self._lock:
            known = self._known.get(sizes.kind)
            if known is None:
                known = _Measured(sizes, first_way(sizes, self.ways))
                self._known[sizes.kind] = known
            return known.next(self.ways)

    def note(self, way: str, sizes: Sizes, seconds: float, matches: int = 0) -> Way | None:
        """Learn what a block has cost; gives the change that follows, if one does."""
        if len(self.ways) == 1 or not sizes.block:
            return None
        with self._lock:
            known = self._known[sizes.kind]
            if known.over:
                return None
            known.sizes, known.matches = sizes, matches / sizes.block
            known.costs.setdefault(way, []).append(seconds / sizes.block)
            known.over = not known.left(self.ways)
            made = choose(known.seen())
            if self.steered or not known.over or not made.changes:
                return None
            known.way = made.way
            return made

    def look(self) -> list[Seen]:
        """Show what is known, for each kind of sizes that blocks and the table have had."""
        with self._lock:
            return [known.seen() for known in self._known.values()]

    def use(self, made: Way) -> None:
        """Do what was decided, from the next block of such a size on."""
        with self._lock:
            if made.sizes.kind in self._known:
                self._known[made.sizes.kind].way = made.way
