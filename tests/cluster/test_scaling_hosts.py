"""Executors are given back and asked for while a run goes on: results stay the same."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparkcluster.cluster import Cluster
from thalweg.events import Event, Noticed, Progress
from thalweg.runtimes.spark import exchange
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests
from thalweg.statelog.requests import Request, Requests

pytestmark = pytest.mark.cluster

CLUSTER = {"hosts": 3, "cores": 2}
ROWS, BATCH = 120, 20
WORDS = [(f"w{n * 7919 % 31}", f"{n:03}") for n in range(ROWS)]
#: Batches after which a test says that what it waits for does not come.
MOST = 600


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Any:
    return cluster.session(**{"spark.executor.memory": "512m"})


class Rounds(tw.BlockSpout):
    """Gives all words again and again, a few at a time, until the last round has been called."""

    outputs = {"word": str, "number": str}
    last = threading.Event()
    given = 0

    def prepare(self, context: Any) -> None:
        Rounds.given = 0

    def next_block(self, limit: int) -> Any:
        start = Rounds.given % ROWS
        if Rounds.last.is_set() and not start:
            self.finish()
            return None
        Rounds.given += BATCH
        columns = zip(*WORDS[start : start + BATCH], strict=True)
        return self.make_batch(list(map(list, columns)))


class Course:
    """Notes after each batch where places and executors are; does step after step.

    A step is a pair: what a batch must be like, and what is done then.
    """

    def __init__(self, session: Any, state: Path, *steps: tuple[Any, Callable[[], Any]]) -> None:
        self.context, self.state, self.steps = session.sparkContext, state, list(steps)
        self.places: list[Counter[str]] = []
        self.executors: list[set[str]] = []
        self.notices: list[str] = []
        Rounds.last.clear()

    def listen(self, event: Event) -> None:
        if isinstance(event, Noticed):
            self.notices.append(event.text)
        if not isinstance(event, Progress):
            return
        last = Manifests(Location.of(self.state)).latest()
        assert last is not None
        self.places.append(Counter(last.hosts))
        self.executors.append({e.host for e in exchange.executors(self.context)})
        if self.steps and self.steps[0][0](self):
            self.steps.pop(0)[1]()
        if not self.steps or len(self.places) > MOST:
            Rounds.last.set()

    def check_that_places_left_first(self) -> None:
        """See that each host that was given back held no place in the batch before that."""
        batches = zip(self.executors, self.executors[1:], self.places[1:], strict=False)
        for before, after, places in batches:
            assert not (before - after) & set(places)


def chaining() -> tw.Flow:
    """Count by word, and chain the numbers of each in their order."""
    flow = tw.Flow("chaining")
    keyed = flow.source("words", Rounds()).key_by("word")
    chained = keyed.running_count(into="nth").key_by("word")
    chained.fold("chain", "", lambda before, number, nth: f"{before}{number}/{nth} ", order="key")
    return flow


def undisturbed(rounds: int) -> dict[str, str]:
    counts: Counter[str] = Counter()
    chains: dict[str, str] = {}
    for word, number in WORDS * rounds:
        counts[word] += 1
        chains[word] = f"{chains.get(word, '')}{number}/{counts[word]} "
    return chains


def run(session: Any, course: Course, **options: Any) -> None:
    pump = PumpSettings(rows=BATCH, block_rows=BATCH)
    on = tw.Spark(session, state=str(course.state), pump=pump, **options)
    result = chaining().run(on=on, listen=course.listen)
    assert not course.steps, f"still to come: {len(course.steps)}; {course.notices}"
    assert result.table("chain") == undisturbed(Rounds.given // ROWS)


def places(*of_hosts: int, executors: int) -> Callable[[Course], bool]:
    return lambda course: (
        sorted(course.places[-1].values()) == sorted(of_hosts)
        and len(course.executors[-1]) == executors
    )


def test_executors_follow_the_places(cluster: Cluster, session: Any) -> None:
    state = cluster.shared / "following"
    requests = Requests(Location.of(state))
    course = Course(
        session,
        state,
        (places(2, 2, 2, executors=3), lambda: requests.ask(Request(places=4))),
        (places(2, 2, executors=2), lambda: requests.ask(Request(places=6))),
        (places(2, 2, 2, executors=3), lambda: None),
    )
    run(session, course, places=6, executors="elastic")
    course.check_that_places_left_first()
    assert Counter({2: 1, 1: 2}) in [Counter(held.values()) for held in course.places]
    told = [text.partition(" on ")[0] for text in course.notices if "executors" in text]
    assert told == ["gave back executors", "asked for 3 executors; there are 2"]


def test_an_avoided_host_is_given_back_when_the_others_are_enough(
    cluster: Cluster, session: Any
) -> None:
    state, avoided = cluster.shared / "avoiding", cluster.status()["hosts"][1]["address"]
    cluster.await_executors(session)
    requests = Requests(Location.of(state))
    course = Course(
        session,
        state,
        (places(2, 2, 2, executors=3), lambda: requests.ask(Request(avoid=(avoided,)))),
        (places(3, 3, executors=3), lambda: requests.ask(Request(places=4))),
        (places(2, 2, executors=2), lambda: requests.ask(Request(places=6, avoid=()))),
        (places(2, 2, 2, executors=3), lambda: None),
    )
    run(session, course, places=6, executors="elastic")
    course.check_that_places_left_first()
    assert f"gave back executors on {avoided}" in course.notices


def test_fixed_executors_stay(cluster: Cluster, session: Any) -> None:
    state = cluster.shared / "staying"
    cluster.await_executors(session)
    requests = Requests(Location.of(state))
    course = Course(
        session,
        state,
        (places(2, 2, 2, executors=3), lambda: requests.ask(Request(places=3))),
        (places(1, 1, 1, executors=3), lambda: None),
    )
    run(session, course, places=6)
    assert course.executors[-1] == course.executors[0]
