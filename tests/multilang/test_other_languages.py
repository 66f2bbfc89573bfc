"""Components in several languages in one topology."""

from __future__ import annotations

import shutil

import pytest
from children import RUNTIMES, Given, collecting, node, python, run

import thalweg as tw
from thalweg.multilang import ShellBolt

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
SENTENCES = ["to be or", "not to be"]


@needs_node
@pytest.mark.parametrize("on", RUNTIMES)
def test_a_python_splitter_and_a_javascript_bolt_work_in_one_topology(on: str) -> None:
    rows: list[str] = []
    ended: list[tuple[int, str]] = []
    builder = tw.TopologyBuilder("languages")
    builder.add_spout("sentences", Given(SENTENCES, ended))
    builder.add_bolt("split", ShellBolt(python("split_storm.py"), ["word"])).shuffle("sentences")
    shout = ShellBolt(node("shout.js"), ["word"])
    builder.add_bolt("shout", shout, degree=2).fields("split", "word")
    builder.add_bolt("out", collecting(rows)).shuffle("shout")
    seen = run(builder.build(), on, rows)
    assert seen.counts == {"TO": 2, "BE": 2, "OR": 1, "NOT": 1}
    assert sorted(ended) == [(0, "ack"), (1, "ack")]


class Task(tw.Bolt):
    """Says which task it is."""

    outputs = {"word": tw.anything, "task": int}

    def process(self, t) -> None:
        self.emit(t.word, self.context.task)


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("grouping", ["shuffle", "fields"])
def test_a_child_that_asks_is_told_which_tasks_get_a_tuple(on: str, grouping: str) -> None:
    got: list[tuple[str, int]] = []
    told: list[tuple[str, list[int]]] = []
    builder = tw.TopologyBuilder("asking")
    builder.add_spout("sentences", Given([f"w{n} v{n % 3}" for n in range(20)]))
    split = ShellBolt(
        python("split_storm.py"), ["word"], {"told": ["word", "ids"]}, config={"tell_ids": True}
    )
    builder.add_bolt("split", split).shuffle("sentences")
    reads = builder.add_bolt("task", Task(), degree=3)
    reads.shuffle("split") if grouping == "shuffle" else reads.fields("split", "word")
    builder.add_bolt("told", collecting(told)).global_("split", stream="told")
    builder.add_bolt("out", collecting(got)).global_("task")
    run(builder.build(), on)
    # sentences has task 1, split 2, task 3 to 5.
    assert sorted(got) == sorted((word, ids[0] - 3) for word, ids in told)
    assert len({task for _, task in got}) == 3


def test_what_a_child_logs_and_writes_to_its_standard_error_is_heard() -> None:
    builder = tw.TopologyBuilder("loud")
    builder.add_spout("values", Given([1, 2]))
    builder.add_bolt("odd", ShellBolt(python("odd.py", "1", "nothing"), ["n"])).shuffle("values")
    builder.add_bolt("out", collecting([])).shuffle("odd")
    seen = run(builder.build(), "inline")
    assert seen.said("odd") == ["about to nothing"]
