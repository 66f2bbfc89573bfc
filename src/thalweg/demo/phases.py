"""The four phases of the demo, and how large it is: values alone."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from thalweg.control.learning import Locality
from thalweg.control.scaling.settings import Scaling
from thalweg.control.settings import LocalitySettings
from thalweg.demo.describing import Wave
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.runtimes.spark.runtime import Spark

RuntimeName = Literal["spark", "local"]
#: Places, or tasks of each step: all the time by hash, and at most where they follow the stream.
MOST = 4
#: Spark is told of so many cores, so that all places can work at once: they mostly wait.
MASTER = f"local[{MOST}]"
#: For a Java that lives a minute: code is compiled once, and one thread collects garbage.
CONFIG = MappingProxyType(
    {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"}
)
#: Seconds that each step waits for a record. So another task is worth having on any machine.
WAIT = 20e-6


@dataclass(frozen=True)
class Phase:
    """One run of the stream."""

    runtime: RuntimeName
    #: Whether keys are brought together and degrees follow the stream; else all goes by hash.
    aware: bool

    @property
    def name(self) -> str:
        """Name it for people.

        >>> Phase("spark", True).name
        'Spark, locality-aware'
        """
        way = "locality-aware" if self.aware else "hash"
        return f"{self.runtime.replace('spark', 'Spark')}, {way}"

    @property
    def degree(self) -> int:
        """Tasks of each step at the start."""
        return 1 if self.aware else MOST


PHASES = tuple(Phase(runtime, aware) for runtime in ("spark", "local") for aware in (False, True))


@dataclass(frozen=True)
class Size:
    """How much the demo does."""

    spark: Wave
    local: Wave
    #: Divides the seconds that policies go by.
    speed: float
    #: Seconds between two decisions about keys.
    every: float
    #: Seconds that a batch of Spark should take, where places follow the stream.
    batch: float
    #: Records that Spark takes at once, at most, so that there are some batches in a rush.
    rows: int

    def wave(self, phase: Phase) -> Wave:
        """Give the wave of a phase."""
        return self.spark if phase.runtime == "spark" else self.local


FULL = Size(
    spark=Wave.of(6.0, 15_000, 500_000),
    local=Wave.of(4.0, 15_000, 400_000),
    speed=30,
    every=3.0,
    batch=3.0,
    rows=40_000,
)
FAST = Size(
    spark=Wave.of(2.0, 15_000, 120_000),
    local=Wave.of(1.5, 15_000, 200_000),
    speed=40,
    every=1.0,
    batch=1.0,
    rows=20_000,
)


def on(phase: Phase, size: Size, session: Any = None) -> Local | Spark:
    """Give the runtime of a phase; Spark's on a session."""
    locality = _learning(size) if phase.aware else _measuring()
    scaling = Scaling(most=MOST, speed=size.speed) if phase.aware else None
    if phase.runtime == "local":
        # Short queues: keys move once what waits for them is done.
        return Local(
            assigning="executors",
            queue_rows=24_000,
            most_block_rows=1024,
            locality=locality,
            scaling=scaling,
        )
    return Spark(
        session=session,
        master=MASTER,
        places=phase.degree,
        trigger="500 ms",
        locality=locality,
        scaling=scaling,
        batch_time=size.batch if phase.aware else None,
        pump=PumpSettings(rows=size.rows, pending_entries=1),
    )


def _learning(size: Size) -> Locality:
    deciding = LocalitySettings(gain=0.0)
    return Locality(size.every, size.every, cost=0.1, sampling=1.0, deciding=deciding)


def _measuring() -> Locality:
    """Count pairs, and leave all keys where they are."""
    return Locality(None, sampling=1.0, cost=0.1, deciding=LocalitySettings(adopts=False))
