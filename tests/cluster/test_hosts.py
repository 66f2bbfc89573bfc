"""Runs on hosts that are killed, added, removed or cut off: results stay the same."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparkcluster.cluster import Cluster
from thalweg.events import Event, Progress
from thalweg.runtimes.spark.limits import Limits
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests
from thalweg.statelog.requests import Request, Requests
from thalweg.testing import source

pytestmark = pytest.mark.cluster

CLUSTER = {"hosts": 3}
PLACES, ROWS, BATCH = 6, 360, 30
WORDS = [(f"w{n * 7919 % 31}", f"r{n * 104729 % 7}", f"{n:03}") for n in range(ROWS)]
#: Seconds after which a test says that what it waits for does not come.
WATCHDOG = 300.0


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Any:
    failpoints = {"spark.executorEnv.THALWEG_FAILPOINTS": str(cluster.shared / "failpoints")}
    session = cluster.session(**{"spark.executor.memory": "512m", **failpoints})
    cluster.await_executors(session)
    return session


@pytest.fixture
def state(cluster: Cluster, request: pytest.FixtureRequest) -> Path:
    return cluster.shared / f"{request.node.name}"


Step = tuple[Callable[["Course"], bool], Callable[[], Any]]


class Course:
    """Notes what each batch was like; does the next step once a batch was as that asks for."""

    def __init__(self, state: Path, *steps: Step) -> None:
        self.state, self.steps = state, list(steps)
        self.stickiness: list[float] = []
        self.hosts: list[set[str]] = []
        Rounds.last.clear()

    def listen(self, event: Event) -> None:
        if not isinstance(event, Progress):
            return
        self.stickiness.append(event.snapshot.stickiness or 0.0)
        last = Manifests(Location.of(self.state)).latest()
        self.hosts.append(set(last.hosts if last else ()))
        if self.steps and self.steps[0][0](self):
            self.steps.pop(0)[1]()
        if not self.steps:
            Rounds.last.set()


class Rounds(tw.BlockSpout):
    """Gives all words again and again, a few at a time, until the last round has been called."""

    outputs = {"word": str, "region": str, "number": str}
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


def chaining(given: Any = None) -> tw.Flow:
    """Count by word; then chain the numbers of each region in their order, two exchanges later."""
    flow = tw.Flow("chaining")
    fields = ["word", "region", "number"]
    words = source(WORDS) if given is None else given
    stream = flow.source("words", words, fields=None if given else fields)
    counted = stream.key_by("word").running_count(into="nth")
    chain = counted.key_by("region")
    chain.fold("chain", "", lambda before, number, nth: f"{before}{number}/{nth} ", order="key")
    stream.tally("counts", key="word")
    return flow


def undisturbed(rounds: int) -> tuple[dict[str, int], dict[str, str]]:
    counts: Counter[str] = Counter()
    chains: dict[str, str] = {}
    for word, region, number in WORDS * rounds:
        counts[word] += 1
        chains[region] = f"{chains.get(region, '')}{number}/{counts[word]} "
    return dict(counts), chains


def runtime(session: Any, state: Path, **options: Any) -> tw.Spark:
    return tw.Spark(
        session,
        places=PLACES,
        state=str(state),
        pump=PumpSettings(rows=BATCH, block_rows=BATCH),
        limits=Limits(runs=3, versions=4),
        **options,
    )


def check(result: Any, rounds: int = 1) -> None:
    assert (result.table("counts"), result.table("chain")) == undisturbed(rounds)


def after(batches: int) -> Callable[[Course], bool]:
    return lambda course: len(course.hosts) >= batches


# --- where places are -----------------------------------------------------------------------------


def test_places_are_on_all_hosts_and_stay_there(session: Any, state: Path) -> None:
    course = Course(state)
    check(chaining().run(on=runtime(session, state), listen=course.listen))
    assert len(course.hosts[-1]) == 3
    assert sum(course.stickiness[1:]) / len(course.stickiness[1:]) >= 0.95


def test_a_host_leaves_before_it_is_removed_and_another_takes_its_share(
    cluster: Cluster, session: Any, state: Path
) -> None:
    new: list[str] = []
    address = {host["name"]: host["address"] for host in cluster.status()["hosts"]}
    leaving = sorted(address)[0]

    def leave() -> None:
        Requests(Location.of(state)).ask(Request(avoid=(address[leaving],)))

    def has_left(course: Course) -> bool:
        return address[leaving] not in course.hosts[-1]

    course = Course(
        state,
        (after(3), lambda: new.append(cluster.add())),
        (lambda course: len(course.hosts[-1]) == 4, leave),
        (has_left, lambda: cluster.remove(leaving)),
    )
    result = chaining(Rounds()).run(on=runtime(session, state), listen=course.listen)
    check(result, Rounds.given // ROWS)
    assert not course.steps
    assert len(course.hosts[-1]) == 3


# --- faults ---------------------------------------------------------------------------------------


def arm(cluster: Cluster, line: str) -> Path:
    folder = cluster.shared / "failpoints"
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    (folder / "armed").write_text(line)
    return folder


def when(file: Path, action: Callable[[str], Any]) -> threading.Thread:
    """Do something once a task has come to a failpoint, with the name of its host."""
    stop = threading.Event()

    def watch() -> None:
        for _ in range(int(WATCHDOG / 0.02)):
            if file.exists() and (host := file.read_text()):
                action(host)
                return
            stop.wait(0.02)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.parametrize("seed", range(10))
def test_a_host_is_killed_in_the_middle_of_a_stage(
    cluster: Cluster, session: Any, state: Path, seed: int
) -> None:
    chance = random.Random(seed)
    stage, turn = 1 + seed % 2, chance.randrange(8, 50)
    folder = arm(cluster, f"stage {stage}=wait@{turn}")

    def kill(host: str) -> None:
        cluster.kill(host)
        (folder / "go").touch()
        cluster.relaunch(host)

    killing = when(folder / f"stage {stage} {turn}: wait", kill)
    try:
        check(chaining().run(on=runtime(session, state)))
    finally:
        killing.join()
    assert (folder / "go").exists(), "no host was killed"


def test_a_link_is_cut_for_ten_seconds(cluster: Cluster, session: Any, state: Path) -> None:
    arm(cluster, "")
    host = sorted(name for name, is_ in cluster.hosts().items() if is_ == "up")[0]
    course = Course(state, (after(4), lambda: cluster.cut(host, 10.0)), (after(10), lambda: None))
    result = chaining(Rounds()).run(on=runtime(session, state), listen=course.listen)
    check(result, Rounds.given // ROWS)


def test_two_topologies_run_at_the_same_time(cluster: Cluster, session: Any, state: Path) -> None:
    arm(cluster, "")
    found: dict[int, Any] = {}

    def run(number: int) -> None:
        found[number] = chaining().run(on=runtime(session, state / f"{number}"))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(2):
        check(found[number])


@pytest.fixture(scope="module")
def stopped(cluster: Cluster, session: Any) -> Path:
    """Give the state of a run that was stopped in the middle."""
    arm(cluster, "")
    state, stop = cluster.shared / "stopped", threading.Event()
    course = Course(state, (after(5), stop.set))
    result = chaining().run(on=runtime(session, state), listen=course.listen, stop=stop)
    assert result.stopped
    return state


@pytest.fixture(scope="module")
def another_session(cluster: Cluster, stopped: Path) -> Any:
    """Give a session with speculation; the one before is ended for it."""
    conf = {"spark.executor.memory": "512m", "spark.speculation": "true"}
    return cluster.session(**conf)


def test_another_driver_goes_on_where_one_was_stopped(stopped: Path, another_session: Any) -> None:
    check(chaining().run(on=runtime(another_session, stopped)))
