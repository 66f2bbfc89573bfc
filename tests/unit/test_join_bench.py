"""The benchmark of joins: what it reports has the agreed form."""

from __future__ import annotations

from typing import Any

import pytest

from thalweg.bench import joining


def ignore(_text: str) -> None:
    """Say nothing."""


@pytest.mark.parametrize("kind", ["int", "text", "range"])
def test_every_tuple_finds_one_row_in_every_way(kind: str) -> None:
    data = joining.Data(joining.stream(kind, 50), joining.table(kind, 50))
    index = "range" if kind == "range" else "hash"
    assert [data.join(20_000, way) for way in (index, "loop", None)] == [20_000] * 3
    assert data.picked in (index, "loop")
    if kind != "range":
        assert data.arrow(20_000) == 20_000


def test_the_report_compares_the_choice_with_the_best() -> None:
    options = joining.Options(tuples=9000, repeat=1)
    found: list[Any] = [joining.measure("int", rows, options, ignore) for rows in (1, 2000)]
    assert set(found[0]["events_per_s"]) == {"hash", "loop", "chosen", "arrow"}
    assert set(found[1]["events_per_s"]) == {"hash", "chosen", "arrow"}
    summary = joining.summary(found)
    assert 0 < summary["picked_vs_best_matching_worst"] <= 1
    assert summary["chosen_vs_best_worst"] > 0
    assert summary["int_2000_picked"] == "hash"
