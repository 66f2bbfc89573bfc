"""What a simulation found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from thalweg.control.assigning import Moved
from thalweg.control.scaling.values import Decision
from thalweg.runtimes.simulator.fifo import Floats


@dataclass(frozen=True)
class Moment:
    """One period, by its end."""

    time: float
    #: Tuples of the source that were born in it (replays too), and that were done in it.
    emitted: int
    done: int
    #: Mean seconds from birth to end of those that were done; None when there are none.
    latency: float | None
    #: Tuples that wait for some stage, and degrees at the end.
    pending: int
    degrees: Mapping[str, int]
    #: Tuples that wait, by stage.
    waiting: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Applied:
    """A decision that was made real, or the reason why it was not."""

    time: float
    decision: Decision
    refused: str = ""


@dataclass(frozen=True)
class Outcome:
    """Totals of a run, and its course."""

    #: Tuples of the source, each try counted: in time, late or dropped, and not known yet.
    emitted: int
    in_time: int
    late: int
    pending: int
    #: Seconds from birth to end; of what was done, late or not.
    latency_mean: float
    latency_p50: float
    latency_p99: float
    #: Reserved cores x seconds of running tasks, and machines with a task x seconds.
    resource_seconds: float
    machine_seconds: float
    #: Moments at which degrees changed, or tasks moved.
    reconfigurations: int
    #: Deviation of the CPU use among the tasks of each stage, mean over the periods.
    deviation: Mapping[str, float]
    #: Tuples that wait per task, mean over the periods.
    queued: Mapping[str, float]
    #: The highest share of a link that each stream filled.
    links: Mapping[str, float]
    course: tuple[Moment, ...]
    applied: tuple[Applied, ...]
    #: Tasks that were given other units though no degree changed, with the times.
    moves: tuple[tuple[float, Moved], ...] = ()

    @property
    def lost(self) -> float:
        """Share of the tuples whose end is known that were late or dropped."""
        return self.late / max(self.late + self.in_time, 1)


@dataclass
class Recorder:
    """Collects what becomes an outcome."""

    period: float
    in_time: int = 0
    late: int = 0
    resource_seconds: float = 0.0
    machine_seconds: float = 0.0
    latencies: list[Floats] = field(default_factory=list)
    course: list[Moment] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)
    moves: list[tuple[float, Moved]] = field(default_factory=list)
    _deviations: dict[str, list[float]] = field(default_factory=dict)
    _queued: dict[str, list[float]] = field(default_factory=dict)

    def tasks(self, stage: str, used: Floats, pending: int) -> None:
        """Take note of the CPU that the tasks of a stage used, and of what waits for them."""
        self._deviations.setdefault(stage, []).append(float(used.std()))
        self._queued.setdefault(stage, []).append(pending / len(used))

    def moment(self, time: float, emitted: int, took: Sequence[Floats], now: Degrees) -> None:
        """Take note of a period: what was born, the seconds of what was done, and the degrees."""
        done = np.concatenate([*took, np.empty(0)])
        self.latencies.append(done)
        mean = float(done.mean()) if len(done) else None
        waiting = dict(now.pending)
        pending = sum(waiting.values())
        degrees = dict(now.degrees)
        self.course.append(Moment(time, emitted, len(done), mean, pending, degrees, waiting))
        self.resource_seconds += now.reserved * self.period
        self.machine_seconds += now.machines * self.period

    def outcome(self, emitted: int, left: tuple[int, int], links: Mapping[str, float]) -> Outcome:
        """Make the totals; ``left`` are those in time and under way that were not judged yet."""
        latencies = np.concatenate([*self.latencies, np.empty(0)])
        p50, p99 = np.quantile(latencies, [0.5, 0.99]) if len(latencies) else (0.0, 0.0)
        changed = {each.time for each in self.applied if not each.refused}
        changed |= {time for time, _ in self.moves}
        return Outcome(
            emitted,
            self.in_time + left[0],
            self.late,
            left[1],
            float(latencies.mean()) if len(latencies) else 0.0,
            float(p50),
            float(p99),
            self.resource_seconds,
            self.machine_seconds,
            len(changed),
            {name: float(np.mean(found)) for name, found in self._deviations.items()},
            {name: float(np.mean(found)) for name, found in self._queued.items()},
            links,
            tuple(self.course),
            tuple(self.applied),
            tuple(self.moves),
        )


@dataclass(frozen=True)
class Degrees:
    """What is in force: degrees, reserved cores and machines; and tuples that wait, by stage."""

    degrees: Mapping[str, int]
    reserved: float
    machines: int
    pending: Mapping[str, int]
