"""The routers of one task of Spark; each task has its own, so that nothing lives on by accident."""

from __future__ import annotations

import copy

from thalweg.groupings import Custom
from thalweg.routing.routers import Router, make_router
from thalweg.runtimes.spark.planning import Edge
from thalweg.runtimes.spark.program import Program


class Routes:
    """Makes routers when they are first needed."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._routers: dict[tuple[str, int], Router] = {}

    def router(self, edge: Edge) -> Router:
        """Give the router of an edge."""
        key = edge.reader, edge.index
        if key not in self._routers:
            grouping = edge.input.grouping
            if isinstance(grouping, Custom):
                grouping = Custom(copy.deepcopy(grouping.rule))
            self._routers[key] = make_router(grouping, self._program.tables[edge.reader])
        return self._routers[key]
