"""The state log: whatever is written, merged, moved or read again, it equals a dictionary."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from property.strategies import KEY_COLUMNS, KEYS, plain
from thalweg.hashing import hash_columns, hash_key
from thalweg.keys import canonical, decode_key, encode_key, key_values
from thalweg.state import MemoryState
from thalweg.statelog import (
    SCHEMA,
    CompactionLimits,
    Location,
    RunRef,
    Runs,
    StateSettings,
    VersionedState,
    compact,
    merge,
    plan,
    replaced,
    write_run,
)
from thalweg.statelog.keying import decode_keys, encode_keys, hash_keys
from thalweg.statelog.parts import find, find_one

#: Few keys, so that they meet again; the last two have one hash.
FEW = st.sampled_from(["a", "b", b"a", 0, 1.5, None, ("a", 1), ("a", None), -1, 2**64 - 1])
VALUES = st.none() | st.integers(0, 3) | st.sampled_from([1.0, True, "text"])
LISTS = st.lists(st.integers(0, 3), max_size=2)


# --- many keys at once ------------------------------------------------------------------------


@given(st.lists(KEYS, max_size=8))
def test_many_keys_are_what_they_are_one_by_one(keys: list[Any]) -> None:
    encoded = encode_keys(keys)
    assert encoded == [encode_key(key) for key in keys]
    assert hash_keys(keys).tolist() == [hash_key(key) for key in keys]
    read = decode_keys(pa.array(encoded, pa.large_binary()))
    assert plain(read) == plain([decode_key(data) for data in encoded])


# --- parts with hashes of few values, so that most collide --------------------------------------

ROWS = st.dictionaries(
    st.tuples(st.integers(0, 3), st.sampled_from("abcd")),
    st.tuples(st.none() | st.binary(max_size=2), st.integers(0, 9)),
    max_size=10,
)
Rows = dict[tuple[int, str], tuple[bytes | None, int]]


def forged(rows: Rows, turned: bool = False) -> pa.RecordBatch:
    """A part in which a key's hash is what we say; rows of one hash may be in any order."""
    sign = -1 if turned else 1
    items = sorted(rows.items(), key=lambda item: (item[0][0], sign * ord(item[0][1])))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.array([h for (h, _), _ in items], dtype=np.uint64)),
            pa.array([f"{h}{key}".encode() for (h, key), _ in items], pa.large_binary()),
            pa.array([value for _, (value, _) in items], pa.large_binary()),
            pa.array([time for _, (_, time) in items], pa.int64()),
        ],
        schema=SCHEMA,
    )


def read(part: pa.RecordBatch) -> dict[bytes, tuple[bytes | None, int]]:
    hashes, keys, values, times = (column.to_pylist() for column in part.columns)
    assert hashes == sorted(hashes)
    assert len(set(keys)) == len(keys)
    assert all(key[0] - ord("0") == hash_ for key, hash_ in zip(keys, hashes, strict=True))
    return dict(zip(keys, zip(values, times, strict=True), strict=True))


@given(st.lists(ROWS, max_size=5), st.integers(0, 10) | st.none(), st.sets(st.integers(0, 3)))
def test_merged_parts_equal_merged_dictionaries(
    layers: list[Rows], expired: int | None, kept: set[int]
) -> None:
    parts = [forged(rows, turned=bool(i % 2)) for i, rows in enumerate(layers)]
    newest: dict[bytes, tuple[bytes | None, int]] = {}
    for rows in layers:
        newest |= {f"{h}{key}".encode(): row for (h, key), row in rows.items()}
    assert read(merge(parts, oldest=False)) == newest
    alive = {
        key: (value, time)
        for key, (value, time) in newest.items()
        if value is not None and (expired is None or time >= expired)
    }
    assert read(merge(parts, oldest=True, expired_before=expired)) == alive
    own = {key: row for key, row in newest.items() if key[0] - ord("0") in kept}
    mine = merge(parts, oldest=False, keep=lambda hashes: np.isin(hashes, list(kept)))
    assert read(mine) == own


@given(st.lists(ROWS, max_size=6), st.data())
def test_merging_in_any_grouping_gives_the_same(layers: list[Rows], data: st.DataObject) -> None:
    parts = [forged(rows) for rows in layers]
    while len(parts) > 1:
        start = data.draw(st.integers(0, len(parts) - 2))
        end = data.draw(st.integers(start + 2, len(parts)))
        parts[start:end] = [merge(parts[start:end], oldest=start == 0)]
    grouped = merge(parts, oldest=True)
    assert read(grouped) == read(merge([forged(rows) for rows in layers], oldest=True))


