"""The Spark benchmarks: what they make of given timings. No Spark is started here."""

import os
import subprocess
import sys
from contextlib import nullcontext

import msgspec
import pyarrow.parquet as pq
import pytest

from thalweg.bench import spark_peers, spark_state
from thalweg.bench.spark_session import _workers_run, bench_session, need
from thalweg.bench.spark_state import CONTENDERS, Contender, Span, figures, summary
from thalweg.errors import ThalwegError, UsageError


def progress(batch, rows, milliseconds):
    durations = {"addBatch": 1, "triggerExecution": milliseconds}
    return {"batchId": batch, "numInputRows": rows, "durationMs": durations}


# --- input ----------------------------------------------------------------------------------------


def test_input_is_one_file_per_batch_and_the_same_every_time(tmp_path):
    spark_peers.write_input(tmp_path / "three", 3, rows=50)
    spark_peers.write_input(tmp_path / "two", 2, rows=50)
    three, two = (sorted((tmp_path / name).iterdir()) for name in ("three", "two"))
    assert [path.name for path in three] == ["000.parquet", "001.parquet", "002.parquet"]
    assert [pq.read_table(p) for p in two] == [pq.read_table(p) for p in three[:2]]
    assert pq.read_table(three[0]) != pq.read_table(three[1])
    assert spark_peers.rows_in(tmp_path / "three") == 150


def test_input_has_skewed_and_even_keys(tmp_path):
    spark_peers.write_input(tmp_path / "in", 1, rows=20_000)
    table = pq.read_table(tmp_path / "in" / "000.parquet")
    assert [(f.name, str(f.type)) for f in table.schema] == [("k1", "int64"), ("k2", "int64")]
    top = {k: max(c["counts"].as_py() for c in table[k].value_counts()) for k in ("k1", "k2")}
    assert top["k1"] > 2_000 > 20 > top["k2"]


# --- times ----------------------------------------------------------------------------------------


def test_batch_times_come_in_the_order_of_batches_and_once_each():
    reports = [progress(1, 10, 250), progress(0, 10, 1500), progress(1, 10, 250)]
    assert spark_peers.batch_seconds(reports, rows=20) == [1.5, 0.25]


def test_batches_without_rows_do_not_count():
    reports = [progress(0, 10, 1500), progress(1, 0, 3)]
    assert spark_peers.batch_seconds(reports, rows=10) == [1.5]


def test_a_query_that_missed_rows_has_no_times():
    with pytest.raises(ThalwegError, match="rows of a measured query: expected 20, got 10"):
        spark_peers.batch_seconds([progress(0, 10, 1500)], rows=20)


def test_figures_leave_out_the_first_batches_and_those_after_the_span():
    found = figures([9.0, 8.0, 2.0, 4.0, 3.0, 1.0], Span(6, dropped=2, until=5), rows=600)
    assert found["best"] == 2.0
    assert found["median"] == 3.0
    assert found["counted"] == 3
    assert found["rows_per_second"] == 200.0
    assert found["batch_seconds"] == [9.0, 8.0, 2.0, 4.0, 3.0, 1.0]


def test_only_a_run_beyond_the_span_has_warm_figures():
    assert "warm_median" not in figures([1.0] * 15, Span(15))
    assert figures([1.0] * 20 + [0.5] * 10, Span(30))["warm_median"] == 0.5


@pytest.mark.parametrize("name", CONTENDERS)
@pytest.mark.parametrize("quick", [True, False])
def test_every_contender_has_batches_that_count(name, quick):
    span = CONTENDERS[name].span(quick)
    assert 0 < span.dropped < min(span.batches, span.until)


def test_a_full_run_drops_the_same_batches_for_everyone():
    spans = [contender.span(quick=False) for contender in CONTENDERS.values()]
    assert {(span.dropped, span.until) for span in spans} == {(5, 15)}


# --- ratios ---------------------------------------------------------------------------------------


