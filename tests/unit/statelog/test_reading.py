"""A committed version is read as it was written, whatever places, sharing and merging did to it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.codecs import MsgpackCodec
from thalweg.errors import StateError
from thalweg.hashing import hash_key
from thalweg.routing.table import RoutingTable
from thalweg.statelog import (
    CompactionLimits,
    ComponentMark,
    CorruptRun,
    Location,
    Manifest,
    Manifests,
    RunRef,
    Runs,
    Trim,
    compact,
    plan_all,
    replaced,
    write_run,
)
from thalweg.statelog import reading as reading_module
from thalweg.statelog.keying import decode_keys
from thalweg.statelog.reading import Version, manifest_at, versions_at
from unit.statelog.building import GONE, manifest, part

KEYED = ComponentMark("keyed", ("word",), ("string",), "MsgpackCodec(Any)", 2)


def contents(version: Version, name: str = "count") -> dict[Any, Any]:
    """What a reader sees; that a key comes twice is an error."""
    seen: dict[Any, Any] = {}
    for batch in version.batches(name):
        values = map(MsgpackCodec().decode, batch.column("value").to_pylist())
        for key, value in zip(decode_keys(batch.column("key")), values, strict=True):
            assert key not in seen
            seen[key] = value
    return seen


# --- histories ------------------------------------------------------------------------------------


@dataclass
class History:
    """Batches, changes of places and merges, as the Spark runtime makes them; and a dictionary."""

    location: Location
    places: int = 2
    degree: int = 2
    number: int = 0
    runs: list[list[RunRef]] = field(default_factory=lambda: [[], []])
    model: dict[Any, Any] = field(default_factory=dict)
    #: Merges so far: no two runs have one name.
    merges: int = 0

    def owner(self, hashes: Any) -> Any:
        return RoutingTable.even(self.degree).places_of(hashes) % self.places

    def put(self, values: dict[Any, Any]) -> None:
        self.number += 1
        for place in range(self.places):
            own = {k: v for k, v in values.items() if self._place(k) == place}
            if own:
                name = f"runs/{self.number:012}-{place}"
                versions = self.number, self.number
                made = write_run(self.location, name, {"count": part(own)}, versions)
                self.runs[place].append(made)
        self.model |= values
        self.model = {k: v for k, v in self.model.items() if v is not GONE}

    def rescale(self, places: int, degree: int) -> None:
        by_name = {ref.name: ref for refs in self.runs for ref in refs}
        in_turn = sorted(by_name.values(), key=lambda ref: (ref.last, ref.first))
        shared = [msgspec.structs.replace(ref, shared=True) for ref in in_turn]
        self.runs = [list(shared) for _ in range(places)]
        self.places, self.degree = places, degree

    def merge(self, place: int) -> None:
        for at, merge in plan_all(self.runs, CompactionLimits(max_runs=1)):
            if at == place % self.places:
                trim = Trim(owns={"count": self.version().owners.at_place("count", at)})
                self.merges += 1
                name = f"runs/{self.number:012}-{at}-merged-{self.merges}"
                new = compact(self.location, Runs(), merge, name, trim)
                self.runs[at] = replaced(self.runs[at], merge, new)

    def version(self) -> Version:
        mark = msgspec.structs.replace(KEYED, degree=self.degree)
        made = manifest(self.number, places=self.places, runs=self.runs, topology={"count": mark})
        return Version(self.location, made)

    def _place(self, key: Any) -> int:
        return int(self.owner(np.array([hash_key(key)], dtype=np.uint64))[0])


KEYS = st.integers(0, 12).map(lambda n: f"k{n}")
STEPS = st.one_of(
    st.tuples(st.just("put"), st.dictionaries(KEYS, st.integers() | st.just(GONE), max_size=6)),
    st.tuples(st.just("rescale"), st.tuples(st.integers(1, 4), st.integers(1, 5))),
    st.tuples(st.just("merge"), st.integers(0, 3)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_a_version_holds_what_was_put_and_nothing_else(steps: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = History(Location.of(folder))
        for step, how in steps:
            if step == "rescale":
                history.rescale(*how)
            else:
                getattr(history, step)(how)
        version = history.version()
        assert contents(version) == history.model
        for number in range(13):
            stored = version.look_up("count", f"k{number}")
            value = None if stored is None else MsgpackCodec().decode(stored)
            assert value == history.model.get(f"k{number}")


def test_a_key_deleted_after_a_merge_does_not_come_back_from_a_run_that_others_still_share(
    tmp_path: Path,
) -> None:
    history = History(Location.of(tmp_path))
    history.put({f"k{n}": n for n in range(12)})
    history.rescale(3, 3)
    history.put({f"k{n}": GONE for n in range(12)})
    for place in range(2):
        history.merge(place)
    assert contents(history.version()) == {}


def test_large_state_comes_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_module, "_ROWS", 100)
    history = History(Location.of(tmp_path), places=1, runs=[[]])
    history.put({n: n for n in range(1000)})
    history.put({n: -n for n in range(500)})
    sizes = [batch.num_rows for batch in history.version().batches("count")]
    assert sum(sizes) == 1000
    assert max(sizes) < 200
    assert contents(history.version()) == history.model


# --- other kinds of state ---------------------------------------------------------------------


def test_global_state_is_read_at_its_own_place(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    old = write_run(location, "runs/1", {"top": part({"a": 1, "b": 1})}, (1, 1), shared=True)
    new = write_run(location, "runs/2", {"top": part({"a": 2, "b": GONE})}, (2, 2))
    late = write_run(location, "runs/3", {"top": part({"a": 1, "b": 1})}, (1, 3), shared=True)
    mark = msgspec.structs.replace(KEYED, kind="global", degree=1)
    made = manifest(3, places=2, runs=[[old, new], [late]], topology={"top": mark})
    assert contents(Version(location, made), "top") == {"a": 2}


def test_split_state_has_a_name_for_each_task(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    parts = {"count#0": part({"a": 1}), "count#1": part({"a": 5})}
    run = write_run(location, "runs/1", parts, (1, 1), shared=True)
    made = manifest(1, places=2, runs=[[run], [run]], topology={"count": KEYED})
    version = Version(location, made)
    assert version.components() == {"count": ["count#0", "count#1"]}
    assert contents(version, "count#1") == {"a": 5}
    assert version.owners.split("count#1") == ("count", 1)


def test_state_of_a_component_that_has_gone_is_still_there(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    runs = [
        write_run(location, f"runs/{n}", {"gone": part({"a": n, n: n})}, (n, n)) for n in (1, 2)
    ]
    version = Version(location, manifest(2, places=2, runs=[[runs[0]], [runs[1]]]))
    assert contents(version, "gone") == {"a": 2, 1: 1, 2: 2}


def test_rows_that_have_expired_are_left_out(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    parts = [part({"old": 1}, now=1.0), part({"new": 2}, now=9.0)]
    runs = [write_run(location, f"runs/{n}", {"count": p}, (n, n)) for n, p in enumerate(parts, 1)]
    version = Version(location, manifest(2, runs=[runs], topology={"count": KEYED}))
    found = [decode_keys(b.column("key")) for b in version.batches("count", expired_before=5000)]
    assert found == [["new"]]


# --- what can be wrong --------------------------------------------------------------------------


def committed(location: Location, *numbers: int) -> list[Manifest]:
    made = [manifest(number) for number in numbers]
    for each in made:
        Manifests(location).commit(each)
    return made


def test_versions_are_listed_and_the_newest_is_chosen(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    first, second = committed(location, 3, 4)
    assert versions_at(location) == [3, 4]
    assert manifest_at(location) == second
    assert manifest_at(location, 3) == first


def test_a_version_that_is_not_there_is_refused(tmp_path: Path) -> None:
    committed(Location.of(tmp_path), 3, 4)
    with pytest.raises(StateError, match=r"version 7 .* expected one from 3 to 4"):
        manifest_at(Location.of(tmp_path), 7)


def test_a_folder_that_is_not_there_is_told_from_one_without_manifests(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="expected a folder, got nothing there"):
        manifest_at(Location.of(tmp_path / "nowhere"))
    with pytest.raises(StateError, match="expected a manifest, got none"):
        manifest_at(Location.of(tmp_path))


def test_a_damaged_run_is_named(tmp_path: Path) -> None:
    history = History(Location.of(tmp_path))
    history.put({"a": 1})
    (path,) = (tmp_path / "runs").iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(CorruptRun, match=path.name):
        contents(history.version())