@given(ROWS, st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abcde")), max_size=8))
def test_rows_are_found_exactly(rows: Rows, wanted: list[tuple[int, str]]) -> None:
    part = forged(rows)
    there = part.column(1).to_pylist()
    hashes = np.array([h for h, _ in wanted], dtype=np.uint64)
    keys = [f"{h}{key}".encode() for h, key in wanted]
    expected = [there.index(key) if key in there else -1 for key in keys]
    assert find(part, hashes, pa.array(keys, pa.large_binary())).tolist() == expected
    assert [find_one(part, h, k) for h, k in zip(hashes, keys, strict=True)] == expected


# --- blocks ---------------------------------------------------------------------------------------


@st.composite
def key_columns(draw: st.DrawFn) -> list[pa.Array]:
    types = [type_ for type_ in KEY_COLUMNS if "view" not in str(type_)]
    length = draw(st.integers(0, 6))
    columns = []
    for type_ in draw(st.lists(st.sampled_from(types), min_size=1, max_size=2)):
        values = st.none() | KEY_COLUMNS[type_]
        columns.append(pa.array(draw(st.lists(values, min_size=length, max_size=length)), type_))
    return columns


@given(key_columns())
def test_the_keys_of_any_block_are_written_found_and_prefetched(columns: list[pa.Array]) -> None:
    keys = key_values(columns)
    expected = MemoryState()
    expected.put_many({key: i for i, key in enumerate(keys)})
    first = VersionedState([], StateSettings("count", 0.0))
    first.put_many({key: i for i, key in enumerate(keys)})
    delta = first.delta()
    assert set((delta or merge([], oldest=True)).column(0).to_pylist()) == set(
        hash_columns(columns).tolist()
    )
    later = VersionedState([] if delta is None else [delta], StateSettings("count", 0.0))
    later.prefetch(columns)
    assert plain(later.get_many(keys)) == plain(expected.get_many(keys))
    assert len(later) == len(expected)
    assert later.delta() is None


# --- a place over many versions -------------------------------------------------------------------


class PlaceMachine(RuleBasedStateMachine):
    """Two components of one place, batch after batch, compacted and reopened at random moments.

    ``counts`` has a dictionary of plain values beside it, ``lists`` one of values that are changed
    in place; a batch that fails is thrown away, and its dictionaries with it.
    """

    @initialize(max_runs=st.integers(1, 4))
    def start(self, max_runs: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.location = Location.of(self.folder.name)
        self.limits = CompactionLimits(max_runs)
        self.runs = Runs()
        self.refs: list[RunRef] = []
        self.objects = 0
        self.version = 0
        self.expected: dict[str, dict[Any, Any]] = {"counts": {}, "lists": {}}
        self._begin()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.runs = Runs()
            self.states = {}
            self.folder.cleanup()

    def _begin(self) -> None:
        opened = [self.runs.open(self.location, ref) for ref in self.refs]
        self.states = {
            name: VersionedState(
                [part for run in opened if (part := run.part(name)) is not None],
                StateSettings(name, float(self.version)),
            )
            for name in ("counts", "lists")
        }
        self.model = {
            name: {key: _copied(value) for key, value in values.items()}
            for name, values in self.expected.items()
        }

    def _new_name(self) -> str:
        self.objects += 1
        return f"runs/{self.objects}"

    @rule(key=FEW, value=VALUES)
    def put(self, key: Any, value: Any) -> None:
        self.states["counts"].put(key, value)
        self.model["counts"][canonical(key)] = value

    @rule(values=st.dictionaries(FEW, VALUES, max_size=4))
    def put_many(self, values: dict[Any, Any]) -> None:
        self.states["counts"].put_many(values)
        self.model["counts"].update(values)

    @rule(keys=st.lists(FEW, unique_by=encode_key, max_size=4), value=VALUES)
    def update(self, keys: list[Any], value: Any) -> None:
        model = self.model["counts"]

        def change(before: list[Any]) -> list[Any]:
            assert plain(before) == plain([model.get(key) for key in keys])
            return [value if known is None else "updated" for known in before]

        self.states["counts"].update(keys, change)
        for key in keys:
            model[key] = value if model.get(key) is None else "updated"

    @rule(keys=st.lists(FEW, unique_by=encode_key, max_size=4))
    def update_lists(self, keys: list[Any]) -> None:
        model = self.model["lists"]
        self.states["lists"].update(keys, lambda lists: [[*(known or []), 7] for known in lists])
        for key in keys:
            model[key] = [*(model.get(key) or []), 7]

    @rule(component=st.sampled_from(["counts", "lists"]), key=FEW)
    def delete(self, component: str, key: Any) -> None:
        self.states[component].delete(key)
        self.model[component].pop(canonical(key), None)

    @rule(key=FEW, value=LISTS)
    def put_list(self, key: Any, value: list[int]) -> None:
        self.states["lists"].put(key, list(value))
        self.model["lists"][canonical(key)] = list(value)

    @rule(key=FEW)
    def change_in_place(self, key: Any) -> None:
        for values in (self.states["lists"], self.model["lists"]):
            found = values.get(key)
            if found is not None:
                found.append(9)

    @rule(keys=st.lists(FEW, max_size=4))
    def work(self, keys: list[Any]) -> None:
        with self.states["counts"].working(keys) as values:
            for key in keys:
                if key in values:
                    del values[key]
                else:
                    values[key] = "worked"
        for key in keys:
            if key in self.model["counts"]:
                del self.model["counts"][key]
            else:
                self.model["counts"][key] = "worked"

    @rule(keys=st.lists(st.sampled_from(["a", "b", "c"]), max_size=4))
    def prefetch(self, keys: list[str]) -> None:
        self.states["lists"].prefetch([pa.array(keys, pa.string())])

    @rule(key=FEW)
    def get(self, key: Any) -> None:
        assert plain(self.states["counts"].get(key)) == plain(self.model["counts"].get(key))

    @rule(component=st.sampled_from(["counts", "lists"]))
    def read_everything(self, component: str) -> None:
        _check_whole(self.states[component], self.model[component])

    @rule()
    def commit(self) -> None:
        deltas = {name: state.delta() for name, state in self.states.items()}
        parts = {name: delta for name, delta in deltas.items() if delta is not None}
        self.version += 1
        versions = self.version, self.version
        self.refs.append(write_run(self.location, self._new_name(), parts, versions))
        self.expected = self.model
        self._begin()
        for name, state in self.states.items():
            _check_whole(state, self.expected[name])
            assert state.delta() is None

    @rule()
    def fail(self) -> None:
        self._begin()

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        planned = plan(self.refs, self.limits)
        if planned is None:
            return
        new = compact(self.location, self.runs, planned, self._new_name())
        if data.draw(st.booleans()):  # a batch ends while the merge is under way
            self.commit()
        self.refs = replaced(self.refs, planned, new)
        assert (self.refs[0].first, self.refs[-1].last) == (1, self.version)

    @rule()
    def reopen(self) -> None:
        self.runs.keep_only(())
        self._begin()

    @invariant()
    def runs_cover_all_versions_without_a_gap(self) -> None:
        if hasattr(self, "refs"):
            ends = [0, *(ref.last for ref in self.refs)]
            assert [ref.first for ref in self.refs] == [end + 1 for end in ends[:-1]]


def _check_whole(state: VersionedState, model: dict[Any, Any]) -> None:
    assert len(state) == len(model)
    assert plain(dict(state.items())) == plain(model)


def _copied(value: Any) -> Any:
    return list(value) if isinstance(value, list) else value


TestPlaces = PlaceMachine.TestCase
TestPlaces.settings = settings(max_examples=40, stateful_step_count=30)


# --- planning -------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 10**6), max_size=60), st.integers(1, 12))
def test_applying_the_plan_keeps_runs_few_and_in_order(sizes: list[int], max_runs: int) -> None:
    refs: list[RunRef] = []
    for version, size in enumerate(sizes):
        refs.append(RunRef(f"r{version}", size, "", {}, version, version))
        planned = plan(refs, CompactionLimits(max_runs))
        if planned is not None:
            first, last = planned.refs[0].first, planned.refs[-1].last
            merged = sum(ref.size for ref in planned.refs)
            refs = replaced(refs, planned, RunRef(f"m{version}", merged, "", {}, first, last))
        assert plan(refs, CompactionLimits(max_runs)) is None
        assert len(refs) <= max_runs
        assert sum(ref.size for ref in refs) == sum(sizes[: version + 1])
        assert [(ref.first, ref.last) for ref in refs] == sorted(
            (ref.first, ref.last) for ref in refs
        )
