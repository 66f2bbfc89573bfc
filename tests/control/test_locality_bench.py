"""The measurements of locality: what they make of batches. No Spark is started here."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.bench import locality_cluster
from thalweg.bench.locality_app import (
    AWARE,
    HASH,
    TABLES,
    WORST,
    Batch,
    Phases,
    Setting,
    Watch,
    check_moved,
    expected_counts,
    statistics_share,
    summary,
    worst,
)
from thalweg.bench.locality_cluster import SWEEPS, ClusterOptions, summarised, sweep
from thalweg.bench.locality_ways import (
    FUSED,
    QUICK,
    SOURCES,
    SWEEP,
    WHOLE,
    Shape,
    Stand,
    measure,
    timeline,
)
from thalweg.cli.benches import read_options
from thalweg.control.rerouting import Rerouting, Seen
from thalweg.errors import ThalwegError, UsageError
from thalweg.events import Noticed, Progress
from thalweg.metrics import Snapshot
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.spark.limits import Limits
from thalweg.sketches.pairs import PairCounts
from thalweg.workloads.two_keys import TwoKeys

#: Seconds of a batch that every way has, and for each row by way of routing.
FIXED = 0.5
EACH = {HASH: 4e-4, WORST: 5e-4, AWARE: 2e-4, FUSED: 1e-4}


class Made(Stand):
    """Gives batches that were made up, as long as their tuples would take."""

    def run(self, setting: Setting, batches: Mapping[str, int]) -> list[Batch]:
        """Make them."""
        self.runs += 1
        found: list[Batch] = []
        at = 0.0
        for way, number in batches.items():
            cost = EACH[FUSED] if setting.fuse and way == AWARE else EACH[way]
            for i in range(number):
                seconds = FIXED + cost * setting.rows
                at += seconds
                moved = 7 if way == AWARE and i == 0 else 0
                rows = setting.rows
                found.append(
                    Batch(
                        way, i >= setting.warm, at, seconds, 0.3, 10 * rows, rows, moved, 10.0, 0.1
                    )
                )
        return found


def nobody(_text: str) -> None: ...


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[int, str]]:
    """Put clusters that are made up in place of real ones; gives those that were started."""
    started: list[tuple[int, str]] = []

    @contextmanager
    def stand(options: ClusterOptions, report: Any) -> Iterator[Stand]:
        started.append((options.hosts, options.rate))
        yield Made(None, tmp_path, report)

    monkeypatch.setattr(locality_cluster, "_stand", stand)
    return started


# --- a run, batch by batch ------------------------------------------------------------------------


def seen(**given: Any) -> Seen:
    keys = np.arange(1, 61, dtype=np.uint64)
    pairs = {TABLES: PairCounts.of(np.repeat(keys, 9), np.repeat(keys + np.uint64(100), 9))}
    return Seen(clock=1.0, seconds=0.25, pairs=pairs, **given)


def test_tables_are_made_at_the_end_of_a_phase_and_turned_at_that_of_the_next() -> None:
    phases = Phases({HASH: 3, AWARE: 2, WORST: 2})
    tables = {name: RoutingTable.even(3) for name in TABLES}
    decided: list[Rerouting | None] = []
    for _ in phases.ways:
        decided.append(phases.after(seen(), tables))
        if (new := decided[-1]) is not None:
            tables |= new.tables
    assert [found is not None for found in decided] == [0, 0, 1, 0, 1, 0, 0]
    assert phases.ways == [HASH] * 3 + [AWARE] * 2 + [WORST] * 2


def test_at_worst_no_key_is_where_it_belongs() -> None:
    hashes = np.arange(5, dtype=np.uint64)
    second = RoutingTable.even(3).with_hashes(hashes, np.array([0, 1, 2, 0, 1], np.int32))
    turned = worst({"second": second}).tables["second"]
    assert (turned.places_of(hashes) != second.places_of(hashes)).all()


def test_a_listener_notes_each_batch_and_stops_behind_the_last() -> None:
    now, read = [100.0], [0, 0]
    phases = Phases({HASH: 2, AWARE: 2})
    watch = Watch(phases, warm=1, shuffled=lambda: (read[0], read[1]), now=lambda: now[0])
    tables = {name: RoutingTable.even(3) for name in TABLES}
    watch(Noticed("something"))
    for number in range(5):  # one more than asked for, as it may be under way already
        now[0] += 2.0
        read[0], read[1] = read[0] + 10 + number, read[1] + 3
        phases.after(seen(moved_keys=number, work=4.0, counting=0.1), tables)
        watch(Progress(Snapshot(0.0, (), 0, 0, 0, None)))
        assert watch.stop.is_set() == (number >= 3)
    assert [batch.way for batch in watch.batches] == [HASH, HASH, AWARE, AWARE]
    assert [batch.counts for batch in watch.batches] == [False, True, False, True]
    assert [batch.at for batch in watch.batches] == [2.0, 4.0, 6.0, 8.0]
    assert {(batch.seconds, batch.job, batch.local) for batch in watch.batches} == {(2.0, 0.25, 3)}
    assert [batch.remote for batch in watch.batches] == [10, 11, 12, 13]
    assert [batch.moved for batch in watch.batches] == [0, 1, 2, 3]
    assert statistics_share(watch.batches) == pytest.approx(0.1 / 4.0)
    assert watch.told == ["something"]


def test_a_run_in_which_no_key_moved_is_no_measurement_of_tables() -> None:
    batches = Made(None, Path(), nobody).run(
        Setting(2, TwoKeys(4, 1.0, 0), 10, False), {HASH: 1, AWARE: 2}
    )
    check_moved(batches, "")
    with pytest.raises(ThalwegError, match=r"keys that move, got none \(it does not pay"):
        check_moved([replace(batch, moved=0) for batch in batches], "it does not pay")


def test_only_batches_that_count_are_summed_up() -> None:
    batches = Made(None, Path(), nobody).run(
        Setting(2, TwoKeys(4, 1.0, 0), 1000, False, warm=1), {HASH: 3, AWARE: 2}
    )
    odd = replace(batches[0], seconds=99.0, remote=0)
    found = summary([odd, *batches[1:]], HASH, 1000)
    assert found["seconds"] == [FIXED + 0.4] * 2
    assert found["tuples_per_second"] == pytest.approx(1000 / (FIXED + 0.4))
    assert found["remote_bytes_per_tuple"] == 10
    assert found["statistics_share"] == pytest.approx(0.01)


@given(st.integers(1, 50), st.floats(0, 1), st.integers(0, 300), st.sampled_from([None, 1, 3]))
def test_expected_counts_are_those_of_the_tuples(
    keys: int, locality: float, made: int, partitions: int | None
) -> None:
    tuples = TwoKeys(keys, locality, 2, partitions)
    batch = tuples.make(np.arange(made))
    assert expected_counts(tuples, made) == {
        name: dict(Counter(batch.column(name).to_pylist())) for name in TABLES
    }


# --- ways -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
def test_all_ways_of_one_setting_have_equal_batches(source: str) -> None:
    shape = Shape(3, 4000, 0.8, WHOLE)
    assert shape.setting(source, True).rows == shape.setting(source, False).rows


def test_batches_grow_with_places_and_never_exceed_what_a_place_keeps_in_memory() -> None:
    for sizes in (WHOLE, SWEEP, QUICK):
        for source in SOURCES:
            for padding in SWEEPS["padding"]:
                setting = Shape(2, padding, 0.8, sizes).setting(source, True)
                assert Shape(4, padding, 0.8, sizes).setting(source, True).rows == 2 * setting.rows
                assert setting.rows // 2 * padding < Limits().memory


def test_each_way_is_measured_and_told() -> None:
    told: list[str] = []
    stand = Made(None, Path(), told.append)
    ways = measure(stand, Shape(3, 4000, 0.8, SWEEP), "local")
    assert set(ways) == {HASH, WORST, AWARE, FUSED}
    for name, way in ways.items():
        seconds = FIXED + EACH[name] * way["rows"]
        assert way["tuples_per_second"] == pytest.approx(way["rows"] / seconds)
        assert way["fixed_share"] == pytest.approx(FIXED / seconds, rel=0.01)
    assert len(told) == 4


def test_the_fixed_cost_is_measured_once_for_a_number_of_places() -> None:
    stand = Made(None, Path(), nobody)
    assert stand.fixed_cost(3) is stand.fixed_cost(3)
    assert stand.runs == 1
    assert stand.fixed_cost(3)["seconds"] == pytest.approx(FIXED, rel=0.01)


def test_a_timeline_has_every_batch_and_says_with_which_keys_moved() -> None:
    course = timeline(Made(None, Path(), nobody), Shape(3, 4000, 0.8, SWEEP), "local")
    batches = course["batches"]
    assert len(batches) == 2 * SWEEP.half
    assert [i for i, batch in enumerate(batches) if batch["moved_keys"]] == [SWEEP.half]
    assert [batch["way"] for batch in batches] == [HASH] * SWEEP.half + [AWARE] * SWEEP.half
    times = [batch["at_seconds"] for batch in batches]
    assert times == sorted(times)
    by_way = [
        statistics.median(b["tuples_per_second"] for b in batches if b["way"] == way)
        for way in (AWARE, HASH)
    ]
    assert course["after_vs_before"] == pytest.approx(by_way[0] / by_way[1])


# --- sweeps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["padding", "locality"])
def test_a_sweep_over_tuples_has_one_cluster(name: str, clusters: list[Any]) -> None:
    rows = sweep(name, ClusterOptions(source="local"), False, nobody)
    assert [row[name] for row in rows] == list(SWEEPS[name])
    assert clusters == [(3, "200mbit")]


def test_a_sweep_over_hosts_or_rates_has_a_cluster_for_each(clusters: list[Any]) -> None:
    sweep("hosts", ClusterOptions(), False, nobody)
    sweep("rate", ClusterOptions(hosts=2), False, nobody)
    assert [hosts for hosts, _ in clusters] == [2, 3, 4, 6, 2, 2, 2, 2]
    assert [rate for _, rate in clusters[4:]] == list(SWEEPS["rate"])


def measured(clusters: list[Any], **options: Any) -> dict[str, Any]:
    return locality_cluster.locality_cluster(False, nobody, ClusterOptions(**options))


def test_everything_is_measured_summed_up_and_drawn(clusters: list[Any], tmp_path: Path) -> None:
    found = measured(clusters, sweep="all", plots=str(tmp_path / "plots"))
    assert set(found["results"]) == {"ways", "fixed", *SWEEPS, "timeline"}
    names = found["summary"].keys()
    for source in SOURCES:
        wanted = {f"fused_vs_hash_{source}", f"aware_vs_hash_{source}", f"after_vs_before_{source}"}
        wanted |= {f"fused_vs_hash_{source}_{hosts}_hosts" for hosts in (2, 3, 4, 6)}
        wanted |= {f"remote_bytes_fused_{source}_{hosts}_hosts" for hosts in (2, 3, 4, 6)}
        wanted |= {f"fused_vs_hash_{source}_padding_0", f"fused_vs_hash_{source}_rate_1gbit"}
        assert wanted <= names
    assert found["summary"]["statistics_share"] == pytest.approx(0.01)
    drawn = {path.stem for path in (tmp_path / "plots").iterdir()}
    parts = ("ways", *SWEEPS, "timeline")
    assert drawn == {f"{part}-{source}" for part in parts for source in SOURCES}
    assert str(tmp_path) not in str(found)


@pytest.mark.parametrize(
    ("chosen", "parts"),
    [("", {"ways", "fixed"}), ("rate", {"rate"}), ("timeline", {"timeline"})],
)
def test_one_part_is_measured_alone(chosen: str, parts: set[str], clusters: list[Any]) -> None:
    assert set(measured(clusters, sweep=chosen, source="local")["results"]) == parts


def test_the_worst_shares_of_all_are_reported() -> None:
    ways = measure(Made(None, Path(), nobody), Shape(3, 4000, 0.8, SWEEP), "local")
    high = {**ways, FUSED: ways[FUSED] | {"statistics_share": 0.03, "fixed_share": 0.9}}
    rows = [{"hosts": 2, "ways": {"local": ways}}, {"hosts": 3, "ways": {"local": high}}]
    found = summarised({"hosts": rows})
    assert (found["statistics_share"], found["fixed_share"]) == (0.03, 0.9)


def test_a_quick_sweep_takes_few_values(clusters: list[Any]) -> None:
    assert len(sweep("padding", ClusterOptions(), True, nobody)) == 2


def test_options_are_checked() -> None:
    bench = locality_cluster.locality_cluster
    [options] = read_options(bench, ["--sweep", "hosts", "--plots=pictures", "--source=local"])
    assert (options.sweep, options.plots, options.sources) == ("hosts", "pictures", ("local",))
    with pytest.raises(UsageError, match="sweep: expected one of hosts, padding"):
        ClusterOptions(sweep="places")
    with pytest.raises(UsageError, match="source: expected one of local, shuffled, both"):
        ClusterOptions(source="remote")


def test_pictures_need_a_folder(clusters: list[Any], tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(UsageError, match="--plots"):
        measured(clusters, plots=str(taken), source="local")
