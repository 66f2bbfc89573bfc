"""The commands of a server as people type them, and how topologies look in a terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from serverhost import COUNTING, Served, processes_of, served, tuples_in, until
from typer.testing import CliRunner

from thalweg.cli import serving
from thalweg.cli.app import app
from thalweg.cli.topologies import phase_text
from thalweg.server.daemon import ServerSettings, serve
from thalweg.server.folders import Address, Root, Status, View
from thalweg.server.life import Program, Record
from thalweg.server.programs import is_storm

HOSTILE = "\x1b[2J\x9b31mred"
STREAMPARSE = """
from streamparse import Grouping, Topology
from bolts.count import CountBolt
from spouts.words import WordSpout


class WordCount(Topology):
    words = WordSpout.spec()
    count = CountBolt.spec(inputs={words: Grouping.fields("word")}, par=2)
"""
SPOUT = """
from streamparse import Spout


class WordSpout(Spout):
    outputs = ["word"]

    def initialize(self, stormconf, context):
        self.left = 0

    def next_tuple(self):
        self.left += 1
        self.emit([["to", "be", "or"][self.left % 3]])
"""
BOLT = """
from streamparse import Bolt


class CountBolt(Bolt):
    outputs = ["word", "count"]

    def initialize(self, conf, context):
        self.counts = {}

    def process(self, tup):
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, self.counts[word]])
"""


def test_a_server_is_started_and_stopped_by_commands_that_end(tmp_path: Path) -> None:
    made = Served(tmp_path)
    words = [sys.executable, "-m", "thalweg", "server"]
    given = {**os.environ, "THALWEG_ROOT": str(made.root)}

    def command(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 (our own program)
            [*words, *more], env=given, capture_output=True, text=True, check=False
        )

    started = command("start", "--allow", str(made.programs))
    assert started.returncode == 0, started.stderr
    address = Root(made.root).address()
    assert address is not None
    assert f"listening on 127.0.0.1:{address.port}, process {address.pid}" in started.stderr
    assert list(processes_of(made.root)) == [address.pid]
    twice = command("start", "--allow", str(made.programs))
    assert twice.returncode == 1
    assert f"expected none, got one with process {address.pid}" in twice.stderr
    listed = command("list")
    assert "no topologies (thalweg server submit FILE)" in listed.stdout
    stopped = command("stop")
    assert (stopped.returncode, stopped.stderr) == (0, "stopped\n")
    until(lambda: not processes_of(tmp_path))
    assert "thalweg server start --root" in command("status").stderr
    taken = command("start", "--allow", str(made.programs), "--host", "192.0.2.1")
    assert taken.returncode == 1
    assert "expected one that is free here" in taken.stderr


def test_a_folder_that_others_can_look_into_is_no_root(tmp_path: Path) -> None:
    made = Served(tmp_path)
    made.root.mkdir()
    made.root.chmod(0o755)
    refused = made.say("start", "--allow", str(made.programs))
    assert refused.exit_code == 1
    assert "chmod 700" in refused.output
    assert made.root.stat().st_mode & 0o777 == 0o755


def test_it_has_to_be_said_which_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THALWEG_ROOT", raising=False)
    result = CliRunner().invoke(app, ["server", "list"])
    assert result.exit_code == 2
    assert "--root" in result.output


def test_a_shell_completes_names(tmp_path: Path) -> None:
    for name in ("shop", "ship", "other"):
        (tmp_path / "topologies" / name).mkdir(parents=True)
    asked = {
        **os.environ,
        "THALWEG_ROOT": str(tmp_path),
        "_THALWEG_COMPLETE": "complete_bash",
        "COMP_WORDS": "thalweg server kill sh",
        "COMP_CWORD": "3",
    }
    words = [str(Path(sys.executable).with_name("thalweg"))]
    ended = subprocess.run(words, env=asked, capture_output=True, text=True, check=False)  # noqa: S603 (our own program)
    assert ended.stdout.split() == ["ship", "shop"], ended


def view(phase: str = "running", alive: bool = True, **status: object) -> View:
    record = Record("shop", Program("shop.py"), 0.0, phase=phase)
    return View(record, alive, Status(1, **status) if status else None)


def test_a_topology_is_described_in_a_word() -> None:
    now = 1e12  # far ahead of any clock
    assert phase_text(view("failed", alive=False)) == "failed"
    assert phase_text(view()) == "starting"
    assert phase_text(view(updated=now)) == "starting"
    assert phase_text(view(updated=now, since=now)) == "running"
    assert phase_text(view(updated=now, since=now, active=False)) == "inactive"
    assert phase_text(view(updated=0.0, since=0.0)).startswith("silent for ")


def test_settings_of_a_file_are_heeded(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        program = server.program("shop", COUNTING)
        config = server.programs / "shop.yaml"
        config.write_text("topology.max.task.parallelism: 1\ntopology.priority: 3\n")
        server.done("submit", str(program), "--config", str(config))
        seen = server.until("shop", tuples_in)
        assert seen.status.snapshot.component("count").degree == 1
        assert "topology.priority" in server.done("logs", "shop")
        config.write_text("topology.max.task.paralelism: 1\n")
        slip = server.say("submit", str(program), "--config", str(config), "--name", "slip")
        assert slip.exit_code == 1
        assert "topology.max.task.parallelism" in slip.output


def test_a_topology_of_streamparse_is_submitted_like_any_other(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        for path, text in {
            "config.json": '{"topology_specs": "topologies/"}',
            "topologies/wordcount.py": STREAMPARSE,
            "src/spouts/words.py": SPOUT,
            "src/bolts/count.py": BOLT,
        }.items():
            (server.programs / path).parent.mkdir(parents=True, exist_ok=True)
            (server.programs / path).write_text(text)
        server.done("submit", str(server.programs / "topologies/wordcount.py"))
        server.until("wordcount", lambda v: tuples_in(v) > 100)
        server.done("deactivate", "wordcount")
        server.done("kill", "wordcount", "--wait", "0")


def test_files_of_storm_are_told_by_what_they_import(tmp_path: Path) -> None:
    files = {
        "a.py": ("from streamparse import Topology", True),
        "b.py": ("import pystorm.bolt", True),
        "f.py": ("from thalweg.storm import Topology", True),
        "g.py": ("from thalweg import storm", True),
        "h.py": ("import thalweg.stormy", False),
        "c.py": ("import thalweg as tw\n# streamparse", False),
        "d.py": ("import (", False),
        "e.yaml": ("name: flux", True),
    }
    for name, (text, expected) in files.items():
        (tmp_path / name).write_text(text)
        assert is_storm(tmp_path / name) == expected


@pytest.mark.parametrize("heard", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_stop_before_it_listens_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: signal.Signals
) -> None:
    announce = Root.announce

    def announce_and_be_told(root: Root, address: Address) -> None:
        announce(root, address)
        signal.raise_signal(heard)

    monkeypatch.setattr(Root, "announce", announce_and_be_told)
    before = signal.getsignal(heard)
    serve(ServerSettings(tmp_path / "root", (tmp_path,)))
    assert Root(tmp_path / "root").address() is None
    assert signal.getsignal(heard) is before


class Hostile:
    """A server whose topology has met a tuple that a terminal would obey."""

    def __init__(self, root: Path) -> None:
        record = Record("shop", Program(str(root)), 0.0, "failed", error=HOSTILE)
        self._view = View(record, alive=False)

    def view(self, _name: str) -> View:
        return self._view

    def views(self, _everything: bool) -> list[View]:
        return [self._view]

    def log(self, _name: str, _place: None) -> tuple[str, int]:
        return HOSTILE, len(HOSTILE)


@pytest.mark.parametrize("words", [["list"], ["show", "shop"], ["logs", "shop"]])
def test_a_terminal_obeys_nothing_that_a_topology_has_met(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "Client", Hostile)
    done = CliRunner().invoke(app, ["server", *words, "--root", str(tmp_path)])
    assert done.exit_code == 0
    assert "\\x1b[2J\\x9b31mred" in done.output
    assert "\x1b" not in done.output
