"""Windows of many panes, of which most were in the window before: each costs a few additions.

The panes of a window are an older and a newer half. Of the older one it is known what each pane and
those behind it make together, of the newer one what all of it makes. A window that goes on
takes from the one, and adds to the other; once nothing of the older half is left, the panes that
are there become the older half.

This is worked out from panes, and never written down.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from thalweg.windows.aggregates import Aggregate, Partial, combined

#: Windows of no more panes are put together anew.
_FEW = 16
_START = itemgetter(0)


class Until(int):
    """How far a key has been told of, and what its next window can use; written as a number."""

    running: Running | None = None


class Running:
    """Puts windows together, one after the other; what was told in between goes on with them."""

    __slots__ = ("_aggregates", "_newer", "_older", "_quick", "_slow", "_stop")

    def __init__(self, aggregates: Sequence[Aggregate]) -> None:
        self._aggregates = aggregates
        self._quick = [number for number, a in enumerate(aggregates) if a.running]
        self._slow = [number for number, a in enumerate(aggregates) if not a.running]
        #: Where each pane of the older half begins, and what it makes with those behind it; the
        #: last one first.
        self._older: list[tuple[int, list[Any]]] = []
        self._newer: list[Any] = []
        #: Where the window ends that was told last; None where that one had few panes.
        self._stop: int | None = None

    def knows(self, start: int) -> bool:
        """Say whether a pane that begins then has been in a window that was told."""
        return self._stop is not None and start < self._stop

    def until(self, told: int) -> int:
        """Go on with how far windows have been told, if that is worth it."""
        if self._stop is None:
            return told
        until = Until(told)
        until.running = self
        return until

    def window(self, panes: Sequence[Any], first: int, last: int, end: int) -> list[Partial]:
        """Put panes of a window together; it ends behind those that were told before."""
        if last - first <= _FEW or not self._quick:
            self._older.clear()
            self._stop = None
            return combined(self._aggregates, [partials for _, _, partials in panes[first:last]])
        whole: list[Partial] = [None] * len(self._aggregates)
        anew = range(len(whole)) if self._stop is None else self._slow
        for at in anew:
            known = [pane[2][at] for pane in panes[first:last] if pane[2][at] is not None]
            whole[at] = self._aggregates[at].whole(known) if known else None
        if self._stop is not None:  # the halves are worth it for those that go on
            self._go_on(panes, first, last)
            parts = self._joined(self._older[-1][1], self._newer)
            for at, opened in zip(self._quick, parts, strict=True):
                whole[at] = None if opened is None else self._aggregates[at].closed(opened)
        self._stop = end
        return whole

    def _go_on(self, panes: Sequence[Any], first: int, last: int) -> None:
        """Bring the halves to where a window is."""
        older = self._older
        while older and older[-1][0] < panes[first][0]:
            older.pop()
        if older:
            for at in range(bisect_left(panes, self._stop, first, last, key=_START), last):
                self._newer = self._joined(self._newer, self._opened(panes[at]))
            return
        whole = self._newer = [None] * len(self._quick)
        for at in range(last - 1, first - 1, -1):
            whole = self._joined(self._opened(panes[at]), whole)
            older.append((panes[at][0], whole))

    def _opened(self, pane: Any) -> list[Any]:
        partials, aggregates = pane[2], self._aggregates
        return [
            None if partials[at] is None else aggregates[at].opened(partials[at])
            for at in self._quick
        ]

    def _joined(self, one: list[Any], other: list[Any]) -> list[Any]:
        return [
            y if x is None else x if y is None else self._aggregates[at].joined(x, y)
            for at, x, y in zip(self._quick, one, other, strict=True)
        ]
