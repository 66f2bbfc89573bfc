"""Topologies of Storm's world on a server: as the command runs them, within the folders allowed."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serverhost import Served, served, until

EXAMPLE = Path(__file__).parents[2] / "examples/storm_project"
CHILD = Path(__file__).parents[1] / "multilang/programs"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("storming")) as made:
        yield made


def ended(server: Served, *words: str) -> str:
    """Submit a topology that comes to its end by itself; gives its log."""
    name = words[words.index("--name") + 1]
    server.done("submit", *words)
    until(lambda: server.client.view(name).record.phase == "ended")
    return server.done("logs", name)


def project(server: Served, name: str, **config: Any) -> Path:
    """Lay the example out where programs may be run; gives the file of its topology."""
    folder = server.programs / name
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    told = json.loads((EXAMPLE / "config.json").read_text()) | config
    (folder / "config.json").write_text(json.dumps(told))
    return folder / "topologies/wordcount.py"


def test_a_project_runs_as_the_command_runs_it(server: Served) -> None:
    file = str(project(server, "plain"))
    log = ended(server, file, "--name", "plain", "--environment", "short", "--par", "split=1")
    assert [line.partition(": ")[2] for line in log.splitlines() if "'count', task" in line] == [
        "the: 1",
        "the: 2",
        "the: 3",
    ]
    record = server.client.view("plain")
    assert record.status.snapshot.component("split").degree == 1
    assert (record.record.program.environment, record.record.program.par) == ("short", {"split": 1})


def test_degrees_that_depend_on_the_environment_are_asked_for(server: Served) -> None:
    refused = server.say("submit", str(project(server, "which")), "--name", "which")
    assert refused.exit_code == 1
    assert "one of ['short', 'long']" in refused.output
    assert "--environment NAME, or --par" in refused.output
    wrong = server.say("submit", "x.py", "--par", "split=none")
    assert wrong.exit_code == 2


def test_an_environment_that_nobody_knows_is_refused(server: Served) -> None:
    file = str(project(server, "slip"))
    degrees = [word for name in ("sentences", "split", "count") for word in ("-p", f"{name}=1")]
    refused = server.say("submit", file, "--name", "slip", "-e", "shrot", *degrees)
    assert refused.exit_code == 1
    assert "environment 'shrot': expected one of ['short', 'long']" in refused.output
    assert "did you mean 'short'?" in refused.output


def test_values_that_are_set_are_those_of_components(server: Served) -> None:
    file = str(project(server, "set"))
    config = server.programs / "set.yaml"
    config.write_text("sentences: 1000\n")
    words = ["-e", "long", "-p", "sentences=1", "--config", str(config), "--set", "sentences=2"]
    log = ended(server, file, "--name", "set", *words)
    assert log.count(": the: ") == 3


def test_a_slip_among_values_that_are_set_names_them(server: Served) -> None:
    words = str(project(server, "mistaken")), "--name", "mistaken", "-e", "short"
    refused = server.say("submit", *words, "--set", "topology.max.spout.pendign=3")
    assert refused.exit_code == 1
    assert "key in --set: expected keys that Storm has" in " ".join(refused.output.split())


@pytest.mark.parametrize("said", [[], ["--serializer", "json"]])
def test_children_are_spoken_with_as_the_project_says_unless_it_is_said(
    server: Served, said: list[str]
) -> None:
    """What a program gets shows it: bytes of msgpack begin otherwise than JSON does."""
    name = "said" if said else "unsaid"
    file = project(server, name, serializer="msgpack")
    (file.parents[1] / "src/first.py").write_text(
        "import sys\n"
        "sys.stderr.write(f'first byte: {sys.stdin.buffer.read(1)!r}')\n"
        "sys.stderr.flush()\n"
        "sys.exit(3)\n"
    )
    file.write_text(
        "import sys\n"
        "from spouts.sentences import SentenceSpout\n"
        "from streamparse import ShellBolt, Topology\n\n\n"
        "class Peeking(Topology):\n"
        "    sentences = SentenceSpout.spec()\n"
        "    peek = ShellBolt.spec(command=sys.executable, script='first.py', inputs=[sentences],\n"
        "        outputs=['x'])\n"
    )
    server.say("submit", str(file), "--name", name, *said)
    until(lambda: "first byte" in server.done("logs", name))
    log = server.done("logs", name)
    assert ("first byte: b'{'" in log) == bool(said), log


CHATTY = """
import logging
import sys

from streamparse import Bolt, Spout, Topology


class Once(Spout):
    outputs = ["n"]

    def next_tuple(self):
        self.emit([1])
        sys.exit(0)


