"""Which tasks get a tuple, for components that ask as soon as they have sent it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from thalweg import groupings
from thalweg.blocks import Block, Origin
from thalweg.contexts import TaskContext
from thalweg.multilang.context import TaskIds
from thalweg.routing.routers import KeyRouter
from thalweg.routing.table import RoutingTable
from thalweg.topology import Component, Input, Topology


class Receivers:
    """Chooses receiving tasks ahead of the routers, which then do the same.

    What is spread evenly goes by turns: the tuple carries its turn in place of a task, as a number
    below zero, and a router of so many tasks takes the remainder. Tuples with a key go where tables
    send keys at the beginning of a run.
    """

    def __init__(self, context: TaskContext) -> None:
        self._context = context
        self._turn = context.task

    def choose(self, stream: str, values: Sequence[Any]) -> tuple[int, list[int]]:
        """Give a turn for a tuple, and the numbers of all tasks that will get it."""
        mark, topology = self.turn(), self._topology
        turn = -1 - mark
        ids: list[int] = []
        for reader, input_ in topology.readers(self._context.component, stream):
            for task in self._tasks(reader, input_, values, turn):
                ids.append(self._ids.of(reader.name, task))
        return mark, ids

    def turn(self) -> int:
        """Give the next turn, as a tuple carries it."""
        self._turn += 1
        return -1 - self._turn

    @property
    def _topology(self) -> Topology:
        topology: Topology = self._context.graph
        return topology

    @cached_property
    def _ids(self) -> TaskIds:
        return TaskIds.of_topology(self._topology)

    def _tasks(
        self, reader: Component, input_: Input, values: Sequence[Any], turn: int
    ) -> Iterator[int]:
        match input_.grouping:
            case groupings.All():
                yield from range(reader.degree)
            case groupings.Global():
                yield 0
            case groupings.Fields(names, ()):
                yield self._owner(reader, input_, names, values)
            case groupings.LocalOrShuffle() if self._context.task < reader.degree:
                yield self._context.task
            case groupings.Shuffle() | groupings.NoGrouping() | groupings.LocalOrShuffle():
                yield turn % reader.degree
            case _:
                return  # who gets it depends on what others have sent meanwhile

    def _owner(
        self, reader: Component, input_: Input, names: tuple[str, ...], values: Sequence[Any]
    ) -> int:
        shape = self._context.shapes[input_.stream]
        batch = shape.batch([[value] for value in values])
        table = RoutingTable.even(reader.degree, self._context.key_groups)
        block = Block.of(batch, Origin(input_.component, input_.stream))
        return int(KeyRouter(names, table).owners(block)[0])
