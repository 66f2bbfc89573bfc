"""Runs that begin with places for single keys, and what is counted to find such places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from keyed_counting import Counting

import thalweg as tw
from thalweg.control.rerouting import Rerouting, Seen, Tables
from thalweg.routing.table_file import TableFile, write_table_file
from thalweg.runtimes.local.runtime import Local

WORDS = [f"w{i * i % 17}" for i in range(500)]


class Where(Counting):
    """Tells where each word was."""

    outputs = {"word": str, "task": int}

    def process(self, t: Any) -> None:
        """Tell it."""
        self.emit(t.word, self.context.task)


def places(path: Path, seen: list[Any], **options: Any) -> tw.Topology:
    builder = tw.TopologyBuilder("placed")
    builder.add_spout("words", tw.items(WORDS), fields={"word": str})
    builder.add_bolt("where", Where(), **options).fields("words", "word")
    builder.add_bolt("out", tw.collect(seen)).global_("where")
    return builder.build()


def test_keys_are_where_the_file_says(tmp_path: Path) -> None:
    path, seen = tmp_path / "table.json", list[Any]()
    wanted = {word: number % 3 for number, word in enumerate(sorted(set(WORDS)))}
    write_table_file(path, TableFile(3, {"word": wanted}))
    result = places(path, seen).run(on=Local(workers=2, table=str(path)))
    assert {t.word: t.task for t in seen} == wanted
    assert result.metrics.component("where").degree == 3


@pytest.mark.parametrize(
    ("fields", "degree", "told"),
    [({"word": {"w1": 0}}, 2, "2 places, the degree of 'where'"), ({"x": {}}, 3, "as its key")],
)
def test_a_file_that_does_not_fit_is_refused(
    tmp_path: Path, fields: dict[str, dict[Any, int]], degree: int, told: str
) -> None:
    path = tmp_path / "table.json"
    write_table_file(path, TableFile(3, fields))
    with pytest.raises(tw.UsageError, match=told):
        places(path, [], degree=degree).run(on=Local(workers=2, table=str(path)))


class Looks:
    """Notes what it is told, and changes nothing."""

    sampling = 1.0

    def __init__(self) -> None:
        self.seen: list[Seen] = []

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        """Note it."""
        self.seen.append(seen)
        return None

    def pairs(self) -> dict[tuple[str, str], float]:
        """Sum up what was counted."""
        found: dict[tuple[str, str], float] = {}
        for counts in (seen.pairs for seen in self.seen):
            for ends, pairs in counts.items():
                found[ends] = found.get(ends, 0.0) + pairs.total
        return found


def test_pairs_are_counted_through_stateless_bolts_and_side_by_side() -> None:
    rows = [(i % 7, i % 5, i % 3) for i in range(300)]
    flow, looks = tw.Flow("pairs"), Looks()
    stream = flow.source("rows", tw.items(rows), fields={"a": int, "b": int, "c": int})
    first = stream.tally("by_a", key="a", degree=2)
    first.map(lambda a, b, c: (b, c), fields={"b": int, "c": int}).tally("by_b", key="b", degree=2)
    stream.tally("by_c", key="c", degree=2)
    flow.run(on=Local(workers=1, block_rows=10, most_block_rows=10, rerouter=looks))
    found = looks.pairs()
    assert set(found) == {("by_a", "by_b"), ("by_a", "by_c")}
    # What the last blocks brought is not told any more.
    assert all(200 < count <= 300 for count in found.values())
