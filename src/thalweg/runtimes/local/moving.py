"""The tasks of one operator while its keys change their tasks, and tuples flow.

All that comes to an operator passes one point, its routers, in some order. So its routers are one
sender to its tasks, whose queues are FIFO channels: the protocol of :mod:`thalweg.migration` runs
for each operator by itself, with the routers as the only task before its tasks. That one switches
in the turn of a unit. What it has sent before is in front of PROPAGATE in the queue of the old
owner, which gives the state away only then; what it sends afterwards waits at the new owner, key by
key, until the state has come. Hence the tuples of a key stay in the order in which they came to the
operator, and no operator has to know of the others.

Where tasks come or go, all that waits is taken back at the switch and sent again behind PROPAGATE,
by the new table, as if it had come only now. So a backlog is shared out among all tasks at once,
and the old owner gives state away behind no more than what it is working on.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.components import Kind
from thalweg.control.differences import MOST
from thalweg.hashing import hash_columns, hash_key
from thalweg.migration.messages import (
    Finish,
    Message,
    Migrate,
    Piece,
    Propagate,
    SendReconf,
    Tuple,
)
from thalweg.migration.task import Kept, Task
from thalweg.migration.units import Units
from thalweg.migration.wiring import Address, Office, TaskId, Wiring
from thalweg.routing.load_router import balanced_router
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.local.handing import Census, Handed, Wanted, census
from thalweg.runtimes.local.isolation import AnyTask, RemoteTask
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.units import WAKE, Item, rows_of
from thalweg.runtimes.pairing import key_text
from thalweg.state import MemoryState

#: Called with what a task tells the manager.
Post = Callable[[TaskId, Message], None]


def router_id(component: str) -> TaskId:
    """Name the routers of a component, which no task is called like."""
    return TaskId(f"routers of {component}", 0)


def look(task: AnyTask, hashes: bool = True) -> Census:
    """Count the keys of a task; where it works, since nobody else may look at its state then."""
    if isinstance(task, RemoteTask):
        return task.census(hashes)
    return census(task.context.state, hashes)


@dataclass(eq=False)
class _Waiting:
    """Rows of an item that wait for the state of one unit."""

    number: int
    item: Item
    rows: Any
    since: float


@dataclass(eq=False)
class _Host:
    """What a task does and holds besides the protocol."""

    task: AnyTask
    #: What may go on, since its state has come.
    released: list[_Waiting] = field(default_factory=list)
    size: float = 1.0
    keys: int = 0
    bytes: int = 0
    #: What some of the keys look like that it gave away.
    names: list[tuple[int, str]] = field(default_factory=list)

    def process(self, tuple_: Tuple, _router: Any) -> list[Any]:
        """Let rows go on; they are processed together, by the caller."""
        self.released.append(tuple_.value)
        return []

    def take(self, units: Units, wanted: frozenset[int]) -> list[Piece]:
        """Take keys out of the state of this task."""
        handed = self._give(Wanted.of(units, wanted))
        self.keys, self.bytes = self.keys + handed.keys, self.bytes + handed.size
        return [Piece({0: handed}, wanted)]

    def _give(self, wanted: Wanted) -> Handed:
        if isinstance(self.task, RemoteTask):
            return self.task.give(wanted)
        state = self.task.context.state
        kept = wanted.give(state) if isinstance(state, MemoryState) else []
        for key, _, _ in kept[: MOST - len(self.names)]:
            values = key if isinstance(key, tuple) else (key,)
            self.names.append((hash_key(key), key_text(values)))
        return Handed(kept, len(kept), round(len(kept) * self.size))

    def put(self, states: Any) -> None:
        """Add to the state what another task gave."""
        for handed in states.values():
            state = self.task.context.state
            if isinstance(self.task, RemoteTask):
                self.task.take(handed.content)
            elif isinstance(state, MemoryState):
                state.take_over(handed.content)

    def metrics(self) -> Census:
        """Say which keys there are."""
        found = look(self.task)
        self.size = found.size
        return found


@dataclass(eq=False)
class _Seat:
    """A task in a reconfiguration; only who works on the task touches it."""

    machine: Task
    host: _Host
    #: What others tell it, which it hears before its next tuples, and whether it was woken for it.
    told: deque[tuple[Address, Message]] = field(default_factory=deque)
    woken: bool = False
    #: What may go on now.
    ready: deque[Item] = field(default_factory=deque)
    units: Units | None = None
    #: The last step that it has switched in, and the last one that is over for it.
    switched: int = 0
    settled: int = 0
    #: State that came before it has switched.
    early: list[tuple[Address, Message]] = field(default_factory=list)


class _Routers:
    """What routers do besides the protocol: nothing."""

    def process(self, _tuple: Tuple, _router: Any) -> list[Any]:
        """Never called: nobody sends tuples to routers."""
        return []

    def take(self, _units: Units, _wanted: frozenset[int]) -> list[Piece]:
        """Give nothing."""
        return []

    def put(self, states: Any) -> None:
        """Have no state."""

    def metrics(self) -> None:
        """Have no keys."""


class Moves:
    """The part that an operator has in a reconfiguration, which may have several steps."""

    def __init__(self, operator: Operator, wiring: Wiring, degree: int, post: Post) -> None:
        name = operator.component.name
        self._operator, self._name, self._degree, self._post = operator, name, degree, post
        self._router = Task(router_id(name), wiring, Kept({}), _Routers())
        self._seats = [
            self._seat(operator.tasks[number], TaskId(name, number), wiring)
            for number in range(wiring.degrees[name])
        ]
        #: Whether tasks come or go; then what waits is shared out anew.
        self._scales = degree != operator.degree
        #: How many tasks can be told things by anybody: those that were there, and have no keys.
        self._open = operator.degree if operator.component.kind is not Kind.KEYED else 0
        self._telling = threading.RLock()
        self._told: SendReconf | None = None
        self._waited = 0
        self._lock = threading.Lock()
        #: The longest time that a tuple had to wait, in seconds.
        self.pause = 0.0
        #: The number of the switch that comes next.
        self.turn = 0

    @staticmethod
    def _seat(task: AnyTask, me: TaskId, wiring: Wiring) -> _Seat:
        host = _Host(task)
        return _Seat(Task(me, wiring, Kept({}), host), host)

    @property
    def moved(self) -> tuple[int, int]:
        """Keys that have left their tasks, and bytes of their state."""
        hosts = [seat.host for seat in self._seats]
        return sum(host.keys for host in hosts), sum(host.bytes for host in hosts)

    @property
    def names(self) -> list[tuple[int, str]]:
        """Some of the keys that have left their tasks: hash and text."""
        return [name for seat in self._seats for name in seat.host.names]

    def settled(self, step: int) -> bool:
        """Say whether all tasks know that a step is over."""
        return all(seat.settled >= step for seat in self._seats)

    # --- messages ----------------------------------------------------------------------------

    def tell(self, to: TaskId, message: Message) -> None:
        """Hand on what the manager says: to a task in its turn, to the routers at once."""
        if to.component == self._name:
            self._tell(to.index, Office.MANAGER, message)
            return
        if isinstance(message, SendReconf):
            self._told = message
        self._carry(to, self._router.receive(message, Office.MANAGER))

    def switch(self, pause: Callable[[], None]) -> None:
        """Route by the new table from here on; called where units come in, one at a time.

        Tasks are paused behind what they have been sent by the old one.
        """
        told = self._told
        assert told is not None  # noqa: S101 (nobody switches before it is told)
        sent = self._router.receive(Propagate(told.epoch), Office.MANAGER)
        table = told.router.get(self._name) or RoutingTable.even(self._degree)
        operator, inputs = self._operator, self._operator.component.inputs
        back = operator.take_back() if self._scales else []
        routers = [
            balanced_router(input_.grouping, table, operator.osg, before)
            for input_, before in zip(inputs, operator.routers, strict=True)
        ]
        operator.use(self._degree, routers)
        if operator.component.kind is not Kind.KEYED:
            self._open = len(self._seats)  # all have begun
        pause()
        self._carry(router_id(self._name), sent)
        operator.route_again(back)
        self._scales = self._scales and operator.component.kind is Kind.KEYED

    def _carry(self, me: TaskId, sent: Iterable[tuple[Address, Message]]) -> None:
        for to, message in sent:
            if not isinstance(to, TaskId):
                self._post(me, message)
            elif me == router_id(self._name) and to.index >= self._open:
                # Behind the tuples that routers have sent before.
                self._operator.mail(to.index, (me, message))
            else:
                self._tell(to.index, me, message)

    def _tell(self, bucket: int, sender: Address, message: Message) -> None:
        """Let a task hear something as soon as it can, ahead of what waits for it.

        What concerns no state need not wait until the task has done what it is at.
        """
        seat = self._seats[bucket]
        if bucket < self._open:
            with self._telling:
                self._receive(seat, bucket, sender, message)
            return
        with self._lock:
            seat.told.append((sender, message))
            wake, seat.woken = not seat.woken, True
        if wake:
            self._operator.mail(bucket, None)

    # --- what tasks do -----------------------------------------------------------------------

    def through(self, bucket: int, items: Iterable[Item]) -> Iterator[Item]:
        """Give what a task may process now; messages are handled on the way."""
        seat = self._seats[bucket]
        for item in items:
            if item.special is None or item.special.call != "prepare":
                self._hear(seat, bucket, item is WAKE)
            if item.mail is not None:
                self._receive(seat, bucket, *item.mail)
            while seat.ready:  # may be much: what is told meanwhile must not have to wait for it
                yield seat.ready.popleft()
                self._hear(seat, bucket, woken=False)
            if item is WAKE or item.mail is not None:
                continue
            if item.block is None or seat.machine.calm:
                yield item
            else:
                yield from self._sifted(seat, item)

    def _hear(self, seat: _Seat, bucket: int, woken: bool) -> None:
        """Take in what others have told a task."""
        with self._lock:
            seat.woken = seat.woken and not woken
        while seat.told:
            self._receive(seat, bucket, *seat.told.popleft())

    def _receive(self, seat: _Seat, bucket: int, sender: Address, message: Any) -> None:
        if isinstance(message, Migrate) and message.epoch > seat.switched:
            seat.early.append((sender, message))  # keys have had the ticks that still wait here
            return
        if isinstance(message, SendReconf):
            seat.units = message.units
        sent = seat.machine.receive(message, sender)
        released, seat.host.released = seat.host.released, []
        seat.ready.extend(self._pieces(released))
        seat.machine.validate()
        if isinstance(message, Finish):
            seat.settled = message.epoch
            self._post(TaskId(self._name, bucket), message)
        self._carry(TaskId(self._name, bucket), sent)
        if isinstance(message, Propagate):
            seat.switched, early, seat.early = message.epoch, seat.early, []
            for each in early:
                self._receive(seat, bucket, *each)

    def _sifted(self, seat: _Seat, item: Item) -> Iterator[Item]:
        """Hold back the rows whose state has not come yet."""
        assert item.block is not None and item.input is not None  # noqa: S101 (it is no special)
        assert seat.units is not None  # noqa: S101 (it is not calm)
        hashes = hash_columns([item.block.batch.column(name) for name in item.input.key])
        waits = seat.machine.waits(hashes)
        rows = np.flatnonzero(waits)
        if not len(rows):
            yield item
            return
        units, now = seat.units.of(hashes[rows]), time.perf_counter()
        found = np.unique(units)
        goes_on = len(rows) < len(hashes)
        self._operator.split(item, len(found) + goes_on - 1)
        for unit in found.tolist():
            mine = rows[units == unit]
            waiting = _Waiting(self._next(), item, mine, now)
            seat.machine.receive(Tuple(int(hashes[mine[0]]), waiting), router_id(self._name))
        if goes_on:
            yield rows_of(item, np.flatnonzero(~waits), item.part)

    def _next(self) -> int:
        with self._lock:
            self._waited += 1
            return self._waited

    def _pieces(self, released: list[_Waiting]) -> Iterator[Item]:
        """Put the rows of each item together that may go on, in the order in which they came."""
        by_item: dict[int, list[_Waiting]] = {}
        for waiting in sorted(released, key=lambda waiting: waiting.number):
            by_item.setdefault(id(waiting.item), []).append(waiting)
        now = time.perf_counter()
        for group in by_item.values():
            item = group[0].item
            with self._lock:
                self.pause = max(self.pause, now - group[0].since)
            rows = np.sort(np.concatenate([waiting.rows for waiting in group]))
            yield rows_of(item, rows, self._operator.split(item, 1 - len(group)))
