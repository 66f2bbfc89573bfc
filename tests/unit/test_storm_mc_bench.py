"""The Storm-MC bench: what it counts, what it compares with, and what it refuses."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import thalweg as tw
from thalweg.bench import storm_mc, storm_parts
from thalweg.bench.storm_mc import CASES, PARTS, Options
from thalweg.bench.storm_mc_published import COUNTED, TABLES, threads
from thalweg.bench.usage import usage
from thalweg.bench.watching import Watch, watched
from thalweg.events import Progress, RunStarted
from thalweg.metrics import ComponentMetrics, Snapshot
from thalweg.testing import PAUSE, run_inline
from thalweg.workloads.stormmc.mail import mail
from thalweg.workloads.stormmc.mails import mails, write_mails


@pytest.mark.parametrize("table", TABLES)
def test_the_tables_have_a_row_for_each_degree_and_a_column_for_each_component(table: str) -> None:
    for rows in TABLES[table].values():
        assert len(rows) == 10
        assert {len(row.tuples) for row in rows} == {len(COUNTED[table])}
        assert all(row.per_second == row.tuples[-1] / 300 for row in rows)


def test_storm_mc_is_up_to_three_and_a_third_times_as_fast_as_storm_in_the_document() -> None:
    table = TABLES["wordcount"]
    ratios = [a.per_second / b.per_second for a, b in zip(*table.values(), strict=True)]
    assert max(ratios) == pytest.approx(3.26, abs=0.01)
    assert (threads("storm_mc", 30), threads("storm", 30)) == (32, 109)


def snapshot(elapsed: float, tuples: int) -> Snapshot:
    metrics = ComponentMetrics("count", 1, tuples, 0, 0, 0.0, (tuples,))
    return Snapshot(elapsed, (metrics,), tuples, tuples, 0, None)


def test_only_what_happens_between_warm_and_the_end_counts() -> None:
    watch = Watch("count", warm=1.0, seconds=2.0)
    watch(RunStarted("words", "local"))
    for elapsed, tuples in ((0.5, 70), (1.0, 100), (2.0, 250), (3.0, 500), (3.2, 900)):
        assert watch.stop.is_set() == (elapsed > 3.0)
        watch(Progress(snapshot(elapsed, tuples)))
    found = watch.found()
    assert found["tuples"] == {"count": 400}
    assert (found["seconds"], found["per_second"]) == (2.0, 200.0)
    assert found["megabytes"] > 1


def test_where_tuples_come_by_large_blocks_whole_blocks_are_measured() -> None:
    watch = Watch("count", warm=1.0, seconds=2.0)
    blocks = ((0.9, 100), (1.0, 100), (2.0, 200), (3.0, 200), (4.0, 300), (4.1, 300), (5.0, 400))
    for elapsed, tuples in blocks:
        watch(Progress(snapshot(elapsed, tuples)))
    assert watch.found()["per_second"] == 50.0


def test_a_run_in_which_nothing_arrives_is_given_up() -> None:
    watch = Watch("count", warm=1.0, seconds=2.0)
    for elapsed in (1.0, 100.0, 500.0):
        assert not watch.stop.is_set()
        watch(Progress(snapshot(elapsed, 0)))
    assert watch.stop.is_set()
    with pytest.raises(tw.ThalwegError, match="nothing came to 'count'"):
        watch.found()


def test_every_topology_runs_until_there_is_enough_to_see(tmp_path: Path) -> None:
    write_mails(tmp_path / "mails", mails(20))
    for table, make in CASES.values():
        found = watched(make(2, tmp_path / "mails"), COUNTED[table][-1], 0.0, 0.05)
        assert found["per_second"] > 0
        assert found["threads"] >= 1
        assert set(COUNTED[table]) <= set(found["tuples"])


def test_mails_are_read_again_until_the_run_is_stopped(tmp_path: Path) -> None:
    write_mails(tmp_path / "mails", mails(3))
    found = watched(mail(tmp_path / "mails", again=True), "deserialise", 0.0, 0.05)
    assert found["tuples"]["mails"] > 3


def test_the_same_components_count_in_process_and_as_children() -> None:
    chosen = [name for name in PARTS if name.endswith("in_process")]
    for make, last in (PARTS[name] for name in (*chosen, "one_multilang_msgpack")):
        assert watched(make(), last, 0.0, 0.05)["per_second"] > 0


def parts_outputs(name: str, inputs: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return run_inline(storm_parts.whole(name, "in_process"), inputs).outputs


def test_streamparse_classes_measure_the_same_mails_as_ours(tmp_path: Path) -> None:
    made = list(mails(40))
    write_mails(tmp_path / "mails", iter(made))
    ours = mail(tmp_path / "mails").run(on="inline").metrics.component("metrics").received
    given = [msgspec.json.encode(each).decode() for each in made]
    [told] = parts_outputs("mail", {"mails": [*given, PAUSE("5 s")]})["global"]
    assert told.mails == ours > 0


def test_streamparse_classes_sort_the_latest_messages() -> None:
    items = [f"{n * 7919 % 1000:03}" for n in range(250)]
    [told] = parts_outputs("rolling_sort", {"messages": [*items, PAUSE("11 s")]})["sort"]
    assert told.messages == sorted(items[150:])


def test_streamparse_classes_count_words() -> None:
    told = parts_outputs("wordcount", {"sentences": ["to be or not to be"]})["count"]
    assert {t.word: t.count for t in told} == {"to": 2, "be": 2, "or": 1, "not": 1}


def made_up(name: str, degree: int, _path: Path, _options: Options) -> dict[str, Any]:
    speed = {"wordcount_in_process": 60.0, "one_multilang_msgpack": 9.0}.get(name, 2.0 * degree)
    return {"per_second": speed, "cpu": 1.0, "megabytes": 1.0, "threads": 1}


def test_a_report_has_each_degree_with_what_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm_mc, "_apart", made_up)
    told: list[str] = []
    options = Options(degrees="1,3", repeat=2, mails=1)
    found = storm_mc.run(False, told.append, options)
    assert len(told) == 2 * (2 * len(CASES) + len(PARTS))
    row = found["results"]["mail"]["3"]
    assert (row["best"], len(row["turns"])) == (6.0, 2)
    assert row["published"]["storm_mc"]["per_second"] == 8_493_772 / 300
    assert row["published"]["storm"]["threads"] == 49 + 2 * 16
    assert found["summary"]["in_process_vs_multilang_json"] == 30.0
    assert found["summary"]["in_process_vs_multilang_msgpack_one_bolt"] == 2.0 / 9.0
    assert found["summary"]["bolts_vs_multilang_json_median"] == 1.0
    assert found["summary"]["multilang_msgpack_tuples_per_s"] == 9.0
    assert found["summary"]["mail_best_degree"] == 3


def test_one_topology_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm_mc, "_apart", made_up)
    options = Options(topology="rolling-sort", degrees="12")
    found = storm_mc.run(False, lambda _line: None, options)
    assert set(found["results"]) == {"rolling_sort", "rolling_sort_blocks"}
    assert found["results"]["rolling_sort"]["12"]["published"] == {}
    quick = storm_mc.run(True, lambda _line: None, replace(options, topology="mail"))
    assert list(quick["results"]["mail"]) == ["1", "2"]


@pytest.mark.parametrize("degrees", ["", "1,x", "0", "2,-1"])
def test_degrees_that_are_none_are_refused(degrees: str) -> None:
    with pytest.raises(tw.UsageError, match="degrees"):
        storm_mc.run(False, lambda _line: None, Options(degrees=degrees))


def test_a_topology_that_does_not_exist_is_refused() -> None:
    with pytest.raises(tw.UsageError, match="rolling-sort"):
        storm_mc.run(False, lambda _line: None, Options(topology="sorting"))


def test_what_children_use_counts_too() -> None:
    """In a family of its own: what else stems from the tests comes and goes meanwhile."""
    command, pipe = ["sh", "-c", "read line; cat; :"], subprocess.PIPE
    with subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe) as parent:  # noqa: S603 (sh)
        assert parent.stdin is not None
        assert parent.stdout is not None
        before = usage(parent.pid)
        parent.stdin.write(b"begin\nhello\n")
        assert parent.stdout.read(6) == b"hello\n"
        with_child = usage(parent.pid)
        parent.communicate()
    assert (before.threads, with_child.threads) == (1, 2)
    assert with_child.megabytes > before.megabytes
    assert usage(parent.pid).threads == 0
