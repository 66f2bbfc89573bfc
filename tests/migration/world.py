"""A small simulated world: channels, tasks with keyed state, a store, restarts.

It delivers one message after the other, each from a channel that chance picks, and raises
:class:`Violation` as soon as one of the promises of the protocol is broken.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from migration.scenarios import SOURCE, Scenario
from thalweg.migration.protocol import (
    Address,
    Configuration,
    Kept,
    Manager,
    Message,
    Office,
    Phase,
    Piece,
    Router,
    Save,
    Saved,
    SendReconf,
    Sent,
    States,
    Task,
    TaskId,
    Tuple,
    cut,
)
from thalweg.migration.units import Units

#: Far more than any run needs; a run that takes so many does not end.
_MOST_STEPS = 20_000


class Violation(AssertionError):
    """A promise of the protocol was broken."""


@dataclass(frozen=True)
class Row:
    """What a tuple carries: where it has been, its keys, and its number from its sender."""

    root: int
    path: tuple[str, ...]
    keys: dict[str, int]
    sender: Address
    number: int


class World:
    """Runs a scenario, with restarts and messages that come twice."""

    def __init__(
        self,
        scenario: Scenario,
        random: Random,
        restarts: int = 0,
        duplicates: int = 0,
        task_class: type[Task] = Task,
        manager_class: type[Manager] = Manager,
    ) -> None:
        self.scenario, self.random = scenario, random
        self.task_class, self.manager_class = task_class, manager_class
        self.restarts, self.duplicates = restarts, duplicates
        self.channels: dict[tuple[Address, Address], deque[Message]] = defaultdict(deque)
        #: How often each channel is chosen, against others; some are very slow.
        self.pace: dict[tuple[Address, Address], float] = {}
        #: Messages other than tuples that have been delivered, with their channels.
        self.past: list[tuple[tuple[Address, Address], Message]] = []
        self.saved: Configuration | None = None
        #: All that happened, for whoever looks at a failure.
        self.story: list[tuple[object, ...]] = []
        #: Tuples that a task has taken in and not processed, with their senders.
        self.unprocessed: dict[TaskId, list[tuple[Address, Tuple]]] = defaultdict(list)
        #: Rows in the order in which the keys of each component saw them.
        self.seen: dict[tuple[str, int], list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
        self.last: dict[tuple[Address, str, int], int] = {}
        wiring = scenario.wiring
        self.hosts = {task: Shop(task, self) for task in wiring.tasks}
        self.kept = {task: Kept(self.first_router(task)) for task in wiring.tasks}
        self.tasks = {task: self.make_task(task) for task in wiring.tasks}
        self.manager = self.make_manager()
        for root, (task, keys) in enumerate(scenario.stream):
            row = Row(root, (), dict(keys), Office.STORE, root)
            self.channels[Office.STORE, task].append(Tuple(root, row))

    def first_router(self, task: TaskId) -> Router:
        receivers = self.scenario.wiring.streams.get(task.component, ())
        return {name: self.scenario.tables[0][name] for name in receivers}

    def make_task(self, task: TaskId) -> Task:
        return self.task_class(task, self.scenario.wiring, self.kept[task], self.hosts[task])

    def make_manager(self) -> Manager:
        return self.manager_class(self.scenario.wiring, self.compute)

    def compute(self, metrics: Any) -> Configuration | None:
        if metrics.keys() != set(self.scenario.wiring.tasks):
            raise Violation(f"statistics of {sorted(metrics)} only")
        return self.scenario.configuration(self.manager.epoch + 1)

    # --- running -------------------------------------------------------------------------------

    def run(self) -> None:
        """Run to the end and check every promise."""
        for _ in range(_MOST_STEPS):
            events = self.events()
            if not events:
                break
            getattr(self, self.random.choices(list(events), list(events.values()))[0])()
        else:
            raise Violation("it does not end")
        self.check_end()

    def events(self) -> dict[str, float]:
        """Tell what may happen next, with weights; troubles come mostly where they hurt."""
        found: dict[str, float] = {}
        if any(self.channels.values()):
            found["deliver"] = 100
        if self.under_way():
            trouble = {Phase.PROPAGATING: 4.0, Phase.ACKS: 2.0}.get(self.manager.phase, 0.3)
            if self.restarts:
                found |= {"restart_task": trouble, "restart_manager": trouble / 3}
            if self.duplicates and self.past:
                found["duplicate"] = trouble
        if self.manager.phase is Phase.IDLE and self.manager.epoch + 1 < len(self.scenario.tables):
            found["begin"] = 10
        return found

    def under_way(self) -> bool:
        return self.manager.phase is not Phase.IDLE or any(self.channels.values())

    def begin(self) -> None:
        if self.random.random() < 0.7:
            self.send(Office.MANAGER, self.manager.start())
        else:
            configuration = self.scenario.configuration(self.manager.epoch + 1)
            self.send(Office.MANAGER, self.manager.begin(configuration))

    def deliver(self) -> None:
        waiting = [ends for ends, queue in self.channels.items() if queue]
        paces = [self.pace_of(ends) for ends in waiting]
        sender, to = self.random.choices(waiting, paces)[0]
        message = self.channels[sender, to].popleft()
        if not isinstance(message, (Tuple, Save, Saved)):
            self.past.append(((sender, to), message))
        self.story.append((sender, to, message))
        self.send(to, self.receive(to, message, sender))
        self.validate(to)

    def pace_of(self, ends: tuple[Address, Address]) -> float:
        if ends not in self.pace:
            self.pace[ends] = self.random.choice([1.0, 1.0, 0.1, 0.01])
        return self.pace[ends]

    def receive(self, to: Address, message: Message, sender: Address) -> list[Sent]:
        if isinstance(message, SendReconf) and (
            self.saved is None or self.saved.epoch < message.epoch
        ):
            raise Violation("a configuration was sent before it was saved")
        if to is Office.MANAGER:
            return self.manager.receive(message, sender)
        if isinstance(to, TaskId):
            if isinstance(message, Tuple):
                self.unprocessed[to].append((sender, message))
            return self.tasks[to].receive(message, sender)
        assert isinstance(message, Save)
        self.saved = message.configuration
        return [(Office.MANAGER, Saved(message.configuration.epoch))]

    def send(self, sender: Address, sent: list[Sent]) -> None:
        for to, message in sent:
            self.channels[sender, to].append(message)

    # --- trouble -------------------------------------------------------------------------------

    def restart_task(self) -> None:
        """Forget all that a task does not keep, and lose some of the messages to it."""
        self.restarts -= 1
        task = self.random.choice(self.scenario.wiring.tasks)
        self.story.append((task, "restarts"))
        loss = self.random.choice([0.0, 0.5, 0.5, 1.0])
        for (_, to), queue in self.channels.items():
            if to == task:
                kept = [it for it in queue if isinstance(it, Tuple) or self.random.random() >= loss]
                queue.clear()
                queue.extend(kept)
        for sender, tuple_ in reversed(self.unprocessed.pop(task, [])):
            self.channels[sender, task].appendleft(tuple_)
        self.tasks[task] = self.make_task(task)
        self.send(task, self.tasks[task].rejoin())

    def restart_manager(self) -> None:
        """Lose the manager and all that is on its way to it; another one takes over."""
        self.restarts -= 1
        self.story.append((Office.MANAGER, "restarts"))
        self.channels[Office.MANAGER, Office.STORE].clear()
        for (_, to), queue in self.channels.items():
            if to is Office.MANAGER:
                queue.clear()
        self.manager = self.make_manager()
        self.send(Office.MANAGER, self.manager.replay(self.saved))

    def duplicate(self) -> None:
        """Send a message of the past once more."""
        self.duplicates -= 1
        kinds = sorted({type(message).__name__ for _, message in self.past})
        kind = self.random.choice(kinds)
        ends, message = self.random.choice(
            [(ends, message) for ends, message in self.past if type(message).__name__ == kind]
        )
        self.story.append((*ends, "once more", message))
        self.channels[ends].append(message)

    # --- promises ------------------------------------------------------------------------------

    def validate(self, address: Address) -> None:
        if isinstance(address, TaskId):
            self.tasks[address].validate()
        else:
            self.manager.validate()

    def processed(self, task: TaskId, tuple_: Tuple) -> None:
        """Note that a tuple is processed: once, and in the order of its sender."""
        waiting = self.unprocessed[task]
        at = [number for number, (_, it) in enumerate(waiting) if it is tuple_]
        if not at:
            raise Violation(f"{task} processes {tuple_}, which it has processed before")
        sender, _ = waiting.pop(at[0])
        row: Row = tuple_.value
        lane = (sender, task.component, tuple_.hash)
        if row.number <= self.last.get(lane, -1):
            raise Violation(f"{task} processes {tuple_} after number {self.last[lane]}")
        self.last[lane] = row.number
        self.seen[task.component, tuple_.hash].append((row.root, row.path))

    def check_end(self) -> None:
        if self.manager.phase is not Phase.IDLE:
            raise Violation(f"stuck: {self.manager.phase}")
        if any(not task.calm for task in self.tasks.values()) or any(self.unprocessed.values()):
            raise Violation("tasks still wait")
        self.check_every_row_was_processed()
        self.check_state()

    def check_every_row_was_processed(self) -> None:
        found = sorted(
            (component, key, row) for (component, key), rows in self.seen.items() for row in rows
        )
        if found != sorted(self.expected()):
            raise Violation("tuples were lost or processed twice")

    def expected(self) -> Iterator[tuple[str, int, tuple[int, tuple[str, ...]]]]:
        """Give all rows that a serial run processes."""
        streams = self.scenario.wiring.streams
        for root, (_, keys) in enumerate(self.scenario.stream):
            paths: list[tuple[str, ...]] = [(SOURCE,)]
            while paths:
                path = paths.pop()
                key = keys.get(path[-1], root)
                yield path[-1], key, (root, path[:-1])
                paths += [(*path, to) for to in streams.get(path[-1], ())]

    def check_state(self) -> None:
        """Every key has all its state, at the task that the last tables name."""
        tables = self.scenario.tables[-1]
        found = sorted(
            (task.component, key, task.index, tuple(rows))
            for task, host in self.hosts.items()
            for key, rows in host.states.items()
        )
        wanted = sorted(
            (component, key, place_of(tables[component], key), tuple(rows))
            for (component, key), rows in self.seen.items()
            if component != SOURCE
        )
        if found != wanted:
            raise Violation("state is not where it belongs, or not complete")


class Shop:
    """The side of a task that works: state is the list of rows that a key has seen."""

    def __init__(self, task: TaskId, world: World) -> None:
        self.task, self.world = task, world
        self.states: dict[int, list[tuple[int, tuple[str, ...]]]] = {}
        self.emitted = 0

    def process(self, tuple_: Tuple, router: Router) -> list[Sent]:
        self.world.processed(self.task, tuple_)
        row: Row = tuple_.value
        if self.task.component != SOURCE:
            self.states.setdefault(tuple_.hash, []).append((row.root, row.path))
        return [self.emit(row, name, table) for name, table in sorted(router.items())]

    def emit(self, row: Row, component: str, table: Any) -> Sent:
        self.emitted += 1
        key, path = row.keys[component], (*row.path, self.task.component)
        onward = Row(row.root, path, row.keys, self.task, self.emitted)
        return TaskId(component, place_of(table, key)), Tuple(key, onward)

    def take(self, units: Units, wanted: frozenset[int]) -> list[Piece]:
        pieces = cut(self.states, units, wanted, keys=1)
        for piece in pieces:
            for key in piece.states:
                del self.states[key]
        return pieces

    def put(self, states: States) -> None:
        for key, rows in states.items():
            if key in self.states:
                raise Violation(f"{self.task} has state of {key} before it comes")
            self.states[key] = rows

    def metrics(self) -> int:
        return self.emitted


def place_of(table: Any, key: int) -> int:
    return int(table.places_of(np.array([key], dtype=np.uint64))[0])
