"""Commands of ``scripts/kafka``: a private Kafka on this machine, for trying things out."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from kafkaserver import NoKafka, Server, jars, runs
from kafkaserver.connector import connector_jars


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="scripts/kafka", description=__doc__)
    parser.add_argument("command", choices=list(_COMMANDS))
    parser.add_argument("--spark", default="4.2.0", help="connector: for which version of Spark")
    own = Path(tempfile.gettempdir(), f"thalweg-kafka-{os.getuid()}")
    parser.add_argument("--folder", type=Path, default=own)
    parser.add_argument("--port", type=int, default=9092)
    parser.add_argument("--keep", action="store_true", help="stop: keep topics and messages")
    asked = parser.parse_args()
    try:
        return _COMMANDS[asked.command](asked)
    except NoKafka as error:
        print(error, file=sys.stderr)
        return 1


def _start(asked: argparse.Namespace) -> int:
    if _running(asked.folder):
        print(f"it is running already, in {asked.folder}", file=sys.stderr)
        return 1
    server, begin = Server(asked.folder, asked.port), time.monotonic()
    server.start()
    (asked.folder / "pid").write_text(str(server.pid))
    print(f"Kafka at {server.address} after {time.monotonic() - begin:.1f} s; {asked.folder}")
    return 0


def _stop(asked: argparse.Namespace) -> int:
    pid = _running(asked.folder)
    if pid:
        os.kill(pid, signal.SIGTERM)
        while _running(asked.folder):
            time.sleep(0.05)
    if not asked.keep:
        shutil.rmtree(asked.folder, ignore_errors=True)
    print("stopped" if pid else "it was not running")
    return 0


def _status(asked: argparse.Namespace) -> int:
    pid = _running(asked.folder)
    print(f"running with id {pid}, in {asked.folder}" if pid else "not running")
    return 0 if pid else 1


def _fetch(_asked: argparse.Namespace) -> int:
    print(f"{len(list(jars().glob('*.jar')))} jars in {jars()}")
    return 0


def _connector(asked: argparse.Namespace) -> int:
    """Print the jars of Spark's connector, as the setting spark.jars takes them."""
    print(",".join(map(str, connector_jars(asked.spark))))
    return 0


def _running(folder: Path) -> int | None:
    """Give the id of the server that was started in a folder, if it runs."""
    try:
        pid = int((folder / "pid").read_text())
    except (OSError, ValueError):
        return None
    return pid if runs(pid) else None


_COMMANDS = {
    "start": _start,
    "stop": _stop,
    "status": _status,
    "fetch": _fetch,
    "connector": _connector,
}

if __name__ == "__main__":
    sys.exit(main())
