"""Whether the sources of a run are asked, and windows what they have, as those who steer want."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from thalweg.errors import explain
from thalweg.events import Activated, Event, Noticed
from thalweg.execution import Steering
from thalweg.operators.windowing import TimeWindows
from thalweg.runtimes.spout_tasks import AnySpoutTask
from thalweg.topology import Topology


class Activity:
    """Tells spouts when they are asked no more, and when again; for the thread that asks them."""

    def __init__(self, steering: Steering | None, listen: Callable[[Event], None]) -> None:
        self._steering, self._listen = steering, listen
        #: Whether sources are asked.
        self.active = True

    @property
    def wanted(self) -> bool:
        """Whether sources are to be asked; any thread may look."""
        return self._steering is None or self._steering.active

    @property
    def early(self) -> bool:
        """Whether windows are asked what they have."""
        return self._steering is not None and self._steering.early

    def take_early(
        self, topology: Topology, ready: Callable[[str], bool] = lambda _name: True
    ) -> list[str]:
        """Give the windows that are asked what they have; of those that are ready."""
        found: list[str] = []
        for name in self._steering.take_early() if self._steering is not None else ():
            windows = [c.name for c in topology if isinstance(c.body, TimeWindows)]
            if name not in windows:
                text = explain("early results", f"component {name!r}", f"one of {windows}")
                self._listen(Noticed(f"nothing is told: {text}"))
            elif ready(name):
                found.append(name)
            elif self._steering is not None:
                self._steering.tell_early(name)
        return found

    def follow(self, spouts: Iterable[AnySpoutTask]) -> bool:
        """Do as the steering says; gives whether sources are asked."""
        wanted = self.wanted
        if wanted != self.active:
            self.active = wanted
            for task in spouts:
                if wanted:
                    task.start()
                else:
                    task.stop()
            self._listen(Activated(wanted))
        elif not wanted:
            for task in spouts:
                task.stop()
        return wanted
