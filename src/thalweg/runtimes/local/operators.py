"""Operators: bolts of a running topology, with what waits for them and what they have sent.

Every unit comes to every operator whose order matters, be it with nothing in it, so that an
operator with several inputs knows when it has seen all of a unit, and its output can be brought
back into the order of the units. Operators to which order does not matter take blocks as they come.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from thalweg.blocks import Block, Origin, concatenate
from thalweg.metrics import Counter
from thalweg.ordering import Arrival, interleave
from thalweg.routing.routers import Router
from thalweg.runtimes.following import joined, output_block
from thalweg.runtimes.local.flights import Flights
from thalweg.runtimes.local.isolation import AnyTask
from thalweg.runtimes.local.planning import Facts
from thalweg.runtimes.local.ring import AnyReorderBuffer, ReorderBuffer
from thalweg.runtimes.local.worklists import Taken, Worklist
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.tasks import BoltTask
from thalweg.topology import Component, Input

# Below this share of its time at work an operator waits; blocks that take less time say nothing;
# weight of the last block.
_WAITS, _SHORT, _RECENT = 0.5, 0.0005, 0.2

Call = Literal["tick", "end", "forget"]


@dataclass(frozen=True)
class Special:
    """A unit that is not data: a tick of a task, or the end of its input."""

    component: str
    task: int
    call: Call
    #: Serial number of the source tuple that comes next.
    serial: int
    #: Source tuples that have failed, to be forgotten.
    roots: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class Unit:
    """A unit at an operator."""

    number: int
    #: Parts that have not been processed yet.
    left: int
    #: What was sent, by arrival and part.
    sent: list[list[list[Block]]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Item:
    """The part of a unit that one task processes: a block, or a tick."""

    #: None for what belongs to no unit.
    unit: Unit | None
    input: Input | None
    block: Block | None
    arrival: int = 0
    part: int = 0
    special: Special | None = None


@dataclass(eq=False)
class Link:
    """A stream on its way to one reader."""

    reader: Operator
    index: int
    input: Input
    #: Rows that wait at the reader.
    waiting: int = 0


Streams = dict[str, list[Link]]


@dataclass(frozen=True)
class Wiring:
    """What all operators of a run share."""

    flights: Flights
    #: Specials that are under way, by the number of their unit.
    specials: dict[int, Special]
    #: Called when something was added to a worklist.
    woken: Callable[[Operator], None]
    #: Called with (links, blocks) before the blocks are on their way, and when a part is done.
    delivered: Callable[[Link, Block], None]
    processed: Callable[[AnyTask, Block], None]
    now: Callable[[], float]
    #: Makes reorder buffers.
    ring: Callable[..., AnyReorderBuffer] = ReorderBuffer
    #: Rows that may wait on a link before its sender has to wait.
    bound: int = 100_000


class Operator:
    """A bolt."""

    def __init__(
        self,
        component: Component,
        tasks: Sequence[AnyTask],
        worklist: Worklist[Item],
        counters: Sequence[Counter],
        wiring: Wiring,
        facts: Facts,
    ) -> None:
        self.component, self.tasks, self.worklist = component, tasks, worklist
        #: One for each task, since a task is with one worker at a time.
        self.counters, self._wiring, self._facts = counters, wiring, facts
        self.streams: Streams = {stream: [] for stream in component.outputs}
        #: Links that come in, with the router of each.
        self.inputs: list[Link] = []
        self.routers: list[Router] = []
        self.ordered = facts.ordered
        size = wiring.flights.window
        self._out = wiring.ring(size, self._forward) if facts.ordered else None
        #: Units of which not all inputs have arrived; in order as soon as they have.
        self._partly: dict[int, list[Arrival]] = {}
        self._missing: dict[int, int] = {}
        self._entering: ReorderBuffer[list[Arrival]] = ReorderBuffer(size, self._admit)
        self._lock = threading.Lock()
        self.index = 0
        #: Workers on it now, and how many there may be.
        self.workers = 0
        self.limit = len(tasks)
        #: Share of its time that it was at work rather than waiting, of late.
        self._busy = 1.0

    # --- what comes in -----------------------------------------------------------------------

    def arrive(self, number: int, link: Link, blocks: Sequence[Block]) -> None:
        """Take what one input has of a unit, which may be nothing."""
        rows = sum(map(len, blocks))
        if rows:
            with self._lock:
                link.waiting += rows
        if not self.ordered:
            for block in blocks:
                self._admit_now(number, [(link.index, block)])
            return
        arrivals = [(link.index, block) for block in blocks]
        if len(self.inputs) > 1:
            found = self._assemble(number, arrivals)
            if found is not None:
                self._entering.offer(number, found)
        else:
            self._admit(number, arrivals)

    def _assemble(self, number: int, arrivals: list[Arrival]) -> list[Arrival] | None:
        """Collect the inputs of a unit; gives them when all are there."""
        with self._lock:
            self._partly.setdefault(number, []).extend(arrivals)
            self._missing[number] = self._missing.get(number, len(self.inputs)) - 1
            if self._missing[number]:
                return None
            del self._missing[number]
            return self._partly.pop(number)

    def _admit(self, number: int, arrivals: list[Arrival]) -> None:
        """Let a whole unit in; called in the order of units, by one thread at a time."""
        special = self._wiring.specials.get(number)
        if special is not None and special.component == self.component.name:
            self.begin_special(number, special)
        elif arrivals:
            arrivals.sort(key=lambda arrival: arrival[0])
            self._begin(number, interleave(arrivals) if len(arrivals) > 1 else arrivals)
        elif self._out is not None:
            self._out.offer(number, None)

    def _admit_now(self, number: int, arrivals: list[Arrival]) -> None:
        with self._lock:  # routers have a memory
            self._begin(number, arrivals)

    def begin_special(self, number: int, special: Special) -> None:
        """Take a tick or the end; one at a time, and in its turn, where order matters."""
        unit = Unit(number, 1, [[[]]])
        self._hold(number)
        self.worklist.add(special.task, Item(unit, None, None, special=special), 1)
        self._wiring.woken(self)

    def _begin(self, number: int, arrivals: list[Arrival]) -> None:
        """Split the blocks of a unit among tasks."""
        unit, items = Unit(number, 0), []
        for at, (index, block) in enumerate(arrivals):
            input_ = self.component.inputs[index]
            parts = [(0, block)] if self._facts.pooled else list(self.routers[index].route(block))
            unit.sent.append([[] for _ in parts])
            for slot, (task, part) in enumerate(parts):
                items.append((task, Item(unit, input_, part, at, slot)))
        unit.left = len(items)
        self._hold(number)
        for task, item in items:
            assert item.block is not None  # noqa: S101 (just made)
            self.worklist.add(task, item, len(item.block))
        self._wiring.woken(self)

    def _hold(self, number: int) -> None:
        if not self.ordered:
            self._wiring.flights.hold(number)

    # --- work --------------------------------------------------------------------------------

    @property
    def blocked(self) -> bool:
        """Whether its readers have as much waiting as they may."""
        bound = self._wiring.bound
        return any(link.waiting >= bound for links in self.streams.values() for link in links)

    @property
    def output(self) -> int:
        """Rows that wait at its readers."""
        return sum(link.waiting for links in self.streams.values() for link in links)

    @property
    def bound(self) -> int | None:
        """Rows that may wait at its readers; None without readers."""
        return self._wiring.bound if any(self.streams.values()) else None

    @property
    def waits(self) -> bool:
        """Whether it spends most of its time waiting."""
        return self._busy < _WAITS

    @property
    def python(self) -> bool:
        """Whether it needs Python's lock all the time."""
        if self.component.options.isolation == "process":
            return False
        return self.component.body.pure_python and not self.waits  # type: ignore[union-attr]  # a bolt

    def look(self, took: float, cpu: float) -> None:
        """Note how long a worker was with it, and how much of that it was at work."""
        if took > _SHORT:
            self._busy += _RECENT * (min(1.0, cpu / took) - self._busy)

    def forget(self, roots: frozenset[int]) -> None:
        """Let tasks let go of tuples that have failed."""
        for number, task in enumerate(self.tasks):
            if isinstance(task, BoltTask) and not task.body.auto_ack:
                special = Special(self.component.name, number, "forget", 0, roots)
                self.worklist.add(number, Item(None, None, None, special=special), 1)
        self._wiring.woken(self)

    def work(self, taken: Taken[Item], worker: int) -> tuple[int, int, float]:
        """Process what a worker has taken; gives rows in, rows out and seconds."""
        at = worker if self._facts.pooled else taken.bucket
        task, counter = self.tasks[at], self.counters[at]
        begin = time.perf_counter()
        rows = sent = 0
        for item, others in self._together(taken.items):
            if item.special is not None:
                blocks = self._call(task, item.special)
            else:
                blocks = self._process(task, item)
                rows += len(item.block or ())
            sent += sum(map(len, blocks))
            self._done(item, blocks, others)
        took = time.perf_counter() - begin
        counter.per_task[0] += rows
        counter.emitted += sent
        counter.busy += took
        return rows, sent, took

    def _together(self, items: list[Item]) -> list[tuple[Item, list[Unit]]]:
        """Put small blocks that wait behind each other into one, where that changes nothing.

        Gives with each block the units that it stands for beside its own.
        """
        if len(items) == 1 or (self.ordered and not self._facts.mixes):
            return [(item, []) for item in items]
        runs: list[list[Item]] = []
        for item in items:
            if runs and _alike(runs[-1][-1], item):
                runs[-1].append(item)
            else:
                runs.append([item])
        return [(_as_one(run), [item.unit for item in run[1:] if item.unit]) for run in runs]

    def _process(self, task: AnyTask, item: Item) -> list[Block]:
        part, input_ = item.block, item.input
        assert part is not None and input_ is not None  # noqa: S101 (only specials lack them)
        task.bind(origin=part.origin, key=input_.key)
        lineage = self._facts.lineage or part.roots is not None
        emissions = task.process(part, lineage)
        number = task.context.task
        blocks = [output_block(self.component, number, part, sent) for sent in emissions]
        if part.roots is not None:
            # Outputs hold their roots before the input lets go, so that no root ends too early.
            for block in blocks:
                for link in self.streams[block.origin.stream]:
                    self._wiring.delivered(link, block)
            self._wiring.processed(task, part)
        with self._lock:
            self._link(item).waiting -= len(part)
        return blocks

    def _link(self, item: Item) -> Link:
        assert item.input is not None  # noqa: S101 (as above)
        return self.inputs[self.component.inputs.index(item.input)]

    def _call(self, task: AnyTask, special: Special) -> list[Block]:
        if special.call == "forget":
            task.forget(special.roots)  # type: ignore[union-attr]  # only bolts that keep tuples
            return []
        emissions = task.tick() if special.call == "tick" else task.end()
        return [self._special_block(special, emission) for emission in emissions]

    def _special_block(self, special: Special, emission: Emission) -> Block:
        rows = emission.batch.num_rows
        serials = np.full(rows, special.serial, dtype=np.int64)
        origin = Origin(self.component.name, emission.stream, special.task)
        return Block(emission.batch, origin, serials, targets=emission.targets)

    # --- what goes out -----------------------------------------------------------------------

    def _done(self, item: Item, blocks: list[Block], others: list[Unit]) -> None:
        """Send what a part gave, when it is its turn."""
        unit = item.unit
        if unit is None:
            return
        if self._out is None:
            for stream, sent in _by_stream(blocks).items():
                for link in self.streams[stream]:
                    link.reader.arrive(unit.number, link, sent)
        elif blocks:
            unit.sent[item.arrival][item.part] = blocks
        for done in (unit, *others):
            with self._lock:
                done.left -= 1
                left = done.left
            if left:
                continue
            if self._out is None:
                self._wiring.flights.release(done.number, self._wiring.now())
            else:
                self._out.offer(done.number, done)

    def _forward(self, number: int, unit: Unit | None) -> None:
        """Hand a unit's output to its readers; called in the order of units."""
        outgoing: dict[int, list[Block]] = {}
        for arrival in unit.sent if unit is not None else ():
            for stream, blocks in _by_stream([b for part in arrival for b in part]).items():
                for link in self.streams[stream]:
                    given = joined(link.input, blocks) if link.reader.ordered else blocks
                    outgoing.setdefault(id(link), []).extend(given)
        # Those first that take blocks as they come: the unit may end with the others.
        links = [link for links in self.streams.values() for link in links]
        for link in sorted(links, key=lambda link: link.reader.ordered):
            blocks = outgoing.get(id(link), [])
            if blocks or link.reader.ordered:
                link.reader.arrive(number, link, blocks)
        if self._facts.gate:
            self._wiring.flights.release(number, self._wiring.now())


def _by_stream(blocks: list[Block]) -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = {}
    for block in blocks:
        found.setdefault(block.origin.stream, []).append(block)
    return found


def _alike(one: Item, other: Item) -> bool:
    """Say whether two blocks may be processed as one."""
    a, b = one.block, other.block
    if a is None or b is None or one.input is not other.input:
        return False
    same = a.origin == b.origin and (a.targets is None) == (b.targets is None)
    return same and a.batch.schema.equals(b.batch.schema)


def _as_one(items: list[Item]) -> Item:
    if len(items) == 1:
        return items[0]
    first = items[0]
    block = concatenate([item.block for item in items if item.block is not None])
    return Item(first.unit, first.input, block, first.arrival, first.part)
