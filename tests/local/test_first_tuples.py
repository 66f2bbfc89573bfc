"""Nothing that a run needs is loaded while its first tuples wait for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import thalweg as tw

class Once(tw.Spout):
    outputs = ["number"]

    def next_tuple(self):
        print("pandas" in sys.modules)
        self.emit(1)
        self.finish()

class Look(tw.Bolt):
    def process(self, t):
        print("pandas" in sys.modules)

builder = tw.TopologyBuilder("first")
builder.add_spout("once", Once())
builder.add_bolt("look", Look(), isolation={isolation!r}).shuffle("once")
builder.build().run()
"""


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_what_arrow_loads_is_there_before_the_first_tuple(isolation):
    pytest.importorskip("pandas", reason="without pandas Arrow loads nothing")
    program = PROGRAM.format(isolation=isolation)
    done = subprocess.run(  # noqa: S603 (ours)
        [sys.executable, "-c", program], stdout=subprocess.PIPE, check=True, text=True
    )
    assert done.stdout.split() == ["True", "True"]
