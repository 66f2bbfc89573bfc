"""Other routing tables and degrees while tuples flow: the part of the thread that runs a topology.

One reconfiguration at a time: new tasks begin, all tasks say which keys they have, the way to the
new tables is planned in steps of bounded size, and each step goes through the protocol of
:mod:`thalweg.migration`, with the tasks of :class:`.moving.Moves`. At last tasks end that have
nothing to do any more, and a report is given.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol

import msgspec
import numpy as np

from thalweg.control.differences import Moved, difference
from thalweg.control.links import GUESSED_KEY_BYTES
from thalweg.control.rerouting import Cost, Rerouting, Tables
from thalweg.errors import UsageError, explain
from thalweg.events import Event, Reconfigured
from thalweg.migration.manager import Manager, Phase
from thalweg.migration.messages import Configuration, Finish, Message, Propagate, Saved, Sent
from thalweg.migration.plan import Held, plan_moves
from thalweg.migration.report import Report, Score
from thalweg.migration.wiring import Office, TaskId, Wiring
from thalweg.routing.table import RoutingTable, check_places
from thalweg.runtimes.local.building import Built, add_tasks
from thalweg.runtimes.local.handing import Census, hashes_in
from thalweg.runtimes.local.isolation import AnyTask
from thalweg.runtimes.local.moving import Moves, router_id
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.rescaling import check_degree
from thalweg.runtimes.local.units import Call, Item, Special
from thalweg.state import MemoryState

#: Nobody has seen a key.
NO_NAMES: Mapping[int, str] = MappingProxyType({})


class Hands(Protocol):
    """What a reconfiguration needs of the run."""

    def announce(self, component: str, task: int, call: Call) -> None:
        """Send a special, in its turn."""

    def resize(self, operator: Operator, tasks: int) -> None:
        """Have workers for so many tasks of an operator."""

    def opened(self, task: AnyTask) -> None:
        """Note a new task, which has to be closed at the end."""

    def tell(self) -> None:
        """Wake the thread that runs the topology."""


def no_answer(_text: str) -> None:
    """Tell nobody in particular."""


@dataclass(frozen=True, eq=False)
class Change:
    """What is wanted: tables for some components, degrees for some."""

    tables: Tables = field(default_factory=dict)
    degrees: Mapping[str, int] = field(default_factory=dict)
    costs: Mapping[str, Cost] = field(default_factory=dict)
    budget: int = 1 << 62
    reason: str = ""
    before: Score | None = None
    predicted: Score | None = None
    #: Whether the next run is to begin with it.
    lasting: bool = True
    #: Called with what came of it.
    answer: Callable[[str], None] = no_answer

    @classmethod
    def rerouting(cls, wanted: Rerouting) -> Change:
        """Give keys other tasks."""
        return cls(
            tables=wanted.tables,
            costs=wanted.costs,
            budget=wanted.budget,
            reason=wanted.reason,
            before=wanted.before,
            predicted=wanted.predicted,
        )

    @property
    def components(self) -> list[str]:
        """All that take part."""
        return sorted({*self.tables, *self.degrees})


@dataclass(eq=False)
class _Underway:
    """A reconfiguration at work."""

    change: Change
    manager: Manager
    moves: Mapping[str, Moves]
    #: The tables after each step, when they are known, and the steps done.
    tables: Sequence[Tables] = ()
    moved: Moved | None = None
    done: int = 0
    #: Tasks that are told to end.
    ending: list[AnyTask] | None = None


class Reconfiguring:
    """Leads reconfigurations, one at a time."""

    def __init__(
        self,
        built: Built,
        hands: Hands,
        listen: Callable[[Event], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._built, self._hands, self._listen = built, hands, listen
        self._time = now
        self._inbox: deque[tuple[TaskId, Message]] = deque()
        self._switches = 0
        self._now: _Underway | None = None
        #: Keys that have moved since somebody asked, and their bytes.
        self._moved = 0, 0
        self._report: Report | None = None
        #: By epoch: what has changed in tables, of reports that were not told yet.
        self._differences: dict[int, tuple[Moved, dict[int, str]]] = {}
        #: By epoch: when it was over, of those too.
        self._over: dict[int, float] = {}
        #: Mean bytes of a key, as far as somebody looked.
        self._sizes: dict[str, float] = {}
        #: Tells a report that has waited until now, before tables change again.
        self.untold: Callable[[], None] = self._untold

    @property
    def tables(self) -> dict[str, RoutingTable]:
        """Give the table of each component whose keys may have tasks of their own."""
        return self._built.tables

    @property
    def active(self) -> bool:
        """Whether keys or tasks are on their way."""
        return self._now is not None

    @property
    def components(self) -> Sequence[str]:
        """Those that change at present."""
        return () if self._now is None else self._now.change.components

    def take_moved(self) -> tuple[int, int]:
        """Give the number of keys that have moved since the last call, and their bytes."""
        moved, self._moved = self._moved, (0, 0)
        return moved

    @property
    def has_report(self) -> bool:
        """Whether a reconfiguration is over and was not told yet."""
        return self._report is not None

    def take_report(self) -> Report | None:
        """Give the report of what has just ended, to be told with a score."""
        report, self._report = self._report, None
        return report

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Give bytes and keys of the state of each component whose keys may move, about."""
        found = {}
        for name in self.tables:
            states = [task.context.state for task in self._built.operator(name).tasks]
            # Not by len(state), which may change it: other threads are at work on it.
            keys = sum(MemoryState.__len__(s) for s in states if isinstance(s, MemoryState)) or 1
            found[name] = round(keys * self._sizes.get(name, GUESSED_KEY_BYTES)), keys
        return found

    @property
    def counted(self) -> frozenset[int]:
        """Hashes of frequent keys that move, or have moved and were not told yet."""
        now = () if self._now is None or self._now.moved is None else (self._now.moved,)
        told = (moved for moved, _ in self._differences.values())
        return frozenset().union(*(moved.counted for moved in (*told, *now)))

    def tell(self, report: Report, names: Mapping[int, str] = NO_NAMES) -> None:
        """Tell everybody; ``names`` are those of keys that somebody has seen."""
        moved, known = self._differences.pop(report.epoch, (None, {}))
        made = None if moved is None else moved.named({**known, **names})
        if report.epoch in self._over:
            ago = self._time() - self._over.pop(report.epoch)
            report = msgspec.structs.replace(report, ago=ago)
        self._listen(Reconfigured(report.text(), msgspec.to_builtins(report), made))

    def _untold(self) -> None:
        report = self.take_report()
        if report is not None:
            self.tell(report)

    # --- begin and end -----------------------------------------------------------------------

    def begin(self, change: Change) -> None:
        """Begin to change tables or degrees; raises where that cannot be."""
        if self._now is not None:
            hint = "wait until those that are on their way have arrived"
            raise UsageError(explain("reconfiguration", "", "one at a time", "another one", hint))
        change = self._complete(change)
        if not change.components:
            return
        self.untold()
        wiring = self._wiring(change)
        for name in change.degrees:
            self._grow(self._built.operator(name), change.degrees[name])
        moves = {
            name: Moves(operator, wiring, change.degrees.get(name, operator.degree), self._post)
            for name in change.components
            for operator in [self._built.operator(name)]
        }
        for name, part in moves.items():
            self._built.operator(name).passing = part
        self._inbox.clear()  # nobody waits for what came too late for the last one
        self._now = _Underway(change, Manager(wiring, self._configured), moves)
        self._carry(self._now.manager.start())

    def _complete(self, change: Change) -> Change:
        """Check what is wanted, and make the tables that other degrees need."""
        known = self.tables
        unknown = sorted(set(change.tables) - set(known))
        if unknown:
            expected, hint = f"some of {sorted(known)}", "keyed components with fields(...)"
            raise UsageError(explain("reroute", "", expected, str(unknown), hint))
        tables = dict(change.tables)
        for name, degree in change.degrees.items():
            check_degree(self._built.operator(name), degree)
            if name in known:
                tables[name] = tables.get(name, known[name].resized(degree))
        for name, table in tables.items():
            degree = change.degrees.get(name, self._built.operator(name).degree)
            check_places(name, table, degree)
        return replace(change, tables=tables)

    def _wiring(self, change: Change) -> Wiring:
        degrees: dict[str, int] = {}
        streams: dict[str, tuple[str, ...]] = {}
        for name in change.components:
            now, routers = self._built.operator(name).degree, router_id(name).component
            degrees |= {routers: 1, name: max(now, change.degrees.get(name, now))}
            streams[routers] = (name,)
        return Wiring(degrees, streams)

    def _grow(self, operator: Operator, degree: int) -> None:
        """Begin tasks; the first thing each of them does is to prepare."""
        name, now = operator.component.name, operator.degree
        if degree <= now:
            return
        for task in add_tasks(self._built, operator, degree):
            self._hands.opened(task)
        operator.resize(degree, self._built.lines(degree))
        for number in range(now, degree):
            special = Special(name, number, "prepare", 0)
            operator.worklist.add(number, Item(None, None, None, special=special), 1)
        self._hands.resize(operator, degree)

    # --- step by step ------------------------------------------------------------------------

    def _post(self, sender: TaskId, message: Message) -> None:
        """Take what a task tells; called by any thread."""
        self._inbox.append((sender, message))
        self._hands.tell()

    def advance(self) -> bool:
        """Do what can be done now; called again and again while active."""
        now, moved = self._now, bool(self._inbox)
        while now is not None and self._inbox:
            sender, message = self._inbox.popleft()
            if not isinstance(message, Finish):
                self._carry(now.manager.receive(message, sender))
                now.manager.validate()
        if now is not None and now.manager.phase is Phase.IDLE and now.tables:
            self._follow(now)
        return moved

    def _carry(self, sent: Sequence[Sent]) -> None:
        """Bring what the manager says to where it belongs; the routers switch all with one unit."""
        now = self._now
        assert now is not None  # noqa: S101 (it is under way)
        parts = {router_id(name).component: part for name, part in now.moves.items()}
        for to, message in sent:
            if to is Office.STORE:
                self._inbox.append((TaskId("store", 0), Saved(now.manager.epoch + 1)))
            elif isinstance(to, TaskId) and not isinstance(message, Propagate):
                (parts.get(to.component) or now.moves[to.component]).tell(to, message)
        if any(isinstance(message, Propagate) for _, message in sent):
            self._switches += 1
            for part in now.moves.values():
                part.turn = self._switches
            self._hands.announce("", self._switches, "switch")

    def _configured(self, metrics: Mapping[TaskId, Any]) -> Configuration:
        """Plan the steps, as soon as it is known who has which keys."""
        now = self._now
        assert now is not None  # noqa: S101 (it is under way)
        old = {name: self.tables[name] for name in now.change.tables}
        held = {name: _held(name, metrics, now.change.costs.get(name)) for name in old}
        self._sizes |= {name: float(of.sizes[0]) for name, of in held.items() if len(of.sizes)}
        plan = plan_moves(old, now.change.tables, held, now.change.budget)
        now.moved = difference(old, now.change.tables, held)
        # What has no state moves with the first step.
        now.tables = [plan.tables_after(step) for step in range(1, plan.steps + 1)] or [
            plan.tables_after(0)
        ]
        return Configuration(now.manager.epoch + 1, old, now.tables[0])

    def _follow(self, now: _Underway) -> None:
        """Go on with the next step, or end."""
        if now.manager.epoch > now.done:
            now.done = now.manager.epoch
            if now.done < len(now.tables):
                old, new = now.tables[now.done - 1 : now.done + 1]
                self._carry(now.manager.begin(Configuration(now.done + 1, old, new)))
                return
        if all(part.settled(now.done) for part in now.moves.values()) and self._ended(now):
            self._finish(now)

    def _ended(self, now: _Underway) -> bool:
        """Let tasks end that have nothing to do any more; True when they have."""
        operators = {name: self._built.operator(name) for name in now.change.degrees}
        if now.ending is None:
            now.ending = []
            for name, degree in now.change.degrees.items():
                operators[name].passing = None
                for task in range(degree, len(operators[name].tasks)):
                    now.ending.append(operators[name].tasks[task])
                    self._hands.announce(name, task, "retire")
        retired = [task for operator in operators.values() for task in operator.retired]
        if any(task not in retired for task in now.ending):
            return False
        return all(self._shrink(operators[name], now.change.degrees[name]) for name in operators)

    def _shrink(self, operator: Operator, degree: int) -> bool:
        if degree >= len(operator.tasks):
            return True
        if operator.worklist.in_use(degree):  # those who work on it are still needed
            return False
        self._hands.resize(operator, degree)
        if not operator.resize(degree, self._built.lines(degree)):
            return False
        del operator.tasks[degree:]
        self._built.bolts[operator.component.name] = operator.tasks
        return True

    def _finish(self, now: _Underway) -> None:
        for name in now.moves:
            self._built.operator(name).passing = None
        moved = [part.moved for part in now.moves.values()]
        keys, size = (int(sum(column)) for column in zip(*moved, strict=True))
        self._moved = self._moved[0] + keys, self._moved[1] + size
        epoch = self._built.arranging.next_epoch(now.change.components, now.change.lasting)
        self._now = None
        self._report = Report(
            epoch=epoch,
            reason=now.change.reason,
            keys=keys,
            bytes=size,
            steps=now.done,
            pause=max(part.pause for part in now.moves.values()),
            before=now.change.before,
            predicted=now.change.predicted,
        )
        self._over[epoch] = self._time()
        if now.moved is not None:
            names = {hash_: name for part in now.moves.values() for hash_, name in part.names}
            self._differences[epoch] = now.moved, names
        now.change.answer(self._report.text())


def _held(name: str, metrics: Mapping[TaskId, Any], cost: Cost | None) -> Held:
    """Say what all keys of a component hold."""
    found: list[Census] = [census for task, census in metrics.items() if task.component == name]
    hashes = np.sort(np.concatenate([hashes_in(census) for census in found]))
    heat = np.zeros(len(hashes))
    if cost is not None and len(cost.hashes):
        at = np.minimum(np.searchsorted(cost.hashes, hashes), len(cost.hashes) - 1)
        heat = np.where(cost.hashes[at] == hashes, cost.heat[at], 0.0)
    keys = sum(census.keys for census in found)
    mean = sum(census.size * census.keys for census in found) / keys if keys else 1.0
    size = max(1, round(mean if cost is None else cost.size))
    return Held(hashes, np.full(len(hashes), size), heat)
