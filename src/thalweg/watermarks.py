"""How far event time has come at each component: a state machine without I/O.

A source has come as far as its newest tuple, or as it says itself (:mod:`thalweg.strands`), less
the delay that it allows; a component as far as the slowest of the sources before it. Behind a
component that has to know the time itself, time goes no further than it has been told: what it
sends then would come too late. Sources that have ended, have nothing to read or have been silent
for too long keep nobody waiting. Time never goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from thalweg.eventtime import ALWAYS, NEVER, EventTime
from thalweg.topology import Topology, task_name, task_names


@dataclass
class _Came:
    """How far a task of a source has come."""

    time: EventTime
    newest: int = NEVER
    #: The newest time that it has given, which may be ahead of that.
    given: int = NEVER
    #: When it gave something last, by the clock of the run.
    heard: float = 0.0
    ended: bool = False
    #: Whether it keeps nobody waiting: it has nothing to read, or has been silent for too long
    #: where somebody else looks at the clock.
    silent: bool = False

    def at(self, now: float) -> int:
        silent = self.time.idle is not None and now - self.heard >= self.time.idle
        if self.ended or self.silent or silent:
            return ALWAYS
        return NEVER if self.newest == NEVER else self.newest - self.time.delay


@dataclass(frozen=True)
class _Hears:
    """A component that has to know the time."""

    #: The sources before it, and those before it that have to know the time as well.
    sources: tuple[str, ...]
    before: tuple[str, ...]
    #: How far time has to go on until it makes a difference, from where on, and whether it sends
    #: nothing in between; and how far behind time its tuples may be.
    step: int
    offset: int
    stepwise: bool
    lag: int

    def is_due(self, came: int, told: int) -> bool:
        """Say whether it makes a difference that time has come so far."""
        steps = (came - self.offset) // self.step, (told - self.offset) // self.step
        return came > max(told, NEVER // 2) and steps[0] > steps[1]


class Mark(NamedTuple):
    """How far event time has come somewhere, and the newest time that its sources have given."""

    came: int
    newest: int


class Watermarks:
    """The event time of a run."""

    def __init__(self, topology: Topology, now: float, told: dict[str, int] | None = None) -> None:
        self._tasks: dict[str, list[_Came]] = {
            c.name: [_Came(c.options.time, heard=now) for _ in range(c.degree)]
            for c in topology.spouts
            if c.options.time is not None
        }
        #: In the order of the topology: each after those before it.
        self._hears = _hearing(topology, self._tasks)
        #: How far each component has been told that time has come; what was given is kept up.
        self.told: dict[str, int] = {} if told is None else told
        for name in self._hears:
            self.told.setdefault(name, NEVER)
        #: How far time had come at each when somebody looked, also where it made no difference.
        self._at: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._hears)

    @property
    def hearing(self) -> Iterable[str]:
        """The components that have to know the time."""
        return self._hears.keys()

    def time_of(self, source: str) -> EventTime | None:
        """Say which field of a source is its time, if somebody needs it."""
        tasks = self._tasks.get(source)
        return tasks[0].time if tasks else None

    def saw(self, source: str, task: int, newest: int, now: float, knows: bool = False) -> None:
        """Note the newest of some tuples of a task of a source; one may know itself how far it is.

        Such a task has come as far as it says.
        """
        came = self._tasks[source][task]
        came.given, came.heard = max(came.given, newest), now
        if not knows:
            came.newest = max(came.newest, newest)

    def reached(self, source: str, task: int, at: int) -> None:
        """Note how far a task of a source says that it has come."""
        if source in self._tasks:
            came = self._tasks[source][task]
            came.newest = max(came.newest, at)

    def ended(self, source: str, task: int) -> None:
        """Note that a task of a source has ended."""
        if source in self._tasks:
            self._tasks[source][task].ended = True

    def awaited(self, source: str, task: int, awaited: bool) -> None:
        """Note whether a task of a source has something to read."""
        if source in self._tasks:
            self._tasks[source][task].silent = not awaited

    def look(self, now: float, ready: Callable[[str], bool]) -> dict[str, int]:
        """Give the components for which time has gone on far enough, and how far it has."""

        def came(sources: Sequence[str]) -> int:
            own = [task for source in sources for task in self._tasks[source]]
            if own and all(task.ended for task in own):  # what is left goes on with the others
                own = [task for tasks in self._tasks.values() for task in tasks]
            return min((task.at(now) for task in own), default=NEVER)

        found = self._next(came, self.told, ready)
        self.told |= found
        return found

    def committed(self, came: Came) -> None:
        """Take in what is known of all sources, where tuples come in batches."""
        for source, tasks in self._tasks.items():
            for number, task in enumerate(tasks):
                name = task_name(source, number)
                # Once there was one time for all tasks of a source.
                task.newest = came.newest.get(name, came.newest.get(source, NEVER))
                task.given = came.given.get(name, NEVER)
                task.ended, task.silent = name in came.ended, name in came.silent

    def marks(self, now: float) -> dict[str, Mark]:
        """Give how far time has come: at sources, and at components that have to know it."""
        found: dict[str, Mark] = {}
        for source, tasks in self._tasks.items() if self._hears else ():
            awaited = [task for task in tasks if task.at(now) != ALWAYS] or tasks
            slowest = min(task.newest for task in awaited)
            newest = max(max(task.given, task.newest) for task in tasks)
            if slowest != NEVER:
                found[source] = Mark(slowest - tasks[0].time.delay, newest)
        for name, hears in self._hears.items():
            at, told = self._at.get(name, NEVER), self.told[name]
            came = told if at == ALWAYS else max(at, told)
            each = [task for source in hears.sources for task in self._tasks[source]]
            newest = max(max(task.given, task.newest) for task in each)
            if came > NEVER // 2 and newest != NEVER:
                found[name] = Mark(came, newest)
        return found

    @property
    def over(self) -> bool:
        """Whether all sources have ended."""
        return all(task.ended for tasks in self._tasks.values() for task in tasks)

    def last(self) -> dict[str, int]:
        """Give what components have not been told when all input has ended, as far as it says."""

        def came(sources: Sequence[str]) -> int:
            each = (self._tasks[source] for source in sources)
            at = (max(task.newest for task in tasks) - tasks[0].time.delay for tasks in each)
            return min(at, default=NEVER)

        found = self._next(came, self.told, lambda _name: True)
        self.told |= found
        return found

    def _next(
        self,
        came: Callable[[Sequence[str]], int],
        told: Mapping[str, int],
        ready: Callable[[str], bool],
    ) -> dict[str, int]:
        found: dict[str, int] = {}
        #: How far time may go behind each of them.
        behind: dict[str, int] = {}
        for name, hears in self._hears.items():
            at = min([came(hears.sources), *(behind[other] for other in hears.before)])
            last = told.get(name, NEVER)
            self._at[name] = at
            # All that is left is told at the end.
            due = at != ALWAYS and hears.is_due(at, last)
            if due and ready(name):
                found[name] = last = at
                due = False
            calm = hears.stepwise and not due and at != ALWAYS
            behind[name] = at if calm or self._is_silent(hears, at) else last - hears.lag
        return found

    def _is_silent(self, hears: _Hears, at: int) -> bool:
        """Say whether nothing tells a component the time, though something may still come to it."""
        own = (task for source in hears.sources for task in self._tasks[source])
        return at == ALWAYS and not all(task.ended for task in own)


@dataclass(frozen=True)
class Came:
    """How far the tasks of sources have come with the batches so far, by name of the task."""

    newest: Mapping[str, int] = field(default_factory=dict)
    #: The newest times that they have given, where that is known.
    given: Mapping[str, int] = field(default_factory=dict)
    ended: Collection[str] = ()
    #: Those that have nothing to read, or have given nothing for too long.
    silent: Collection[str] = ()


class BatchTimes:
    """How far event time has come where tuples come in batches: a function of what was committed.

    Time goes on with the next batch, since all of a batch has to be read to know it.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology

    def next(self, came: Came, told: Mapping[str, int]) -> dict[str, int]:
        """Give how far components will be told that time has come."""
        marks = Watermarks(self._topology, 0.0, dict(told))
        marks.committed(came)
        found = marks.look(0.0, lambda _name: True)
        if marks.over:  # timers are due before the end that others may be set by
            found |= marks.last()
        return {name: found.get(name, told.get(name, NEVER)) for name in marks.hearing}

    def marks(self, came: Came, told: Mapping[str, int]) -> dict[str, Mark]:
        """Give how far time has come with what was committed."""
        marks = Watermarks(self._topology, 0.0, dict(told))
        marks.committed(came)
        marks.look(0.0, lambda _name: False)
        if marks.over:
            marks.last()
        return marks.marks(0.0)


