"""The bench of the TPCx-BB queries: what it runs, checks and compares."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.bench import tpcxbb, tpcxbb_runs
from thalweg.bench.tpcxbb import BEST, POLICIES, REQUIRED, Options, candidates, check, summary
from thalweg.bench.tpcxbb_runs import KINDS, Case, InMemory, latencies
from thalweg.errors import ThalwegError, UsageError
from thalweg.workloads.tpcxbb.topologies import QUERIES

SMALL = 20_000


@pytest.mark.parametrize("name", QUERIES)
def test_a_run_on_local_gives_the_answer_of_duckdb(name: str) -> None:
    case = Case(name, SMALL)
    found, expected = KINDS["local"](case), KINDS["duckdb"](case)
    assert found["digest"] == expected["digest"]
    assert found["events_per_s"] > 0
    assert found["processing_p99_ms"] >= found["processing_p50_ms"] > 0


def test_rows_of_a_paced_run_are_late_from_the_moment_they_were_due() -> None:
    found = KINDS["paced"](Case("q4", SMALL, rate=100_000.0))
    assert 0 < found["p50_ms"] <= found["p99_ms"]


def test_the_first_and_the_last_fifth_do_not_count_for_latencies() -> None:
    late = [(10.0, 20), *((n / 100 + 0.005, 1) for n in range(21, 81)), (99.0, 20)]
    assert latencies(late, 0.0, 100.0) == pytest.approx({"p50_ms": 5.0, "p99_ms": 5.0})


def test_a_paced_source_gives_no_row_before_it_is_due() -> None:
    rows = pa.record_batch({"n": list(range(100))})
    seen: list[Any] = []
    flow = tw.Flow("rows")
    flow.source("rows", InMemory(rows, rate=10_000.0)).sink("seen", tw.collect(seen))
    flow.run(on=tw.Local(workers=1))
    assert [t.n for t in seen] == list(range(100))


def test_everything_that_the_document_compares_is_a_candidate() -> None:
    found = candidates("q1", Options(), quick=False, turn=0)
    assert {f"{p}, {w} worker{'s' * (w > 1)}" for p in POLICIES for w in (1, 2)} < found.keys()
    assert found["partitioned"] == replace(found[BEST], queue="partitioned")
    assert found["locked"] == replace(found[BEST], locked=True)
    assert found["half rate"].rate == REQUIRED["q1"] / 2
    assert found["half rate, 1 worker"] == replace(found["half rate"], workers=1)
    assert "spark" not in candidates("q1", Options(), quick=False, turn=1)
    assert list(candidates("q1", Options(), quick=True, turn=0)) == ["duckdb", BEST, "half rate"]


def test_an_answer_that_is_not_duckdbs_is_refused() -> None:
    turns: dict[str, Any] = {"q1": {"duckdb": [{"digest": "a"}], BEST: [{"digest": "a"}]}}
    check(turns)
    check({"q1": {**turns["q1"], "spark": [{"digest": "b", "expected": "b"}]}})
    with pytest.raises(ThalwegError, match="q1 locked: the answer"):
        check({"q1": {**turns["q1"], "locked": [{"digest": "a"}, {"digest": "b"}]}})


def test_the_summary_has_what_is_asked_for() -> None:
    speeds = {name: {"events_per_s": {"best": 4.0, "median": 2.0}} for name in ("duckdb", "spark")}
    late = {"p50_ms": {"best": 1.0, "median": 2.0}, "p99_ms": {"best": 3.0, "median": 4.0}}
    ours = {"events_per_s": {"best": 8.0, "median": 6.0}}
    found = summary({"q15": {BEST: ours, "half rate": late, **speeds}})
    assert found["q15_events_per_s"] == 8.0
    assert (found["q15_p50_ms"], found["q15_p99_ms_median"]) == (1.0, 4.0)
    assert (found["q15_vs_duckdb"], found["q15_spark_events_per_s"]) == (2.0, 4.0)


def test_a_quick_run_of_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    def here(_module: str, _name: str, text: str) -> dict[str, Any]:
        case = Case(**tpcxbb.json.loads(text))
        return KINDS[case.on](replace(case, rows=min(case.rows, SMALL)))

    monkeypatch.setattr(tpcxbb, "apart", here)
    told: list[str] = []
    found = tpcxbb.run(True, told.append, Options(query="4"))
    assert found["name"] == "tpcxbb"
    assert {"q4_events_per_s", "q4_p50_ms", "q4_vs_duckdb"} <= found["summary"].keys()
    assert len(told) == 3 and told[0].startswith("1/1 q4 duckdb:")
    assert asdict(Options(query="4")).keys() <= found["environment"].keys()


def test_an_unknown_query_is_refused() -> None:
    with pytest.raises(UsageError, match="--query"):
        tpcxbb.run(True, print, Options(query="q9"))
    assert tpcxbb_runs.BATCH.keys() == QUERIES.keys() == REQUIRED.keys()
