"""Runs: written once, trusted after one check, and never when they are damaged."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from statelog.building import part, run
from thalweg.statelog import CorruptRun, Location, MissingObject, RunRef, Runs, write_run

PARTS = {"count": part({"a": 1, "b": 2}), "total": part({None: 3.5})}


@pytest.fixture
def local(tmp_path: Path) -> Location:
    return Location.of(tmp_path / "state")


@pytest.fixture
def remote(tmp_path: Path) -> Location:
    return Location.of(f"mock:///{tmp_path.name}")


def damage(location: Location, name: str) -> None:
    data = bytearray(location.read(name).to_pybytes())
    data[len(data) // 2] ^= 1
    location.write(name, bytes(data))


def truncate(location: Location, name: str) -> None:
    location.write(name, location.read(name).to_pybytes()[:-8])


def test_every_component_comes_back(local: Location) -> None:
    ref = write_run(local, "runs/a", PARTS, (3, 5))
    opened = Runs().open(local, ref)
    for component, expected in PARTS.items():
        assert opened.part(component).equals(expected)
    assert opened.part("other") is None
    assert (ref.keys, ref.first, ref.last, ref.shared) == ({"count": 2, "total": 1}, 3, 5, False)
    assert ref.size == local.read("runs/a").size


def test_a_run_without_parts_is_a_run(local: Location) -> None:
    ref = write_run(local, "runs/none", {}, (1, 1), shared=True)
    assert Runs().open(local, ref).part("count") is None
    assert ref.shared


def test_a_reference_survives_a_manifest(local: Location) -> None:
    ref = run(local, 1, {"a": 1})
    assert msgspec.json.decode(msgspec.json.encode(ref), type=RunRef) == ref


def test_a_run_is_read_once_per_process(local: Location) -> None:
    runs, ref = Runs(), run(local, 1, {"a": 1})
    opened = runs.open(local, ref)
    local.delete(ref.name)
    assert runs.open(local, ref) is opened
    assert opened.part("count").num_rows == 1


@pytest.mark.parametrize(("harm", "said"), [(damage, "checksum"), (truncate, "bytes")])
def test_a_damaged_run_is_refused(local: Location, harm: object, said: str) -> None:
    ref = run(local, 1, {"a": 1})
    harm(local, ref.name)
    with pytest.raises(CorruptRun, match=f"{ref.name}.*expected.*{said}.*got"):
        Runs().open(local, ref)


def test_runs_that_are_not_named_are_forgotten(local: Location) -> None:
    runs, refs = Runs(), [run(local, version, {"a": version}) for version in (1, 2)]
    opened = [runs.open(local, ref) for ref in refs]
    runs.keep_only([refs[1].name])
    assert runs.open(local, refs[1]) is opened[1]
    assert runs.open(local, refs[0]) is not opened[0]


# --- copies of remote runs --------------------------------------------------------------------


def copies(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def test_a_remote_run_is_copied_once(remote: Location, tmp_path: Path) -> None:
    cache, ref = tmp_path / "cache", run(remote, 1, {"a": 1})
    Runs(cache).open(remote, ref)
    assert [path.stat().st_size for path in copies(cache)] == [ref.size]
    remote.delete(ref.name)
    assert Runs(cache).open(remote, ref).part("count").num_rows == 1


def test_without_a_folder_a_remote_run_is_kept_in_memory(remote: Location) -> None:
    ref = run(remote, 1, {"a": 1})
    assert Runs().open(remote, ref).part("count").num_rows == 1


@pytest.mark.parametrize("rest", [b"rubbish", b""])
def test_a_damaged_copy_is_fetched_again(remote: Location, tmp_path: Path, rest: bytes) -> None:
    cache, ref = tmp_path / "cache", run(remote, 1, {"a": 1})
    Runs(cache).open(remote, ref)
    [copy] = copies(cache)
    copy.write_bytes(rest)
    assert Runs(cache).open(remote, ref).part("count").num_rows == 1
    assert copy.stat().st_size == ref.size


def test_a_damaged_original_is_refused_and_not_copied(remote: Location, tmp_path: Path) -> None:
    cache, ref = tmp_path / "cache", run(remote, 1, {"a": 1})
    damage(remote, ref.name)
    with pytest.raises(CorruptRun, match="mock://"):
        Runs(cache).open(remote, ref)
    assert copies(cache) == []
    remote.delete(ref.name)
    with pytest.raises(MissingObject):
        Runs(cache).open(remote, ref)


def test_copies_that_are_not_named_are_deleted(remote: Location, tmp_path: Path) -> None:
    cache, runs = tmp_path / "cache", Runs(tmp_path / "cache")
    refs = [run(remote, version, {"a": version}) for version in (1, 2, 3)]
    for ref in refs:
        Runs(cache).open(remote, ref)  # by an earlier process, say
    runs.open(remote, refs[2])
    stranger = Location.of(f"mock:///{tmp_path.name}-other")
    Runs(cache).open(stranger, run(stranger, 1, {"a": 1}))
    runs.keep_only([refs[1].name])
    assert len(copies(cache)) == 2
    remote.delete(refs[1].name)
    assert Runs(cache).open(remote, refs[1]).part("count").num_rows == 1
