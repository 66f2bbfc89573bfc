"""Where descriptions meet runtimes: what a run is told, what it gives back, which runtimes exist.

Runtimes register themselves here, so that describing a topology never imports one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from thalweg.errors import UsageError, explain
from thalweg.events import Event
from thalweg.metrics import Snapshot


def _ignore(_event: Event) -> None:
    """Listen to nothing."""


@dataclass(frozen=True)
class Rebalance:
    """Asks for another number of tasks of a component."""

    component: str
    degree: int


@dataclass(frozen=True)
class Reroute:
    """Asks for a decision where keys should be; ``always`` also when it hardly pays."""

    always: bool = False


class Steering:
    """Changes a run while tuples flow; any thread may call it. What came of it, events tell.

    >>> steering = Steering()
    >>> steering.rebalance("count", degree=4)
    >>> steering.take(), steering.take()
    (Rebalance(component='count', degree=4), None)
    """

    def __init__(self) -> None:
        self._asked: deque[Rebalance | Reroute] = deque()

    def rebalance(self, component: str, degree: int) -> None:
        """Let a component have another number of tasks."""
        self._asked.append(Rebalance(component, degree))

    def reroute(self, always: bool = False) -> None:
        """Let whoever learns which keys occur together decide now."""
        self._asked.append(Reroute(always))

    def take(self) -> Rebalance | Reroute | None:
        """Give what was asked for first, if anything; for runtimes."""
        return self._asked.popleft() if self._asked else None


@dataclass(frozen=True)
class Run:
    """What a run is told besides the topology."""

    #: Set it to stop: sources are not asked again, what is under way is finished.
    stop: threading.Event = field(default_factory=threading.Event)
    #: Called with each event, from the thread that runs.
    listen: Callable[[Event], None] = _ignore
    #: Values given with --set, for components.
    settings: Mapping[str, str] = field(default_factory=dict)
    #: Changes the run while it runs, on runtimes that can do so; None when nobody will.
    steering: Steering | None = None


@dataclass(frozen=True)
class Result:
    """What is left of a run: its last metrics, and its tables."""

    topology: str
    metrics: Snapshot
    #: Whether it was stopped before its sources ended.
    stopped: bool
    tables: Mapping[str, Mapping[Any, Any]]

    def table(self, name: str) -> dict[Any, Any]:
        """Give a table as a dictionary from key to value."""
        if name not in self.tables:
            raise UsageError(
                explain(f"table {name!r}", self.topology, f"one of {sorted(self.tables)}")
            )
        return dict(self.tables[name])


class Runtime(Protocol):
    """Something that can run a topology to its end."""

    @property
    def name(self) -> str:
        """The name people know it by."""

    def run(self, topology: Any, run: Run) -> Result:
        """Run it; returns when all sources have ended or ``run.stop`` is set."""


#: Where a topology runs when nobody says where.
DEFAULT = "local"

_runtimes: dict[str, Callable[[], Runtime]] = {}


def register(name: str, make: Callable[[], Runtime]) -> None:
    """Make a runtime known by name."""
    _runtimes[name] = make


def runtime_names() -> list[str]:
    """Name the runtimes that exist."""
    return sorted(_runtimes)


def runtime(on: Any = None) -> Runtime:
    """Find a runtime: an object that is one, a name, or None for the default."""
    if on is not None and not isinstance(on, str):
        if callable(getattr(on, "run", None)):
            return on
        raise UsageError(explain("runtime", expected="a runtime or its name", got=repr(on)))
    name = on or DEFAULT
    if name not in _runtimes:
        raise UsageError(
            explain(f"runtime {name!r}", expected=f"one of {runtime_names()} in this version")
        )
    return _runtimes[name]()


def run(topology: Any, on: Any = None, **arguments: Any) -> Result:
    """Run a topology on a runtime."""
    return runtime(on).run(topology, Run(**arguments))
