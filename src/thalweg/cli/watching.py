"""Who else follows a run that a command starts: recordings, pages, comparisons."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol

import typer

from thalweg import execution
from thalweg.events import Event
from thalweg.execution import Steering
from thalweg.topology import Topology

Listener = Callable[[Event], None]
Seconds = Annotated[
    float | None,
    typer.Option("-t", "--time", metavar="SECONDS", help="End after so long."),
]


@dataclass(frozen=True)
class Begun:
    """A run that is about to begin, for those who follow it."""

    topology: Topology
    #: What it runs on: a runtime, its name, or None for the default.
    on: Any
    #: Prints a line that stays.
    say: Callable[[str], None]
    #: Set it to end the run.
    stop: threading.Event
    #: Changes the run while it runs, where a watcher says that it steers.
    steering: Steering

    @property
    def runtime(self) -> str:
        """Name of the runtime."""
        return execution.runtime(self.on).name

    @property
    def policy(self) -> str:
        """Name of the scaling policy that leads; empty where there is none."""
        scales = getattr(execution.runtime(self.on), "scales", None)
        return "" if scales is None else scales.leading.name


class Watcher(Protocol):
    """Follows a run."""

    @property
    def steers(self) -> bool:
        """Whether it may change the run."""

    def watch(self, run: Begun) -> AbstractContextManager[Listener]:
        """Get ready for a run; what is given hears its events, one thread at a time."""


@dataclass(frozen=True)
class Ending:
    """Ends a run after a while; what is under way is finished."""

    seconds: float
    steers: ClassVar[bool] = False

    @contextmanager
    def watch(self, run: Begun) -> Iterator[Listener]:
        """Begin to count."""
        timer = threading.Timer(self.seconds, run.stop.set)
        timer.daemon = True
        timer.start()
        try:
            yield lambda _event: None
        finally:
            timer.cancel()
            timer.join()


def ending(seconds: float | None) -> list[Watcher]:
    """Give what ends a run after so many seconds; nothing for None."""
    return [] if seconds is None else [Ending(seconds)]
