"""Sinks that write at the places of Spark."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import thalweg as tw
from sparksession import spark_session
from thalweg.cli.app import app
from thalweg.testing import ABORT, ManualClock, source


def runtime(**options: Any) -> tw.Spark:
    return tw.Spark(spark_session(), places=2, clock=ManualClock(), **options)


def words(flow: tw.Flow, count: int = 100) -> Any:
    rows = [(f"w{n % 10}", n) for n in range(count)]
    return flow.source("words", tw.items(rows), fields={"word": str, "n": int})


def rows_of(path: Path) -> Counter[Any]:
    table = tw.read_table(path, verify=True).to_table()
    return Counter(tuple(row.values()) for row in table.to_pylist())


# --- to_table -------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"degree": 3}])
def test_a_table_gets_every_row_once(tmp_path: Path, options: dict[str, Any]) -> None:
    flow = tw.Flow("table")
    words(flow).tally("counts", key="word").sink("out", tw.to_table(tmp_path), **options)
    flow.run(on=runtime())
    assert rows_of(tmp_path) == Counter((f"w{n % 10}", n) for n in range(100))
    places = {file.name.split("-")[0] for file in (tmp_path / "data").rglob("*.parquet")}
    assert places == {"0000", "0001"}


def test_a_second_run_with_a_state_of_its_own_adds_to_the_table(tmp_path: Path) -> None:
    flow = tw.Flow("twice")
    words(flow, 10).sink("out", tw.to_table(tmp_path))
    for _ in range(2):
        flow.run(on=runtime())
    assert sum(rows_of(tmp_path).values()) == 20


def test_a_batch_that_fails_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    def fail(word: str) -> str:
        raise ValueError(word)

    flow = tw.Flow("failing")
    stream = words(flow, 10)
    stream.sink("out", tw.to_table(tmp_path))
    stream.tally("counts", key="word").map(fail, fields=["word"]).sink("other", tw.call(print))
    with pytest.raises(tw.ComponentError):
        flow.run(on=runtime())
    with pytest.raises(tw.StateError, match="expected a manifest, got none"):
        tw.read_table(tmp_path)


# --- foreach_batch --------------------------------------------------------------------------------


def test_the_function_gets_what_was_committed_as_a_dataframe() -> None:
    seen: list[Any] = []

    def take(frame: Any, batch: int) -> None:
        seen.append((batch, frame.count(), frame.count(), frame.columns))
        seen.extend(tuple(row) for row in frame.collect())

    flow = tw.Flow("foreach")
    words(flow, 20).tally("counts", key="word").sink("out", tw.foreach_batch(take))
    flow.run(on=runtime())
    assert seen[0] == (1, 20, 20, ["word", "n"])
    assert Counter(seen[1:]) == Counter((f"w{n % 10}", n) for n in range(20))


def test_using_the_dataframe_twice_does_not_run_the_topology_again(tmp_path: Path) -> None:
    log = tmp_path / "calls"

    def note(word: str) -> str:
        with open(log, "a") as file:
            file.write(f"{word}\n")
        return word

    flow = tw.Flow("once")
    stream = words(flow, 10).map(note, fields={"word": str})
    stream.sink("out", tw.foreach_batch(lambda frame, _n: [frame.count() for _ in range(3)]))
    flow.run(on=runtime())
    assert len(log.read_text().splitlines()) == 10


def test_the_function_may_hold_on_to_things_that_only_the_driver_has(tmp_path: Path) -> None:
    session, counts = spark_session(), []

    def take(frame: Any, _batch: int) -> None:
        frame.createOrReplaceTempView("batch")
        counts.append(session.sql("select max(n) from batch").first()[0])

    flow = tw.Flow("holding")
    words(flow, 20).sink("out", tw.foreach_batch(take))
    flow.run(on=runtime())
    assert counts == [19]


def test_fields_without_declared_types_get_those_of_their_values() -> None:
    moment = dt.datetime(2024, 5, 1, 12, 30, 0, 7)
    given = [("a", None, None, moment), ("b", 1, None, moment)] + [("c", 2, None, None)] * 5
    types, seen = [], []

    def take(frame: Any, _batch: int) -> None:
        types.append([kind for _, kind in frame.dtypes])
        seen.extend(tuple(row) for row in frame.collect())

    flow = tw.Flow("untyped")
    rows = flow.source("rows", tw.items(given), fields=["name", "n", "nothing", "at"])
    rows.key_by("name").sink("out", tw.foreach_batch(take), degree=2)
    flow.run(on=runtime())
    assert types == [["string", "bigint", "string", "timestamp_ntz"]]
    assert Counter(seen) == Counter(given)


def test_rows_with_nothing_but_nulls_are_counted() -> None:
    counts: list[int] = []
    flow = tw.Flow("nulls")
    rows = flow.source("rows", tw.items([None] * 7), fields=["x"])
    rows.sink("out", tw.foreach_batch(lambda frame, _n: counts.append(frame.count())))
    flow.run(on=runtime())
    assert counts == [7]


@pytest.mark.parametrize(
    ("error", "told"), [(KeyError("lost"), "KeyError"), (SystemExit(0), r"it called sys\.exit")]
)
def test_what_the_function_raises_names_the_component_and_the_batch(
    error: BaseException, told: str
) -> None:
    def fail(_frame: Any, _batch: int) -> None:
        raise error

    flow = tw.Flow("raising")
    words(flow, 3).sink("out", tw.foreach_batch(fail))
    with pytest.raises(tw.ComponentError, match=rf"component 'out', batch 1, in .*fail.*{told}"):
        flow.run(on=runtime())


def test_it_needs_spark() -> None:
    flow = tw.Flow("inline")
    words(flow).sink("out", tw.foreach_batch(lambda frame, _n: frame))
    with pytest.raises(tw.UsageError, match="expected the Spark runtime"):
        flow.run(on=tw.Inline(clock=ManualClock()))


def test_it_needs_a_function() -> None:
    with pytest.raises(tw.UsageError, match="expected a function"):
        tw.foreach_batch("count")  # type: ignore[arg-type] # that is the point


# --- state that was imported ----------------------------------------------------------------------


def test_a_run_goes_on_from_imported_state(tmp_path: Path) -> None:
    state, file = str(tmp_path / "state"), tmp_path / "in.jsonl"
    given = [f"w{n % 10}" for n in range(20)]
    with pytest.raises(tw.Aborted):
        counting([*given, ABORT]).run(on=runtime(state=state))
    file.write_text('{"key": "w3", "value": 1000}\n{"key": "new", "value": 7}\n')
    assert CliRunner().invoke(app, ["state", "import", state, "counts", str(file)]).exit_code == 0
    table = counting([*given, *given]).run(on=runtime(state=state)).table("counts")
    assert {key: table[key] for key in ("w1", "w3", "new")} == {"w1": 4, "w3": 1002, "new": 7}
    assert len(table) == 11


def counting(given: list[Any]) -> tw.Flow:
    flow = tw.Flow("imported")
    flow.source("words", source(given), fields={"word": str}).tally("counts", key="word")
    return flow
