"""The routers of one task of Spark; each task has its own, so that nothing lives on by accident."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from thalweg.blocks import Block
from thalweg.groupings import Custom
from thalweg.routing.routers import KeyRouter, Router, make_router
from thalweg.runtimes.spark.planning import Edge
from thalweg.runtimes.spark.program import Facts, Program
from thalweg.runtimes.spark.wire import Readers
from thalweg.weights import weighed

#: Blocks with fewer rows are sent as they are.
_FEW = 256
#: Once more than this share of a block's rows is left, later blocks are sent as they are.
_PAYS = 0.5


class Routes:
    """Makes routers when they are first needed."""

    def __init__(self, program: Program, facts: Facts) -> None:
        self._program, self._facts = program, facts
        self._routers: dict[tuple[str, int], Router] = {}
        self._unlike: set[tuple[str, int]] = set()

    def weigh(self, edge: Edge, block: Block) -> Block:
        """Leave out what does not matter to a reader; equal tuples become one while that pays."""
        assert edge.reads is not None  # noqa: S101 (the caller has looked)
        key = edge.reader, edge.index
        chosen = block.batch.select(edge.reads)
        if any(pa.types.is_nested(field.type) for field in chosen.schema):
            self._unlike.add(key)  # such values cannot be compared
        if key in self._unlike or len(block) < _FEW:
            return replace(block, batch=chosen, lists={})
        made = weighed(block, edge.reads)
        if len(made) > len(block) * _PAYS:
            self._unlike.add(key)
        return made

    def shares(self, edges: Sequence[Edge], block: Block) -> Iterator[tuple[int, Block, Readers]]:
        """Give each place the rows that any of these readers wants there, and who wants which."""
        owners = [self._by_key(edge).owners(block) for edge in edges]
        for place in range(self._program.plan.places):
            wanted = np.zeros(len(block), dtype=np.uint8)
            for bit, places in enumerate(owners):
                wanted |= (places == place).astype(np.uint8) << np.uint8(bit)
            rows = np.flatnonzero(wanted)
            if len(rows):
                yield place, block.take(rows), wanted[rows]

    def _by_key(self, edge: Edge) -> KeyRouter:
        router = self.router(edge)
        assert isinstance(router, KeyRouter)  # noqa: S101 (the plan has seen to it)
        return router

    def router(self, edge: Edge) -> Router:
        """Give the router of an edge."""
        key = edge.reader, edge.index
        if key not in self._routers:
            grouping = edge.input.grouping
            if isinstance(grouping, Custom):
                grouping = Custom(copy.deepcopy(grouping.rule))
            table = self._program.table(edge.reader, self._facts.tabled)
            self._routers[key] = make_router(grouping, table)
        return self._routers[key]
