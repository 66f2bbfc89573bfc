"""Benchmarks of the local runtime: all candidates do the same, and reports have the agreed form."""

from __future__ import annotations

import json
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from thalweg.bench import inline_wordcount, latency, ordered_figures, processes, wordcount
from thalweg.bench.measuring import apart, installed
from thalweg.bench.ordered import Chain, even, skewed, words
from thalweg.bench.ordered_figures import Measure, Options
from thalweg.bench.ordered_plots import pictures
from thalweg.bench.plotting import write_pictures

# It lives as long as the process, so it is no leak of the first test that needs it.
resource_tracker.ensure_running()


def test_all_ways_to_count_words_see_all_of_them() -> None:
    lines = inline_wordcount.sentences(1000)
    for count in (inline_wordcount.functions, inline_wordcount.bolts, wordcount.vectorised):
        assert count(lines, tw.Local(workers=1)) == 1000


@pytest.mark.parametrize("bolts", [False, True])
@pytest.mark.parametrize("order", ["sender", "total"])
def test_words_are_counted_in_any_order(bolts: bool, order: str) -> None:
    assert words(inline_wordcount.sentences(1000), bolts, order) == 1000


def test_a_summary_compares_with_the_peers_that_ran() -> None:
    speeds = {"generators": 4.0, "functions": 2.0, "bolts": 1.0, "vectorised": 8.0}
    results = {name: [{"per_second": speed}] for name, speed in speeds.items()}
    alone = wordcount.summary(results)
    assert alone["functions_vs_generators"] == 0.5
    assert not [name for name in alone if "bytewax" in name]
    results["bytewax 10"], results["bytewax 100"] = [{"per_second": 0.1}], [{"per_second": 0.5}]
    assert wordcount.summary(results)["bolts_vs_bytewax"] == 2.0


def test_latencies_are_summed_up_as_agreed() -> None:
    ours, peer = (
        {"p50_ms": 1.0, "p99_ms": 2.0, "p999_ms": 4.0},
        dict.fromkeys(("p50_ms", "p99_ms", "p999_ms"), 2.0),
    )
    found = latency.summary({"ours": [ours, peer], "bytewax": [peer]})
    assert found["p50_ms"] == 1.0
    assert found["bytewax_p99_ms"] == 2.0
    assert found["p50_vs_bytewax"] == 0.5
    assert "bytewax_p50_ms" not in latency.summary({"ours": [ours]})


def test_every_tuple_of_the_latency_flow_arrives() -> None:
    late = latency.ours(latency.Options(rate=1000, seconds=0.2))
    assert len(late) == 200
    assert min(late) > 0


def test_records_are_counted_alike_by_a_loop_and_by_a_flow() -> None:
    assert processes.flat_loop(processes.records(300)) == 300
    for isolation in ("thread", "process"):
        local = tw.Local(workers=2)
        assert processes.two_keys(processes.records(300), local, isolation) == 300


def test_bolts_that_compute_see_all_tuples() -> None:
    for name in ("stateless, 1 core", "keyed, 1 core", "keyed, 2 cores"):
        assert processes.CANDIDATES[name](iter(range(50))) == 50


def test_chains_are_checked_to_be_complete_and_in_order() -> None:
    local = tw.Local(workers=4, most_workers=4, block_rows=4, most_block_rows=4)
    found = Chain(even(60)).stateless(0.0001, 4, 2).keyed(0.0001).run(local)
    assert found.per_second > 0
    assert found.latency_ms > 0.1
    assert found.cost >= 0.0001


def test_strong_skew_crowds_few_buckets() -> None:
    def share(sigma: float) -> float:
        rows = skewed(1000, sigma)
        return sum(37 <= bucket < 63 for bucket, _, _ in rows) / len(rows)

    assert share(0.1) > 0.95
    assert share(1.0) < 0.5


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    """One small figure, which stands for all."""
    measure = Measure(Options(tuples=40, words=1000, repeat=1), lambda _line: None)
    order = measure.order()
    skew = measure.skew()
    by_workers = {
        str(workers): {
            name: {
                "per_second": 10.0 * workers,
                "per_second_median": 9.0 * workers,
                "latency_ms": 1.0,
                "cost_us": 5.0,
            }
            for name in (*ordered_figures.POLICIES, *ordered_figures.BUFFERS)
        }
        for workers in ordered_figures.WORKERS
    }
    return {
        "schedulers": by_workers,
        "skew": skew,
        "latency": skew,
        "light": by_workers,
        "selectivity": by_workers,
        "order": order,
    }


def test_figures_are_summed_up_best_with_best_and_median_with_median(
    figures: dict[str, Any],
) -> None:
    found = ordered_figures.summary(figures)
    assert found["hybrid_vs_partitioned_strong_skew"] > 0
    assert found["non_blocking_vs_locked_light"] == found["ct_vs_lp_median"] == 1.0
    assert {name.removesuffix("_median") for name in found} == {
        name for name in found if not name.endswith("_median")
    }
    assert found["total_vs_sender_tally"] > 0


def test_there_is_a_picture_of_each_figure(figures: dict[str, Any], tmp_path: Path) -> None:
    write_pictures(tmp_path / "plots", pictures(figures))
    drawn = {path.stem for path in (tmp_path / "plots").iterdir()}
    assert drawn == {f"figure-{n}" for n in ("8a", "8b", "9", "10", "12a", "12b", "13a", "13b")}


def test_a_missing_peer_is_reported() -> None:
    told: list[str] = []
    assert not installed("no_such_peer", told.append)
    assert "no_such_peer is not installed" in told[0]
    assert installed("json", told.append)


def test_what_fails_in_a_process_of_its_own_is_told() -> None:
    with pytest.raises(tw.ThalwegError, match="no such candidate"):
        apart("thalweg.bench.wordcount", "no such candidate", "10")
    found = apart("thalweg.bench.wordcount", "generators", "1000")
    assert found["per_second"] > 0
    assert found["threads"] >= 1
    assert json.dumps(found)
