"""Keys are given other places, and something is killed meanwhile: all keys move, or none has."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killing import arm, check, failures, run_until_done, tables_of
from program import Job, build, row, run, runtime
from two_hosts import standalone

import thalweg as tw
from sparksession import spark_session
from stateplaces import check_owners
from thalweg.events import Event, Progress
from thalweg.routing.table import RoutingTable
from thalweg.statelog import Location, Manifests, needed, version_of
from thalweg.statelog.tables import TablesRef, load_tables

SEED = 5
#: Moments at which something is killed three times, and how often at least they are passed.
DRIVER = {
    "before the commit": {"after tables": 7, "after moves": 20},
    "at the commit": {"before manifest": 12, "after manifest": 12},
}
WORKER = {"after moves": 16, "before objects": 24, "after objects": 24}
EXECUTOR = {"after moves": 16, "after objects": 24}
#: Drivers at a time: one that starts does not keep two cores busy.
AT_ONCE = 2
CONFIG = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
}
Finished = dict[str, tuple[Job, Future[int]]]


def armed(points: dict[str, int], action: str) -> dict[str, list[int]]:
    """Choose when something happens at each of these moments, from the second time on."""
    return {
        f"{point}={action}": sorted(random.Random(f"{SEED}/{point}").sample(range(2, most), 3))
        for point, most in points.items()
    }


def arm_at(job: Job, moments: dict[str, list[int]]) -> set[str]:
    """Arm failpoints; gives the names of what will have happened."""
    arm(job, *(f"{line}@{','.join(map(str, counts))}" for line, counts in moments.items()))
    return {
        f"{point} {count}: {action}"
        for (point, _, action), counts in ((k.partition("="), v) for k, v in moments.items())
        for count in counts
    }


# --- what must hold whenever nobody writes -------------------------------------------------------


def look_at(job: Job) -> None:
    """State is where the newest version says, and each version is one step from the last."""
    last = check_owners(Path(job.folder, "state"))
    location = Location.of(f"{job.folder}/state")
    manifests = Manifests(location)
    for after, before in pairwise([last, *manifests.older(last.version)]):
        assert after.version == before.version + 1
        moved = after.tables != before.tables or after.hosts != before.hosts
        assert after.epoch == before.epoch + moved
        check_follows(location, before.tables, after.tables)
    passed = Path(job.folder, "failpoints", "after manifest")
    assert not passed.exists() or last.version == passed.stat().st_size


def check_follows(location: Location, old: TablesRef | None, new: TablesRef | None) -> None:
    """Tables are followed by themselves, a step further, or by others that begin as they end."""
    if new is None or (old is not None and new.name == old.name):
        assert new is None or (old and new.step == min(old.step + 1, old.steps))
        return
    assert old is None or old.step == old.steps, "keys are still on their way"
    assert new.step == min(1, new.steps)
    ended = {} if old is None else load_tables(location, old).tables(old.step)
    for name, begun in load_tables(location, new).tables(0).items():
        before = ended.get(name) or RoutingTable.even(begun.places, len(begun.groups))
        hashes = np.union1d(before.hashes, begun.hashes)
        assert (before.places_of(hashes) == begun.places_of(hashes)).all()


def check_tidy(job: Job) -> None:
    """Little is left that no version names; the next driver deletes that, and changes nothing."""
    location = Location.of(f"{job.folder}/state")
    # Of the last driver that was killed; of the last batch, behind which there is no other.
    assert len(unneeded(location, "tables")) <= 2
    check(job, run(job, spark_session()))
    last = check_owners(Path(job.folder, "state"))
    left = [name for folder in ("tables", "runs", "staged") for name in unneeded(location, folder)]
    assert all((version_of(name) or 0) > last.version for name in left)
    assert len(left) <= 1
    assert len(list(location.names("manifests"))) <= job.versions


def unneeded(location: Location, folder: str) -> set[str]:
    manifests = Manifests(location)
    last = manifests.latest()
    assert last is not None
    named = needed([last, *manifests.older(last.version)])
    return {f"{folder}/{name}" for name in location.names(folder)} - named


# --- drivers -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(java: str, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Let all drivers be killed, by what happens to them: a job, and how often it was killed."""
    found: Finished = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, points in DRIVER.items():
            folder = tmp_path_factory.mktemp("killed")
            job = wandering(folder, java=java)
            arm_at(job, armed(points, "kill driver"))
            found[name] = job, pool.submit(run_until_done, job, lambda job=job: look_at(job))
    return found


