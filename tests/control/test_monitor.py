"""The monitor: windows, gaps, grace, and a history that survives."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scaling_views import bolt, samples, source, view
from typer.testing import CliRunner

from thalweg.cli.app import app
from thalweg.control.scaling.autoscale import Autoscale
from thalweg.control.scaling.forecasting import linear
from thalweg.control.scaling.history import History, Origin, Recorded
from thalweg.control.scaling.monitor import Monitor, stretched
from thalweg.control.scaling.policies import NAMES, POLICIES, named
from thalweg.control.scaling.values import (
    Change,
    Decision,
    Node,
    Policy,
    Sample,
    TaskLoad,
    Timing,
)
from thalweg.errors import StateError, UsageError

NODES = (Node("posts"), bolt("count", "posts"))
POLICIES_MADE: dict[str, Policy] = {
    **{name: named(name) for name in NAMES},
    "autoscale straight": Autoscale("straight"),
}


def sample(time: float, received: int = 10, degree: int = 1) -> Sample:
    return Sample("count", time, degree, received, received)


def test_a_window_slides_with_every_sample() -> None:
    monitor = Monitor(NODES, Timing(30, 10, 30))
    for at, received in enumerate([10, 20, 40, 80], 1):
        monitor.add(sample(10.0 * at, received))
    window = monitor.view(40.0).windows["count"]
    assert [s.received for s in window.samples] == [20, 40, 80]
    assert window.complete
    assert window.trend.slope == 30.0
    assert window.trend.at(2) == pytest.approx(140 / 3)
    assert len(monitor.view(40.0).history["count"]) == 4


@given(st.lists(st.integers(0, 10**6), min_size=3, max_size=60))
def test_the_trend_that_is_kept_up_equals_the_one_computed_anew(values: list[int]) -> None:
    monitor = Monitor(NODES, Timing(30, 10, 30))
    for at, received in enumerate(values, 1):
        monitor.add(sample(10.0 * at, received))
    window = monitor.view(10.0 * len(values)).windows["count"]
    fresh = linear(values[-3:])
    assert window.fitted is not None
    assert window.trend.slope == pytest.approx(fresh.slope)
    assert window.trend.at(2) == pytest.approx(fresh.at(2), abs=1e-6)


def test_a_missing_sample_leaves_the_window_incomplete_until_it_has_passed() -> None:
    monitor = Monitor(NODES, Timing(30, 10, 30))
    complete = []
    for at in (10, 20, 30, 50, 60, 70):
        monitor.add(sample(float(at)))
        complete.append(monitor.view(float(at)).windows["count"].complete)
    assert complete == [False, False, True, False, False, True]


@pytest.mark.parametrize(
    "times",
    [
        (1.0, 2.0, 3.0, 4.0, 30.0),  # some of a run that looked more often
        (10.0, 11.0, 29.0),  # one of them stands for no period
        (14.0, 29.5, 39.0),  # a gap between two
        (28.0, 29.0, 30.0),
    ],
)
def test_a_window_is_complete_only_where_samples_are_a_period_apart(
    times: tuple[float, ...],
) -> None:
    monitor = Monitor(NODES, Timing(30, 10, 30))
    monitor.add(*map(sample, times))
    window = monitor.view(times[-1]).windows["count"]
    assert not window.complete
    assert window.fitted is None


@pytest.mark.parametrize("name", POLICIES)
def test_no_policy_changes_anything_where_samples_are_missing(name: str) -> None:
    monitor = Monitor(NODES, named(name).timing)
    for at in (10, 30):
        monitor.add(Sample("count", float(at), 1, 900, 10, {}, 900, 1.0, 1.0, 10.0))
    for made in named(name).decide(monitor.view(30.0)):
        assert not made.changes
        assert name == "static" or "samples are missing" in made.reason


@pytest.mark.parametrize("policy", POLICIES_MADE.values(), ids=POLICIES_MADE)
@pytest.mark.parametrize("gap", ["posts", "parent"])
def test_a_component_does_not_change_by_what_is_missing_above_it(gap: str, policy: Policy) -> None:
    """It has two tasks, which is what it needs; the last that was heard from above is old."""
    fits, much = [155] * 12, [155] * 8 + [2000] * 2
    seen = {
        "posts": source("posts", much if gap == "posts" else fits),
        "parent": samples("parent", much if gap == "parent" else fits, degree=2),
        "child": samples("child", fits, degree=2),
    }
    nodes = [Node("posts"), bolt("parent", "posts"), bolt("child", "parent")]
    shown = view(nodes, seen, delta=policy.timing.delta)
    assert not shown.windows[gap].complete
    assert shown.windows["child"].complete
    for made in policy.decide(shown):
        assert not made.changes, made


@pytest.mark.parametrize("name", POLICIES)
def test_no_policy_changes_anything_within_its_grace(name: str) -> None:
    policy = named(name)
    monitor = Monitor(NODES, policy.timing)
    for one in samples("count", [900] * 10, cost=1.0, pending=900):
        monitor.add(one)
    monitor.changed(99.0, [Decision("count", 1, 2, "asked for")])
    for made in policy.decide(monitor.view(100.0)):
        assert not made.changes


def test_samples_may_be_early_or_late_by_part_of_a_period() -> None:
    monitor = Monitor(NODES, Timing(30, 10, 30))
    for at in (9.0, 22.0, 31.5):
        monitor.add(sample(at))
    assert monitor.view(31.5).windows["count"].complete


def test_a_sample_that_is_not_newer_is_left_out() -> None:
    monitor = Monitor(NODES, Timing(30, 10, 30))
    monitor.add(sample(10.0, 1), sample(10.0, 2), sample(5.0, 3))
    assert [s.received for s in monitor.view(10.0).history["count"]] == [1]


def test_grace_lasts_from_a_change_and_decisions_for_no_change_begin_none() -> None:
    monitor = Monitor(NODES, Timing(30, 10, 30))
    monitor.changed(50.0, [Decision("count", 2, 2, "nothing")])
    assert not monitor.view(55.0).in_grace
    monitor.changed(60.0, [Decision("count", 3, 2, "more")])
    assert monitor.view(89.0).in_grace
    assert not monitor.view(90.0).in_grace
    assert monitor.view(90.0).changes == (Change(60.0, "count", 2, 3),)


def test_the_degree_in_force_is_that_of_the_last_sample_unless_it_is_given() -> None:
    monitor = Monitor(NODES)
    monitor.add(sample(10.0, degree=3))
    assert monitor.view(10.0).degrees["count"] == 3
    assert monitor.view(10.0, {"count": 5}).degrees["count"] == 5


def test_what_is_older_than_wanted_is_forgotten() -> None:
    monitor = Monitor(NODES, Timing(30, 10, 30), keep=100.0)
    for at in range(1, 50):
        monitor.add(sample(10.0 * at))
    kept = monitor.view(490.0).history["count"]
    assert kept[0].time == 390.0


def test_delta_is_stretched_beyond_every_operator_window_with_a_notice() -> None:
    monitor = Monitor([*NODES, bolt("hourly", "count", window=120.0)], Timing(60, 10, 60))
    assert monitor.timing == Timing(130.0, 10, 130.0)
    assert "'hourly' is 120 s" in monitor.notice
    assert Monitor(NODES).notice == ""
    assert stretched(Timing(60, 10, 60), [bolt("short", "count", window=59.0)])[1] == ""


# --- history --------------------------------------------------------------------------------------


def test_a_history_survives_a_restart(tmp_path: Path) -> None:
    seen = samples("count", [10, 20, 30], tasks=(TaskLoad(0.5),))
    made = Decision("count", 4, 1, "critical activity", {"level": 3.5})
    with History(tmp_path / "history.db") as history:
        history.add(seen)
        history.decided(30.0, "autoscale", [made, Decision("count", 4, 4, "nothing to do")])
    with History(tmp_path / "history.db") as history:
        assert history.samples() == list(seen)
        assert history.samples(since=20.0) == list(seen[1:])
        assert history.decisions()[0].decision == made
        assert history.changes() == [Change(30.0, "count", 1, 4)]
        monitor = Monitor(NODES, Timing(30, 10, 30))
        monitor.remember(history.samples(), history.changes())
    view = monitor.view(30.0)
    assert view.windows["count"].received == 60
    assert view.in_grace


def test_components_that_are_gone_are_not_remembered() -> None:
    monitor = Monitor(NODES)
    monitor.remember(samples("old", [1]), [Change(1.0, "old", 1, 2)])
    assert monitor.view(10.0).changes == ()


def test_old_rows_are_deleted(tmp_path: Path) -> None:
    with History(tmp_path / "history.db", keep=15.0) as history:
        for one in samples("count", [10, 20, 30, 40]):
            history.add([one])
            history.decided(one.time, "static", [Decision("count", 1, 1, "nothing")])
        assert [s.time for s in history.samples()] == [30.0, 40.0]
        assert [r.time for r in history.decisions()] == [30.0, 40.0]


def test_a_file_that_is_no_history_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database at all, but long enough to be read as one")
    with pytest.raises(StateError, match="expected a file of scaling decisions"):
        History(tmp_path / "text.db")
    with pytest.raises(StateError, match="no such file"):
        History(tmp_path / "none.db", writes=False)
    newer = sqlite3.connect(tmp_path / "newer.db")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(StateError, match="version 99"):
        History(tmp_path / "newer.db")


def test_the_history_is_printed_with_reasons(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with History(path) as history:
        history.decided(1.7e9, "autoscale", [Decision("count", 4, 1, "critical activity")])
        history.decided(1.7e9 + 10, "autoscale", [Decision("count", 4, 4, "nothing to do")])
    shown = CliRunner().invoke(app, ["history", str(path)])
    assert shown.exit_code == 0
    assert "2023-11-14 22:13:20" in shown.stdout
    assert "1 -> 4" in shown.stdout
    assert "critical activity" in shown.stdout
    assert "nothing to do" not in shown.stdout
    assert "nothing to do" in CliRunner().invoke(app, ["history", str(path), "--all"]).stdout


def test_the_history_names_the_topology_of_each_row_and_shows_one_of_them(tmp_path: Path) -> None:
    path, wide = tmp_path / "history.db", {"COLUMNS": "200"}
    with History(path) as history:
        for at, name in enumerate(["words", "clicks", None]):
            made = Decision("count", 4, 1, f"too many for {name}")
            seen, wish = samples("count", [1] * (at + 1))[at:], bool(at == 1)
            history.add(seen, [Recorded(10.0, "ds2", made, wish)], Origin(name, 10.0))
    every = CliRunner().invoke(app, ["history", str(path)], env=wide).stdout
    assert re.search(r"10\.0 s +words +ds2 +count .* too many for words", every)
    assert re.search(r"10\.0 s +clicks +ds2 +count .* too many for clicks", every)
    assert re.search(r"10\.0 s +ds2 +count .* too many for None", every)
    for name in ("words", "clicks"):
        one = CliRunner().invoke(app, ["history", str(path), "--topology", name], env=wide)
        assert re.findall("too many for (.*?) *\n", one.stdout) == [name]
    slip = CliRunner().invoke(app, ["history", str(path), "--topology", "word"], env=wide)
    assert slip.exit_code == 1
    expected = "expected one that it has: clicks, words (did you mean 'words'?)"
    assert expected in " ".join(slip.stderr.split())


def test_wishes_are_printed_as_not_carried_out(tmp_path: Path) -> None:
    path, wide = tmp_path / "history.db", {"COLUMNS": "200"}
    with History(path) as history:
        history.decided(10.0, "ds2", [Decision("count", 4, 1, "too much")])
        wished = [Decision("count", 8, 4, "far too much"), Decision("count", 4, 4, "enough")]
        history.add((), [Recorded(20.0, "static", each, wish=True) for each in wished])
    shown = CliRunner().invoke(app, ["history", str(path)], env=wide)
    assert re.search(r"ds2 +count +1 -> 4 +yes +too much", shown.stdout)
    assert re.search(r"static +count +4 -> 8 +no +far too much", shown.stdout)
    assert "enough" not in shown.stdout
    counts = "1 decisions, 1 of them for a change; 2 wishes, 1 of them for a change"
    assert shown.stderr.strip() == counts
    done = CliRunner().invoke(app, ["history", str(path), "--no-wishes"], env=wide)
    assert "far too much" not in done.stdout
    assert done.stderr.strip() == "1 decisions, 1 of them for a change"


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(UsageError, match="expected one of"):
        named("magic")
    with pytest.raises(UsageError, match="expected one of"):
        named("ds2:economy")
