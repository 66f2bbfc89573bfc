"""Python components in processes of their own import only what they need."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from thalweg.storm.building import Hosting, build
from thalweg.storm.plans import plan_of
from thalweg.testing import run_inline

PARTS = """
import sys
from thalweg.storm import Bolt, Grouping, Spout, Stream, Topology

class Words(Spout):
    outputs = ["word"]
    def initialize(self, conf, context):
        self.left = ["a", "b"]
    def next_tuple(self):
        if not self.left:
            sys.exit(0)
        self.emit([self.left.pop()])

class Tells(Bolt):
    outputs = ["word", "loaded"]
    def process(self, tup):
        heavy = {"numpy", "pyarrow", "thalweg.flow"}
        self.emit([tup.values.word, sorted(heavy & set(sys.modules))])

class Uses(Bolt):
    outputs = ["word", "loaded"]
    def process(self, tup):
        import thalweg
        self.emit([tup.values.word, [thalweg.Flow.__name__, thalweg.storm.topology_of.__name__]])

class Made(Topology):
    words = Words.spec()
    tells = Tells.spec(inputs=[words])
    uses = Uses.spec(inputs=[words])
"""


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "light_parts.py").write_text(PARTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("light_parts")
    del sys.modules["light_parts"]


def test_a_child_loads_what_it_needs_and_the_rest_when_it_is_asked_for(parts: Any) -> None:
    made = build(plan_of(parts.Made, "made"), Hosting(isolation="process"))
    outcome = run_inline(made)
    assert sorted(tuple(t) for t in outcome.outputs["tells"]) == [("a", []), ("b", [])]
    used = ["Flow", "topology_of"]
    assert sorted(tuple(t) for t in outcome.outputs["uses"]) == [("a", used), ("b", used)]
