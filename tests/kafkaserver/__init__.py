"""A private Kafka for tests: one node in KRaft mode on the loopback, from its Maven Central jars.

Jars are fetched once, by Maven, into a cache outside of the repository; ``THALWEG_KAFKA_JARS``
names another folder that has them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from freeport import free_port

VERSION = "4.1.0"
_POM = Path(__file__).with_name("pom.xml")
#: Any name of a cluster will do: nobody else sees it.
_CLUSTER = "thalwegtests0000000000"
#: Seconds for a start: far more than it takes on a busy machine.
_LONGEST_START, _PAUSE = 300.0, 0.05
#: A small heap, code that is compiled once, and one thread that collects garbage.
_JAVA = ("-Xms128m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAIN://127.0.0.1:{port},CONTROL://127.0.0.1:{controller}
advertised.listeners=PLAIN://127.0.0.1:{port}
listener.security.protocol.map=PLAIN:PLAINTEXT,CONTROL:PLAINTEXT
inter.broker.listener.name=PLAIN
controller.listener.names=CONTROL
log.dirs={folder}/data
num.partitions=1
auto.create.topics.enable=false
log.retention.ms=-1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.cleaner.dedupe.buffer.size=2097152
num.network.threads=2
num.io.threads=2
"""


class NoKafka(Exception):
    """There is no Kafka here; says why."""


def jars() -> Path:
    """Give the folder with the jars; fetches them if they are not there."""
    if told := os.environ.get("THALWEG_KAFKA_JARS"):
        return Path(told)
    folder = cache() / f"kafka-{VERSION}"
    if not folder.is_dir():
        fetch(folder, f"Kafka {VERSION}", _POM, f"-Dversion.kafka={VERSION}")
    return folder


def cache() -> Path:
    """Give the folder for what is fetched once."""
    found = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(found) / "thalweg"


def fetch(folder: Path, what: str, pom: Path, *options: str) -> None:
    """Let Maven put what a pom depends upon into a folder that is not there yet."""
    maven = shutil.which("mvn")
    if maven is None:
        text = f"no Maven to fetch {what} with (Debian: apt-get install maven)"
        raise NoKafka(text)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        command = [maven, "-q", "-B", "-f", str(pom), *options]
        command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        command += [f"-DoutputDirectory={made}/jars"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (Maven)
        if done.returncode:
            first = done.stdout.partition("[ERROR]")[2].strip().partition("\n")[0]
            text = f"Maven could not fetch {what}: {first[:300]}"
            raise NoKafka(text)
        with contextlib.suppress(OSError):  # somebody else was quicker
            os.rename(f"{made}/jars", folder)


class Server:
    """A Kafka whose files are in one folder; it may be stopped, killed and started again."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder.absolute()
        self.port = port or free_port()
        self._log = self.folder / "server.log"
        #: Id of its process, while it was started by this object.
        self.pid: int | None = None

    @property
    def address(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = self.folder / "server.properties"
        if not properties.exists():
            text = _SETTINGS.format(port=self.port, controller=free_port(), folder=self.folder)
            properties.write_text(text)
        data = self.folder / "data"
        if not (data / "meta.properties").exists():
            data.mkdir(exist_ok=True)
            # What formatting a folder does; it would take a JVM of its own.
            meta = f"version=1\ncluster.id={_CLUSTER}\nnode.id=1\n"
            (data / "meta.properties").write_text(meta)
        command = ["java", *_JAVA, "-cp", f"{jars()}/*", "kafka.Kafka", str(properties)]
        # In the background of a shell that ends, so that it is nobody's child and may come again.
        shell = ["sh", "-c", '"$@" </dev/null >>"$0" 2>&1 & echo $!', str(self._log), *command]
        started = subprocess.run(shell, stdout=subprocess.PIPE, check=True, start_new_session=True)  # noqa: S603 (our own command)
        self.pid = int(started.stdout)
        self._await()

    def _await(self) -> None:
        until = time.monotonic() + _LONGEST_START
        while not self._answers():
            if not runs(self.pid) or time.monotonic() > until:
                self.kill()
                text = f"Kafka did not start:\n{self.log()[-2000:]}"
                raise NoKafka(text)
            time.sleep(_PAUSE)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1.0).close()
        except OSError:
            return False
        return True

    def log(self) -> str:
        """Give what the server has printed."""
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        """Let it end, with all it has on disk."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        pid, self.pid = self.pid, None
        if runs(pid):
            os.kill(pid or 0, how)
        while runs(pid):
            time.sleep(_PAUSE)


def runs(pid: int | None) -> bool:
    """Say whether a server has this process."""
    try:
        return b"kafka.Kafka" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
