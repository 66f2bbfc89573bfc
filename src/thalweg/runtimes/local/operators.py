"""Operators: bolts of a running topology, with what waits for them and what they have sent.

Every unit comes to every operator whose order matters, be it with nothing in it, so that an
operator with several inputs knows when it has seen all of a unit, and its output can be brought
back into the order of the units. Operators to which order does not matter take blocks as they come.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM, Block
from thalweg.components import Kind
from thalweg.errors import ThalwegError
from thalweg.metrics import Counter
from thalweg.migration.messages import Message
from thalweg.migration.wiring import Address
from thalweg.ordering import Arrival, interleave
from thalweg.routing.routers import Router
from thalweg.runtimes.anchored_tasks import holds_by_key, may_hold
from thalweg.runtimes.following import output_block
from thalweg.runtimes.local.balancing import forget_cost, measured
from thalweg.runtimes.local.failing import Failed
from thalweg.runtimes.local.holding import Holding
from thalweg.runtimes.local.isolation import AnyTask
from thalweg.runtimes.local.links import Link, Streams, Wiring
from thalweg.runtimes.local.observed import Observed
from thalweg.runtimes.local.outlets import Outlet
from thalweg.runtimes.local.pairs import marked
from thalweg.runtimes.local.planning import Facts
from thalweg.runtimes.local.ring import AnyReorderBuffer, ReorderBuffer
from thalweg.runtimes.local.units import (
    MANY,
    WAKE,
    Item,
    Passing,
    Special,
    Unit,
    age,
    by_stream,
    goes_whole,
    in_runs,
    is_told,
    special_block,
    until_done,
)
from thalweg.runtimes.local.worklists import HybridWorklist, Taken, Worklist
from thalweg.topology import Component


class Operator(Observed):
    """A bolt."""

    def __init__(
        self,
        component: Component,
        tasks: list[AnyTask],
        worklist: Worklist[Item],
        counters: list[Counter],
        wiring: Wiring,
        facts: Facts,
    ) -> None:
        self.component, self.tasks, self.worklist = component, tasks, worklist
        #: One for each task, since a task is with one worker at a time.
        self.counters, self._wiring, self._facts = counters, wiring, facts
        self.streams: Streams = {stream: [] for stream in component.outputs}
        self._outlet = Outlet(self.streams)
        #: Links that come in, with the router of each.
        self.inputs: list[Link] = []
        self.routers: list[Router] = []
        self.ordered = facts.ordered
        size = wiring.flights.room
        self._out = wiring.ring(size, self._forward) if facts.ordered else None
        #: Units of which not all inputs have arrived; in order as soon as they have.
        self._partly: dict[int, list[Arrival]] = {}
        self._missing: dict[int, int] = {}
        self._entering: ReorderBuffer[list[Arrival]] = ReorderBuffer(size, self._admit)
        self._lock = threading.RLock()
        self.index = 0
        #: Workers on it now, and how many there may be.
        self.workers = 0
        self.limit = len(tasks)
        self.holding = Holding(self._able, wiring.now)
        #: Tasks that it has now, those that have ended, and what happens while keys move.
        self.degree = component.degree
        self.retired: list[AnyTask] = []
        self.passing: Passing | None = None
        #: Under whose name it sends, and whether its place is not the one that it began with.
        self._sender = component
        self.moved = False
        #: What was processed last, without its Python values: their memory is better used again.
        self.last: pa.RecordBatch | None = None

    # --- what comes in -----------------------------------------------------------------------

    def arrive(self, number: int, link: Link, blocks: Sequence[Block]) -> None:
        """Take what one input has of a unit, which may be nothing."""
        self._wiring.pause("arrive")
        rows = sum(map(len, blocks))
        if rows:
            with self._lock:
                link.waiting += rows
                link.arrived += rows
                if link.waiting >= self._wiring.bound:
                    link.fill(self._wiring.bound)
        if not self.ordered:
            for block in blocks:
                self._admit_now(number, [(link.index, block)])
            return
        arrivals = [(link.index, block) for block in blocks]
        if len(self.inputs) > 1:
            found = self._assemble(number, arrivals)
            if found is not None:
                self._offer(self._entering, number, found)
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
        if special is not None and self.takes(special):
            self.begin_special(number, special)
        elif arrivals:
            arrivals.sort(key=lambda arrival: arrival[0])
            self._begin(number, interleave(arrivals) if len(arrivals) > 1 else arrivals)
        else:
            self._pass(number)

    def _pass(self, number: int) -> None:
        if self._out is not None:
            self._offer(self._out, number, None)

    def _offer(
        self, buffer: AnyReorderBuffer, number: int, what: Unit | list[Arrival] | None
    ) -> None:
        """Let a unit wait for its turn in a buffer, which has room for all that are under way."""
        if not buffer.offer(number, what):
            text = f"{self.component.name!r} has no room for unit {number}"
            raise ThalwegError(text)

    def _admit_now(self, number: int, arrivals: list[Arrival]) -> None:
        with self._lock:  # routers have a memory
            self._begin(number, arrivals)

    def begin_special(self, number: int, special: Special) -> None:
        """Take a tick or the end; one at a time, and in its turn, where order matters."""
        if special.call == "switch" and self.passing is not None:
            call = replace(special, component=self.component.name, call="pause")
            pausing = [at for at, task in enumerate(self.tasks) if holds_by_key(task)]
            calls = [replace(call, task=at) for at in pausing]
            with nullcontext() if self.ordered else self._lock:  # as routers are used
                self.passing.switch(partial(self._begin_calls, number, calls))
            if not calls:
                self._pass(number)
            return
        self._begin_calls(number, [special])

    def _begin_calls(self, number: int, calls: Sequence[Special]) -> None:
        """Let tasks be called as one unit."""
        if not calls:
            return
        unit = Unit(number, len(calls), [[[] for _ in calls]])
        self._hold(number)
        for part, special in enumerate(calls):
            item = Item(unit, None, None, part=part, special=special)
            self.worklist.add(special.task, item, 1)
        self._came()

    def takes(self, special: Special) -> bool:
        """Say whether something is meant for it."""
        if special.call == "switch":
            passing = self.passing  # which may go meanwhile
            return passing is not None and passing.turn == special.task
        return special.component == self.component.name

    def _begin(self, number: int, arrivals: list[Arrival]) -> None:
        """Split the blocks of a unit among tasks."""
        unit, items = Unit(number, 0), []
        for at, (index, block) in enumerate(arrivals):
            input_ = self.component.inputs[index]
            parts = self._parts(number, index, block)
            unit.sent.append([[] for _ in parts])
            for slot, (task, part) in enumerate(parts):
                items.append((task, Item(unit, input_, part, at, slot)))
        unit.left = len(items)
        self._hold(number)
        for task, item in items:
            assert item.block is not None  # noqa: S101 (just made)
            self.worklist.add(task, item, len(item.block))
        self._came()

    def _came(self) -> None:
        """Let somebody work on what has come, or note that it is held."""
        if self.holding.full:
            self.holding.look()
        self._wiring.woken(self)

    def _parts(self, number: int, index: int, block: Block) -> list[tuple[int, Block]]:
        """Split a block among tasks; whole blocks go to a pool, or in turn to what was one."""
        if self._facts.pooled:
            return [(0, block)]
        if self._facts.spread:
            return [(number % self.degree, block)]
        return list(self.routers[index].route(block))

    def _hold(self, number: int) -> None:
        if not self.ordered:
            self._wiring.flights.hold(number)

    # --- work --------------------------------------------------------------------------------

    def forget(self, roots: frozenset[int]) -> None:
        """Let tasks let go of tuples that have failed."""
        for number, task in enumerate(self.tasks):
            if not getattr(task.component.body, "auto_ack", True):
                special = Special(self.component.name, number, "forget", 0, roots)
                self.worklist.add(number, Item(None, None, None, special=special), 1)
        self._wiring.woken(self)

    def work(self, taken: Taken[Item], worker: int) -> tuple[int, int, float]:
        """Process what a worker has taken; gives rows in, rows out and seconds."""
        self._wiring.pause("work")
        at = worker if self._facts.pooled else taken.bucket
        task, counter = self.tasks[at], self.counters[at]
        begin = time.perf_counter()
        rows = sent = moved = 0
        together: Iterable[tuple[Item, list[Unit]]]
        passing = self.passing  # which may go meanwhile
        if passing is None:  # somebody may have been woken to hear that it is over
            together = self._together([item for item in taken.items if item is not WAKE])
        else:
            together = ((item, []) for item in passing.through(taken.bucket, taken.items))
        for item, others in until_done(task, together, self.split):
            try:
                blocks = self._call(task, item) if item.special else self._process(task, item)
            except Exception as error:
                raise Failed(-1 if item.unit is None else item.unit.number) from error
            rows += len(item.block or ())
            sent += sum(map(len, blocks))
            moved += self._deliveries(blocks)
            self._done(item, blocks, others)
        took = time.perf_counter() - begin
        counter.per_task[0] += rows
        counter.emitted += sent
        counter.busy += took
        counter.tally.transferred += moved
        return rows, sent, took

    def _deliveries(self, blocks: list[Block]) -> int:
        """Count the tasks that get each tuple."""
        streams = self.streams
        return sum(len(b) * link.copies for b in blocks for link in streams[b.origin.stream])

    def _together(self, items: list[Item]) -> list[tuple[Item, list[Unit]]]:
        """Put small blocks that wait behind each other into one, where that changes nothing."""
        if len(items) < 2 or (self.ordered and not self._facts.mixes):
            return [(item, []) for item in items]
        return in_runs(items)

    def _process(self, task: AnyTask, item: Item) -> list[Block]:
        part, input_ = item.block, item.input
        assert part is not None and input_ is not None  # noqa: S101 (only specials lack them)
        task.bind(origin=part.origin, key=input_.key)
        pairs = self._wiring.pairs
        trail = () if pairs is None else pairs.arrived(self.component, input_, part)
        lineage = self._facts.lineage or part.roots is not None or bool(trail)
        self.last = part.batch
        if self.osg is None:
            emissions = task.process(part, lineage)
        else:
            emissions = measured(self.routers[self._link(item).index], task, part, lineage)
        number = task.context.task
        blocks = [output_block(self._sender, number, part, sent) for sent in emissions]
        if trail:
            blocks = marked(blocks, emissions, trail)
        self._track(task, blocks, part)
        link = self._link(item)
        with self._lock:
            link.waiting -= len(part)
            if link.full:
                link.fill(self._wiring.bound)
        return blocks

    def _track(self, task: AnyTask, blocks: list[Block], part: Block | None) -> None:
        """Let outputs hold their roots before the input lets go: no root ends too early."""
        for block in blocks:
            if block.roots is not None:
                for link in self.streams[block.origin.stream]:
                    self._wiring.delivered(link, block)
        if part is not None and part.roots is not None:
            self._wiring.processed(task, part)
        task.settle_late()

    def _link(self, item: Item) -> Link:
        assert item.input is not None  # noqa: S101 (as above)
        return self.inputs[self.component.inputs.index(item.input)]

    def _call(self, task: AnyTask, item: Item) -> list[Block]:
        special = item.special
        assert special is not None  # noqa: S101 (the caller has looked)
        if special.call == "forget":
            task.forget(special.roots)  # type: ignore[union-attr]  # only bolts that keep tuples
            return []
        if special.call == "prepare":
            task.prepare()
            return []
        if special.call == "advance":
            emissions = task.advance(special.time)
        elif special.call == "wake":
            emissions = task.wake()
        elif special.call == "pause":
            emissions = task.pause() if may_hold(task) else []
        else:
            emissions = task.tick() if special.call == "tick" else task.end()
        if special.call == "retire":
            self.retired.append(task)
            task.close()
        blocks = [special_block(special, emission) for emission in emissions]
        self._track(task, blocks, None)
        return blocks

    # --- while keys change their tasks -------------------------------------------------------

    def mail(self, bucket: int, mail: tuple[Address, Message] | None) -> None:
        """Send a message to a task, or wake it, behind what waits for it."""
        self.worklist.add(bucket, WAKE if mail is None else Item(None, None, None, mail=mail), 1)
        self._wiring.woken(self)

    def use(self, degree: int, routers: list[Router]) -> None:
        """Go on with other routers; called where units come in."""
        self.degree, self.routers = degree, routers
        for task in self.tasks:
            task.context.rescaled(degree)
        if degree > 1:
            self._facts = replace(self._facts, mixes=False, lineage=True)

    def resize(self, buckets: int, lines: int | None) -> bool:
        """Let other numbers of tasks wait; who finds nothing meanwhile looks again."""
        made = self.worklist.resize(buckets, lines)
        self._wiring.woken(self)
        return made

    def take_back(self) -> list[Item]:
        """Take back what waits, to be routed again; called as its routers change.

        Who is told the time, or of a tick, has had all that came before: that stays in front.
        """
        waiting, back = self.worklist.take_all(), list[Item]()
        told = {bucket: at for at, (bucket, item) in enumerate(waiting) if is_told(item)}
        for at, (bucket, item) in enumerate(waiting):
            if item.block is None or item.input is None or at < told.get(bucket, 0):
                self._put_back(bucket, item)
                continue
            back.append(item)
            forget_cost(self.routers[self._link(item).index], bucket, item.block)
        return back

    def _put_back(self, bucket: int, item: Item) -> None:
        self.worklist.add(bucket, item, 1 if item.block is None else len(item.block))

    def route_again(self, waiting: list[Item]) -> None:
        """Route what was taken back, as if it came now; the oldest units first."""
        if self.ordered:
            waiting = sorted(waiting, key=age)
        rows = [0] * self.degree
        for item in waiting:
            index = self._link(item).index
            if len(waiting) < MANY * self.degree or not goes_whole(item):
                self._split_again(item, index)
                continue
            task = rows.index(min(rows))  # parts of parts would be ever smaller
            rows[task] += len(item.block or ())
            self._put_back(task, item)
        self._wiring.woken(self)

    def _split_again(self, item: Item, index: int) -> None:
        unit, block = item.unit, item.block
        assert unit is not None and block is not None  # noqa: S101 (only specials lack them)
        parts = self._parts(unit.number, index, block)
        # All are counted before the first can be done.
        slots = [item.part, *(self.split(item, 1) for _ in parts[1:])]
        for slot, (task, part) in zip(slots, parts, strict=True):
            made = part.within(block)
            self.worklist.add(task, Item(unit, item.input, made, item.arrival, slot), len(part))

    def resettle(
        self,
        component: Component,
        tasks: list[AnyTask],
        counters: list[Counter],
        routers: list[Router],
    ) -> None:
        """Go on with other tasks; nobody may be at work."""
        waiting, as_it_was = self.worklist.take_all(), len(tasks) == len(self.tasks)
        free = self.component.options.degree is None  # then it is the runtime that spreads tuples
        spread = free and self.component.kind is Kind.STATELESS
        self.tasks[:] = tasks
        self.component, self.counters, self.routers = component, counters, routers
        self.worklist = HybridWorklist(len(tasks))
        self.degree = self.limit = len(tasks)
        several = len(tasks) > 1
        self._facts = replace(
            self._facts,
            pooled=False,
            spread=spread,
            mixes=self._facts.mixes and not several,
            lineage=self._facts.lineage or (several and not spread),
        )
        for bucket, item in waiting:
            if as_it_was or item.block is None:
                self._put_back(bucket, item)
            else:
                self._split_again(item, self._link(item).index)
        self._wiring.woken(self)

    def split(self, item: Item, more: int) -> int:
        """Make room for what another part of an item will send; that is so many parts more."""
        assert item.unit is not None  # noqa: S101 (blocks belong to units)
        with self._lock:
            item.unit.left += more
            item.unit.sent[item.arrival].append([])
            return len(item.unit.sent[item.arrival]) - 1

    def place(self, leads: Sequence[Link], sender: Component, gate: bool) -> None:
        """Send to other readers, which see another sender; nothing may be under way."""
        self.streams[DEFAULT_STREAM][:] = leads
        for link in leads:
            link.sender = self.holding
        self._sender, self.moved = sender, True
        self._facts = replace(self._facts, gate=gate)
        self.relinked()

    def relinked(self) -> None:
        """Take note that the links to readers are other ones."""
        self._outlet = Outlet(self.streams)

    # --- what goes out -----------------------------------------------------------------------

    def _done(self, item: Item, blocks: list[Block], others: list[Unit]) -> None:
        """Send what a part gave, when it is its turn."""
        self._wiring.pause("done")
        unit = item.unit
        if unit is None:
            return
        if self._out is None:
            for stream, sent in by_stream(blocks).items():
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
                self._offer(self._out, done.number, done)

    def _forward(self, number: int, unit: Unit | None) -> None:
        """Hand a unit's output to its readers; called in the order of units."""
        self._wiring.pause("forward")
        gate = self._facts.gate  # as it is now: the unit may end, and orders change, meanwhile
        self._outlet.send(number, unit.sent if unit is not None else [])
        if gate:
            self._wiring.flights.release(number, self._wiring.now())
