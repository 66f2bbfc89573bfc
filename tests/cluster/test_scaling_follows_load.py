"""A stream of three steps on two to four hosts: who keeps up with it, and what is counted."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import thalweg as tw
from sparkcluster.cluster import Cluster
from thalweg.connectors.profiles import Profile
from thalweg.events import Decided, Event, Progress
from thalweg.runtimes.spark import exchange

pytestmark = [pytest.mark.cluster, pytest.mark.quiet]

CLUSTER = {"hosts": 4, "cores": 1}
#: Policies think in minutes; here a minute takes 15 s.
SPEED = 4.0
#: Seconds that a tuple takes, and those after which it is late.
COST, LATE = 0.02, 30 / SPEED
#: Tuples per second: for two places, and for more than two, however little batches take besides.
LOW, HIGH = 55.0, 140.0
KEYS = 997
BEGIN = 2
#: Seconds of the low rate, of the rise, of the high rate, of the fall, and of the low rate again.
SECONDS = np.array([4.0, 22.0, 24.0, 7.0, 16.0])
#: The same stream for all.
STREAM = Profile.of(
    SECONDS, np.array([LOW, LOW, HIGH, HIGH, LOW]), np.array([LOW, HIGH, HIGH, LOW, LOW])
)
#: The second half of the high rate.
UNTIL = float(SECONDS[:3].sum())
SINCE = UNTIL - SECONDS[2] / 2


class Waiting(tw.Bolt):
    """Counts keys, and takes its time."""

    outputs = ["number"]
    kind = tw.Kind.KEYED
    table = "counts"

    def process(self, t: Any) -> None:
        time.sleep(COST)
        self.state.put(t.key, self.state.get(t.key, 0) + 1)
        self.emit(t.number)


@dataclass
class Outcome:
    """What a run did."""

    profile: Profile
    begun: float = 0.0
    #: Seconds after which each tuple was done, from when it was due.
    took: dict[int, float] = field(default_factory=dict)
    places: list[int] = field(default_factory=list)
    executors: list[int] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def late(self, begin: float, end: float) -> float:
        """Give the share of late tuples among those that were due within some seconds."""
        due = range(self.profile.count_by(begin), self.profile.count_by(end))
        return sum(self.took.get(number, LATE + 1) > LATE for number in due) / len(due)


def run(session: Any, policy: str, stop_at: float, **options: str) -> Outcome:
    profile = STREAM
    outcome, stop = Outcome(profile), threading.Event()

    def made(number: int) -> tuple[int, int]:
        outcome.begun = outcome.begun or time.time()
        return number, number % KEYS

    def done(t: Any) -> None:
        due = profile.due(t.number) or 0.0
        outcome.took[t.number] = time.time() - outcome.begun - due

    def listen(event: Event) -> None:
        if isinstance(event, Decided):
            outcome.places.append(event.degrees["waiting"][0])
            outcome.reasons += [event.text] if event.text else []
        if isinstance(event, Progress):
            outcome.executors.append(len(exchange.executors(session.sparkContext)))
            if outcome.begun and time.time() - outcome.begun > stop_at:
                stop.set()

    builder = tw.TopologyBuilder("three-steps")
    builder.add_spout("numbers", tw.rate(profile, made), fields={"number": int, "key": int})
    builder.add_bolt("waiting", Waiting()).fields("numbers", "key")
    builder.add_bolt("done", tw.call(done)).shuffle("waiting")
    scaling = tw.Scaling(policy, most=4, speed=SPEED)
    on = tw.Spark(session, places=BEGIN, scaling=scaling, batch_time="2 s", **options)
    result = builder.build().run(on=on, listen=listen, stop=stop)
    outcome.counts = dict(result.table("counts"))
    return outcome


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Any:
    """Give a session whose executors have worked before; what they take to start is no matter."""
    made = cluster.session(**{"spark.executor.memory": "512m"})
    flow = tw.Flow("first")
    flow.source("numbers", tw.items(range(100)), fields={"n": int}).tally("counts", key="n")
    flow.run(on=tw.Spark(made, places=4, state=str(cluster.shared / "first")))
    return made


def test_a_static_start_falls_behind(cluster: Cluster, session: Any) -> None:
    state = str(cluster.shared / "static")
    # What was due until then and is not done by the end is late.
    outcome = run(session, "static", stop_at=UNTIL + LATE, state=state)
    assert set(outcome.places) == {BEGIN}
    assert outcome.late(SINCE, UNTIL) > 0.5


def test_places_follow_the_load_and_nothing_is_late_or_lost(cluster: Cluster, session: Any) -> None:
    options = {"state": str(cluster.shared / "following"), "executors": "elastic"}
    outcome = run(session, "thalweg", stop_at=math.inf, **options)
    total = int(STREAM.total)
    assert outcome.counts == dict(Counter(number % KEYS for number in range(total)))
    assert len(outcome.took) == total
    assert outcome.late(SINCE, UNTIL) < 0.05, outcome.reasons
    assert max(outcome.places) >= 3
    assert outcome.places[-1] <= 2
    assert min(outcome.executors) <= 2
    assert max(outcome.executors) >= 3
    assert outcome.executors[-1] <= 2
