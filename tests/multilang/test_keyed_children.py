"""What a keyed child does to tuples that it has held is in its state when they are acknowledged."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import Given, Seen, collecting, python, run
from typer.testing import CliRunner

import thalweg as tw
from thalweg.cli.app import app
from thalweg.errors import ThalwegError
from thalweg.multilang import KeyedShellBolt
from thalweg.runtimes.inline import Inline

WORDS = ["to", "be", "or", "not", "to", "be", "to"]
RUNNING = [(word, WORDS[: at + 1].count(word)) for at, word in enumerate(WORDS)]
#: How a child says what has changed.
SAYS = ("once", "again", "unasked")


def counted(spout: Any, bolt: KeyedShellBolt, on: Any) -> Seen:
    rows: list[tuple[str, int]] = []
    builder = tw.TopologyBuilder("counted")
    fields = None if isinstance(spout, Given) else {"value": str}
    builder.add_spout("words", spout, fields=fields)
    builder.add_bolt("count", bolt).fields("words", "value")
    builder.add_bolt("out", collecting(rows)).shuffle("count")
    return run(builder.build(), on, rows)


def state_at(folder: Path) -> dict[str, int]:
    """Read what a run has written down of its counts."""
    out = folder.parent / "counts.jsonl"
    words = ["state", "export", str(folder), "count", "-o", str(out)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    records = [json.loads(line) for line in out.read_text().splitlines()[1:]]
    return {record["key"]: record["value"] for record in records}


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("says", SAYS)
def test_counts_of_a_child_that_counts_at_ticks_are_durable(
    says: str, dies: bool, tmp_path: Path
) -> None:
    once = [str(tmp_path / "died")] if dies else []
    bolt = KeyedShellBolt(python("holding_count.py", says, *once), ["word", "n"], tick=0.1)
    ended: list[tuple[int, str]] = []
    seen = counted(Given(WORDS, ended), bolt, tw.Local(checkpoint=tmp_path / "state"))
    assert sorted(ended) == [(n, "ack") for n in range(len(WORDS))]
    assert state_at(tmp_path / "state") == Counter(WORDS)
    assert sorted(seen.rows) == sorted(RUNNING)
    assert len(seen.notices) == dies


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("says", SAYS)
def test_counts_of_a_child_that_counts_at_the_end_are_durable(
    says: str, dies: bool, tmp_path: Path
) -> None:
    once = [str(tmp_path / "died")] if dies else []
    bolt = KeyedShellBolt(python("holding_count.py", says, *once), ["word", "n"], tick="1 h")
    seen = counted(tw.items(WORDS), bolt, tw.Local(checkpoint=tmp_path / "state"))
    assert state_at(tmp_path / "state") == Counter(WORDS)
    assert sorted(seen.rows) == sorted(RUNNING)
    assert len(seen.notices) == dies


@pytest.mark.parametrize("says", SAYS)
def test_counts_go_on_behind_those_of_an_earlier_tick(says: str) -> None:
    bolt = KeyedShellBolt(python("holding_count.py", says), ["word", "n"], tick=0.1)
    seen = counted(Given(WORDS), bolt, Inline(block_rows=2))
    assert sorted(seen.rows) == sorted(RUNNING)
    assert not seen.notices


def test_words_that_a_child_holds_when_a_run_is_stopped_are_in_its_snapshot(
    tmp_path: Path,
) -> None:
    stop, rows = threading.Event(), list[tuple[str, int]]()

    def part(last: int) -> Any:
        def words() -> Iterator[str]:
            yield from WORDS[:last]
            if last < len(WORDS):
                stop.set()
                yield from iter(lambda: WORDS[last], None)

        count = KeyedShellBolt(python("holding_count.py", "once"), ["word", "n"], tick="1 h")
        builder = tw.TopologyBuilder("counted")
        builder.add_spout("words", tw.items(words), fields={"value": str})
        builder.add_bolt("count", count, degree=2).fields("words", "value")
        builder.add_bolt("out", collecting(rows)).shuffle("count")
        return builder.build()

    local = tw.Local(checkpoint=tmp_path / "state", block_rows=1, most_block_rows=1)
    part(4).run(on=local, stop=stop)
    before = Counter(word for word, _ in rows)
    assert before == state_at(tmp_path / "state")
    assert sum(before.values()) >= 4
    assert sorted(rows) == sorted((word, n + 1) for word in before for n in range(before[word]))


def test_a_child_that_does_not_finish_what_it_holds_ends_a_run_whose_keys_move() -> None:
    steering = tw.Steering()

    def words() -> Iterator[str]:
        yield from WORDS
        steering.rebalance("count", 3)
        yield from iter(lambda: "to", None)

    count = KeyedShellBolt(python("holding_count.py", "once"), ["word", "n"], linger=0.2)
    builder = tw.TopologyBuilder("counted")
    builder.add_spout("words", tw.items(words), fields={"value": str})
    builder.add_bolt("count", count, degree=2).fields("words", "value")
    builder.add_bolt("out", collecting([])).shuffle("count")
    said = r"'count', before its keys move or a snapshot: .*all its tuples.*give it ticks"
    with pytest.raises(ThalwegError, match=said):
        builder.build().run(on=tw.Local(block_rows=1, most_block_rows=1), steering=steering)
