"""The history of a run: it outlives whoever decides, harms nobody, and mixes nothing up."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scaling_views import bolt, samples, source

from thalweg.control.loop import Plan
from thalweg.control.scaling import history as history_module
from thalweg.control.scaling.history import History, Origin, Recorded
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Change, Decision, Node, Sample
from thalweg.errors import StateError
from thalweg.events import Decided, Event, Noticed
from thalweg.runtimes.deciding import Around, Deciding
from thalweg.topology import Topology

NODES = (Node("posts"), bolt("count", "posts"))

#: What a file of version 1 has, of a run that nobody knows the period of.
_OLD = """
CREATE TABLE samples (
    component TEXT NOT NULL, time REAL NOT NULL, sample TEXT NOT NULL,
    PRIMARY KEY (component, time)
) WITHOUT ROWID;
CREATE TABLE decisions (time REAL NOT NULL, policy TEXT NOT NULL, decision TEXT NOT NULL);
INSERT INTO samples VALUES ('count', 10.0,
    '{"component":"count","time":10.0,"degree":2,"received":7,"processed":7}');
INSERT INTO decisions VALUES (10.0, 'ds2',
    '{"component":"count","degree":3,"before":2,"reason":"too much"}');
PRAGMA user_version = 1;
"""


class Stays:
    """A runtime that does what it is told at once."""

    busy = False

    def __init__(self) -> None:
        self.degrees = {"posts": 1, "count": 1}

    def realise(self, plan: Plan) -> Plan:
        self.degrees |= {made.component: made.degree for made in plan.degrees}
        return plan


def deciding(
    path: Path, told: list[Event], speed: float = 1.0, topology: str = "one", **how: Any
) -> Deciding:
    scaling = Scaling("autoscale", history=path, speed=speed, **how)
    return Deciding(scaling, NODES, Stays(), Around(), told.append, Topology(topology, ()))


def looks(count: int, speed: float = 1.0) -> Iterator[tuple[float, list[Sample]]]:
    """What a component gets that is far too much for one task."""
    pairs = zip(source("posts", [900] * count), samples("count", [900] * count), strict=True)
    for pair in pairs:
        at = pair[0].time / speed
        yield at, [replace(one, time=at) for one in pair]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a file that another holds."""
    monkeypatch.setattr(history_module, "_WAIT", 0.0)


