"""What tuples take, for groupings that go by it."""

from __future__ import annotations

import time

from thalweg.blocks import Block
from thalweg.routing.load_router import LoadRouter
from thalweg.routing.routers import Router
from thalweg.runtimes.block_tasks import seconds_of
from thalweg.runtimes.local.isolation import AnyTask
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.tasks import BoltTask


def measured(router: Router, task: AnyTask, part: Block, lineage: bool) -> list[Emission]:
    """Let a task process a part, and tell its router what that took."""
    if not isinstance(router, LoadRouter):
        return task.process(part, lineage)
    if isinstance(task, BoltTask):
        task.timer = time.perf_counter
    begin = time.perf_counter()
    emissions = task.process(part, lineage)
    took = time.perf_counter() - begin
    router.executed(task.context.task, part, seconds_of(task, part, took))
    return emissions


def forget_cost(router: Router, task: int, part: Block) -> None:
    """Tell a router that a task will not have to do a part."""
    if isinstance(router, LoadRouter):
        router.take_back(task, part)
