"""Hosts of a cluster on one machine: apart in name, network and disk, and gone at the end."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark import BarrierTaskContext

from sparkcluster.cluster import Cluster
from sparkcluster.machine import (
    IN_USE,
    MARK,
    NOT_PERMITTED,
    REPOSITORY,
    TMP,
    TOOLS,
    USAGE,
    Net,
    do,
    members,
    until,
)
from sparkcluster.spark import alive

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("cluster")]

CLUSTER = {"hosts": 2}
SCRIPT = REPOSITORY / "scripts" / "cluster"
#: A cluster that is never up.
OTHER = Net(199)


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Any:
    """Give a session with an executor on each host."""
    return cluster.session(**{"spark.executor.memory": "512m"})


def script(*words: str | int) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in (SCRIPT, *words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (ours)


def on_all_hosts(session: Any, task: Any, hosts: int = 2) -> list[Any]:
    """Run a function on all hosts at once, so that each runs it exactly once."""
    return list(
        session.sparkContext.parallelize(range(hosts), hosts)
        .barrier()
        .mapPartitions(task)
        .collect()
    )


# --- hosts are apart ------------------------------------------------------------------------------


def leave_marks(shared: Path) -> Any:
    """Make a task that leaves files on its host, waits for the others, and looks around."""

    def task(_: Iterator[int]) -> Iterator[tuple[str, str, list[str], list[str]]]:
        name = socket.gethostname()
        local = Path(os.environ["SPARK_LOCAL_DIRS"])
        disk = TMP / local.relative_to(TMP).parts[0]
        private = [disk, TMP, Path("/var") / TMP.name, Path("/dev/shm")]  # noqa: S108 (looked at)
        for folder in [*private, shared]:
            (folder / f"mark-{name}").touch()
        BarrierTaskContext.get().barrier()
        seen = [sorted(path.name for path in folder.glob("mark-*")) for folder in private]
        together = sorted(path.name for path in shared.glob("mark-*"))
        yield name, disk.name, [mark for marks in seen for mark in marks], together

    return task


def test_hosts_share_one_folder_and_nothing_else(cluster: Cluster, session: Any) -> None:
    found = sorted(on_all_hosts(session, leave_marks(cluster.shared)))
    both = ["mark-h1", "mark-h2"]
    assert found == [
        ("h1", "elsewhere", ["mark-h1"] * 4, both),
        ("h2", "spark", ["mark-h2"] * 4, both),
    ]
    assert sorted(path.name for path in cluster.shared.iterdir()) == both


def test_a_host_cannot_write_anywhere_else(session: Any) -> None:
    def task(_: Iterator[int]) -> Iterator[bool]:
        yield os.access(REPOSITORY, os.W_OK)

    assert on_all_hosts(session, task) == [False, False]


def rates(cluster: Cluster) -> dict[str, list[int]]:
    """Give bytes per second of each host's link, towards the host and away from it."""
    return {
        host: [end["options"]["rate"] for end in ends if end["kind"] == "tbf"]
        for host, ends in cluster.links().items()
    }


def test_links_are_shaped_both_ways(cluster: Cluster) -> None:
    assert rates(cluster) == {"h1": [25_000_000] * 2, "h2": [25_000_000] * 2}


def test_the_link_of_one_host_can_be_made_slow_and_fast_again(cluster: Cluster) -> None:
    cluster.slow("h2", "2mbit")
    assert rates(cluster) == {"h1": [25_000_000] * 2, "h2": [250_000] * 2}
    cluster.slow("h2", "200mbit")
    cluster.slow("h2", "2mbit", towards=True)
    assert rates(cluster)["h2"] == [250_000, 25_000_000]
    cluster.slow("h2", "200mbit")
    assert rates(cluster) == {"h1": [25_000_000] * 2, "h2": [25_000_000] * 2}


# --- what happens to hosts ------------------------------------------------------------------------


def test_a_killed_host_comes_back_with_an_empty_disk(cluster: Cluster, session: Any) -> None:
    cluster.kill("h1")
    assert cluster.hosts() == {"h1": "killed", "h2": "up"}
    assert 1 not in members(Net(cluster.id)).values()
    cluster.await_executors(session)
    assert session.sparkContext.parallelize([1], 1).map(host_and_marks).collect() == [("h2", 1)]
    cluster.relaunch("h1")
    assert cluster.hosts() == {"h1": "up", "h2": "up"}
    cluster.await_executors(session)
    task = host_and_marks
    assert sorted(on_all_hosts(session, lambda _: [task(0)])) == [("h1", 0), ("h2", 1)]


def host_and_marks(_: int) -> tuple[str, int]:
    return socket.gethostname(), len(list(TMP.glob("mark-*")))


def test_a_cut_host_cannot_be_reached_until_its_link_is_up_again(cluster: Cluster) -> None:
    address = cluster.status()["hosts"][1]["address"]
    assert answers(address)
    cluster.cut("h2", 15)  # longer than a busy machine takes to look
    assert not answers(address)
    assert cluster.hosts()["h2"] == "cut"
    until(lambda: answers(address), "an answer of the host")
    assert cluster.hosts()["h2"] == "up"


