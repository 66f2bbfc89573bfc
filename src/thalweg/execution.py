"""Where descriptions meet runtimes: what a run is told, what it gives back, which runtimes exist.

Runtimes register themselves here, so that describing a topology never imports one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from thalweg.clock import seconds
from thalweg.consumers import checked_consumers
from thalweg.errors import ThalwegError, TopologyError, UsageError, explain, meant
from thalweg.events import Event
from thalweg.hooks import checked_hooks
from thalweg.metrics import Snapshot
from thalweg.noticing import Noticing


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


@dataclass(frozen=True)
class SetPolicy:
    """Asks for another scaling policy to lead."""

    policy: str
    #: Who asks, as those who read decisions are told.
    by: str = "a program"


Asked = Rebalance | Reroute | SetPolicy


class Steering:
    """Changes a run while tuples flow; any thread may call it. What came of it, events tell.

    >>> steering = Steering()
    >>> steering.rebalance("count", degree=4)
    >>> steering.take(), steering.take()
    (Rebalance(component='count', degree=4), None)
    >>> steering.deactivate()
    >>> steering.active
    False
    """

    def __init__(self) -> None:
        self._asked: deque[Asked] = deque()
        self._early: deque[str] = deque()
        self._active = True

    @property
    def active(self) -> bool:
        """Whether sources are to be asked for tuples."""
        return self._active

    def activate(self) -> None:
        """Let sources be asked again."""
        self._active = True

    def deactivate(self) -> None:
        """Let no source be asked; ticks, acks and what is under way go on."""
        self._active = False

    def rebalance(self, component: str, degree: int) -> None:
        """Let a component have another number of tasks."""
        self._asked.append(Rebalance(component, degree))

    def reroute(self, always: bool = False) -> None:
        """Let whoever learns which keys occur together decide now."""
        self._asked.append(Reroute(always))

    def set_policy(self, policy: str, by: str = SetPolicy.by) -> None:
        """Let another scaling policy decide about degrees; ``static`` leaves them as they are."""
        self._asked.append(SetPolicy(policy, by))

    def tell_early(self, component: str) -> None:
        """Let windows tell now what they have, on the stream ``early`` of their component."""
        self._early.append(component)

    @property
    def early(self) -> bool:
        """Whether windows are to tell what they have; for runtimes."""
        return bool(self._early)

    def take_early(self) -> list[str]:
        """Give the components that are to tell what they have, each once; for runtimes."""
        return list(dict.fromkeys(self._early.popleft() for _ in range(len(self._early))))

    def take(self) -> Asked | None:
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
    #: Hooks of all components (:mod:`thalweg.hooks`), beside their own.
    hooks: Sequence[Any] = ()
    #: Who is told the metrics (:mod:`thalweg.consumers`), and how often, in seconds.
    consumers: Sequence[Any] = ()
    metrics_every: float | str = 60.0
    #: Looks at the topology before anything starts: gives None, or what is wrong with it.
    validator: Validator | None = None
    #: Threads for background work of components.
    background_threads: int = 4
    #: What the runtime has for tasks; for runtimes.
    services: Any = None

    def checked(self, topology: Any) -> Run:
        """Check what was given before anything starts; for runtimes."""
        if self.validator is not None:
            validate(self.validator, topology)
        every = seconds(self.metrics_every, "metrics_every")
        hooks = checked_hooks(self.hooks, f"run of {topology.name!r}")
        consumers = checked_consumers(self.consumers)
        listen = Noticing(self.listen, topology)
        return replace(self, listen=listen, hooks=hooks, consumers=consumers, metrics_every=every)


#: A function that gives None for a topology that may run, or else what is wrong with it.
Validator = Callable[[Any], object]


def validate(validator: Validator, topology: Any) -> None:
    """Let a validator look at a topology.

    >>> from types import SimpleNamespace
    >>> validate(lambda topology: "it has no sink", SimpleNamespace(name="words"))
    Traceback (most recent call last):
    thalweg.errors.TopologyError: topology 'words': it has no sink
    """
    try:
        found = validator(topology)
    except Exception as error:
        found = error
    if found is None:
        return
    cause = found if isinstance(found, Exception) else None
    if isinstance(cause, ThalwegError):
        raise cause
    text = f"topology {topology.name!r}: {found}"
    raise TopologyError(text) from cause


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
        known = runtime_names()
        expected = f"one of {known} in this version"
        raise UsageError(explain(f"runtime {name!r}", "", expected, hint=meant(name, known)))
    return _runtimes[name]()


def run(topology: Any, on: Any = None, **arguments: Any) -> Result:
    """Run a topology on a runtime."""
    return runtime(on).run(topology, Run(**arguments))