class Chatty(Bolt):
    outputs = ["n"]

    def process(self, tup):
        logging.getLogger("bolts.chatty").warning("of a module")
        self.logger.info("of the logger")
        self.logger.debug("too quiet")
        self.log("of the log", level="error")
        self.log("hushed", level="debug")
        self.raise_exception(ValueError())
        print("on standard error", file=sys.stderr)
        print("printed")


class Inside(Topology):
    once = Once.spec()
    chatty = Chatty.spec(inputs=[once])


class Outside(Topology):
    once = Once.spec()
    chatty = Chatty.spec(inputs=[once], config={"thalweg.isolation": "process"})
"""
SAID = [
    "of a module",
    "of the logger",
    "of the log",
    "Python ValueError",
    "on standard error",
    "printed",
]


@pytest.mark.parametrize("where", ["Inside", "Outside"])
def test_what_components_say_is_in_the_log(server: Served, where: str) -> None:
    file = str(server.program(f"chatty{where}", CHATTY))
    log = ended(server, f"{file}:{where}", "--name", where)
    assert [text for text in SAID if text not in log] == []
    assert "'chatty', task 0: " in log
    assert "too quiet" not in log
    assert "hushed" not in log


TALKING = f"""
import sys
sys.path.insert(0, {str(CHILD)!r})
import storm


def process(t, setup):
    print("its standard error", file=sys.stderr, flush=True)
    storm.send({{"command": "log", "msg": "a trace of it", "level": 0}})
    storm.send({{"command": "log", "msg": "a log of it"}})
    storm.send({{"command": "error", "msg": "an error of it"}})
    storm.send({{"command": "ack", "id": t["id"]}})


storm.run_bolt(process)
"""


def test_a_program_in_another_language_is_heard(server: Served) -> None:
    program = [sys.executable, str(server.program("talks", TALKING))]
    text = f"""
import thalweg as tw

topology = tw.TopologyBuilder("talking")
topology.add_spout("values", tw.items(["talk"]), fields={{"value": tw.anything}})
topology.add_bolt("talk", tw.ShellBolt({program!r}, ["value"])).shuffle("values")
"""
    log = ended(server, str(server.program("talking", text)), "--name", "talking")
    for said in ("a log of it", "an error of it", "its standard error"):
        assert f"'talk', task 0: {said}" in log
    assert "a trace of it" not in log


@pytest.mark.parametrize("config", [None, json.dumps({"topology_specs": "topologies/"})])
def test_nothing_outside_of_the_folders_is_run(server: Served, config: str | None) -> None:
    """What lies beside the folder that is allowed may be anybody's."""
    ran = server.folder / "ran"
    outside = server.folder / "src"
    outside.mkdir(exist_ok=True)
    (outside / "helper.py").write_text(f"open({str(ran)!r}, 'w')\nraise SystemExit\n")
    if config is not None:
        (server.folder / "config.json").write_text(config)
    (server.programs / "helper.py").write_text(CHATTY)
    text = "from streamparse import Topology\nfrom helper import Chatty, Once\n" + (
        "class Local(Topology):\n    once = Once.spec()\n    chatty = Chatty.spec(inputs=[once])\n"
    )
    name = "within" if config is None else "within-config"
    assert "printed" in ended(server, str(server.program(name, text)), "--name", name)
    assert not ran.exists()


FLUX = """
name: "${title}"
config: {topology.workers: ${workers}}
spouts:
- id: source
  className: org.apache.storm.flux.wrappers.spouts.FluxShellSpout
  constructorArgs: [["${python}", "-c", "raise SystemExit(3)"], [n]]
"""


def test_a_value_for_a_flux_file_adds_nothing_to_it(server: Served) -> None:
    path = server.programs / "flux.yaml"
    path.write_text(FLUX)
    ran = server.folder / "injected"
    title = f'x"\nspouts:\n- id: s\n  constructorArgs: [["touch", "{ran}"]]\n#'
    words = ["--set", f"python={sys.executable}", "--set", "workers=1"]
    refused = server.say("submit", str(path), "--set", f"title={title}", *words)
    assert refused.exit_code == 1
    assert "topology name" in refused.output
    server.say("submit", str(path), "--set", "title=fine", *words, "--name", "flux-fine")
    until(lambda: "has ended with status 3" in server.done("logs", "flux-fine"))
    assert not ran.exists()


@pytest.mark.parametrize("option", [["-e", "prod"], ["-p", "a=1"], ["-s", "json"]])
def test_options_of_storms_world_are_for_its_topologies(server: Served, option: list[str]) -> None:
    text = "import thalweg as tw\nflow = tw.Flow('x')\n"
    file = str(server.program("ours", text))
    refused = server.say("submit", file, *option, "--name", f"ours{option[0]}")
    assert refused.exit_code == 1
    assert "expected a topology of streamparse" in refused.output