def wandering(folder: Path, **options: Any) -> Job:
    given: dict[str, Any] = {"rows": 360, "batch": 30, "places": 3, "reroute": SEED, **options}
    return Job(folder=str(folder), **given)


@pytest.mark.parametrize("name", DRIVER)
def test_a_driver_killed_while_keys_move_goes_on_with_old_or_new_places(
    name: str, finished: Finished
) -> None:
    job, kills = finished[name]
    assert kills.result() >= 3
    assert failures(job) == arm_at(job, armed(DRIVER[name], "kill driver"))
    check(job, tables_of(job))
    check_tidy(job)


# --- workers -------------------------------------------------------------------------------------


def test_a_worker_killed_while_keys_move_makes_the_batch_move_them_again(failing: Path) -> None:
    job = wandering(failing, rows=240)
    expected = arm_at(job, armed(WORKER, "kill"))
    check(job, run(job, spark_session()))
    assert failures(job) == expected
    look_at(job)
    check_tidy(job)


# --- executors -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def master(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster"), java) as address:
        yield address


def test_an_executor_killed_while_keys_move_makes_the_batch_move_them_again(
    master: str, java: str, tmp_path: Path
) -> None:
    job = wandering(tmp_path, rows=240, master=master, config=CONFIG, java=java)
    expected = arm_at(job, armed(EXECUTOR, "kill executor"))
    assert run_until_done(job, lambda: look_at(job)) == 0
    assert failures(job) == expected
    check(job, tables_of(job))
    check_tidy(job)


# --- places that change in number ----------------------------------------------------------------


#: As long as runs are not merged, places share them.
UNMERGED = "during compaction=raise@1,4,7"
WORDS = [row(n)[1] for n in range(360)]


def test_keys_move_on_while_runs_are_still_shared(failing: Path) -> None:
    job = wandering(failing)
    run_some(build(job).build(), replace(job, places=2))
    arm(job, UNMERGED)
    check(job, run(job, spark_session()))
    assert len(failures(job)) == 3
    look_at(job)


def run_some(topology: tw.Topology, job: Job, batches: int = 4) -> None:
    """Run some batches, and stop."""
    told, passed = tw.execution.Run(), count(1)

    def listen(event: Event) -> None:
        if isinstance(event, Progress) and next(passed) == batches:
            told.stop.set()

    runtime(job, spark_session()).run(topology, replace(told, listen=listen))


class UpToThree(tw.Bolt):
    """Counts a word up to three, and then forgets it."""

    kind = tw.Kind.KEYED
    table = "seen"

    def process(self, t: Any) -> None:
        count = self.state.get(t.word, 0) + 1
        if count == 3:
            self.state.delete(t.word)
        else:
            self.state.put(t.word, count)


def forgetting(places: int) -> tw.Topology:
    builder = tw.TopologyBuilder("forgetting")
    builder.add_spout("words", tw.items(WORDS), fields={"word": str})
    builder.add_bolt("seen", UpToThree(), degree=places).fields("words", "word")
    return builder.build()


def test_keys_deleted_while_runs_are_still_shared_stay_deleted(failing: Path) -> None:
    job = wandering(failing, budget=1 << 40)
    run_some(forgetting(2), replace(job, places=2))
    arm(job, UNMERGED)
    found = forgetting(3).run(on=runtime(job, spark_session())).table("seen")
    assert len(failures(job)) == 3
    assert dict(found) == {word: n % 3 for word, n in Counter(WORDS).items() if n % 3}
