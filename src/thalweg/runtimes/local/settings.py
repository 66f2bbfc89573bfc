"""How the local runtime works, and the values that parts of it are given."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from thalweg.clock import Clock, SystemClock
from thalweg.errors import UsageError, explain
from thalweg.hashing import KEY_GROUPS
from thalweg.runtimes.local.ring import LockedReorderBuffer, ReorderBuffer
from thalweg.runtimes.local.scheduling import Scheduler, Scheduling, make_scheduler
from thalweg.runtimes.local.waiting import STRATEGIES, WaitName

QueueName = Literal["hybrid", "partitioned", "shared"]
AssigningName = Literal["workers", "executors"]
#: What the settings of this name may be.
CHOICES: dict[str, tuple[str, ...]] = {
    "queue": ("hybrid", "partitioned", "shared"),
    "assigning": ("workers", "executors"),
    "wait": tuple(STRATEGIES),
}


@dataclass(frozen=True)
class CrewLimits:
    """How many workers there are, and how long they stay with an operator."""

    workers: int
    #: Most workers, where components wait for something.
    most: int
    #: Seconds after which a worker asks again what to work on.
    slice: float
    #: Rows that are put together into one block at most.
    block_rows: int
    #: Whether each worker has tasks of its own, so that all have to be there.
    fixed: bool = False


@dataclass(frozen=True)
class Settings:
    """Settings of the local runtime."""

    #: Threads; None for as many as there are cores. More are started for components that wait.
    workers: int | None = None
    #: Most threads, where components wait for something.
    most_workers: int = 32
    #: Rows that are asked of a source at first, and at most when it always has that many.
    block_rows: int = 1024
    most_block_rows: int = 8192
    #: Rows that may wait for a component before those that send to it have to wait.
    queue_rows: int = 100_000
    #: Blocks of sources that may be under way.
    window: int = 1024
    #: Who does the work: workers that take what is there, or an executor for each task.
    assigning: AssigningName = "workers"
    #: How an executor waits for its queue.
    wait: WaitName = "blocking"
    #: What waits for a keyed component.
    queue: QueueName = "hybrid"
    scheduling: Scheduling = field(default_factory=Scheduling)
    #: Whether workers wait for the one that is sending (for comparison).
    locked_reordering: bool = False
    clock: Clock = field(default_factory=SystemClock)
    #: Seed of the random numbers that tasks are given.
    seed: int = 0
    key_groups: int = KEY_GROUPS
    #: Seconds after which a tuple that was not acknowledged fails.
    ack_timeout: float = 30.0
    #: Seconds to wait when no source has anything and none says when to ask again.
    idle: float = 0.01
    name: str = "local"

    def __post_init__(self) -> None:
        least = {"most_workers": 1, "block_rows": 1, "queue_rows": 1, "window": 2}
        for name, value in least.items():
            if getattr(self, name) < value:
                got = str(getattr(self, name))
                raise UsageError(explain(name, expected=f"at least {value}", got=got))
        if self.workers is not None and self.workers < 1:
            raise UsageError(explain("workers", expected="at least 1", got=str(self.workers)))
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                got = repr(getattr(self, name))
                raise UsageError(explain(name, expected=f"one of {choices}", got=got))

    @property
    def threads(self) -> int:
        """Threads when no component waits."""
        return self.workers or len(os.sched_getaffinity(0))

    def crew(self) -> CrewLimits:
        """Say how many workers there are."""
        most = max(self.threads, self.most_workers)
        fixed = self.queue == "partitioned"
        return CrewLimits(self.threads, most, self.scheduling.slice, self.block_rows, fixed)

    def scheduler(self) -> Scheduler:
        """Make what chooses operators."""
        return make_scheduler(self.scheduling)

    @property
    def ring(self) -> Callable[..., Any]:
        """What makes reorder buffers."""
        return LockedReorderBuffer if self.locked_reordering else ReorderBuffer