def answers(address: str) -> bool:
    """Say whether the page of a worker can be reached."""
    try:
        with socket.create_connection((address, 8081), timeout=0.3):
            return True
    except OSError:
        return False


def work_until(folder: Path) -> Any:
    """Make a task that begins, and ends when it is told to."""

    def task(_: Iterator[int]) -> Iterator[tuple[str, int]]:
        (folder / f"begun-{socket.gethostname()}").touch()
        until((folder / "enough").exists, "the word to end")
        context = BarrierTaskContext.get()
        yield socket.gethostname(), context.attemptNumber()

    return task


def test_a_removed_host_finishes_its_work_first(cluster: Cluster, session: Any) -> None:
    shared, net = cluster.shared, Net(cluster.id)
    with ThreadPoolExecutor(2) as pool:
        work = pool.submit(on_all_hosts, session, work_until(shared))
        until(lambda: len(list(shared.glob("begun-*"))) == 2, "work on both hosts")
        removed = pool.submit(cluster.remove, "h2")
        until(lambda: not alive(net, net.address(2)), "the host to be on its way out")
        assert not removed.done()
        (shared / "enough").touch()
        assert sorted(work.result()) == [("h1", 0), ("h2", 0)]
        removed.result()
    assert cluster.hosts() == {"h1": "up"}


def test_a_host_can_be_added(cluster: Cluster, session: Any) -> None:
    assert cluster.add() == "h2"
    cluster.await_executors(session)
    assert cluster.hosts() == {"h1": "up", "h2": "up"}


# --- refusals -------------------------------------------------------------------------------------


def test_a_cluster_in_use_is_left_alone(cluster: Cluster) -> None:
    refused = script("--id", cluster.id, "up", 1)
    assert refused.returncode == IN_USE
    assert "expected none, got one in use" in refused.stderr
    assert cluster.hosts() == {"h1": "up", "h2": "up"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["up", 9], "hosts: expected 1 to 8, got 9"),
        (["up", 0], "hosts: expected 1 to 8, got 0"),
        (["kill", "h7"], "host: expected one of h1, h2, got h7"),
        (["relaunch", "h1"], "host h1: expected a killed one, got one that runs"),
        (["cut", "h1", -1], "seconds: expected more than 0, got -1.0"),
        (["slow", "h7", "2mbit"], "host: expected one of h1, h2, got h7"),
        (["slow", "h1", "slowly"], "expected a rate such as 2mbit, got 'slowly'"),
        (["--id", 999, "down"], "expected a number from 1 to 254, got '999'"),
    ],
)
def test_wrong_words_are_refused(cluster: Cluster, words: list[Any], told: str) -> None:
    refused = script("--id", cluster.id, *words)
    assert refused.returncode == USAGE
    assert told in refused.stderr


def test_without_a_cluster_there_is_nothing_to_tell() -> None:
    refused = script("--id", OTHER.id, "status")
    assert refused.returncode == 1
    assert f"cluster {OTHER.id}: expected one, got none" in refused.stderr


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        ({}, "got no ip, tc"),
        ({"unshare": "false"}, "expected namespaces and shaped links, got exit code 1"),
    ],
)
def test_a_machine_that_cannot_have_hosts_says_why(
    tools: dict[str, str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {name: name for name in ("bash", "dirname", *(TOOLS if tools else ()))}
    for name, real in {**found, **tools}.items():
        (tmp_path / name).symlink_to(shutil.which(real) or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = script("--id", OTHER.id, "up", 1)
    assert refused.returncode == NOT_PERMITTED
    assert told in refused.stderr


# --- the end --------------------------------------------------------------------------------------


def left(net: Net) -> list[str]:
    """Name everything of a cluster that is on this machine."""
    links = [name for name in os.listdir("/sys/class/net") if name.startswith(net.bridge)]
    mounts = [
        line for line in Path("/proc/mounts").read_text().splitlines() if net.folder.name in line
    ]
    names = do("ip", "netns", "list").split()
    folder = [str(net.folder)] if net.folder.exists() else []
    return [*links, *mounts, *names, *folder, *map(str, members(net))]


def test_what_a_crash_left_is_removed() -> None:
    do("ip", "link", "add", "name", OTHER.bridge, "type", "bridge")
    (OTHER.folder / "logs").mkdir(parents=True)
    environment = {**os.environ, MARK: f"{OTHER.id}/1"}
    with subprocess.Popen([shutil.which("sleep") or "", "1000"], env=environment) as stray:  # noqa: S603 (ours)
        until(lambda: len(left(OTHER)) == 3, "a process with its environment")
        assert script("--id", OTHER.id, "down").returncode == 0
    assert stray.returncode == -9
    assert left(OTHER) == []


def test_down_leaves_nothing(cluster: Cluster, session: Any) -> None:
    net = Net(cluster.id)
    assert len(left(net)) > 10
    cluster.down()
    assert left(net) == []
    cluster.down()


def test_an_id_stays_with_its_cluster_until_the_end(cluster: Cluster) -> None:
    cluster.down()
    with Cluster(hosts=1) as other:
        assert other.id != cluster.id
        cluster.down()
        assert other.hosts() == {"h1": "up"}
