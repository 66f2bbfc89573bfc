"""A small standalone cluster of Spark: one master and two workers with addresses of their own.

Spark never runs two attempts of a task on one host; loopback has many addresses, so that a worker
at each of two of them makes two hosts.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

HOSTS = ("127.0.0.1", "127.0.0.2")
#: Seconds after which a process that does not begin counts as hung.
WATCHDOG = 300.0


@contextmanager
def standalone(folder: Path, java: str) -> Iterator[str]:
    """Start a cluster with these options of Java; gives the address of its master."""
    logs = {host: folder / f"worker-{host}.log" for host in HOSTS}
    with ExitStack() as stack:
        log = folder / "master.log"
        options = ["--host", HOSTS[0], "--port", "0"]
        stack.enter_context(_process("master.Master", log, java, *options))
        master = _said(log, r"Starting Spark master at (spark://\S+)")
        for host, log in logs.items():
            options = ["--host", host, "--cores", "1", "--memory", "1g"]
            options += ["--work-dir", str(folder / host), master]
            stack.enter_context(_process("worker.Worker", log, java, *options))
        for log in logs.values():
            _said(log, "Successfully registered with master")
        yield master


@contextmanager
def _process(name: str, log: Path, java: str, *options: str) -> Iterator[None]:
    home = Path(pyspark.__file__).parent
    daemon = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": java}
    env = {**os.environ, "SPARK_HOME": str(home), **daemon}
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *options]
    command += ["--webui-port", "0"] if "--webui-port" not in options else []
    with open(log, "wb") as file:
        process = subprocess.Popen(_ordered(command), env=env, stdout=file, stderr=file)  # noqa: S603 (Spark)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def _ordered(command: list[str | Path]) -> list[str]:
    """Put the address of the master last, where Spark looks for it."""
    words = [str(word) for word in command]
    return sorted(words, key=lambda word: word.startswith("spark://"))


def _said(log: Path, pattern: str) -> str:
    """Wait until a process has written something; gives its first group."""
    until = time.monotonic() + WATCHDOG
    while not (found := re.search(pattern, log.read_text(errors="replace"))):
        assert time.monotonic() < until, log.read_text()[-3000:]
        time.sleep(0.05)
    return found[found.re.groups]
