"""A table holds what was committed, once, and nothing else."""

from __future__ import annotations

import copy
import json
import pickle
import random
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.connectors import parquet_parts
from thalweg.connectors.table_manifests import TableFile, TableManifests, covered_from
from thalweg.connectors.to_table import TableSink
from thalweg.contexts import TaskContext
from thalweg.errors import SchemaError, StateError
from thalweg.runtimes.spark.staging import StagingSink
from thalweg.statelog import Location, StagedRef
from thalweg.statelog.staged import StagedBatch
from thalweg.testing import ABORT, ManualClock, source
from unit.connectors.running import write


def rows(path: Path, **options: Any) -> Counter[Any]:
    table = tw.read_table(path, verify=True, **options).to_table()
    return Counter(tuple(row.values()) for row in table.to_pylist())


def files(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "data").rglob("*.parquet"))


# --- a run as one version -------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 3])
def test_a_run_is_one_version_and_goes_on_behind_what_is_there(tmp_path: Path, degree: int) -> None:
    sink = tw.to_table(tmp_path)
    for start in (0, 10):
        write(sink, range(start, start + 10), {"n": int}, block_rows=2, degree=degree)
    assert rows(tmp_path) == Counter((n,) for n in range(20))
    assert rows(tmp_path, version=1) == Counter((n,) for n in range(10))
    assert TableManifests(Location.of(tmp_path)).latest() == 2


def test_what_is_full_is_written_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_parts, "_ROWS", 4)
    seen = []
    flow = tw.Flow("long")
    numbers = flow.source("numbers", tw.items(range(10)), fields={"n": int})
    numbers.sink("out", tw.to_table(tmp_path))
    numbers.sink("look", tw.call(lambda t: seen.append(len(list(tmp_path.glob("data/*"))))))
    flow.run(tw.Inline(block_rows=2, clock=ManualClock()))
    assert seen[-1] == 2
    assert len(files(tmp_path)) == 3
    assert rows(tmp_path) == Counter((n,) for n in range(10))


@pytest.mark.parametrize("full", [2, 1000])
def test_a_run_that_is_cut_off_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: int
) -> None:
    monkeypatch.setattr(parquet_parts, "_ROWS", full)
    given_ = source([1, 2, 3, ABORT, 4, 5])
    flow = tw.Flow("cut")
    flow.source("numbers", given_, fields={"n": int}).sink("out", tw.to_table(tmp_path), degree=2)
    with pytest.raises(tw.Aborted):
        flow.run(tw.Inline(clock=ManualClock()))
    with pytest.raises(StateError, match="expected a manifest, got none"):
        tw.read_table(tmp_path)
    assert files(tmp_path) == []
    flow.run(tw.Inline(clock=ManualClock()))
    assert rows(tmp_path) == Counter([(4,), (5,)])


def test_a_run_without_rows_makes_no_version(tmp_path: Path) -> None:
    write(tw.to_table(tmp_path), [], {"n": int})
    assert TableManifests(Location.of(tmp_path)).latest() == 0


def test_rows_of_different_types_fit_together_where_arrow_finds_a_type(tmp_path: Path) -> None:
    for values in ([("a", None)], [("b", 1)], [("c", 1.5)]):
        write(tw.to_table(tmp_path), values, ["name", "x"])
    assert rows(tmp_path) == Counter([("a", None), ("b", 1.0), ("c", 1.5)])


def test_columns_that_do_not_fit_together_are_refused_by_the_reader(tmp_path: Path) -> None:
    write(tw.to_table(tmp_path), [1], ["x"])
    write(tw.to_table(tmp_path), ["one"], ["x"])
    with pytest.raises(SchemaError, match="Field x has incompatible types"):
        tw.read_table(tmp_path)
    assert rows(tmp_path, version=1) == Counter([(1,)])


def test_a_type_that_parquet_lacks_is_refused(tmp_path: Path) -> None:
    batch = pa.record_batch({"x": pa.array([None], pa.month_day_nano_interval())})
    sink = at_place(tw.to_table(tmp_path))
    with pytest.raises(SchemaError, match="expected rows that Parquet can hold"):
        sink.process_block(batch)
    sink.cleanup()


# --- batches ----------------------------------------------------------------------------------


def at_place(sink: TableSink, component: str = "out") -> TableSink:
    """Bring a sink to life as a worker does."""
    sent = pickle.dumps(sink)
    body = copy.deepcopy(pickle.loads(sent))  # noqa: S301 (as cloudpickle, of our own making)
    context = TaskContext("t", component, 0, 1, ManualClock(), random.Random(0))
    body.context = context
    body.prepare(context)
    return body


