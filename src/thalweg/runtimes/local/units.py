"""Units at an operator, and the parts of them that tasks process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np

from thalweg.blocks import Block, Origin, Rows, concatenate
from thalweg.groupings import NoGrouping, Shuffle
from thalweg.migration.messages import Message
from thalweg.migration.wiring import Address
from thalweg.runtimes.anchored_tasks import is_busy
from thalweg.runtimes.outputs import Emission
from thalweg.topology import Input

Call = Literal["tick", "end", "forget", "prepare", "switch", "retire", "advance", "wake", "pause"]


@dataclass(frozen=True)
class Special:
    """A unit that is not data: a tick of a task, the end of its input, a change of routers ..."""

    component: str
    #: Index of the task; of a change of routers, its number.
    task: int
    call: Call
    #: Serial number of the source tuple that comes next.
    serial: int
    #: Source tuples that have failed, to be forgotten.
    roots: frozenset[int] = frozenset()
    #: How far event time has come.
    time: int = 0


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
    #: In place of all that: a message of a reconfiguration, and who sent it.
    mail: tuple[Address, Message] | None = None


#: Parts for each task from which on they are not cut again when they are routed again.
MANY = 4
#: Lets a task hear what others have told it.
WAKE = Item(None, None, None)


class Passing(Protocol):
    """Tells what may go on from what has to wait, while keys change their tasks."""

    #: The number of the switch that it waits for; others are of earlier reconfigurations.
    turn: int

    def through(self, bucket: int, items: Iterable[Item]) -> Iterator[Item]:
        """Give what a task may process now."""

    def switch(self, pause: Callable[[], None]) -> None:
        """Route by new tables from here on; tasks are paused before they give anything away."""


def _alike(one: Item, other: Item) -> bool:
    """Say whether two blocks may be processed as one."""
    a, b = one.block, other.block
    if a is None or b is None or one.input is not other.input:
        return False
    same = a.origin == b.origin and (a.targets is None) == (b.targets is None)
    return same and a.batch.schema.equals(b.batch.schema)


def _as_one(items: list[Item]) -> Item:
    """Put blocks that are alike into one."""
    if len(items) == 1:
        return items[0]
    first = items[0]
    block = concatenate([item.block for item in items if item.block is not None])
    return Item(first.unit, first.input, block, first.arrival, first.part)


def in_runs(items: list[Item]) -> list[tuple[Item, list[Unit]]]:
    """Put blocks behind each other into one where they are alike.

    Gives with each block the units that it stands for beside its own.
    """
    runs: list[list[Item]] = []
    for item in items:
        if runs and _alike(runs[-1][-1], item):
            runs[-1].append(item)
        else:
            runs.append([item])
    return [(_as_one(run), [item.unit for item in run[1:] if item.unit]) for run in runs]


def until_done(
    task: object, items: Iterable[tuple[Item, list[Unit]]], split: Callable[[Item, int], int]
) -> Iterator[tuple[Item, list[Unit]]]:
    """Let a task that is still at what it was given get ticks before it gets more, or ends.

    These belong to the unit of what waits for it, and come before that.
    """
    for item, others in items:
        given = item
        while is_busy(task) and (serial := _serial_of(given)) is not None:
            tick = Special(task.component.name, task.context.task, "tick", serial)
            slot = split(given, 1)
            yield Item(given.unit, None, None, given.arrival, given.part, tick), []
            given = replace(given, part=slot)
        yield given, others


def _serial_of(item: Item) -> int | None:
    """Say where in order something stands that has to wait for its task; None if it need not."""
    if item.block is not None:
        return int(item.block.serials[0])
    special = item.special
    return special.serial if special and special.call in ("end", "retire") else None


def is_told(item: Item) -> bool:
    """Say whether a task hears something in its turn: a tick, how far time has come, the end."""
    return item.special is not None and item.unit is not None


def age(item: Item) -> tuple[int, int]:
    """Give what blocks are sorted by that are in the order of a serial execution."""
    return 0 if item.unit is None else item.unit.number, item.arrival


def goes_whole(item: Item) -> bool:
    """Say whether any task may have all rows of a block, as long as all tasks get as many."""
    input_, block = item.input, item.block
    evenly = input_ is not None and isinstance(input_.grouping, Shuffle | NoGrouping)
    return evenly and block is not None and block.targets is None


def rows_of(item: Item, rows: Rows, part: int) -> Item:
    """Make a part of its own of some rows of an item; each stays where it stood in its unit."""
    block = item.block
    assert block is not None  # noqa: S101 (only specials lack one)
    return Item(item.unit, item.input, block.take(rows).within(block), item.arrival, part)


def special_block(special: Special, emission: Emission) -> Block:
    """Make the block of what a task sent on a tick, or at the end of its input."""
    serials = np.full(emission.batch.num_rows, special.serial, dtype=np.int64)
    origin = Origin(special.component, emission.stream, special.task)
    return Block(emission.batch, origin, serials, None, emission.roots, emission.targets)


def by_stream(blocks: list[Block]) -> dict[str, list[Block]]:
    """Sort blocks by the stream that they were sent on."""
    found: dict[str, list[Block]] = {}
    for block in blocks:
        found.setdefault(block.origin.stream, []).append(block)
    return found
