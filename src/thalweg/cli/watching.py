"""Who else follows a run that a command starts: recordings, pages, comparisons."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from thalweg import execution
from thalweg.events import Event
from thalweg.execution import Steering
from thalweg.topology import Topology

Listener = Callable[[Event], None]


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