def staged(
    sink: TableSink, values: Sequence[int], batch: StagedBatch, component: str = "out"
) -> list[StagedRef]:
    """Let one attempt at a place stage some rows."""
    body = at_place(sink, component)
    if values:
        body.process_block(pa.record_batch({"n": pa.array(values, pa.int64())}))
    refs = body.finish_batch(batch)
    body.cleanup()
    return refs


def batch_of(tmp_path: Path, version: int, place: int = 0, state: str = "state") -> StagedBatch:
    return StagedBatch(Location.of(tmp_path / state), version, place)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def test_it_is_a_sink_that_stages(table: Path) -> None:
    sink = tw.to_table(table)
    assert isinstance(sink, StagingSink)
    assert isinstance(at_place(sink), StagingSink)


def test_a_batch_is_there_when_it_is_committed_and_not_before(tmp_path: Path, table: Path) -> None:
    sink = tw.to_table(table)
    refs = [ref for p in (0, 1) for ref in staged(sink, [p], batch_of(tmp_path, 1, p))]
    with pytest.raises(StateError):
        tw.read_table(table)
    sink.commit_batch(None, batch_of(tmp_path, 1), refs)
    assert rows(table) == Counter([(0,), (1,)])


def test_files_of_attempts_that_were_not_committed_are_never_seen(
    tmp_path: Path, table: Path
) -> None:
    sink = tw.to_table(table)
    staged(sink, [1, 2, 3], batch_of(tmp_path, 1))
    sink.commit_batch(None, batch_of(tmp_path, 1), staged(sink, [1, 2, 3], batch_of(tmp_path, 1)))
    staged(sink, [1, 2, 3], batch_of(tmp_path, 1))
    assert rows(table) == Counter([(1,), (2,), (3,)])


def test_a_commit_deletes_what_other_attempts_of_the_batch_have_left(
    tmp_path: Path, table: Path
) -> None:
    sink = tw.to_table(table)
    for place in (0, 1, 1):
        staged(sink, [place], batch_of(tmp_path, 1, place))
    refs = staged(sink, [5], batch_of(tmp_path, 1))
    assert len(files(table)) == 4
    sink.commit_batch(None, batch_of(tmp_path, 1), refs)
    assert len(files(table)) == 1
    assert rows(table) == Counter([(5,)])


