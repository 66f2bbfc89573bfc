"""Spouts in children that take long over one `next`, or never come to its end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from children import RUNTIMES, Seen, collecting, python, run

import thalweg as tw
from thalweg.errors import ThalwegError
from thalweg.multilang import ShellSpout


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_next_without_end_gives_its_tuples_and_can_be_stopped(on: str) -> None:
    stop, rows, seen = threading.Event(), list[int](), Seen()

    def take(t: Any) -> None:
        rows.append(t.n)
        if len(rows) == 5000:
            stop.set()

    builder = tw.TopologyBuilder("endless")
    spout = ShellSpout(python("endless_spout.py"), ["n"], linger=0.1)
    builder.add_spout("numbers", spout)
    builder.add_bolt("out", tw.call(take)).shuffle("numbers")
    builder.build().run(on=on, stop=stop, listen=seen.events.append)
    assert rows == list(range(len(rows)))
    assert len(rows) >= 5000
    (notice,) = seen.notices
    assert "still answers to next 0.1 s after it was to pause" in notice


@pytest.mark.parametrize("on", RUNTIMES)
def test_tuples_go_on_before_a_next_has_ended_and_their_ends_are_told_behind_it(
    on: str, tmp_path: Path
) -> None:
    acked = tmp_path / "acked"

    class Noting(ShellSpout):
        def ack(self, id: Any) -> None:
            acked.touch()
            super().ack(id)

    builder = tw.TopologyBuilder("long")
    builder.add_spout("words", Noting(python("long_next.py", str(acked)), ["word"]))
    builder.add_bolt("out", collecting(rows := [])).shuffle("words")
    seen = run(builder.build(), on, rows)
    assert rows == ["one", "two"]
    told = [text for text in seen.said("words") if text != "next"]
    assert told == ["activate", "sent to [2]", "ack", "ack"]


def test_ends_of_tuples_wait_for_the_end_of_a_next_up_to_a_bound() -> None:
    spout = ShellSpout(python("endless_ids.py"), ["n"], most_held=50)
    builder = tw.TopologyBuilder("endless")
    builder.add_spout("numbers", spout)
    builder.add_bolt("out", collecting([])).shuffle("numbers")
    with pytest.raises(ThalwegError, match="at most 50 tuples that end during one next"):
        builder.build().run(on="inline")