@pytest.mark.usefixtures("impatient")
def test_a_history_that_another_process_holds_is_given_up_and_the_stream_goes_on(
    tmp_path: Path,
) -> None:
    told: list[Event] = []
    policies = deciding(tmp_path / "h.db", told)
    policies.open(0.0)
    other = sqlite3.connect(tmp_path / "h.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for now, seen in looks(6):
        policies.decide(now, seen)
    other.execute("ROLLBACK")
    other.close()
    policies.close()
    notices = [event.text for event in told if isinstance(event, Noticed)]
    assert len(notices) == 1
    assert "database is locked" in notices[0]
    assert "goes on without" in notices[0]
    assert [event.degrees["count"] for event in told if isinstance(event, Decided)][-1] == (1, 8)


@pytest.mark.usefixtures("impatient")
def test_whoever_reads_a_history_does_not_stop_whoever_writes_it(tmp_path: Path) -> None:
    with History(tmp_path / "h.db") as history:
        history.add(samples("count", [1]))
        reader = sqlite3.connect(tmp_path / "h.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM samples").fetchall()
        history.add(samples("count", [1, 2]))
        reader.close()
        assert len(history.samples()) == 2


@pytest.mark.usefixtures("impatient")
def test_a_look_is_kept_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    made = Decision("count", 2, 1, "too much")
    with History(tmp_path / "h.db") as history:
        other = sqlite3.connect(tmp_path / "h.db", isolation_level=None)
        other.execute("DROP TABLE decisions")
        other.close()
        with pytest.raises(StateError, match="expected a file that can be written"):
            history.add(samples("count", [1]), [Recorded(10.0, "ds2", made)])
        assert history.samples() == []


def test_a_run_does_not_go_on_with_samples_of_another_period(tmp_path: Path) -> None:
    quick = deciding(tmp_path / "h.db", [], speed=20)
    quick.open(0.0)
    for now, seen in looks(30, speed=20):
        quick.decide(now, seen)
    quick.close()
    slow = deciding(tmp_path / "h.db", [])
    slow.open(20.0)
    assert slow.view(20.0).history["count"] == ()
    assert slow.view(20.0).changes == ()
    slow.close()
    again = deciding(tmp_path / "h.db", [], speed=20)
    again.open(20.0)
    assert len(again.view(20.0).history["count"]) == 30
    assert again.view(20.0).changes != ()
    again.close()


def test_a_run_does_not_go_on_with_samples_of_another_topology(tmp_path: Path) -> None:
    one = deciding(tmp_path / "h.db", [], topology="one")
    one.open(0.0)
    for now, seen in looks(3):
        one.decide(now, seen)
    one.close()
    other = deciding(tmp_path / "h.db", [], topology="other")
    other.open(40.0)
    assert other.view(40.0).history["count"] == ()
    other.close()


def test_files_of_version_1_can_be_read_and_added_to(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "old.db")
    old.executescript(_OLD)
    old.close()
    for writes in (False, True):
        with History(tmp_path / "old.db", writes=writes) as history:
            assert [s.received for s in history.samples()] == [7]
            assert history.changes() == [Change(10.0, "count", 2, 3)]
            assert history.origins() == [Origin()]
            assert history.samples(origin=Origin("one", 10.0)) == []
    with History(tmp_path / "old.db") as history:
        history.add(samples("count", [1, 2])[1:], origin=Origin("one", 10.0))
    with History(tmp_path / "old.db", writes=False) as history:
        assert [s.received for s in history.samples()] == [7, 2]
        assert [s.received for s in history.samples(origin=Origin("one", 10.0))] == [2]
        assert history.origins() == [Origin(), Origin("one", 10.0)]


#: What a file of version 2 has: a decision that was carried out, of a topology.
_WITHOUT_WISHES = """
CREATE TABLE samples (
    component TEXT NOT NULL, time REAL NOT NULL, sample TEXT NOT NULL,
    topology TEXT, period REAL, PRIMARY KEY (component, time)
) WITHOUT ROWID;
CREATE TABLE decisions (
    time REAL NOT NULL, policy TEXT NOT NULL, decision TEXT NOT NULL, topology TEXT, period REAL
);
INSERT INTO decisions VALUES (10.0, 'ds2',
    '{"component":"count","degree":3,"before":2,"reason":"too much"}', 'one', 10.0);
PRAGMA user_version = 2;
"""


@pytest.mark.parametrize("text", [_OLD, _WITHOUT_WISHES], ids=["version 1", "version 2"])
def test_wishes_can_be_added_to_files_that_had_none(tmp_path: Path, text: str) -> None:
    old = sqlite3.connect(tmp_path / "old.db")
    old.executescript(text)
    old.close()
    wish = Recorded(20.0, "ds2", Decision("count", 9, 3, "far too much"), wish=True)
    with History(tmp_path / "old.db", writes=False) as history:
        assert [made.topology for made in history.decisions()] == [None if text == _OLD else "one"]
        assert history.wishes() == []
        assert history.changes() == [Change(10.0, "count", 2, 3)]
    with History(tmp_path / "old.db") as history:
        history.add((), [wish])
    with History(tmp_path / "old.db", writes=False) as history:
        assert history.wishes() == [wish]
        assert history.changes() == [Change(10.0, "count", 2, 3)]


def test_a_dry_run_keeps_what_each_policy_wished_whenever_that_changed(tmp_path: Path) -> None:
    policies = deciding(tmp_path / "h.db", [], dry_run=True, beside=("static",))
    policies.open(0.0)
    for now, seen in looks(30):
        policies.decide(now, seen)
    policies.close()
    with History(tmp_path / "h.db", writes=False) as history:
        assert history.decisions() == []
        wishes = [(w.policy, w.decision.before, w.decision.degree) for w in history.wishes()]
    assert wishes == [("autoscale", 1, 1), ("static", 1, 1), ("autoscale", 1, 8)]


def test_policies_beside_the_one_that_leads_only_wish(tmp_path: Path) -> None:
    policies = deciding(tmp_path / "h.db", [], beside=("incremental",))
    policies.open(0.0)
    for now, seen in looks(30):
        policies.decide(now, seen)
    policies.close()
    with History(tmp_path / "h.db", writes=False) as history:
        assert {made.policy for made in history.decisions()} == {"autoscale"}
        assert {made.policy for made in history.wishes()} == {"incremental"}


def test_a_later_run_does_not_take_wishes_for_changes(tmp_path: Path) -> None:
    dry = deciding(tmp_path / "h.db", [], dry_run=True)
    dry.open(0.0)
    for now, seen in looks(30):
        dry.decide(now, seen)
    dry.close()
    later = deciding(tmp_path / "h.db", [])
    later.open(300.0)
    assert len(later.view(300.0).history["count"]) == 30
    assert later.view(300.0).changes == ()
    later.close()
