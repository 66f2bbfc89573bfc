"""The routers of one task of Spark; each task has its own, so that nothing lives on by accident."""

from __future__ import annotations

import copy
from dataclasses import replace

import pyarrow as pa

from thalweg.blocks import Block
from thalweg.groupings import Custom
from thalweg.routing.routers import Router, make_router
from thalweg.runtimes.spark.planning import Edge
from thalweg.runtimes.spark.program import Program
from thalweg.weights import weighed

#: Blocks with fewer rows are sent as they are.
_FEW = 256
#: Once more than this share of a block's rows is left, later blocks are sent as they are.
_PAYS = 0.5


class Routes:
    """Makes routers when they are first needed."""

    def __init__(self, program: Program) -> None:
        self._program = program
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

    def router(self, edge: Edge) -> Router:
        """Give the router of an edge."""
        key = edge.reader, edge.index
        if key not in self._routers:
            grouping = edge.input.grouping
            if isinstance(grouping, Custom):
                grouping = Custom(copy.deepcopy(grouping.rule))
            self._routers[key] = make_router(grouping, self._program.tables[edge.reader])
        return self._routers[key]
