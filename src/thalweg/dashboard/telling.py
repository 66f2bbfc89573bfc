"""Turns what happens in a run into records of a hub."""

from __future__ import annotations

import threading
from types import TracebackType

from thalweg.dashboard.hub import Hub
from thalweg.events import Event, RunFailed
from thalweg.recording.records import Numbering, Record
from thalweg.topology import Topology


class Telling:
    """A listener; to be entered before the run and left after it.

    Of what comes with every tuple the hub gets the first ones, then a few per second.
    """

    def __init__(
        self,
        hub: Hub,
        topology: Topology,
        runtime: str,
        policy: str = "",
        numbering: Numbering | None = None,
    ) -> None:
        self._hub, self._numbering = hub, numbering or Numbering()
        self._lock = threading.Lock()
        hub.add(self._numbering.topology(topology, runtime, policy))

    def listen(self, event: Event) -> None:
        """Take in an event; any thread may call it."""
        with self._lock:
            self._add(self._numbering.record(event))

    def _add(self, record: Record | None) -> None:
        if record is not None:
            self._hub.add(record)

    def __enter__(self) -> Telling:
        return self

    def __exit__(
        self, _kind: object, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.listen(RunFailed.of(error))
        with self._lock:
            self._add(self._numbering.lost())
