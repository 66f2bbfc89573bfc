"""Watches a topology that has no end for a fixed time, and then ends it."""

from __future__ import annotations

import statistics
import threading
from typing import Any

import thalweg as tw
from thalweg.bench.usage import Usage, usage
from thalweg.errors import ThalwegError
from thalweg.events import Event, Progress
from thalweg.metrics import Snapshot
from thalweg.topology import Topology

# Seconds without a tuple after which a run is given up.
_PATIENCE = 120.0


class Watch:
    """Listens to a run: notes counts when it is warm and when the time is over, and ends it.

    Both moments are such at which tuples have just come to the component that counts (``last``):
    where they come by large blocks, the time between is that of whole blocks.
    """

    def __init__(self, last: str, warm: float, seconds: float) -> None:
        self.stop = threading.Event()
        self._last, self._warm, self._seconds = last, warm, seconds
        self._noted: list[tuple[Snapshot, Usage]] = []
        self._seen: list[Usage] = []
        self._arrived = 0

    def __call__(self, event: Event) -> None:
        """Look, while the run goes on."""
        if isinstance(event, Progress) and not self.stop.is_set():
            self._look(event.snapshot)

    def _look(self, snapshot: Snapshot) -> None:
        self._seen.append(usage())
        before, self._arrived = self._arrived, snapshot.component(self._last).received
        begin = self._noted[0][0].elapsed if self._noted else 0.0
        due = begin + (self._seconds if self._noted else self._warm)
        if self._arrived > before and snapshot.elapsed >= due:
            self._noted.append((snapshot, self._seen[-1]))
        if len(self._noted) == 2 or snapshot.elapsed > due + _PATIENCE:
            self.stop.set()

    def found(self) -> dict[str, Any]:
        """Say what was seen."""
        if len(self._noted) < 2:
            text = f"nothing came to {self._last!r} for {_PATIENCE:.0f} s"
            raise ThalwegError(text)
        (before, used_before), (after, used) = self._noted
        seconds, busy = after.elapsed - before.elapsed, used.cpu - used_before.cpu
        tuples = {
            now.component: (now.received or now.emitted) - (then.received or then.emitted)
            for then, now in zip(before.components, after.components, strict=True)
        }
        return {
            "tuples": tuples,
            "seconds": seconds,
            "per_second": tuples[self._last] / seconds,
            "cpu": busy / seconds,
            "per_cpu_second": tuples[self._last] / busy if busy else None,
            "megabytes": statistics.mean(each.megabytes for each in self._seen),
            "threads": max(each.threads for each in self._seen),
        }


def watched(topology: Topology, last: str, warm: float, seconds: float) -> dict[str, Any]:
    """Run an endless topology until there is enough to see."""
    watch = Watch(last, warm, seconds)
    topology.run(on=tw.Local(), stop=watch.stop, listen=watch)
    return watch.found()
