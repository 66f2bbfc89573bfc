"""What a file that was submitted describes: a topology of ours, or one of Storm's world."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from thalweg.cli.app import app
from thalweg.errors import UsageError
from thalweg.server.life import Program
from thalweg.server.programs import Loaded, prepared

CLASSES = """
class Numbers(Spout):
    outputs = ["n"]

    def next_tuple(self):
        raise SystemExit


class Keep(Bolt):
    def process(self, tup):
        pass


class Words(Topology):
    numbers = Numbers.spec()
    keep = Keep.spec(inputs=[numbers], par={"many": 3, "few": 1})
"""


@pytest.fixture(autouse=True)
def paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def load(path: Path, text: str, **told: str) -> Loaded:
    path.write_text(text)
    return prepared(Program(str(path), **told), path.parent / "checkpoint")


@pytest.mark.parametrize("library", ["thalweg.storm", "streamparse"])
def test_a_topology_class_is_taken_from_wherever_it_has_its_base(
    tmp_path: Path, library: str
) -> None:
    text = f"from {library} import Bolt, Spout, Topology\n{CLASSES}"
    made = load(tmp_path / "a_words_of_storm.py", text, environment="many")
    assert made.storm is not None
    assert made.topology.component("keep").degree == 3


def test_a_topology_class_may_have_its_base_from_a_module_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a_base_of_ours.py").write_text("from thalweg.storm import Bolt, Spout, Topology\n")
    text = f"from a_base_of_ours import *\n{CLASSES}"
    made = load(tmp_path / "a_words_with_base.py", text, target="Words", environment="few")
    assert made.storm is not None


def test_modules_of_a_project_are_found_by_whatever_file_of_it(tmp_path: Path) -> None:
    for folder in ("src", "topologies"):
        (tmp_path / folder).mkdir()
    (tmp_path / "config.json").write_text('{"envs": {"few": {}}}')
    base = tmp_path / "src" / "a_base_of_a_project.py"
    base.write_text("from thalweg.storm import Bolt, Spout, Topology\n")
    path = tmp_path / "topologies" / "a_words_in_project.py"
    path.write_text(f"from a_base_of_a_project import *\n{CLASSES}")
    made = prepared(Program(str(path), "Words"), tmp_path / "checkpoint", [tmp_path])
    assert made.topology.component("keep").degree == 1


def test_a_configuration_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("// ours\n{}")
    text = "import thalweg as tw\nflow = tw.Flow('own')\nnumbers = tw.items([1])\n"
    text += "flow.source('n', numbers, fields=['n']).sink('o', tw.stdout())\n"
    assert load(tmp_path / "a_flow_of_ours.py", text).storm is None


def test_a_topology_that_was_built_of_a_class_is_meant_rather_than_the_class(
    tmp_path: Path,
) -> None:
    text = f"from thalweg.storm import Bolt, Hosting, Spout, Topology, topology_of\n{CLASSES}\n"
    text += 'topology = topology_of(Words, "built", Hosting(environment="few"))\n'
    path = tmp_path / "a_built_one.py"
    made = load(path, text)
    assert (made.storm, made.topology.name) == (None, "built")
    assert load(path, text, target="Words", environment="few").storm is not None


def test_a_file_of_storm_without_a_topology_is_told_to_have_a_class(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one class that derives from Topology, got none"):
        load(tmp_path / "a_empty_one.py", "from thalweg.storm import Bolt\n")


@pytest.mark.parametrize("name", ["", ":Words"])
def test_thalweg_run_says_how_a_topology_class_is_run(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a_words_to_run.py"
    path.write_text(f"from thalweg.storm import Bolt, Spout, Topology\n{CLASSES}")
    done = CliRunner().invoke(app, ["run", f"{path}{name}"])
    assert done.exit_code == 1
    said = " ".join(done.output.split())
    assert f"thalweg storm run {path}{name}" in said