class Silence:
    """Which tasks of sources have given nothing for too long, where tuples come in batches."""

    def __init__(self, topology: Topology, now: float) -> None:
        times = ((c, c.options.time) for c in topology.spouts)
        self._idle = {
            name: time.idle for c, time in times if time and time.idle for name in task_names(c)
        }
        self._heard = dict.fromkeys(self._idle, now)

    def heard(self, tasks: Iterable[str], now: float) -> None:
        """Note tasks that have given something, as their batch is done."""
        self._heard.update((name, now) for name in tasks if name in self._idle)

    def at(self, now: float) -> frozenset[str]:
        """Give those that keep nobody waiting."""
        return frozenset(n for n, idle in self._idle.items() if now - self._heard[n] >= idle)


def _hearing(topology: Topology, sources: Mapping[str, object]) -> dict[str, _Hears]:
    """Find the components that have to know the time, where somebody tells it."""
    found: dict[str, _Hears] = {}
    for component in topology:
        body = component.body
        if component.is_spout or not getattr(body, "timed", False):
            continue
        before = _all_before(topology, component.name)
        if before.isdisjoint(sources):
            continue
        found[component.name] = _Hears(
            tuple(name for name in sources if name in before),
            tuple(name for name in found if name in before),
            body.watermark_step,  # type: ignore[union-attr]  # timed ones have it
            body.watermark_offset,  # type: ignore[union-attr]  # as above
            body.stepwise,  # type: ignore[union-attr]  # as above
            body.watermark_lag,  # type: ignore[union-attr]  # as above
        )
    return found


def _all_before(topology: Topology, name: str) -> set[str]:
    """Find all components before one."""
    found: set[str] = set()
    left = [name]
    while left:
        for input_ in topology.component(left.pop()).inputs:
            if input_.component not in found:
                found.add(input_.component)
                left.append(input_.component)
    return found
