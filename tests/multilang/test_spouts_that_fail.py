"""A spout's child that dies is replaced, also when the next one dies before it has begun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from children import RUNTIMES, collecting, python, run

import thalweg as tw
from thalweg.multilang import ShellSpout
from thalweg.multilang.child import ChildError
from thalweg.topology import Topology

#: What came of the run at hand.
ROWS: list[str] = []


def spouting(folder: Path, *ways: str, **settings: Any) -> Topology:
    """Make a topology whose source dies once at each of some commands."""
    ROWS.clear()
    folder.mkdir()
    builder = tw.TopologyBuilder("spouting")
    command = python("odd_spout.py", str(folder), *ways)
    builder.add_spout("words", ShellSpout(command, ["word"], **settings))
    builder.add_bolt("out", collecting(ROWS)).shuffle("words")
    return builder.build()


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize(
    "ways",
    [("next",), ("activate", "activate"), ("next", "activate"), ("next", "activate", "next")],
)
def test_each_child_that_dies_is_replaced(on: str, ways: tuple[str, ...], tmp_path: Path) -> None:
    seen = run(spouting(tmp_path / "deaths", *ways), on, ROWS)
    assert ROWS == ["to", "be"]
    assert len(seen.notices) == len(ways)


@pytest.mark.parametrize("on", RUNTIMES)
def test_children_that_die_before_they_have_begun_count_as_well(on: str, tmp_path: Path) -> None:
    topology = spouting(tmp_path / "deaths", "next", "activate", "activate", restarts=2)
    with pytest.raises(ChildError, match=r"component 'words', task 0: .*failed, 3 times in a row"):
        run(topology, on)


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("when", ["activate", "next"])
def test_a_child_that_only_logs_for_too_long_is_replaced(
    when: str, on: str, tmp_path: Path
) -> None:
    builder = tw.TopologyBuilder("chatting")
    command = python("chatting.py", when, str(tmp_path / "done"))
    builder.add_spout("words", ShellSpout(command, ["word"], timeout=1.5))
    rows: list[str] = []
    builder.add_bolt("out", collecting(rows)).shuffle("words")
    seen = run(builder.build(), on)
    assert rows == ["to", "be"]
    assert "said nothing of its work for 1.5 s" in seen.notices[0]


def test_an_id_that_a_spout_cannot_be_told_again_is_named() -> None:
    builder = tw.TopologyBuilder("ids")
    builder.add_spout("words", ShellSpout(python("surrogate_id.py"), ["n"], restarts=0))
    builder.add_bolt("out", collecting([])).shuffle("words")
    with pytest.raises(ChildError, match=r"id .*ud800.* of a tuple: expected what json can hold"):
        run(builder.build(), "inline")
