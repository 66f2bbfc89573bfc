"""The queries as topologies on Spark: several batches, and the answers of DuckDB."""

from __future__ import annotations

from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.bench.tpcxbb_runs import BATCH, digest
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.workloads import tpcxbb
from thalweg.workloads.tpcxbb.parts import Amortised
from thalweg.workloads.tpcxbb.queries import Q1, Q15
from thalweg.workloads.tpcxbb.topologies import QUERIES, Tables, topology

ROWS, LATE = 12_000, 600
ASKED: dict[str, Any] = {"q1": Q1(stores=None), "q15": Q15(store=None)}


@pytest.mark.parametrize("name", QUERIES)
def test_spark_gives_the_answer_of_duckdb(name: str) -> None:
    make = tpcxbb.store_sales if name in ("q1", "q15") else tpcxbb.web_clickstreams
    source = make(rows=ROWS, rate=None if name == "q15" else 1.0, late=LATE)
    tables = Tables(tpcxbb.item(), tpcxbb.web_page())
    expected = BATCH[name](tpcxbb.table(source), tables, ASKED.get(name))
    assert expected.num_rows
    flow, kept = topology(name, source.timed(), tables, ASKED.get(name), late=LATE, degree=2)
    built = flow.build()
    for component in built:
        if isinstance(component.body, Amortised):
            component.body.least = 200  # so that sessions end while rows come
    pump = PumpSettings(rows=4000, block_rows=1000)
    result = built.run(on=tw.Spark(spark_session(), places=2, pump=pump))
    assert result.metrics.batches >= 3
    assert digest(kept.table()) == digest(expected)
