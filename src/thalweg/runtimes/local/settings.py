"""How the local runtime works, and the values that parts of it are given."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal

from thalweg.clock import Clock, SystemClock, seconds
from thalweg.config import ORDERS, OrderName
from thalweg.control.learning import Locality
from thalweg.control.rerouting import Rerouter
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Policy
from thalweg.errors import UsageError, explain
from thalweg.hashing import KEY_GROUPS
from thalweg.routing.load_aware import OsgSettings
from thalweg.runtimes.local.pinning import Cores
from thalweg.runtimes.local.ring import LockedReorderBuffer, ReorderBuffer
from thalweg.runtimes.local.scheduling import Scheduler, Scheduling, make_scheduler
from thalweg.runtimes.local.waiting import STRATEGIES, WaitName
from thalweg.runtimes.tracking import check_times

QueueName = Literal["hybrid", "partitioned", "shared"]
AssigningName = Literal["workers", "executors"]
#: What the settings of this name may be.
CHOICES: dict[str, tuple[str | None, ...]] = {
    "queue": ("hybrid", "partitioned", "shared"),
    "assigning": ("workers", "executors"),
    "wait": tuple(STRATEGIES),
    "order": (None, *ORDERS),
}


def no_pause(_point: str) -> None:
    """Go on."""


def _check_pin(pin: object) -> None:
    cores = pin if isinstance(pin, list | tuple) else [pin]
    if not isinstance(pin, bool) and not (cores and all(isinstance(c, int) for c in cores)):
        raise UsageError(explain("pin", "", "True, False or a list of cores", repr(pin)))


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
    #: Whether the thread that runs the topology works as well.
    first: bool = True
    #: Seconds that one block may take, where somebody samples what was done.
    longest: float = inf
    #: Seconds of work that waits below which no other worker is called.
    alone: float = 0.0
    #: Cores on which workers stay.
    cores: Cores = ()


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
    #: Whether components that are busy in Python get processes where that is measured to pay.
    isolate: bool = True
    #: How an executor waits for its queue.
    wait: WaitName = "blocking"
    #: What waits for a keyed component.
    queue: QueueName = "hybrid"
    #: Least order of what leaves a topology; None for "total" with one source, and none otherwise.
    order: OrderName | None = None
    scheduling: Scheduling = field(default_factory=Scheduling)
    #: Whether workers wait for the one that is sending (for comparison).
    locked_reordering: bool = False
    clock: Clock = field(default_factory=SystemClock)
    #: Seed of the random numbers that tasks are given.
    seed: int = 0
    key_groups: int = KEY_GROUPS
    #: Seconds after which a tuple that was not acknowledged fails.
    ack_timeout: float = 30.0
    #: Whether tuples with an id are followed; otherwise spouts hear at once that all went well.
    acking: bool = True
    #: Seconds to wait when no source has anything and none says when to ask again.
    idle: float = 0.01
    #: Folder or URI for snapshots, from which the next run goes on; None for state in memory only.
    checkpoint: str | os.PathLike[str] | None = None
    #: Time between two snapshots: seconds, or text such as "10 s".
    snapshot_every: float | str = 1.0
    #: Decides which keys get tasks of their own; asked after each block of a source.
    rerouter: Rerouter | None = None
    #: Learns which keys occur together, and brings them to the same task; None for no such thing.
    locality: Locality | None = None
    #: A file with tasks for single keys, as thalweg analyze writes it.
    table: str | None = None
    #: Who decides how many tasks components have while they run: a policy, its name, or a Scaling.
    scaling: str | Policy | Scaling | None = None
    #: How load-aware grouping learns what tuples cost.
    osg: OsgSettings = field(default_factory=OsgSettings)
    #: Whether threads and processes stay on a core each: True for all cores, or a list of some.
    pin: bool | Sequence[int] = False
    #: Called with the name of a point that a thread has come to; tests let it pause there.
    pause: Callable[[str], None] = no_pause
    name: str = "local"

    def __post_init__(self) -> None:
        least = {"most_workers": 1, "block_rows": 1, "queue_rows": 1, "window": 2}
        given = {name: getattr(self, name) for name in least}
        for name, value in least.items():
            if given[name] < value:
                got = str(given[name])
                raise UsageError(explain(name, expected=f"at least {value}", got=got))
        if self.workers is not None and self.workers < 1:
            raise UsageError(explain("workers", expected="at least 1", got=str(self.workers)))
        _ = self.snapshot_seconds
        check_times(self.ack_timeout, self.idle)
        _check_pin(self.pin)
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                got = repr(getattr(self, name))
                raise UsageError(explain(name, expected=f"one of {choices}", got=got))
        loss = self.scales and self.scales.loss
        if loss and self.checkpoint is not None:  # rows are counted there, to find them again
            raise UsageError(explain("scaling loss", "", "0 with a checkpoint", str(loss)))

    @property
    def snapshot_seconds(self) -> float:
        """Seconds between two snapshots, 0 for one after the other."""
        return seconds(self.snapshot_every, "snapshot_every", zero=True)

    @property
    def scales(self) -> Scaling | None:
        """How degrees follow the stream; None where they do not."""
        return Scaling.of(self.scaling)

    @property
    def threads(self) -> int:
        """Threads when no component waits."""
        return self.workers or len(os.sched_getaffinity(0))

    def crew(self, asking: bool = False) -> CrewLimits:
        """Say how many workers there are; one more if the first one is busy asking or looking."""
        most = max(self.threads, self.most_workers)
        fixed = self.queue == "partitioned"
        # Where each worker has tasks of its own, the first has too.
        idle = (asking or self.scaling is not None) and not fixed
        workers, slice_ = self.threads + idle, self.scheduling.slice
        made = CrewLimits(workers, most + idle, slice_, self.block_rows, fixed, first=not idle)
        alone = self.scheduling.alone
        return replace(made, longest=self.longest, cores=self.cores, alone=alone)

    @property
    def cores(self) -> Cores:
        """Cores on which threads stay, once they are known; none where they may run anywhere."""
        return () if isinstance(self.pin, bool) else tuple(self.pin)

    @property
    def longest(self) -> float:
        """Seconds that one block may take: a small part of a sample period."""
        return inf if self.scales is None else self.scales.leading.timing.period / 5

    def scheduler(self) -> Scheduler:
        """Make what chooses operators."""
        return make_scheduler(self.scheduling)

    @property
    def ring(self) -> Callable[..., Any]:
        """What makes reorder buffers."""
        return LockedReorderBuffer if self.locked_reordering else ReorderBuffer
