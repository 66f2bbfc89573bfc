"""How much of a source can end in time, by what its tuples have cost the bolts behind it.

Only bolts that see single tuples are looked at, and only those that tuples of the source get to.
How many do is measured along the links, so that it does not matter what other sources give.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from math import inf

from thalweg.runtimes.local.links import Link, Streams
from thalweg.runtimes.local.observed import Observed

#: Rows to begin with, where nobody knows how long one takes.
_UNKNOWN = 8


class Intake:
    """Knows how many rows of a source the bolts behind it can end.

    ``given`` tells how many rows the source has given so far, and ``cost`` how many seconds an
    operator has taken for a row, 0 if nobody knows. Operators come in topological order.
    """

    def __init__(
        self,
        streams: Streams,
        operators: Sequence[Observed],
        given: Callable[[], int],
        cost: Callable[[Observed], float],
    ) -> None:
        self._given, self._cost = given, cost
        #: Operators that its tuples get to, with their links, and from whom these come.
        self._behind: dict[Observed, list[tuple[Link, Observed | None]]] = {}
        senders: dict[Link, Observed | None] = {
            link: None for links in streams.values() for link in links
        }
        for operator in operators:
            links = [(link, senders[link]) for link in operator.inputs if link in senders]
            if links:
                self._behind[operator] = links
                sent = (link for links in operator.streams.values() for link in links)
                senders |= dict.fromkeys(sent, operator)

    @property
    def seconds_waiting(self) -> float:
        """How long these bolts take for what waits for them; infinite if nobody knows."""
        found = 0.0
        for operator in self._seeing_tuples():
            if waiting := operator.waiting:
                cost = self._cost(operator)
                found += waiting * cost / operator.beside if cost else inf
        return found

    def rows_in_block(self, seconds: float) -> int:
        """Say how many rows of the source, in one block, pass these bolts in such a time."""
        return self._rows_in(seconds, lambda operator: operator.sharing)

    def rows_in_time(self, seconds: float) -> int:
        """Say how many they are in blocks that several tasks work on."""
        return self._rows_in(seconds, lambda operator: operator.beside)

    def _rows_in(self, seconds: float, tasks: Callable[[Observed], float]) -> int:
        given, took, most = self._given(), 0.0, sys.maxsize
        per_row = self._per_row(given)
        for operator in self._seeing_tuples():
            cost = self._cost(operator)
            if cost:
                took += cost / tasks(operator) * per_row[operator]
            elif operator.arrived:
                return _UNKNOWN
            else:  # none of so many got there, and it may be one of as many more
                most = min(most, max(_UNKNOWN, given))
        return max(1, min(most, int(seconds / took))) if took else most

    def _per_row(self, given: int) -> dict[Observed, float]:
        """Say how many rows each operator got for one of the source."""
        found: dict[Observed, float] = {}
        for operator, links in self._behind.items():
            found[operator] = 0.0
            for link, sender in links:
                taken = given if sender is None else sender.arrived - sender.waiting
                share = link.arrived / taken if taken > 0 else 0.0
                found[operator] += share * (1.0 if sender is None else found[sender])
        return found

    def _seeing_tuples(self) -> Iterator[Observed]:
        for operator in self._behind:
            if getattr(operator.component.body, "by_tuple", False):
                yield operator
