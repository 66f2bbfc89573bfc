"""Children in runs that are rebalanced, or that keep snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import collecting, python, run

import thalweg as tw
from thalweg.errors import TopologyError
from thalweg.events import Event, Reconfigured
from thalweg.multilang import KeyedShellBolt, ShellBolt
from thalweg.storm import Bolt
from thalweg.storm.hosted_bolts import HostedBolt

TOLD = ["task", "component", "sender"]


def test_tasks_that_a_rebalance_adds_have_numbers_of_their_own() -> None:
    events: list[Event] = []
    steering = tw.Steering()

    def numbers() -> Iterator[int]:
        steering.rebalance("first", 3)
        while not any(isinstance(event, Reconfigured) for event in events):
            yield 0
        yield from range(200)

    firsts: list[tuple[int, str, int]] = []
    seconds: list[tuple[int, str, int]] = []
    builder = tw.TopologyBuilder("numbers")
    builder.add_spout("numbers", tw.items(numbers), fields={"n": int})
    builder.add_bolt("first", ShellBolt(python("says_task.py"), TOLD)).shuffle("numbers")
    builder.add_bolt("second", ShellBolt(python("says_task.py"), TOLD)).shuffle("first")
    builder.add_bolt("firsts", collecting(firsts)).shuffle("first")
    builder.add_bolt("seconds", collecting(seconds)).shuffle("second")
    local = tw.Local(block_rows=20, most_block_rows=20, workers=2)
    builder.build().run(on=local, listen=events.append, steering=steering)
    # numbers 1, first 2, second 3, two sinks, 4 and 5; those added are told apart by turns of five.
    assert {row[:2] for row in firsts} == {(2, "first"), (7, "first"), (12, "first")}
    assert {sender for _, _, sender in firsts} == {1}
    assert {row[:2] for row in seconds} == {(3, "second")}
    assert {sender for _, _, sender in seconds} == {2, 7, 12}


class Counts(Bolt):
    """Counts in an attribute, as bolts of Storm's do."""

    def process(self, tup: Any) -> None:
        self.emit([tup.values[0]])


def by_key(body: Any, rows: list[Any]) -> Any:
    builder = tw.TopologyBuilder("kept")
    builder.add_spout("words", tw.items(["a", "b", "a"]), fields={"word": str})
    builder.add_bolt("count", body).fields("words", "word")
    builder.add_bolt("out", collecting(rows)).shuffle("count")
    return builder.build()


def test_a_child_that_may_keep_state_by_key_is_refused_in_a_snapshot(tmp_path: Path) -> None:
    echo = python("odd.py", "99", "nothing")
    with pytest.raises(TopologyError, match=r"'count' with a fields grouping: .*stateless=True"):
        run(by_key(ShellBolt(echo, ["word"]), []), tw.Local(checkpoint=tmp_path / "no"))
    rows: list[str] = []
    body = ShellBolt(echo, ["word"], stateless=True)
    assert not run(by_key(body, rows), tw.Local(checkpoint=tmp_path / "a"), rows).notices
    assert sorted(rows) == ["a", "a", "b"]
    counted: list[tuple[str, int]] = []
    kept = KeyedShellBolt(python("keyed_count.py"), ["word", "n"])
    run(by_key(kept, counted), tw.Local(checkpoint=tmp_path / "b"), counted)
    assert sorted(counted) == [("a", 1), ("a", 2), ("b", 1)]


def test_a_bolt_of_storms_runs_with_snapshots_and_it_is_said_what_they_lack(tmp_path: Path) -> None:
    rows: list[str] = []
    body = HostedBolt(Counts, ["word"])
    seen = run(by_key(body, rows), tw.Local(checkpoint=tmp_path / "state"), rows)
    assert sorted(rows) == ["a", "a", "b"]
    (notice,) = seen.notices
    assert "'count'" in notice
    assert "is in no snapshot" in notice
