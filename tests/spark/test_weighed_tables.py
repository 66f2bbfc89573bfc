"""Equal tuples that travel as one row: tables and counts are those of tuples."""

from __future__ import annotations

import math
from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.keys import encode_key
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import ManualClock

ROWS = 1500
FIELDS = {"word": str, "ratio": float, "n": int, "cost": float}
Row = tuple[str | None, float | None, int | None, float | None]


def skewed(i: int) -> Row:
    return ("often" if i % 10 else "seldom", 0.5, 3, 0.25)


def unique(i: int) -> Row:
    return (f"w{i}", i / 4, i, i / 2)


def mixed(i: int) -> Row:
    """Half of the rows are alike, the others are not, and blocks of both follow one another."""
    return skewed(i) if i // 300 % 2 else unique(i)


def missing(i: int) -> Row:
    return (
        None if i % 3 else "there",
        None if i % 2 else 1.0,
        None if i % 4 else 2,
        None if i % 5 else 0.5,
    )


def odd_floats(i: int) -> Row:
    ratios = [0.0, -0.0, math.nan, -math.nan, 1.0, math.inf, None]
    return ("a", ratios[i % 7], [2**62, -(2**62), 1][i % 3], [-0.0, 0.5][i % 2])


GIVEN = [skewed, unique, mixed, missing, odd_floats]


def flow_of(given: Any, rows: int = ROWS) -> tw.Flow:
    flow = tw.Flow("weighed")
    stream = flow.source("rows", tw.items([given(i) for i in range(rows)]), fields=FIELDS)
    stream.tally("words", key="word").tally("pairs", key=("word", "ratio"))
    stream.key_by("ratio").count("ratios")
    stream.key_by("word").sum("numbers", "n")
    stream.key_by("word", "ratio").sum("costs", "cost")
    stream.key_by("n").sum("selves", "n")  # the key is what is added up
    return flow


TABLES = ("words", "pairs", "ratios", "numbers", "costs", "selves")


def run(flow: tw.Flow) -> tw.Result:
    """Run it with blocks that are large enough to be weighed."""
    pump = PumpSettings(rows=600, block_rows=600, seconds=60.0)
    return flow.run(on=tw.Spark(spark_session(), places=2, clock=ManualClock(), pump=pump))


def comparable(table: Any) -> dict[bytes, Any]:
    """Name keys as state does: NaN is one key, and 1.0 is 1."""
    return {encode_key(key): value for key, value in table.items()}


@pytest.mark.parametrize("given", GIVEN, ids=lambda given: given.__name__)
def test_tables_and_counts_are_those_of_the_reference(given: Any) -> None:
    found, wanted = run(flow_of(given)), flow_of(given).run(on=tw.Inline(clock=ManualClock()))
    for name in TABLES:
        assert comparable(found.table(name)) == comparable(wanted.table(name)), name
    for name in ("rows", *TABLES):
        ours, theirs = found.metrics.component(name), wanted.metrics.component(name)
        assert (ours.received, ours.emitted) == (theirs.received, theirs.emitted), name
    sent = found.metrics.component("rows")
    assert sent.shuffled + sent.local == ROWS * len(TABLES)


def test_few_rows_travel_for_many_equal_tuples() -> None:
    alike = run(flow_of(skewed)).metrics.component("rows")
    unlike = run(flow_of(unique)).metrics.component("rows")
    assert alike.shuffled == unlike.shuffled == ROWS * len(TABLES)
    assert alike.shuffled_bytes * 4 < unlike.shuffled_bytes


def test_changed_values_are_sent_once_per_key_and_are_right_at_the_end() -> None:
    last: list[Any] = []
    flow = flow_of(skewed)
    flow.table("numbers").sink("changes", tw.collect(last))
    run(flow)
    final = {t.word: t.sum for t in last}
    assert final == {"often": 3 * ROWS * 9 // 10, "seldom": 3 * ROWS // 10}