def test_what_cannot_be_deleted_does_not_end_the_run(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(location: Location, name: str) -> None:
        raise StateError(name)

    sink = tw.to_table(table)
    staged(sink, [1], batch_of(tmp_path, 1))
    refs = staged(sink, [1], batch_of(tmp_path, 1))
    monkeypatch.setattr(Location, "delete", refuse)
    sink.commit_batch(None, batch_of(tmp_path, 1), refs)
    assert rows(table) == Counter([(1,)])


#: A state, a sink, a batch: what attempts are made for, and commits.
WORK = st.tuples(st.sampled_from("st"), st.sampled_from("ab"), st.integers(1, 2))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(WORK, st.booleans()), max_size=12))
def test_only_files_of_attempts_that_can_no_longer_be_committed_are_deleted(
    steps: list[tuple[tuple[str, str, int], bool]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        sinks = {component: tw.to_table(path / "table") for component in "ab"}
        pending: dict[tuple[str, str, int], set[str]] = {}
        committed: list[int] = []
        for number, ((state, component, version), commits) in enumerate(steps):
            sink, batch = sinks[component], batch_of(path, version, state=state)
            refs = staged(sink, [number], batch, component)
            attempts = pending.setdefault((state, component, version), set())
            attempts.update(Path(ref.name).name for ref in refs)
            if commits:
                sink.commit_batch(None, batch, refs)
                committed.append(number)
                attempts.clear()
            table = tw.read_table(path / "table", verify=True) if committed else None
            seen = table.to_table()["n"].to_pylist() if table is not None else []
            assert seen == committed
            assert len(files(path / "table")) == len(seen) + sum(map(len, pending.values()))
            assert set().union(*pending.values()) <= set(files(path / "table"))


@pytest.mark.parametrize("same_object", [True, False])
def test_a_batch_that_is_committed_again_is_there_once(
    tmp_path: Path, table: Path, same_object: bool
) -> None:
    sink = tw.to_table(table)
    for number in (1, 2):
        refs = staged(sink, [number], batch_of(tmp_path, number))
        sink.commit_batch(None, batch_of(tmp_path, number), refs)
    again = sink if same_object else tw.to_table(table)
    again.commit_batch(None, batch_of(tmp_path, 2), refs)
    assert rows(table) == Counter([(1,), (2,)])


def test_another_state_with_the_same_batch_numbers_adds_to_the_table(
    tmp_path: Path, table: Path
) -> None:
    sink = tw.to_table(table)
    for state in ("state", "other"):
        refs = staged(sink, [7], batch_of(tmp_path, 1, state=state))
        sink.commit_batch(None, batch_of(tmp_path, 1, state=state), refs)
    assert rows(table) == Counter({(7,): 2})


def test_a_state_that_began_again_in_the_same_folder_adds_to_the_table(
    tmp_path: Path, table: Path
) -> None:
    for _ in range(2):
        sink = tw.to_table(table)
        for number in (1, 2):
            refs = staged(sink, [number], batch_of(tmp_path, number))
            sink.commit_batch(None, batch_of(tmp_path, number), refs)
    assert rows(table) == Counter({(1,): 2, (2,): 2})


def test_staged_names_do_not_name_objects_of_the_state(tmp_path: Path, table: Path) -> None:
    (ref,) = staged(tw.to_table(table), [1], batch_of(tmp_path, 12, 3))
    assert re.match(r"@table/data/000000000012-\w{12}/0003-", ref.name)
    batch_of(tmp_path, 12).location.delete(ref.name)
    assert len(files(table)) == 1


def test_what_else_is_staged_for_the_component_is_left_alone(tmp_path: Path, table: Path) -> None:
    letters = StagedRef("out", 0, "letters/000000000001-0-x", 1, 1, "")
    tw.to_table(table).commit_batch(None, batch_of(tmp_path, 1), [letters])
    assert TableManifests(Location.of(table)).latest() == 0


def test_a_large_batch_waits_on_disk(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_parts, "_ROWS", 2)
    sink = tw.to_table(table)
    body = at_place(sink)
    for n in range(5):
        body.process_block(pa.record_batch({"n": [n]}))
    assert not (table / "data").exists()
    sink.commit_batch(None, batch_of(tmp_path, 1), body.finish_batch(batch_of(tmp_path, 1)))
    body.cleanup()
    assert rows(table) == Counter((n,) for n in range(5))


def test_a_place_that_fails_before_the_end_of_its_batch_leaves_nothing(table: Path) -> None:
    body = at_place(tw.to_table(table))
    body.process_block(pa.record_batch({"n": [1]}))
    body.process_end()
    body.cleanup()
    assert not table.exists()


# --- manifests ----------------------------------------------------------------------------------


@given(st.integers(1, 10**9))
def test_few_manifests_cover_every_version_once(version: int) -> None:
    read, at = 0, version
    while at:
        first = covered_from(at)
        assert 1 <= first <= at
        at = first - 1
        read += 1
    assert read <= 9 * len(str(version))


def test_every_version_has_the_files_of_all_before_it(tmp_path: Path) -> None:
    manifests = TableManifests(Location.of(tmp_path))
    schema = pa.schema([("n", pa.int64())])
    for number in range(1, 124):
        assert manifests.commit({TableFile(f"data/{number}", 1, 1, ""): schema}) == number
    for number in (1, 9, 10, 11, 99, 100, 101, 123):
        names = [file.name for file in manifests.whole(number).files]
        assert names == [f"data/{n}" for n in range(1, number + 1)]


def test_a_crash_before_the_pointer_was_moved_is_made_up_for(tmp_path: Path) -> None:
    for number in (1, 2):
        write(tw.to_table(tmp_path), [number], {"n": int})
    (tmp_path / "manifests" / "latest").write_text("1")
    assert rows(tmp_path) == Counter([(1,), (2,)])
    (tmp_path / "manifests" / "latest").unlink()
    write(tw.to_table(tmp_path), [3], {"n": int})
    assert rows(tmp_path) == Counter([(1,), (2,), (3,)])


def test_a_version_that_is_not_there_is_refused(tmp_path: Path) -> None:
    write(tw.to_table(tmp_path), [1], {"n": int})
    with pytest.raises(StateError, match="expected a version from 1 to 1, got 2"):
        tw.read_table(tmp_path, version=2)


def test_a_damaged_file_is_named_when_asked_for(tmp_path: Path) -> None:
    write(tw.to_table(tmp_path), [1], {"n": int})
    (name,) = files(tmp_path)
    path = tmp_path / "data" / name
    path.write_bytes(path.read_bytes() + b"?")
    with pytest.raises(StateError, match=f"data/{name}"):
        tw.read_table(tmp_path, verify=True)


def test_a_damaged_manifest_and_a_newer_format_are_named(tmp_path: Path) -> None:
    write(tw.to_table(tmp_path), [1], {"n": int})
    path = tmp_path / "manifests" / f"{1:012}.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"format": 99}))
    with pytest.raises(StateError, match="expected format 1 or older, got format 99"):
        tw.read_table(tmp_path)
    path.write_text("{")
    with pytest.raises(StateError, match=r"000000000001\.json.*damaged"):
        tw.read_table(tmp_path)
