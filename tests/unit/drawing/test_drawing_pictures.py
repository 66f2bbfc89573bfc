"""Tree, Mermaid and SVG of the same topologies."""

from __future__ import annotations

from typing import Any, ClassVar
from xml.etree import ElementTree

import pytest

import thalweg as tw
from thalweg import drawing

SVG = "{http://www.w3.org/2000/svg}"


class Numbers(tw.Spout):
    outputs: ClassVar[Any] = {"n": int, "word": str}


class Split(tw.Bolt):
    outputs: ClassVar[Any] = {"n": int}
    streams: ClassVar[Any] = {"late": {"why": str}}

    def process(self, t: Any) -> None: ...


class Count(tw.Bolt):
    kind = tw.Kind.KEYED
    outputs: Any = ("n", "count")

    def process(self, t: Any) -> None: ...


class Store(tw.Bolt):
    def process(self, t: Any) -> None: ...


@pytest.fixture
def diamond() -> tw.Topology:
    builder = tw.TopologyBuilder("diamond")
    builder.add_spout("numbers", Numbers(), degree=2)
    builder.add_bolt("split", Split(), on_error="skip").shuffle("numbers")
    counted = builder.add_bolt("count", Count(), degree=4, tick="90 s")
    counted.fields("split", "n").fields("numbers", "n")
    policy = tw.dead_letter('a "b" <&> #`\x07.jsonl')
    builder.add_bolt("store", Store(), order="total", on_error=policy).global_("count")
    return builder.build()


TREE = """\
diamond · 4 components

numbers   spout, 2 tasks, on error fail
│  sends  (n: int64, word: string)
│
├─ split   stateless, 1 task, on error skip
│  │  reads  numbers by shuffle, order total
│  │  sends  (n: int64)
│  │  sends  late: (why: string)   (nobody reads it)
│  │
│  └─ count   keyed, 4 tasks, tick every 90 s, on error fail
│     │  reads  split by fields(n), order total
│     │  reads  numbers by fields(n), order total
│     │  sends  (n, count)
│     │
│     └─ store   sink, 1 task, on error keep in a "b" <&> #`\x07.jsonl
│           reads  count by global, order total
│
└─ count   (drawn above)
"""


def test_tree_shows_everything_once(diamond: tw.Topology) -> None:
    assert drawing.tree(diamond) == TREE


def test_tree_names_tables_and_streams() -> None:
    flow = tw.Flow("counts")
    flow.source("words", tw.items([]), fields={"word": str}).tally("by_word", key="word")
    flow.table("by_word").sink("out", tw.collect([]))
    tree = drawing.tree(flow.build())
    assert tree.startswith("counts · 3 components · table by_word\n")
    assert "by_word   keyed, 1 task, table by_word, on error fail" in tree
    assert "sends  changes: (word: string, count: int64)\n" in tree
    assert "reads  by_word:changes by shuffle, order sender" in tree


def test_tree_wraps_many_fields_between_fields() -> None:
    names = {f"a_long_name_{number}": int for number in range(20)}
    flow = tw.Flow("wide")
    flow.source("rows", tw.items([]), fields=names)
    lines = drawing.tree(flow.build()).splitlines()[3:]
    assert len(lines) > 1
    assert all(len(line) < 100 for line in lines)
    assert all(line.endswith(("int64,", "int64)   (nobody reads it)")) for line in lines)


def test_mermaid_has_a_node_per_component_and_an_arrow_per_input(diamond: tw.Topology) -> None:
    lines = [line.strip() for line in drawing.mermaid(diamond).splitlines()]
    assert lines[0] == "flowchart TD"
    assert lines[1] == 'c0(["numbers<br/>spout, 2 tasks"])'
    assert 'c1 -->|"fields(n)<br/>order total"| c2' in lines
    assert sum("-->" in line for line in lines) == 4
    assert "class c2 keyed_" in lines


def test_mermaid_names_streams() -> None:
    flow = tw.Flow("counts")
    flow.source("words", tw.items([]), fields={"word": str}).tally("end", key="word")
    flow.table("end").sink("out", tw.collect([]))
    assert '|"stream changes<br/>shuffle<br/>order sender"|' in drawing.mermaid(flow.build())


def test_mermaid_escapes_what_would_end_a_label(diamond: tw.Topology) -> None:
    store = next(line for line in drawing.mermaid(diamond).splitlines() if "store" in line)
    assert "a #quot;b#quot; #lt;#amp;#gt; #35;#96;" in store
    assert store.count('"') == 2


def test_svg_is_well_formed_and_says_everything(diamond: tw.Topology) -> None:
    root = ElementTree.fromstring(drawing.svg(diamond))  # noqa: S314 (our own)
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    for component in diamond:
        assert component.name in texts
    assert texts.count("fields(n)") == 2
    assert texts.count("order total") == 4
    assert "(n: int64, word: string)" in texts
    assert "late: (why: string)" in texts
    assert any("tick every 90 s" in text for text in texts)
    said = " ".join(texts)
    assert 'on error keep in a "b" <&> #`\ufffd.jsonl' in said
    assert len(list(root.iter(f"{SVG}path"))) == 4 + 1  # arrows, and the shape of their heads


def test_svg_needs_nothing_from_outside(diamond: tw.Topology) -> None:
    text = drawing.svg(diamond)
    assert "sans-serif" in text
    assert "href" not in text
    assert text.count("http") == 1  # the name of the format


def test_svg_stays_small_when_a_record_is_wide() -> None:
    names = {f"field_{number}": int for number in range(100)}
    flow = tw.Flow("wide")
    flow.source("rows", tw.items([]), fields=names)
    root = ElementTree.fromstring(drawing.svg(flow.build()))  # noqa: S314 (our own)
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert len(texts) < 10
    assert texts[-1] == "…)"


def test_the_same_topology_gives_the_same_pictures(diamond: tw.Topology) -> None:
    for draw in (drawing.tree, drawing.mermaid, drawing.svg):
        assert draw(diamond) == draw(diamond)
