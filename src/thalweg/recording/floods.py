"""Bounds what may come with every tuple: the first ones are kept, then a few per second.

Recordings, logs and pages have this one rule. What is left out is counted, and nothing is made of
it; metrics count all of it.
"""

from __future__ import annotations

from thalweg.events import ChildSaid, Event, RecordRefused, TupleRefused

#: Events that are kept of each kind and component, and the seconds between two of those after them.
FIRST, BETWEEN = 1_000, 0.2
#: Events of which there may be one for each tuple.
MANY = (TupleRefused, RecordRefused, ChildSaid)


class Floods:
    """Says which events are kept; not for several threads at once.

    >>> floods, refused = Floods(first=1), TupleRefused("count", 0, "('a',)", "no number")
    >>> [floods.keeps(refused, at) for at in (1.0, 1.1, 1.3, 1.4, 9.0)]
    [True, False, True, False, True]
    >>> floods.left_out
    2
    """

    def __init__(self, first: int = FIRST) -> None:
        self._first = first
        #: By kind and component, how many were kept, and when the last one was.
        self._kept: dict[tuple[type[Event], str], tuple[int, float]] = {}
        #: Events that were not kept.
        self.left_out = 0

    def keeps(self, event: Event, at: float) -> bool:
        """Say whether an event is kept that comes at a time in seconds."""
        if not isinstance(event, MANY):
            return True
        like = type(event), event.component
        kept, last = self._kept.get(like, (0, at))
        if kept >= self._first and at - last < BETWEEN:
            self.left_out += 1
            return False
        self._kept[like] = kept + 1, at
        return True
