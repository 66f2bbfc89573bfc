"""What a task hands to its body: its state and timers, and what it knows about itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NoReturn, Protocol

from thalweg.clock import Clock, seconds
from thalweg.errors import RecordError, UsageError, explain, shorten
from thalweg.events import Event
from thalweg.eventtime import ALWAYS, NEVER
from thalweg.keys import Change, Key
from thalweg.registered import Metric, MetricKind, make_metric
from thalweg.schemas import Shape


class KeyedState(Protocol):
    """State of a keyed or global component at one task: a value per key.

    ``get_many``, ``put_many``, ``update`` and ``working`` are for vectorised bolts: one read and
    one write per block, with keys as :func:`thalweg.keys.key_values` makes them.
    """

    def get(self, key: Key, default: Any = None) -> Any:
        """Give the value of a key."""

    def put(self, key: Key, value: Any) -> None:
        """Set the value of a key."""

    def delete(self, key: Key) -> None:
        """Forget a key; one that is not there is no error."""

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Give the values of those keys that have one."""

    def put_many(self, values: Mapping[Key, Any]) -> None:
        """Set many values."""

    def update(self, keys: Sequence[Key], change: Change) -> None:
        """Change the values of keys, each given once: the quickest way to change many.

        ``change`` gets their values, None where there is none, and gives what they are to be.
        When it raises, nothing has changed.
        """

    def working(self, keys: Sequence[Key]) -> AbstractContextManager[dict[Key, Any]]:
        """Give a dictionary with the values of these keys, to be read and changed in a ``with``.

        It may hold other keys too; only these may be changed.
        """

    def items(self) -> Iterator[tuple[Key, Any]]:
        """Go through all keys and values."""

    def __len__(self) -> int: ...


class Timers(Protocol):
    """Timers of the keys of one task; a key has one of each name, and setting it again moves it."""

    def at(self, key: Key, time: int | datetime, name: str = "") -> None:
        """Set a timer of event time; a number is microseconds since 1970."""

    def after(self, key: Key, wait: float | str, name: str = "") -> None:
        """Set a timer by the clock of the run: so many seconds from now, or ``"10 s"``."""

    def cancel(self, key: Key, name: str = "") -> None:
        """Take a timer back; one that is not there is no error."""


def _raise_error(_row: int, error: Exception) -> None:
    raise error


def _ignore_event(_event: Event) -> None:
    """Go on: nobody listens."""


def _unheard(name: str, kind: str, every: float | None) -> Metric:
    """Make a metric that nobody is told."""
    del every
    return make_metric(name, kind)


class Future(Protocol):
    """The result of a function that runs in the background."""

    def result(self, timeout: float | None = None) -> Any:
        """Wait for what the function returns, or raise what it raised."""

    def done(self) -> bool:
        """Say whether it has returned, or raised."""


def _no_background(function: Callable[..., Any], *_arguments: Any) -> NoReturn:
    expected = "a run on local or inline"
    raise UsageError(explain(f"background work {shorten(function)}", "", expected))


def _ignore_late(_tuples: int) -> None: ...


def _ignore_stop() -> None: ...


def _never() -> None: ...


def _raise_record(raw: str, reason: str) -> None:
    raise RecordError(explain("record", expected=reason, got=shorten(raw)))


@dataclass(frozen=True)
class TaskContext:
    """What a task knows about itself; given to ``prepare``."""

    topology: str
    component: str
    #: Index of this task, from 0.
    task: int
    #: Number of tasks of the component; it may change while a run goes on.
    degree: int
    clock: Clock
    #: Seeded for this task, so that a run can be repeated.
    random: random.Random
    #: State of this task; empty and unused for stateless bolts.
    state: KeyedState | None = None
    #: The output streams, which turn columns into record batches.
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    #: Names of the output streams that somebody reads.
    read_streams: frozenset[str] = frozenset()
    #: Call to end the run early, as Ctrl-C does: what is under way is finished; or ask whether.
    stop: Callable[[], None] = _ignore_stop
    stopped: Callable[[], bool] = bool
    #: Since when it is known that the run is to end, by ``time.monotonic()``; None before that.
    stopped_at: Callable[[], float | None] = _never
    #: Values given with --set.
    settings: Mapping[str, str] = field(default_factory=dict)
    #: Whether tuples that fail are refused and the run goes on (on_error is not "fail").
    tolerant: bool = False
    #: The topology (a :class:`thalweg.topology.Topology`), with the degrees of the beginning.
    graph: Any = None
    #: Into how many groups keys are hashed.
    key_groups: int = 1024
    #: Where tasks come and go with each batch, the name under which what is dear may be kept.
    lasting: str = ""
    #: How far event time had come when the task was made, in microseconds since 1970.
    watermark: int = NEVER
    #: Before these times, of events and of the clock, none of the timers in its state is due.
    due: tuple[int, int] = (ALWAYS, ALWAYS)
    #: Call with an event that whoever listens to the run should hear.
    tell: Callable[[Event], None] = _ignore_event
    #: Hooks that hear what this task does.
    hooks: tuple[Any, ...] = ()
    #: For runtimes: makes what :meth:`metric` gives, and does what :meth:`background` asks for.
    registering: Callable[[str, str, float | None], Metric] = _unheard
    calling: Callable[..., Future] = _no_background
    #: Call with a number of tuples that came too late.
    late: Callable[[int], None] = _ignore_late
    #: Call with (row, error): raises, or notes the error as the component's policy says.
    refuse: Callable[[int, Exception], None] = _raise_error
    #: Call with (raw record, reason) for input that cannot be read; policies as above.
    refuse_record: Callable[[str, str], None] = _raise_record

    def metric(self, name: str, kind: MetricKind = "count", every: Any = None) -> Any:
        """Register a metric (see :mod:`thalweg.registered`); ``every`` is its own interval."""
        return self.registering(name, kind, None if every is None else seconds(every, "every"))

    def background(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """Let a thread of the run's pool call a function; it must not emit.

        Gives something whose ``result()`` waits for what the function returns.
        """
        return self.calling(function, *arguments)

    def rescaled(self, degree: int) -> None:
        """Note that the component has another number of tasks now; for runtimes."""
        object.__setattr__(self, "degree", degree)

    def reshaped(self, shapes: Mapping[str, Shape]) -> None:
        """Note that other fields pass through the component now; for runtimes."""
        object.__setattr__(self, "shapes", shapes)
