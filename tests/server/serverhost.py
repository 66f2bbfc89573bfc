"""Servers as processes of their own, and what tests ask of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from thalweg.cli.app import app
from thalweg.server.client import Client
from thalweg.server.folders import Root, View
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import LOG, Manifests

KEYS = 37
#: Counts numbers by their remainder, and ticks: sources are told apart from what goes on.
COUNTING = f"""
import thalweg as tw
from thalweg.components import Kind


class Ticking(tw.Bolt):
    kind = Kind.GLOBAL
    outputs = {{"n": int}}

    def process(self, t):
        pass

    def process_tick(self):
        self.emit(1)


numbers = tw.rate(tw.constant(2000), lambda n: n % {KEYS})
flow = tw.Flow("counting")
stream = flow.source("numbers", numbers, fields={{"key": int}})
stream.tally("count", key="key", degree=2).sink("out", tw.call(lambda t: None))
stream.through("ticking", Ticking(), tick=0.05).sink("ticks", tw.call(lambda t: None))
"""


class Served:
    """A server in a folder, which has a folder of programs beside it."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.root, self.programs = folder, folder / "root", folder / "programs"
        self.programs.mkdir(exist_ok=True)
        self.options = options
        self.client = Client(self.root)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = ["server", "start", "--foreground", "--root", str(self.root)]
        words += ["--allow", str(self.programs), *self.options]
        with open(self.folder / "said", "ab") as said:
            self.process = subprocess.Popen(  # noqa: S603 (our own program)
                [sys.executable, "-m", "thalweg", *words], stdout=said, stderr=said
            )

        def answers() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "said").read_text()
            address = Root(self.root).address()
            return address is not None and address.pid == self.process.pid

        until(answers)

    def kill(self) -> None:
        """End the server as a power cut would; topologies are left alone."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """End everything."""
        if self.process is not None:
            self.process.terminate()
            assert self.process.wait() == 0, (self.folder / "said").read_text()

    def program(self, name: str, text: str) -> Path:
        """Write a program that may be run."""
        path = self.programs / f"{name}.py"
        path.write_text(text)
        return path

    def say(self, *words: str) -> Any:
        """Run a command that talks to this server."""
        return CliRunner().invoke(app, ["server", *words, "--root", str(self.root)])

    def done(self, *words: str) -> str:
        """Run a command that has to work; gives what it says."""
        result = self.say(*words)
        assert result.exit_code == 0, result.output
        return str(result.output)

    def until(self, name: str, holds: Callable[[View], Any]) -> View:
        """Wait until something holds of a topology."""
        seen: list[View] = []

        def look() -> bool:
            seen[:] = [self.client.view(name)]
            held, record = bool(holds(seen[0])), seen[0].record
            assert held or not record.over, f"{record.phase}: {record.error}"
            return held

        until(look)
        return seen[0]

    def committed(self, name: str) -> int:
        """Say how many tuples of sources the state on disk has taken in."""
        state = Location.of(self.root / "topologies" / name / "checkpoint/state")
        manifest = Manifests(state).latest()
        inputs = {} if manifest is None else manifest.inputs
        return sum(rows for source, rows in inputs.items() if source != LOG)

    def counts(self, name: str) -> dict[int, int]:
        """Give what the topology has counted, as its state has it."""
        out = self.folder / f"{name}.jsonl"
        state = self.root / "topologies" / name / "checkpoint/state"
        words = ["state", "export", str(state), "count", "-o", str(out)]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        rows = [json.loads(line) for line in out.read_text().splitlines()[1:]]
        out.unlink()
        return {row["key"]: row["value"] for row in rows}


def assert_exact(counts: dict[int, int], at_least: int) -> None:
    """Each number from the first to the last was counted once, and none twice."""
    total = sum(counts.values())
    assert total >= at_least
    assert counts == {key: len(range(key, total, KEYS)) for key in range(KEYS)}


def tuples_in(view: View) -> int:
    """Say how many tuples have come from sources."""
    return view.status.snapshot.tuples_in if view.status and view.status.snapshot else 0


def emitted(view: View, component: str) -> int:
    """Say how many tuples a component has sent."""
    found = view.status.snapshot if view.status else None
    return found.component(component).emitted if found else 0


def until(holds: Callable[[], bool]) -> None:
    """Look until it holds; a test that waits for ever is ended with a trace."""
    while not holds():
        time.sleep(0.02)


def processes_of(folder: Path) -> dict[int, str]:
    """Find the processes that were started with a folder as an argument, and still run."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:  # it has ended
            continue
        if any(word.startswith(str(folder).encode()) for word in words):
            found[int(entry.name)] = b" ".join(words).decode()
    found.pop(os.getpid(), None)
    return found


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Served]:
    """Run a server; when it has ended, nothing that it started is left."""
    made = Served(folder, *options)
    try:
        made.start()
        yield made
        made.end()
        assert not processes_of(folder)
    finally:
        if made.process is not None and made.process.poll() is None:
            made.kill()
        for pid in processes_of(folder):  # only after a test that has failed
            os.kill(pid, signal.SIGKILL)
