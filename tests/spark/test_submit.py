"""``thalweg submit`` to a real standalone cluster on loopback, which asks for a secret."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from thalweg.runtimes.spark.deploying import SECRET

THALWEG = Path(sys.executable).with_name("thalweg")
TRENDING = Path(__file__).parents[2] / "examples" / "trending.py"
#: Daemons that live for seconds only need not be compiled well.
QUICK = {"SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
#: Seconds after which a process that does not begin counts as hung.
WATCHDOG = 300.0


def test_a_submitted_program_comes_to_the_same_as_inline(tmp_path: Path) -> None:
    properties = tmp_path / "secret.conf"
    properties.touch(0o600)
    properties.write_text(f"spark.authenticate true\n{SECRET} open-sesame\n")
    given = [TRENDING, "--set", "posts=20_000", "--quiet"]
    with standalone(tmp_path, properties) as master:
        said = thalweg("submit", *given, "--master", master, "--properties", properties)
    inline = thalweg("run", *given)
    assert boards(said) == boards(inline)
    assert len(boards(inline)) > 10


def thalweg(*arguments: str | Path) -> str:
    """Run the command; gives its standard output."""
    done = subprocess.run(  # noqa: S603 (our own command)
        [THALWEG, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stderr == ""
    return done.stdout


def boards(text: str) -> list[str]:
    """Give what is printed at the end; the lines before it depend on the time."""
    return [line for line in text.splitlines() if not re.match(r" *[\d.]+ s  ", line)]


@contextmanager
def standalone(folder: Path, properties: Path) -> Iterator[str]:
    """Start a master and a worker; gives the address of the master."""
    here = ["--host", "127.0.0.1", "--webui-port", "0", "--properties-file", str(properties)]
    with ExitStack() as stack:
        log = folder / "master.log"
        stack.enter_context(_process(log, "master.Master", "--port", "0", *here))
        master = _said(log, r"Starting Spark master at (spark://\S+)")
        log = folder / "worker.log"
        size = ["--cores", "2", "--memory", "1g", "--work-dir", str(folder / "work")]
        stack.enter_context(_process(log, "worker.Worker", *here, *size, master))
        _said(log, "(Successfully registered) with master")
        yield master


@contextmanager
def _process(log: Path, name: str, *options: str) -> Iterator[None]:
    home = Path(pyspark.__file__).parent
    env = {**os.environ, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m", **QUICK}
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *options]
    with open(log, "wb") as file:
        process = subprocess.Popen(command, env=env, stdout=file, stderr=file)  # noqa: S603 (Spark)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def _said(log: Path, pattern: str) -> str:
    """Wait until a process has written something; gives its first group."""
    until = time.monotonic() + WATCHDOG
    while not (found := re.search(pattern, log.read_text(errors="replace"))):
        assert time.monotonic() < until, log.read_text()[-3000:]
        time.sleep(0.05)
    return found[1]
