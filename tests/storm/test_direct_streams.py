"""Tasks that components choose by Storm's numbers: a number is a task of one component."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from thalweg.errors import ThalwegError, TopologyError
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.local.runtime import Local
from thalweg.storm import Grouping, Topology
from thalweg.storm.building import Hosting, build
from thalweg.storm.plans import plan_of
from thalweg.testing import run_inline

PARTS = """
import sys
from thalweg.storm import Bolt, Spout, Stream

def task_of(context, component):
    return min(int(task) for task, name in context["task->component"].items() if name == component)

class Words(Spout):
    outputs = ["word"]
    def initialize(self, conf, context):
        self.left = ["a", "b"]
    def next_tuple(self):
        if not self.left:
            sys.exit(0)
        self.emit([self.left.pop()])

class Chooses(Bolt):
    outputs = [Stream(["word"], name="chosen", direct=True)]
    def initialize(self, conf, context):
        self.to = task_of(context, conf["to"])
    def process(self, tup):
        self.emit(list(tup.values), stream="chosen", direct_task=self.to)

class SpoutThatChooses(Words):
    outputs = [Stream(["word"], name="chosen", direct=True)]
    def initialize(self, conf, context):
        self.to, self.left = task_of(context, conf["to"]), ["a", "b"]
    def next_tuple(self):
        if not self.left:
            sys.exit(0)
        self.emit([self.left.pop()], stream="chosen", direct_task=self.to)

class End(Bolt):
    outputs = ["word"]
    def process(self, tup):
        self.emit(list(tup.values))
"""


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "direct_parts.py").write_text(PARTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("direct_parts")
    del sys.modules["direct_parts"]


@pytest.fixture(params=["bolt", "spout"])
def specs(parts: Any, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Give a component that chooses tasks, and a reader of its direct stream."""
    words = parts.Words.spec()
    bolt = request.param == "bolt"
    chooses = parts.Chooses.spec(inputs=[words]) if bolt else parts.SpoutThatChooses.spec()
    end = parts.End.spec(inputs={chooses["chosen"]: Grouping.DIRECT})
    other = parts.End.spec(inputs=[words])
    return {"words": words, "chooses": chooses, "end": end, "other": other}


def made(specs: dict[str, Any], to: str, isolation: str) -> Any:
    cls = type(Topology)("Made", (Topology,), {"config": {"to": to}, **specs})
    return build(plan_of(cls, "made"), Hosting(isolation=isolation))


@pytest.mark.parametrize("isolation", ["auto", "process"])
@pytest.mark.parametrize("runtime", [Inline, Local])
def test_a_task_of_the_reader_gets_the_tuple(specs: Any, isolation: str, runtime: Any) -> None:
    outcome = run_inline(made(specs, "end", isolation), runtime=runtime())
    assert sorted(t.word for t in outcome.outputs["end"]) == ["a", "b"]


@pytest.mark.parametrize("isolation", ["auto", "process"])
@pytest.mark.parametrize("runtime", [Inline, Local])
def test_a_task_of_a_component_that_does_not_read_the_stream_is_refused(
    specs: Any, isolation: str, runtime: Any
) -> None:
    with pytest.raises(ThalwegError, match=r"'chosen'.* a task of 'end'.*, of 'other'"):
        run_inline(made(specs, "other", isolation), runtime=runtime())


def test_where_nobody_reads_the_stream_nobody_gets_the_tuple(specs: Any) -> None:
    del specs["end"]
    outcome = run_inline(made(specs, "other", "auto"), runtime=Inline())
    assert sorted(t.word for t in outcome.outputs["other"]) == ["a", "b"]


@pytest.mark.parametrize("isolation", ["auto", "process"])
def test_a_direct_stream_with_two_readers_is_refused(
    specs: Any, parts: Any, isolation: str
) -> None:
    specs["too"] = parts.End.spec(inputs={specs["chooses"]["chosen"]: Grouping.DIRECT})
    with pytest.raises(TopologyError, match=r"'chosen'.* one reader.* 'end' and 'too'.* its own"):
        made(specs, "end", isolation)
