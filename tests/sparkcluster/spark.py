"""Spark on the hosts: a standalone master, and a worker per host."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from quickjava import java_options
from sparkcluster import machine
from sparkcluster.machine import NOT_PERMITTED, TMP, Net, Refused

#: Most hosts of a cluster.
MOST = 8
UI_PORT = 8080
WORKER = "org.apache.spark.deploy.worker.Worker"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_MASTER = "org.apache.spark.deploy.master.Master"
_PORT = 7077


class Settings(msgspec.Struct, frozen=True):
    """What a cluster was started with, and the hosts that it has."""

    rate: str
    cores: int
    memory: str
    #: Process that it is for, and when that began; None for whoever typed the command.
    owner: tuple[int, str] | None
    #: Numbers of all hosts, also of killed ones.
    hosts: tuple[int, ...]

    def with_(self, numbers: Iterable[int]) -> Settings:
        """Give settings with these hosts added."""
        return msgspec.structs.replace(self, hosts=tuple(sorted({*self.hosts, *numbers})))

    def without(self, number: int) -> Settings:
        """Give settings without a host."""
        return msgspec.structs.replace(self, hosts=tuple(n for n in self.hosts if n != number))


def save(net: Net, settings: Settings) -> None:
    """Write the settings into the cluster's folder, all or nothing."""
    path = net.folder / "settings.json"
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(settings))
    new.replace(path)


def load(net: Net) -> Settings | None:
    """Read the settings; None when there is no cluster, or one that never came up."""
    try:
        data = (net.folder / "settings.json").read_bytes()
    except OSError:
        return None
    return msgspec.json.decode(data, type=Settings)


def expect(net: Net) -> Settings:
    """Read the settings; raises when there is no cluster."""
    settings = load(net)
    if settings is None:
        hint = f"scripts/cluster --id {net.id} up 3"
        raise Refused(f"cluster {net.id}", "one", "none", hint)
    return settings


# --- starting -------------------------------------------------------------------------------------


def properties_file(net: Net) -> Path:
    """Give the file with what all processes of the cluster must know, drivers too."""
    return net.folder / "spark.properties"


def make_secret(net: Net) -> None:
    """Write the secret of the cluster: whoever reaches its master must not run code as root."""
    settings = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(32),
        "spark.master.rest.enabled": "false",  # it knows no secrets
    }
    file = properties_file(net)
    file.touch(mode=0o600)
    file.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))


def master_url(net: Net) -> str:
    """Give the address of the master, as Spark writes it."""
    return f"spark://{net.address(0)}:{_PORT}"


def local_folder(number: int) -> Path:
    """Give SPARK_LOCAL_DIRS of a host: on its own disk, and on host 1 at another path."""
    return TMP / "elsewhere" / "spark" if number == 1 else TMP / "spark"


def start_master(net: Net, settings: Settings) -> None:
    """Start the master and wait until it answers."""
    options = ["--host", net.address(0), "--port", str(_PORT), "--webui-port", str(UI_PORT)]
    _start(net, settings, 0, _MASTER, options)
    machine.until(lambda: _page(net) is not None, "an answer of the master", machine.log_of(net, 0))


def start_workers(net: Net, settings: Settings, numbers: Iterable[int]) -> None:
    """Start hosts with a worker each and wait until the master knows them all."""
    numbers = list(numbers)
    old = {worker["id"] for worker in workers(net)}
    for number in numbers:
        options = ["--host", net.address(number), "--cores", str(settings.cores)]
        options += ["--memory", settings.memory, "--work-dir", str(TMP / "work")]
        _start(net, settings, number, WORKER, [*options, master_url(net)])
    save(net, settings.with_(numbers))
    for number in numbers:
        address, log = net.address(number), machine.log_of(net, number)
        machine.until(lambda a=address: alive(net, a, old), f"a worker at {address}", log)  # type: ignore[misc] # mypy knows no lambda defaults


def _home() -> Path:
    """Find Spark inside of PySpark, without the time that it takes to import it."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise Refused("cluster", "PySpark", "none", "scripts/setup installs it", NOT_PERMITTED)
    return Path(found.origin).parent


def _start(net: Net, settings: Settings, number: int, kind: str, options: list[str]) -> None:
    home = _home()
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    environment = {
        **kept,
        "LANG": "C.UTF-8",
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": net.address(number),
        "SPARK_LOCAL_DIRS": str(local_folder(number)),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": java_options(),
        "SPARK_WORKER_OPTS": "-Dspark.decommission.enabled=true",
    }
    command = [str(home / "bin" / "spark-class"), kind]
    command += ["--properties-file", str(TMP / "spark.properties"), *options]
    machine.start_host(net, number, settings.rate, environment, command)


# --- what the master knows ------------------------------------------------------------------------


def workers(net: Net) -> list[dict[str, Any]]:
    """Ask the master for its workers; those that were lost come first."""
    found: list[dict[str, Any]] = (_page(net) or {}).get("workers", [])
    return sorted(found, key=lambda worker: worker["state"] == "ALIVE")


def alive(net: Net, address: str, old: Iterable[str] = ()) -> bool:
    """Say whether a worker is there at an address, other than the old ones."""
    return any(
        worker["host"] == address and worker["state"] == "ALIVE" and worker["id"] not in old
        for worker in workers(net)
    )


def _page(net: Net) -> dict[str, Any] | None:
    """Read the master's page for programs; None when it does not answer."""
    connection = http.client.HTTPConnection(net.address(0), UI_PORT, timeout=60)
    try:
        connection.request("GET", "/json/")
        answer = connection.getresponse()
        page: dict[str, Any] = json.loads(answer.read())
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return page
