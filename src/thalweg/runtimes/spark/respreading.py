"""Telling that there are more or fewer places, once a batch has committed it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import msgspec

from thalweg.events import Event, Reconfigured
from thalweg.migration.report import Report
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.spark.batches import Done
from thalweg.runtimes.spark.totals import state_size
from thalweg.statelog.manifests import Manifest

#: Batches that are looked back at for what one usually takes.
_USUAL = 9


@dataclass(frozen=True)
class _Begun:
    reason: str
    keys: int
    bytes: int


class Respreading:
    """Notes what batches take, and tells of those that changed the number of places."""

    def __init__(self, listen: Callable[[Event], None]) -> None:
        self._listen = listen
        self._seconds: deque[float] = deque(maxlen=_USUAL)
        self._begun: _Begun | None = None

    def begin(self, last: Manifest, places: int, reason: str) -> None:
        """Take note that there will be so many places; ``last`` is what was committed before."""
        part = moved_part(last.places, places, last.key_groups)
        sizes = [state_size(name, last) for name in last.topology]
        keys, size = (sum(each) for each in zip(*sizes, strict=True)) if sizes else (0, 0)
        self._begun = _Begun(reason, round(part * keys), round(part * size))

    def after(self, done: Done) -> None:
        """Take note of a batch; the first one after a change has committed it."""
        begun, self._begun = self._begun, None
        usual = median(self._seconds) if self._seconds else done.seconds
        if begun is None:
            self._seconds.append(done.seconds)
            return
        self._seconds.clear()  # other places take another time
        report = Report(
            epoch=done.manifest.epoch,
            reason=begun.reason,
            keys=begun.keys,
            bytes=begun.bytes,
            steps=1,
            pause=max(0.0, done.seconds - usual),
        )
        self._listen(Reconfigured(report.text(), msgspec.to_builtins(report)))


def moved_part(before: int, after: int, groups: int) -> float:
    """Give the part of all key groups that have another place when there are so many.

    >>> moved_part(2, 4, groups=8), moved_part(3, 3, groups=8)
    (0.75, 0.0)
    """
    old, new = (RoutingTable.even(places, groups).groups for places in (before, after))
    return float((old != new).mean())
