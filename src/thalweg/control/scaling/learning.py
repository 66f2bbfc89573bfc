"""Policy ``learning``: a table from input-rate band to degree, learnt by reward (rlearn).

Rates are put into bands that grow by a constant factor. A degree that was in force at some rate is
rewarded for the tuples that it processed, and pays for those left waiting. The table keeps the mean
reward of each degree in each band; the policy takes the best one, when each has paid for its tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from thalweg.control.scaling.estimating import kept, unready
from thalweg.control.scaling.values import ONE_MINUTE, Decision, Node, Sample, Timing, View, amount
from thalweg.errors import UsageError, explain


@dataclass(frozen=True)
class Reward:
    """What a degree is worth for one sample period, against all tuples processed."""

    #: What it costs to leave as many tuples waiting as arrive.
    waiting: float = 1.0

    def of(self, sample: Sample) -> float:
        """Judge a sample.

        >>> Reward().of(Sample("count", 0.0, 2, received=100, processed=100))
        1.0
        >>> Reward().of(Sample("count", 0.0, 1, received=100, processed=50, pending=50))
        0.0
        """
        tuples = max(1, sample.received)
        done, left = min(1.0, sample.processed / tuples), min(1.0, sample.pending / tuples)
        return done - self.waiting * left


class Mean(msgspec.Struct, frozen=True):
    """A mean of rewards, and how many they were."""

    value: float = 0.0
    count: int = 0

    def plus(self, reward: float) -> Mean:
        """Take in one more."""
        count = self.count + 1
        return Mean(self.value + (reward - self.value) / count, count)


class Table(msgspec.Struct, frozen=True, tag_field="kind", tag="thalweg scaling table 2"):
    """What was learnt: the mean reward of every degree that was seen, by component and band."""

    #: Each band ends at this many times the rate at which it begins.
    growth: float = 1.25
    #: What the tasks of the highest degree of a band cost; others cost less by as many as they have
    #: fewer, so that hundreds of tasks are judged as a few are.
    tasks: float = 0.16
    rewards: Mapping[str, Mapping[int, Mapping[int, Mean]]] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        by_band = [degrees for bands in self.rewards.values() for degrees in bands.values()]
        if not self.growth > 1 or any(not d or min(d) < 1 for d in by_band):
            # Read by msgspec, which adds where it was found.
            raise ValueError("expected a growth above 1, and degrees from 1 in every band")  # noqa: EM101 (as above)

    def band(self, rate: float) -> int:
        """Give the number of the band of a rate in tuples per second.

        >>> Table().band(0.0), Table().band(10.0), Table().band(100.0)
        (0, 10, 20)
        """
        return math.floor(math.log1p(max(0.0, rate)) / math.log(self.growth))

    def best(self, component: str, rate: float) -> int | None:
        """Give the degree with the best reward in the nearest band; None if there is none."""
        bands = self.rewards.get(component)
        if not bands:
            return None
        wanted = self.band(rate)
        means = bands[min(bands, key=lambda band: (abs(band - wanted), -band))]
        each = self.tasks / max(means)
        return max(sorted(means), key=lambda degree: means[degree].value - each * degree)

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    @classmethod
    def load(cls, path: Path) -> Table:
        """Read it from JSON."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.MsgspecError) as error:
            subject = f"scaling table {str(path)!r}"
            hint = "make it with thalweg train"
            raise UsageError(explain(subject, "", "a table", str(error), hint)) from error


def learnt(
    samples: Iterable[Sample],
    table: Table | None = None,
    reward: Reward | None = None,
    period: float = 10.0,
) -> Table:
    """Learn from the samples of earlier runs, in addition to what a table knows."""
    known, judge = table or Table(), reward or Reward()
    rewards = {
        component: {band: dict(degrees) for band, degrees in bands.items()}
        for component, bands in known.rewards.items()
    }
    for sample in samples:
        band = known.band(sample.received / period)
        degrees = rewards.setdefault(sample.component, {}).setdefault(band, {})
        seen = degrees.get(sample.degree, Mean())
        degrees[sample.degree] = seen.plus(judge.of(sample))
    return msgspec.structs.replace(known, rewards=rewards)


@dataclass(frozen=True)
class Lesson:
    """A component to be trained: the rates that it gets, and what they ask of its tasks."""

    component: str
    #: Tuples per second, one value for each sample period.
    rates: Sequence[float]
    #: Seconds that a task takes for a tuple.
    cost: float
    most: int

    def samples(self, period: float) -> Iterator[Sample]:
        """Try every degree at every rate, from empty queues, as a fluid would flow."""
        for number, rate in enumerate(self.rates):
            received = round(rate * period)
            for degree in range(1, self.most + 1):
                done = min(received, int(period / self.cost * degree))
                time = number * period
                yield Sample(self.component, time, degree, received, done, pending=received - done)


def train(
    lessons: Iterable[Lesson],
    table: Table | None = None,
    reward: Reward | None = None,
    period: float = 10.0,
) -> Table:
    """Learn on traces, before anything has run.

    >>> table = train([Lesson("count", rates=[10, 50, 90], cost=0.08, most=8)])
    >>> [table.best("count", rate) for rate in (10, 50, 90)]
    [1, 4, 8]
    """
    samples = (sample for lesson in lessons for sample in lesson.samples(period))
    return learnt(samples, table, reward, period)


@dataclass(frozen=True)
class Learning:
    """Takes the degree that was best at such rates."""

    table: Table
    timing: Timing = ONE_MINUTE
    name: str = "learning"

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Look the mean rate of each component's window up."""
        return tuple(self._decide(view, node) for node in view.scalable)

    def _decide(self, view: View, node: Node) -> Decision:
        if reason := unready(view, node):
            return kept(view, node, reason)
        rate = view.windows[node.name].received / view.delta
        best = self.table.best(node.name, rate)
        if best is None:
            return kept(view, node, "nothing was learnt about it", rate=rate)
        reason = f"{best} tasks were best at about {amount(rate)} tuples/s"
        degree = view.degrees[node.name]
        return Decision(node.name, node.bounded(best), degree, reason, {"rate": rate})
