"""A cluster for tests: ``with Cluster(hosts=3) as cluster: cluster.session()``."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkcluster.command import DEFAULT_ID
from sparkcluster.machine import IN_USE, NOT_PERMITTED, REPOSITORY, look_at_link, until
from thalweg.runtimes.spark.deploying import read_properties
from thalweg.runtimes.spark.session import make_session

_SCRIPT = REPOSITORY / "scripts" / "cluster"
#: How many clusters there may be on a machine at once.
_IDS = range(DEFAULT_ID, DEFAULT_ID + 8)


class NotPermitted(Exception):
    """This machine has no clusters; the message says why."""


class Cluster:
    """A running cluster, removed at the end; ids that others use are passed over.

    Its id stays its own until the end, also when nothing is up: whoever took the id meanwhile would
    be removed with the next `down`. Executors of its sessions have the options ``java``.
    """

    def __init__(
        self,
        hosts: int = 2,
        *,
        rate: str = "200mbit",
        cores: int = 1,
        memory: str = "1g",
        java: str = "",
    ) -> None:
        self.id = 0
        self._hosts = hosts
        self._java = java
        self._options = ["--rate", rate, "--cores", str(cores), "--memory", memory]
        self._session = ExitStack()
        self._claim = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as claim:
            done = self._up(claim)
            if done.returncode == NOT_PERMITTED:
                raise NotPermitted(done.stderr.strip())
            _check(done)
            self._claim = claim.pop_all()
        return self

    def _up(self, claim: ExitStack) -> subprocess.CompletedProcess[str]:
        """Start at the first id that is free, and claim that."""
        up = ["up", str(self._hosts), *self._options, "--owner", str(os.getpid())]
        for self.id in filter(lambda id_: _claim(id_, claim), _IDS):
            done = _call(self.id, *up)
            if done.returncode != IN_USE:
                return done
            claim.close()
        msg = f"cluster: expected a free id from {_IDS[0]} to {_IDS[-1]}, got none"
        raise RuntimeError(msg)

    def __exit__(self, *_: object) -> None:
        with self._claim:
            try:
                self._session.close()
            finally:
                self.down()

    # --- what there is ----------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Say what there is, as ``status --json`` does."""
        found: dict[str, Any] = json.loads(self._do("status", "--json"))
        return found

    def hosts(self) -> dict[str, str]:
        """Give the state of each host, by name: up, cut or killed."""
        return {host["name"]: host["state"] for host in self.status()["hosts"]}

    def links(self) -> dict[str, list[dict[str, Any]]]:
        """Give what tc tells of the link of each host that runs, at the bridge and at the host."""
        running = [host for host in self.status()["hosts"] if host["pid"] is not None]
        return {host["name"]: look_at_link(host["link"], host["pid"]) for host in running}

    @property
    def shared(self) -> Path:
        """Give the one folder that driver and hosts share."""
        return Path(self.status()["shared"])

    def settings(self) -> dict[str, str]:
        """Give Spark's settings for a driver; the secret is among them."""
        status = self.status()
        return {
            **status["driver"],
            **read_properties(Path(status["properties"]).read_text()),
            "spark.decommission.enabled": "true",
            "spark.executor.extraJavaOptions": self._java,
            # Functions of test modules are sent by name.
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(_own_folders()),
        }

    def session(self, **conf: str) -> Any:
        """Make a session with a JVM of its own; it ends with the cluster, or with the next one.

        It has an executor on each host when this returns.
        """
        self._session.close()
        self._session.enter_context(_own_jvm())
        settings = {**self.settings(), **conf}
        session = make_session(self.status()["master"], "cluster", settings)
        self._session.callback(session.stop)
        self.await_executors(session)
        return session

    def await_executors(self, session: Any) -> None:
        """Wait until a session has an executor on each host that is up, and on no other."""
        status = self.status()["hosts"]
        wanted = {host["address"] for host in status if host["state"] == "up"}
        until(lambda: _executors(session) == wanted, f"executors on {sorted(wanted)}")

    # --- what can happen to it --------------------------------------------------------------------

    def add(self) -> str:
        """Start one more host; gives its name."""
        return self._do("add").strip()

    def remove(self, host: str) -> None:
        """Decommission a host, then remove it."""
        self._do("remove", host)

    def kill(self, host: str) -> None:
        """Kill all processes of a host and destroy its disk."""
        self._do("kill", host)

    def relaunch(self, host: str) -> None:
        """Start a killed host again, with an empty disk."""
        self._do("relaunch", host)

    def cut(self, host: str, seconds: float) -> None:
        """Take the link of a host down; it comes up again after some seconds."""
        self._do("cut", host, str(seconds))

    def slow(self, host: str, rate: str, *, towards: bool = False) -> None:
        """Give the link of a host another rate, such as ``2mbit``, until it is started again.

        Both ways, or only towards the host.
        """
        self._do("slow", host, rate, *(["--towards"] if towards else []))

    def down(self) -> None:
        """Remove everything, as it also happens at the end."""
        self._do("down")

    def _do(self, *words: str) -> str:
        return _check(_call(self.id, *words))


def _claim(id_: int, claim: ExitStack) -> bool:
    """Claim an id for this process; says whether nobody else had. The claim ends with its stack."""
    name = claim.enter_context(socket.socket(socket.AF_UNIX))
    try:
        name.bind(f"\0thalweg-cluster-{id_}-claimed")
    except OSError:
        claim.close()
        return False
    return True


def _call(id_: int, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 (our own script)
        [_SCRIPT, "--id", str(id_), *words],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )


def _own_folders() -> list[str]:
    return [folder for folder in sys.path if Path(folder).is_relative_to(REPOSITORY / "tests")]


def _executors(session: Any) -> set[str]:
    """Give the addresses of a session's executors."""
    tracker = session.sparkContext._jsc.sc().statusTracker()
    found = {info.host() for info in tracker.getExecutorInfos()}
    return found - {session.conf.get("spark.driver.host")}


def _check(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


@contextmanager
def _own_jvm() -> Iterator[None]:
    """Set the Spark of this process aside, and end the one that is begun meanwhile.

    The session of the test run may live in this process too; it goes on afterwards.
    """
    owners: tuple[tuple[Any, str], ...] = (
        (SparkContext, "_gateway"),
        (SparkContext, "_jvm"),
        (SparkContext, "_active_spark_context"),
        (SparkSession, "_instantiatedSession"),
    )
    before = [getattr(owner, name) for owner, name in owners]
    python = os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    for owner, name in owners:
        setattr(owner, name, None)
    try:
        yield
    finally:
        _end_jvm(SparkContext._gateway)
        for (owner, name), value in zip(owners, before, strict=True):
            setattr(owner, name, value)
        os.environ.pop("PYSPARK_PYTHON")
        os.environ.update({"PYSPARK_PYTHON": python} if python else {})


def _end_jvm(gateway: Any) -> None:
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM ends when nobody can talk to it any more
    gateway.proc.wait()
