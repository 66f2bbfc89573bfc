"""The benchmark on real rates: how traces are read and cut, the oracle, and what is reported."""

from __future__ import annotations

import gzip
import io
import itertools
import math
import tarfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.bench import elastic_real
from thalweg.bench.elastic_oracle import Tasks, least_tasks
from thalweg.bench.elastic_real import Options, Replay
from thalweg.bench.rate_traces import Rates, traces

# --- the oracle -----------------------------------------------------------------------------------


def tried(arrivals, tasks):
    """Try every course of degrees."""
    best = math.inf
    for course in itertools.product(range(1, tasks.most + 1), repeat=len(arrivals)):
        waiting, before = 0.0, tasks.start
        for at, degree in enumerate(course):
            able = tasks.each * degree if degree == before else 0.0
            waiting, before = max(0.0, waiting + arrivals[at] - able), degree
            if waiting > sum(arrivals[max(0, at - tasks.within + 1) : at + 1]) + 1e-9:
                break
        else:
            best = min(best, sum(course))
    return best


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_the_oracle_is_the_best_of_all_courses(arrivals, most, start, within):
    # Whole tuples and parts of a 1000th of what can wait: rounding down may help it a little.
    tasks = Tasks(10.0, most, min(start, most), within)
    found, best = least_tasks([float(a) for a in arrivals], tasks), tried(arrivals, tasks)
    slack = Tasks(10.0 + max(*arrivals, 1) * within / 1000 * 2, most, tasks.start, within)
    assert tried(arrivals, slack) <= found <= best


def test_a_stream_that_nobody_can_serve_has_no_course():
    assert least_tasks([100.0] * 20 + [0.0], Tasks(10.0, 2, 1, 3)) == math.inf


# --- traces ---------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """Small files in the shapes of the real ones."""
    for name in ("worldcup98", "nasa_http", "nab", "azure_llm"):
        (tmp_path / name).mkdir()
    rows = "\n".join(f"1998-05-01 00:{k:02d}:00,{10 + k}" for k in range(40))
    packed(tmp_path / "worldcup98/worldcup98_requests_per_minute.csv.gz", f"period,count\n{rows}\n")
    seconds = "\n".join(["1"] * 60 + ["2"] * 60 + ["5"] * 30)
    packed(tmp_path / "nasa_http/nasa_requests_per_second.txt.gz", f"{seconds}\n")
    stamps = [f"2023-11-16 18:00:{second:02d}.1234567,1,1" for second in (0, 1, 9, 12, 25, 31)]
    text = "\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *stamps])
    packed(tmp_path / "azure_llm/AzureLLMInferenceTrace_code.csv.gz", f"{text}\n")
    return tmp_path


def packed(path, text):
    with gzip.open(path, "wt") as file:
        file.write(text)


def test_traces_are_read_in_their_own_shapes(folder):
    found = dict(traces(folder))
    assert set(found) == {"worldcup98", "nasa_http", "azure_llm_code"}
    assert found["worldcup98"].counts.tolist() == list(range(10, 50))
    # Half a minute at the end is left out.
    assert (found["nasa_http"].counts.tolist(), found["nasa_http"].every) == ([60, 120], 60.0)
    assert (found["azure_llm_code"].counts.tolist(), found["azure_llm_code"].every) == (
        [3, 1, 1],
        10.0,
    )


def test_series_of_an_archive_are_read_by_name(tmp_path, monkeypatch):
    (tmp_path / "nab").mkdir()
    with tarfile.open(tmp_path / "nab/nab_rates.tar.xz", "w:xz") as archive:
        for name in elastic_names():
            content = b"timestamp,value\n2015-01-01 00:00:00,7\n2015-01-01 00:05:00,9.0\n"
            member = tarfile.TarInfo(f"{name}.csv")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    found = dict(traces(tmp_path))
    assert set(found) == set(elastic_names())
    assert all(each.counts.tolist() == [7.0, 9.0] for each in found.values())


def elastic_names():
    return ["elb_request_count_8c0756", *(f"Twitter_volume_{n}" for n in ("AAPL", "AMZN", "GOOG"))]


