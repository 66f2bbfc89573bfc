"""How many rows a batch may have, and how soon the next may begin, so that it takes a wanted time.

A batch takes some time whatever it holds, and some for each row, which the places share:
``seconds = overhead + per_row * rows / places``. Both are learnt from the last batches.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import StatisticsError, correlation, linear_regression

#: Batches that are looked back at, and those that are needed to see what rows cost besides work.
_LOOKS, _ENOUGH = 16, 8
#: How well that has to be seen, and how much batches have to differ in size for it.
_PLAIN, _SPREAD = 0.8, 2.0


#: More rows than there are.
_ANY = 1 << 62


@dataclass(frozen=True)
class Ran:
    """A batch that was run."""

    #: Rows of its sources.
    rows: int
    places: int
    #: Seconds that it took, and those that components worked, at the busiest place of each stage.
    seconds: float
    work: float
    #: Whether it says what batches take besides; the first one of a run does not.
    usual: bool = True


@dataclass(frozen=True)
class Model:
    """What batches take.

    >>> Model(overhead=0.5, per_row=0.02).rows(places=4, seconds=2.0)
    300
    """

    #: Seconds of a batch, whatever it holds.
    overhead: float
    #: Seconds of one place per row, all in all; and the part of them that is no work.
    per_row: float
    moving: float = 0.0

    def wanted(self, seconds: float) -> float:
        """Give the time that a batch should take; half of it at least is for rows."""
        return max(seconds, 2 * self.overhead)

    def rows(self, places: int, seconds: float) -> int:
        """Give the rows that places can do in a batch of a wanted time."""
        left = self.wanted(seconds) - self.overhead
        if self.per_row <= 0:  # nothing is done at places
            return _ANY
        return max(1, int(places * left / self.per_row + 1e-9))

    def interval(self, places: int, rate: float, seconds: float) -> float:
        """Give the shortest time between two batches with which places keep up with a rate.

        >>> model = Model(overhead=0.5, per_row=0.02)
        >>> [model.interval(4, rate, seconds=2.0) for rate in (0, 100, 500)]
        [0.5, 1.0, 2.0]
        """
        use, wanted = rate * self.per_row / places, self.wanted(seconds)
        return wanted if use >= 1 else min(wanted, self.overhead / (1 - use))

    def charge(self, ran: Ran, seconds: float) -> float:
        """Give the seconds of places that a batch used up, going by batches of a wanted time."""
        useful = 1 - self.overhead / self.wanted(seconds) if self.overhead else 1.0
        return (ran.places * ran.work + self.moving * ran.rows) / useful


class Pacing:
    """Learns what batches take."""

    def __init__(self) -> None:
        self._batches: deque[Ran] = deque(maxlen=_LOOKS)

    def add(self, ran: Ran) -> None:
        """Take note of a batch; one without rows tells nothing."""
        if ran.rows:
            self._batches.append(ran)

    @property
    def model(self) -> Model | None:
        """What is known; None as long as nothing is."""
        work = sum(ran.places * ran.work for ran in self._batches)
        rows = sum(ran.rows for ran in self._batches)
        usual = [ran for ran in self._batches if ran.usual]
        if not rows:
            return None
        moving = _moving(usual)
        rests = [ran.seconds - ran.work - moving * ran.rows / ran.places for ran in usual]
        # Rather too little: what holds a batch up now and then would make all of them longer.
        usually = sorted(rests)[(len(rests) - 1) // 4] if rests else 0.0
        return Model(max(0.0, usually), work / rows + moving, moving)


def _moving(batches: list[Ran]) -> float:
    """Give what a row takes besides work; nothing where that is not plain."""
    rows = [ran.rows / ran.places for ran in batches]
    if len(batches) < _ENOUGH or max(rows) < _SPREAD * min(rows):
        return 0.0
    rests = [ran.seconds - ran.work for ran in batches]
    try:
        plain = correlation(rows, rests) > _PLAIN
    except StatisticsError:  # all took the same
        return 0.0
    return max(0.0, linear_regression(rows, rests).slope) if plain else 0.0
