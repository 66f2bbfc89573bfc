"""Only columns that somebody looks at come back from worker processes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg import groupings
from thalweg.runtimes.local.pruning import read_columns, without_unread

FIELDS = {"a": int, "b": int, "text": str}


def parsed(n: int) -> tuple[int, int, str]:
    return n % 3, n % 5, "x" * 100


def source(flow: tw.Flow, **options: Any) -> Any:
    numbers = flow.source("numbers", tw.items(range(1000)), fields={"n": int})
    return numbers.map(parsed, fields=FIELDS, name="parsed", **options)


def read(flow: tw.Flow) -> frozenset[str]:
    topology = flow.build()
    return read_columns(topology, topology.component("parsed"))["default"]


def test_keys_and_what_functions_take_are_read() -> None:
    flow = tw.Flow("keys")
    stream = source(flow)
    stream.key_by("a").sum("sums", field="b")
    assert read(flow) == {"a", "b"}


def test_what_is_passed_on_is_read_only_if_somebody_looks_at_it_further_on() -> None:
    flow = tw.Flow("two")
    source(flow).tally("by_a", key="a").tally("by_b", key="b")
    assert read(flow) == {"a", "b"}

    flow = tw.Flow("three")
    tallied = source(flow).tally("by_a", key="a")
    tallied.map(lambda text: text.upper(), fields={"n": int}).sink("out", tw.collect([]))
    assert read(flow) == {"a", "text"}


def test_who_wants_whole_tuples_gets_them() -> None:
    flow = tw.Flow("sink")
    source(flow).tally("by_a", key="a").sink("out", tw.collect([]))
    assert read(flow) == set(FIELDS)

    flow = tw.Flow("filter")
    source(flow).filter(lambda a: a > 0).tally("by_a", key="a")
    assert read(flow) == set(FIELDS)


def test_who_may_refuse_tuples_is_able_to_show_them() -> None:
    flow = tw.Flow("skip")
    source(flow).tally("by_a", key="a", on_error="skip")
    assert read(flow) == set(FIELDS)


class ByLength:
    """A rule of a user, which may look at everything."""

    def prepare(self, tasks: int) -> None:
        """Nothing."""

    def choose(self, batch: pa.RecordBatch) -> list[int]:
        return [0] * batch.num_rows


def test_a_custom_grouping_may_look_at_everything() -> None:
    flow = tw.Flow("custom")
    stream = source(flow).grouped(groupings.Custom(ByLength()))
    stream.map(lambda a: a, fields={"a": int}).sink("out", tw.collect([]))
    assert read(flow) == set(FIELDS)


def test_nobody_reads_anything_of_a_stream_without_readers() -> None:
    flow = tw.Flow("none")
    source(flow)
    assert read(flow) == set()


def test_results_are_the_same_with_and_without_a_process() -> None:
    tables = []
    for isolation in ("thread", "process"):
        flow = tw.Flow("both")
        source(flow, isolation=isolation).tally("by_a", key="a").tally("by_b", key="b")
        result = flow.run(on=tw.Local(workers=2))
        tables.append((result.table("by_a"), result.table("by_b")))
    assert tables[0] == tables[1]
    assert sum(tables[0][0].values()) == 1000


@given(st.lists(st.tuples(st.integers(0, 9), st.text())), st.sets(st.sampled_from(["a", "text"])))
def test_schema_and_read_columns_stay_as_they_are(
    rows: list[tuple[int, str]], columns: set[str]
) -> None:
    schema = pa.schema({"a": pa.int64(), "text": pa.string()})
    batch = pa.record_batch([[a for a, _ in rows], [t for _, t in rows]], schema=schema)
    slim = without_unread(batch, frozenset(columns))
    assert slim.schema == schema
    assert slim.num_rows == len(rows)
    for name in schema.names:
        expected = batch.column(name).to_pylist() if name in columns else [None] * len(rows)
        assert slim.column(name).to_pylist() == expected
