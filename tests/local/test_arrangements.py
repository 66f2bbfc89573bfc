"""Degrees and tables that were changed while a run went on are there in the next run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyed_counting import WAYS, Counting, running

import thalweg as tw
from thalweg.control.rerouting import Rerouting, Seen, Tables
from thalweg.errors import StateError
from thalweg.events import Decided, Event, Noticed, Reconfigured
from thalweg.routing.table import RoutingTable
from thalweg.routing.table_file import TableFile, write_table_file
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.local.widening import Widen, Widening
from thalweg.statelog.arrangements import (
    Arrangement,
    Asked,
    load_arrangements,
    save_arrangements,
)
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests

pytestmark = pytest.mark.usefixtures("forked")

KEYS = range(37)
ROWS = 400


class Once:
    """Gives some keys other tasks, when the component has as many as it is to have."""

    sampling = 0.0

    def __init__(self, degree: int) -> None:
        self.degree, self.done = degree, False

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        """Decide once."""
        if self.done or seen.moving or tables["count"].places != self.degree:
            return None
        self.done = True
        new = tables["count"].with_keys({key: (key + 1) % self.degree for key in KEYS})
        return Rerouting({"count": new}, reason="a test")


class Rows:
    """Gives rows; a run goes on until so many changes were made, and is stopped then."""

    def __init__(self) -> None:
        self.given: list[int] = []
        self.stop, self.changes = threading.Event(), 0
        self.told: list[str] = []

    def until(self, changes: int) -> Callable[[], Iterator[int]]:
        """Give the rows of earlier runs, more until so many changes were made, and some more."""
        self.stop = threading.Event()

        def rows() -> Iterator[int]:
            yield from list(self.given)
            while self.changes < changes:
                yield self._next()
            for _ in range(ROWS):
                yield self._next()
            self.stop.set()
            while True:  # it does not end by itself
                yield self._next()

        return rows

    def _next(self) -> int:
        self.given.append(len(self.given) * 7 % len(KEYS))
        return self.given[-1]

    def listen(self, event: Event) -> None:
        """Count changes."""
        self.changes += isinstance(event, Reconfigured)
        if isinstance(event, Noticed):
            self.told.append(event.text)


def counting(rows: Any, seen: list[Any], **options: Any) -> tw.Topology:
    """Keys, counted, and a map that any worker may take."""
    flow = tw.Flow("arranged")
    keys = flow.source("keys", tw.items(rows), fields={"key": int})
    keys = keys.map(lambda key: key, fields={"key": int}, name="same")
    counted = keys.key_by("key").through("count", Counting(), **options)
    counted.sink("out", tw.call(seen.append), order="total")
    return flow.build()


def local(folder: Path, **settings: Any) -> Local:
    small: dict[str, Any] = {"workers": 3, "block_rows": 20, "most_block_rows": 20, "window": 8}
    return Local(checkpoint=folder, snapshot_every=0.02, **(small | settings))


def first_run(folder: Path, seen: list[Any], way: dict[str, Any], **options: Any) -> Rows:
    """Begin with two tasks; rebalance to three, and give keys other tasks; stop."""
    rows, steering = Rows(), tw.Steering()
    steering.rebalance("same", degree=2)
    steering.rebalance("count", degree=3)
    topology = counting(rows.until(3), seen, **({"degree": 2} | options))
    runtime = local(folder, rerouter=Once(3), **way)
    result = topology.run(on=runtime, stop=rows.stop, steering=steering, listen=rows.listen)
    assert result.stopped
    assert result.metrics.component("count").degree == 3
    return rows


def next_run(folder: Path, rows: Rows, seen: list[Any], way: Any, **options: Any) -> Any:
    """Go on for a while, without any change."""
    topology = counting(rows.until(0), seen, **({"degree": 2} | options))
    return topology.run(on=local(folder, **way), stop=rows.stop, listen=rows.listen)


def counts(seen: list[Any]) -> list[tuple[int, int]]:
    return [(t.key, t.count) for t in seen]


def expected(rows: Rows, seen: list[Any]) -> list[tuple[int, int]]:
    """Give what a serial execution gives for as many rows as were seen; others were not read."""
    return running(rows.given[: len(seen)])


@pytest.mark.parametrize(
    ("way", "options"),
    [*((way, {}) for way in WAYS.values()), ({}, {"isolation": "process"}), ({}, {"degree": None})],
    ids=[*WAYS, "process", "no degree"],
)
def test_a_run_goes_on_with_the_degrees_and_tables_of_the_last_one(
    tmp_path: Path, way: dict[str, Any], options: dict[str, Any]
) -> None:
    first: list[Any] = []
    rows = first_run(tmp_path, first, way, **options)
    second: list[Any] = []
    result = next_run(tmp_path, rows, second, way, **options)
    assert counts(first + second) == expected(rows, first + second)
    assert result.table("counts") == Counter(t.key for t in first + second)
    assert len(second) >= ROWS
    assert result.metrics.component("count").degree == 3
    assert {(t.key, t.task) for t in second} == {(key, (key + 1) % 3) for key in KEYS}
    assert "'count' begins with degree 3, as it had come to" in rows.told
    assert "'same' begins with degree 2, as it had come to" in rows.told


def test_what_was_widened_stays_so_when_a_policy_takes_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the next run the policy leads from the start, and nobody widens."""
    widened = [Widen("count", 4, "it waits")]
    monkeypatch.setattr(Widening, "look", lambda *_: widened.pop() if widened else None)
    rows, steering, seen = Rows(), tw.Steering(), list[Any]()

    def listen(event: Event) -> None:
        rows.listen(event)
        if isinstance(event, Reconfigured):
            steering.set_policy("static")
        rows.changes += isinstance(event, Decided) and event.replaces is not None

    topology = counting(rows.until(2), seen)
    topology.run(on=local(tmp_path), stop=rows.stop, steering=steering, listen=listen)
    result = next_run(tmp_path, rows, seen, {}, degree=None)
    assert result.metrics.component("count").degree == 4
    assert counts(seen) == expected(rows, seen)