def test_a_trace_is_cut_in_halves_and_around_its_highest_rate():
    first, second = Rates(np.arange(10.0), 60.0).halves
    assert (first.counts.tolist(), second.counts.tolist()) == ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9])
    assert second.around_peak(180.0).counts.tolist() == [7, 8, 9]
    assert second.around_peak(1e6).counts.tolist() == second.counts.tolist()
    profile = second.profile(90.0)
    assert (profile.end, profile.rates.max()) == (300.0, 90.0)


# --- the benchmark --------------------------------------------------------------------------------


def test_without_traces_it_says_so(tmp_path):
    said = []
    found = elastic_real.elastic_real(True, said.append, Options(str(tmp_path)))
    assert (found["results"], found["summary"]) == ({}, {})
    assert "no traces in" in said[0]


def test_it_chooses_on_first_halves_and_reports_on_second_ones(folder, monkeypatch, tmp_path):
    played = []
    run = Replay.run

    def noted(self, policy, seed):
        played.append((seed, self.rates.counts.max()))
        return run(self, policy, seed)

    monkeypatch.setattr(Replay, "run", noted)
    (folder / "nasa_http/nasa_requests_per_second.txt.gz").unlink()
    (folder / "azure_llm/AzureLLMInferenceTrace_code.csv.gz").unlink()
    said = []
    plots = tmp_path / "plots"
    found = elastic_real.elastic_real(True, said.append, Options(str(folder), str(plots)))
    # The first half is 10 to 29, the second 30 to 49.
    choosing, reporting = elastic_real.CHOOSING[0], elastic_real.SEEDS[0]
    assert played == [(choosing, 29.0)] * 3 + [(reporting, 49.0)] * 5
    row = found["results"]["worldcup98"]["policies"]["thalweg"]
    assert row["lost"] <= 0.01
    assert row["oracle_ratio"] >= 1.0
    assert found["summary"]["traces"] == 1
    assert found["environment"]["profile"] in ("balanced", "economy", "performance")
    assert {path.name for path in plots.iterdir()} >= {"real-worldcup98-degree.svg"}


def test_totals_weigh_traces_by_their_tuples_and_by_what_an_oracle_spends():
    def found(lost, tuples, spent, least):
        figures = {"lost": lost, "lost_worst": 2 * lost, "tuples": tuples}
        more = {"resource_seconds": spent, "oracle_seconds": least, "oracle_ratio": spent / least}
        more["oracle_ratio_worst"] = 1.1 * more["oracle_ratio"]
        return {"policies": {"thalweg": figures | more}}

    made = elastic_real.summary(
        {"a": found(0.0, 900, 30.0, 20.0), "b": found(0.1, 100, 90.0, 80.0)}
    )
    assert made["thalweg_worst_lost"] == 0.1
    assert made["thalweg_worst_lost_any_seed"] == 0.2
    assert made["thalweg_worst_oracle_ratio_any_seed"] == pytest.approx(1.65)
    assert made["thalweg_total_lost"] == pytest.approx(0.01)
    assert made["thalweg_total_oracle_ratio"] == pytest.approx(1.2)
    assert made["thalweg_mean_oracle_ratio"] == pytest.approx((1.5 + 90 / 80) / 2)


def test_a_trace_is_judged_by_the_mean_over_seeds_other_than_those_of_the_choice():
    assert not set(elastic_real.CHOOSING) & set(elastic_real.SEEDS)
    assert len(elastic_real.SEEDS) >= 5
    replay = Replay(Rates(np.array([5.0, 40.0, 5.0, 5.0]), 60.0))
    row, first = replay.rows(elastic_real.Thalweg("economy"), (1, 2))
    alone = [
        elastic_real._row(replay, replay.run(elastic_real.Thalweg("economy"), s)) for s in (1, 2)
    ]
    assert first.emitted == alone[0]["tuples"]
    assert row["tuples"] == sum(each["tuples"] for each in alone) / 2
    assert row["lost_worst"] == max(each["lost"] for each in alone)
    assert row["oracle_ratio_worst"] == max(each["oracle_ratio"] for each in alone)
