"""Manifests: one object per version is the commit, and the pointer is only a help."""

from __future__ import annotations

from pathlib import Path

import pytest

from statelog.building import manifest, ref
from thalweg.errors import StateError
from thalweg.statelog import (
    ComponentMark,
    Location,
    Manifests,
    MissingObject,
    StagedRef,
    garbage,
    run_name,
)
from thalweg.statelog.manifests import FORMAT, _signed


@pytest.fixture
def location(tmp_path: Path) -> Location:
    return Location.of(tmp_path)


@pytest.fixture
def manifests(location: Location) -> Manifests:
    return Manifests(location)


def damage(location: Location, name: str) -> None:
    data = location.read(name).to_pybytes()
    location.write(name, data.replace(b"1", b"2", 1))


def test_everything_in_a_manifest_comes_back(manifests: Manifests) -> None:
    full = manifest(
        12,
        watermark=3.25,
        places=2,
        runs=[[ref("a"), ref("b")], []],
        inputs={"posts": 17},
        topology={"count": ComponentMark("keyed", ("word",), ("string",), "msgpack", 4)},
        types={"count": "AAAA"},
        staged=[StagedRef("board", 1, "staged/x", 5, 100, "00")],
        notes={"why": ["tést", 1, None, {"a": 2.5}]},
    )
    manifests.commit(full)
    assert manifests.read(12) == manifests.latest() == full


def test_where_nothing_was_committed_there_is_no_latest(manifests: Manifests) -> None:
    assert manifests.latest() is None
    with pytest.raises(MissingObject, match=r"manifests/000000000003\.json"):
        manifests.read(3)


def test_a_version_is_committed_once(manifests: Manifests) -> None:
    manifests.commit(manifest(1, seed=1))
    with pytest.raises(StateError, match=r"000000000001\.json.*not taken"):
        manifests.commit(manifest(1, seed=2))
    assert manifests.latest() == manifest(1, seed=1)


def test_committing_and_starting_again_list_nothing(
    manifests: Manifests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Location, "names")
    for version in range(3):
        manifests.commit(manifest(version))
    assert manifests.latest() == manifest(2)


def test_a_pointer_left_behind_by_a_crash_is_caught_up(
    manifests: Manifests, location: Location
) -> None:
    manifests.commit(manifest(1))
    pointer = location.read("latest").to_pybytes()
    manifests.commit(manifest(2))
    manifests.commit(manifest(3))
    location.write("latest", pointer)
    assert manifests.latest() == manifest(3)


@pytest.mark.parametrize("pointer", [b"", b"12", b"7\nwrong\n", b"\xff", _signed(b"7"), None])
def test_a_bad_pointer_is_not_trusted(
    manifests: Manifests, location: Location, pointer: bytes | None
) -> None:
    for version in (1, 2):
        manifests.commit(manifest(version))
    if pointer is None:
        location.delete("latest")
    else:
        location.write("latest", pointer)
    assert manifests.latest() == manifest(2)


def test_a_damaged_manifest_is_named(manifests: Manifests, location: Location) -> None:
    manifests.commit(manifest(1))
    damage(location, "manifests/000000000001.json")
    for read in (manifests.latest, lambda: manifests.read(1)):
        with pytest.raises(StateError, match=r"manifests/000000000001\.json.*damaged"):
            read()


def test_a_manifest_of_something_else_is_refused(manifests: Manifests, location: Location) -> None:
    location.write("manifests/000000000001.json", _signed(b'{"format": 1, "version": "one"}'))
    with pytest.raises(StateError, match="damaged"):
        manifests.read(1)


def test_a_newer_format_asks_for_an_upgrade(manifests: Manifests, location: Location) -> None:
    text = b'{"format": 99, "something": "new"}'
    location.write("manifests/000000000001.json", _signed(text))
    with pytest.raises(StateError, match=f"expected format {FORMAT} or older, got format 99.*upgr"):
        manifests.read(1)


def test_older_manifests_are_found_until_they_are_deleted(manifests: Manifests) -> None:
    for version in range(1, 7):
        manifests.commit(manifest(version))
    assert [found.version for found in manifests.older(5)] == [4, 3, 2, 1]
    for version in (1, 2, 3):
        manifests.delete(version)
    assert [found.version for found in manifests.older(6)] == [5, 4]
    assert manifests.latest() == manifest(6)


# --- garbage --------------------------------------------------------------------------------------


def test_only_what_no_retained_manifest_names_is_garbage() -> None:
    names = [run_name(version, 0, "x") for version in range(5)]
    staged = StagedRef("board", 0, run_name(1, 9, "s"), 1, 1, "")
    retained = [
        manifest(3, runs=[[ref(names[0]), ref(names[3])]]),
        manifest(2, runs=[[ref(names[0])], [ref(names[2])]], staged=[staged]),
    ]
    lost_attempt, odd = run_name(3, 0, "lost"), "runs/README"
    found = [*names, staged.name, lost_attempt, odd]
    assert garbage(found, retained) == [names[1], lost_attempt]


def test_the_batch_at_hand_is_no_garbage() -> None:
    assert garbage([run_name(4, 0, "x")], [manifest(3)]) == []
    assert garbage([run_name(1, 0, "x")], []) == []
