"""Which topology a command finds in a file, and what it says when it finds none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import thalweg as tw
from thalweg import execution
from thalweg.cli.loading import load, split_target
from thalweg.errors import UsageError

Write = Callable[..., str]

HEAD = """
import thalweg as tw

def make(name):
    flow = tw.Flow(name)
    flow.source("numbers", tw.items([1, 2]), fields=["n"])
    return flow
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "program.py") -> str:
        (tmp_path / name).write_text(HEAD + text)
        return name

    return write


@pytest.mark.parametrize(
    "text",
    [
        "anything = make('found')",
        "anything = make('found').build()",
        "flow = make('found'); other = make('another')",
        "flow = make('found'); topology = flow.build()",
        "anything = make('found'); same = anything; _hidden = make('another')",
        "def main(): return make('found')",
        "def main(settings): return make('found')",
        "def anything() -> tw.Flow: return make('found')",
        "def anything(settings) -> 'tw.Topology': return make('found').build()",
        "anything = make('found')\ndef main(): raise AssertionError('not meant')",
    ],
)
def test_finds_the_topology_that_is_meant(write: Write, text: str) -> None:
    assert load(write(text), {}).name == "found"


def test_finds_a_builder(write: Write) -> None:
    text = "words = tw.TopologyBuilder('built')\nwords.add_spout('a', tw.items([]))\n"
    text = text.replace("tw.items([])", "Spout()") + "one = 1"
    spout = "class Spout(tw.Spout):\n    outputs = ['n']\n"
    assert load(write(spout + text), {}).name == "built"


def test_a_name_chooses(write: Write) -> None:
    target = write("a = make('first'); b = make('second')")
    assert load(f"{target}:b", {}).name == "second"


def test_a_function_is_given_the_settings(write: Write) -> None:
    target = write("def main(settings): return make(settings['name'])")
    assert load(target, {"name": "given"}).name == "given"


def test_the_folder_of_the_file_can_be_imported_from(write: Write) -> None:
    write("helped = make('helped')", "loading_helper.py")
    assert load(write("from loading_helper import helped"), {}).name == "helped"


def test_a_file_may_have_the_name_of_a_module_that_others_need(write: Write) -> None:
    load(write("flow = make('found')", "json.py"), {})
    assert sys.modules["json"].__name__ == "json"
    assert hasattr(sys.modules["json"], "dumps")


def test_classes_of_the_file_can_be_looked_up_by_their_module(write: Write) -> None:
    text = "class Word(tw.Bolt):\n    pass\nflow = make('found')\nflow.word = Word"
    module = sys.modules[load_flow_class(write(text, "findable.py")).__module__]
    assert module.__name__ == "findable"


def test_the_module_knows_its_file_so_that_its_code_can_be_shipped(write: Write) -> None:
    target = write("flow = make('a')", "shipped.py")
    load(target, {})
    assert sys.modules["shipped"].__file__ == str(Path(target).resolve())


def load_flow_class(target: str) -> type:
    load(target, {})
    found = sys.modules["findable"].flow.word
    assert isinstance(found, type)
    return found


def test_the_file_is_not_main(write: Write) -> None:
    load(write("flow = make('found')\nif __name__ == '__main__': raise AssertionError"), {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a Flow, TopologyBuilder or Topology, got none"),
        ("a = make('a'); b = make('b')", "expected one topology, got 2: a, b"),
        ("def main(): return 3", "program.py:main: expected a Flow, .* got 3"),
        ("def main(size): return 3", r"no required parameters but 'settings', got \(size\)"),
        ("x = 1 / 0", r"program.py:8: ZeroDivisionError: division by zero\n    x = 1 / 0"),
        ("x = = 3", r"program.py:8: SyntaxError: invalid syntax\n    x = = 3"),
        ("import sys; sys.exit(3)", r"got sys.exit\(\)"),
        ("make('a').run()", r"program.py:8: a run while the file is loaded"),
        ("make('a').source('x', 3)", r"program.py:8: .*x.*"),
        ("def main(): return make('a b')", r"program.py:5: topology name 'a b'"),
    ],
)
def test_says_what_is_wrong_and_where(write: Write, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(write(text), {})


def test_a_function_without_annotation_is_named_in_the_hint(write: Write) -> None:
    target = write("def revenue(settings): return make('a')")
    hint = r"does revenue\(\) return it\? annotate it -> tw.Flow, or name it: .*program.py:revenue"
    with pytest.raises(UsageError, match=hint):
        load(target, {})
    assert load(f"{target}:revenue", {}).name == "a"


def test_says_which_names_there_are(write: Write) -> None:
    target = write("trending = make('a')")
    with pytest.raises(UsageError, match="did you mean 'trending'"):
        load(f"{target}:trendng", {})


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"file 'nowhere.py': expected a Python file, got no such"):
        load("nowhere.py:flow", {})


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="got a folder"):
        load(str(tmp_path), {})


def test_runs_are_possible_again_after_loading(write: Write) -> None:
    before = execution.run
    with pytest.raises(UsageError):
        load(write("make('a').run()"), {})
    assert execution.run is before


def test_a_colon_may_be_part_of_the_path(tmp_path: Path) -> None:
    odd = tmp_path / "a:b"
    odd.write_text("")
    assert split_target(str(odd)) == (odd, None)
    assert split_target("a.py") == (Path("a.py"), None)
    assert split_target("c:/a.py:flow") == (Path("c:/a.py"), "flow")


def test_an_object_of_the_wrong_kind(write: Write) -> None:
    with pytest.raises(UsageError, match="expected a Flow, TopologyBuilder or Topology, got 5"):
        load(write("five = 5") + ":five", {})


def test_what_is_loaded_can_run(write: Write) -> None:
    result = load(write("flow = make('found')"), {}).run()
    assert isinstance(result, tw.Result)