def test_another_degree_that_the_topology_asks_for_counts(tmp_path: Path) -> None:
    first: list[Any] = []
    rows = first_run(tmp_path, first, {})
    result = next_run(tmp_path, rows, first, {}, degree=4)
    assert result.metrics.component("count").degree == 4
    assert "'count' begins as it is asked for; it had come to 3" in rows.told
    again = next_run(tmp_path, rows, first, {}, degree=2)
    assert again.metrics.component("count").degree == 2
    assert counts(first) == expected(rows, first)


def test_a_table_of_another_file_counts(tmp_path: Path) -> None:
    def run(places: dict[Any, int], seen: list[Any]) -> Any:
        write_table_file(tmp_path / "table.json", TableFile(3, {"key": places}))
        way = {"table": str(tmp_path / "table.json")}
        return next_run(tmp_path / "checkpoint", rows, seen, way, degree=None)

    first: list[Any] = []
    write_table_file(tmp_path / "table.json", TableFile(3, {"key": {1: 0}}))
    way = {"table": str(tmp_path / "table.json")}
    rows, steering = Rows(), tw.Steering()
    topology = counting(rows.until(1), first, degree=None)
    runtime = local(tmp_path / "checkpoint", rerouter=Once(3), **way)
    topology.run(on=runtime, stop=rows.stop, steering=steering, listen=rows.listen)
    second: list[Any] = []
    run({1: 0}, second)
    assert {(t.key, t.task) for t in second} == {(key, (key + 1) % 3) for key in KEYS}
    third: list[Any] = []
    run(dict.fromkeys(KEYS, 2), third)
    assert {t.task for t in third} == {2}
    seen = first + second + third
    assert counts(seen) == expected(rows, seen)


def test_epochs_go_on(tmp_path: Path) -> None:
    rows = first_run(tmp_path, [], {})
    next_run(tmp_path, rows, [], {})
    state = Location.of(tmp_path / "state")
    manifest = Manifests(state).latest()
    assert manifest is not None
    assert manifest.epoch == 3
    assert set(load_arrangements(state, manifest.arrangements)) == {"count", "same"}


def test_one_object_is_kept_of_each_arrangement(tmp_path: Path) -> None:
    rows = first_run(tmp_path, [], {})
    next_run(tmp_path, rows, [], {})
    state = Location.of(tmp_path / "state")
    older = Manifests(state).older(1 << 40)
    named = {m.arrangements.name for m in older if m.arrangements is not None}
    assert {f"arrangements/{name}" for name in state.names("arrangements")} == named


places = st.integers(1, 5).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(st.integers(0, count - 1), min_size=count, max_size=9),
        st.dictionaries(st.integers(0, 2**64 - 1), st.integers(0, count - 1)),
    )
)


@given(places, st.integers(0, 9), st.one_of(st.none(), st.integers(1, 9)))
def test_an_arrangement_comes_back_as_it_was(
    found: tuple[int, list[int], dict[int, int]], epoch: int, asked: int | None
) -> None:
    count, groups, keys = found
    hashes = np.array(sorted(keys), np.uint64)
    own = np.array([keys[key] for key in sorted(keys)], np.int64)
    table = RoutingTable(epoch, count, np.array(groups, np.int64), hashes, own)
    kept = Arrangement.of(Asked(asked, len(groups)), count, table)
    again = kept.table
    assert again is not None
    assert Arrangement.of(kept.asked, again.places, again) == kept
    some = np.append(hashes, np.array([1, 1 << 63], np.uint64))
    assert again.places_of(some).tolist() == table.places_of(some).tolist()
    assert (again.epoch, again.places) == (epoch, count)
    assert Arrangement.of(kept.asked, count, None).table is None


def test_damaged_arrangements_are_refused(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    ref = save_arrangements(location, {"count": Arrangement(Asked(None, 4), 2)}, 1)
    assert ref is not None
    assert load_arrangements(location, ref) == {"count": Arrangement(Asked(None, 4), 2)}
    location.write(ref.name, b"x" * ref.size)
    with pytest.raises(StateError, match="damaged"):
        load_arrangements(location, ref)