def fixed(median, best, warm=None):
    return {"median": median, "best": best} | ({} if warm is None else {"warm_median": warm})


RESULTS = {
    "ours": fixed(0.5, 0.4, warm=0.25),
    "ours_python_fold": fixed(2.0, 1.0, warm=1.0),
    "native_rocksdb": fixed(1.0, 0.6, warm=0.75),
    "native_hdfs": fixed(0.75, 0.8, warm=0.5),
    "apply": fixed(5.0, 4.0),
    "tws": fixed(12.0, 10.0),
}


def test_ratios_are_those_of_medians():
    made = summary(RESULTS)
    assert made["ours_vs_tws"] == 24.0
    assert made["ours_vs_apply"] == 10.0
    assert made["ours_python_fold_vs_tws"] == 6.0


def test_the_native_count_is_taken_with_its_better_store():
    made = summary(RESULTS)
    assert made["ours_vs_native"] == 1.5
    assert made["ours_vs_native_best"] == pytest.approx(1.5)
    assert made["ours_vs_native_warm"] == 2.0


def test_ratios_of_bests_are_named_so_and_warm_ones_are_only_for_those_who_ran_on():
    made = summary(RESULTS)
    assert made["ours_vs_tws_best"] == pytest.approx(25.0)
    assert {name for name in made if name.endswith("_warm")} == {"ours_vs_native_warm"}


# --- the whole ------------------------------------------------------------------------------------


def test_the_report_has_the_agreed_form(monkeypatch):
    given = {}

    def contender(name, slow):
        def run(_spark, folder):
            given[name] = sorted(path.name for path in folder.iterdir())
            return [2.0 if name == "tws" else 1.0] * len(given[name])

        return Contender(run, slow)

    fakes = {name: contender(name, real.slow) for name, real in CONTENDERS.items()}
    monkeypatch.setattr(spark_state, "CONTENDERS", fakes)
    monkeypatch.setattr(spark_state, "bench_session", lambda _name: nullcontext())
    monkeypatch.setattr(spark_state, "version", lambda _package: "4")
    monkeypatch.setattr(spark_peers, "write_input", write_names)
    lines = []
    report = msgspec.json.decode(msgspec.json.encode(spark_state.spark_state(True, lines.append)))
    assert set(report) == {"name", "environment", "results", "summary"}
    assert set(report["results"]) == set(CONTENDERS)
    assert report["summary"]["ours_vs_tws"] == 2.0
    assert len(report["results"]["tws"]["batch_seconds"]) == 4
    assert given["ours"] == given["native_hdfs"]
    assert lines[-1] == "tws: 100,000 rows/s"


def write_names(folder, batches):
    folder.mkdir()
    for number in range(batches):
        (folder / f"{number}").touch()


# --- the session ----------------------------------------------------------------------------------


def test_a_missing_module_is_explained():
    with pytest.raises(UsageError, match=r"module 'no_such.module': expected it installed \(pip"):
        need("no_such.module", "pip install it")


def test_workers_use_this_interpreter_and_the_environment_comes_back(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    with _workers_run("mine"):
        assert os.environ["PYSPARK_PYTHON"] == "mine"
    assert "PYSPARK_PYTHON" not in os.environ
    monkeypatch.setenv("PYSPARK_PYTHON", "theirs")
    with _workers_run("mine"):
        assert os.environ["PYSPARK_PYTHON"] == "mine"
    assert os.environ["PYSPARK_PYTHON"] == "theirs"


def test_a_session_that_is_already_there_is_refused(monkeypatch):
    context = pytest.importorskip("pyspark").SparkContext
    monkeypatch.setattr(context, "_active_spark_context", object())
    with (
        pytest.raises(UsageError, match="bench 'x': expected no Spark session"),
        bench_session("x"),
    ):
        pass


def test_benches_are_imported_without_pyspark():
    code = "import sys; import thalweg.bench.spark_state; sys.exit('pyspark' in sys.modules)"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, check=False).returncode == 0  # noqa: S603 (our own code)
