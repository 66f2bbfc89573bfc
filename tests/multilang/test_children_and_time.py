"""Children are heard in time, whatever ticks they get, and are not disturbed while they work."""

from __future__ import annotations

import pytest
from children import RUNTIMES, Given, collecting, python, run

import thalweg as tw
from thalweg.multilang import ShellBolt


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("where", ["setting", "option"])
def test_a_child_is_heard_though_its_next_tick_is_far_away(on: str, where: str) -> None:
    rows: list[int] = []
    own, option = ({"tick": "1 h"}, {}) if where == "setting" else ({}, {"tick": "1 h"})
    builder = tw.TopologyBuilder("later")
    builder.add_spout("values", Given([7], ended := []))
    bolt = ShellBolt(python("later.py"), ["value"], **own)
    builder.add_bolt("it", bolt, **option).shuffle("values")
    builder.add_bolt("out", collecting(rows)).shuffle("it")
    run(builder.build(), on, rows)
    assert (rows, ended) == ([7], [(0, "ack")])


def test_a_component_says_the_tick_that_was_asked_for() -> None:
    builder = tw.TopologyBuilder("ticks")
    builder.add_spout("values", Given([]))
    builder.add_bolt("slow", ShellBolt("x"), tick=20).shuffle("values")
    builder.add_bolt("quick", ShellBolt("x"), tick=0.1).shuffle("values")
    builder.add_bolt("none", ShellBolt("x")).shuffle("values")
    found = {c.name: (c.tick, c.needed_tick) for c in builder.build() if not c.is_spout}
    assert found == {"slow": (0.5, 20), "quick": (0.1, 0.1), "none": (0.5, None)}
