"""Locations: objects are written whole, errors say what and where."""

from __future__ import annotations

import errno
import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from thalweg.errors import StateError
from thalweg.statelog import Location, MissingObject


@pytest.fixture(params=["local", "remote"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "local":
        return Location.of(tmp_path / "with a space")
    return Location.of(f"mock:///{tmp_path.name}")


def test_what_was_written_is_read(location: Location) -> None:
    location.write("a/b/c", b"one")
    location.write("a/b/c", b"two")
    location.write("a/empty", b"")
    assert location.read("a/b/c").to_pybytes() == b"two"
    assert location.read("a/empty").to_pybytes() == b""
    assert location.exists("a/b/c")
    assert not location.exists("a/b")
    assert not location.exists("a/x")


def test_objects_are_listed_without_folders_and_leftovers(location: Location) -> None:
    assert location.names() == location.names("nowhere") == []
    for name in ("z", "f/b", "f/a", "f/g/c", "f/.a.123.tmp"):
        location.write(name, b"x")
    assert location.names() == ["z"]
    assert location.names("f") == ["a", "b"]


def test_deleting_twice_is_no_error(location: Location) -> None:
    location.write("a", b"x")
    location.delete("a")
    location.delete("a")
    assert not location.exists("a")


def test_a_new_object_replaces_none(location: Location) -> None:
    location.write_new("m/1", b"first")
    with pytest.raises(StateError, match=r"'m/1'.*not taken.*another run"):
        location.write_new("m/1", b"second")
    assert location.read("m/1").to_pybytes() == b"first"
    assert location.names("m") == ["1"]


def test_of_several_writers_of_a_new_object_one_succeeds(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    together = threading.Barrier(4)

    def write(writer: int) -> int | None:
        together.wait()
        try:
            location.write_new("m/1", bytes([writer]))
        except StateError:
            return None
        return writer

    with ThreadPoolExecutor(4) as pool:
        winners = [writer for writer in pool.map(write, range(4)) if writer is not None]
    assert [bytes([winner]) for winner in winners] == [location.read("m/1").to_pybytes()]


def test_a_missing_object_is_named(location: Location) -> None:
    with pytest.raises(MissingObject, match="'runs/x' at "):
        location.read("runs/x")


def test_a_probe_leaves_nothing_behind(location: Location, tmp_path: Path) -> None:
    location.probe()
    assert location.names() == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_location_travels_by_value(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    location.write("a", b"x")
    data = pickle.dumps(location)
    assert len(data) < 300
    assert pickle.loads(data).read("a").to_pybytes() == b"x"  # noqa: S301 (made two lines above)


@pytest.mark.parametrize("name", ["plain", "with a space", "per%20cent", "h#sh", "ünïcode"])
def test_a_path_and_its_uri_are_one_location(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert Location.of(path) == Location.of(str(path)) == Location.of(path.as_uri())
    Location.of(path).child("deeper").write("a", b"x")
    assert (path / "deeper" / "a").read_bytes() == b"x"


def test_relative_paths_and_short_file_uris_are_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Location.of("state") == Location.of(tmp_path / "state")
    assert Location.of(f"file:{tmp_path}/state") == Location.of(tmp_path / "state")
    with pytest.raises(StateError, match="a path or URI"):
        Location.of("")


def test_remote_uris_keep_their_options() -> None:
    location = Location.of("s3a://bucket/state/?region=eu-west-1")
    assert location.uri == "s3://bucket/state?region=eu-west-1"
    assert location.child("x").uri == "s3://bucket/state/x?region=eu-west-1"


def test_messages_do_not_show_credentials() -> None:
    location = Location.of("nosuch://me:secret@bucket/state")
    with pytest.raises(StateError) as caught:
        location.read("a")
    assert "secret" not in str(location) + repr(location) + str(caught.value)


# --- what can go wrong ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EACCES, "right to read and write"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "can reach it"),
    ],
)
def test_a_failing_disk_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    monkeypatch.setattr(os, "fsync", failing(number))
    with pytest.raises(StateError, match=f"cannot write '.probe-.*{tmp_path.name}.*{advice}"):
        Location.of(tmp_path).probe()
    with pytest.raises(StateError, match="cannot write 'a'"):
        Location.of(tmp_path).write("a", b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StateError, match="cannot write"):
        Location.of(tmp_path / "file").probe()
    with pytest.raises(StateError, match="cannot write"):
        Location.of(tmp_path / "file" / "below").probe()


@pytest.mark.parametrize("uri", ["nosuch://bucket/state", "s3://bad bucket/x"])
def test_a_uri_that_nobody_understands_is_explained(uri: str) -> None:
    with pytest.raises(StateError, match="cannot write"):
        Location.of(uri).probe()


def test_without_hard_links_a_taken_name_is_still_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EOPNOTSUPP))
    location = Location.of(tmp_path)
    location.write_new("a", b"first")
    with pytest.raises(StateError, match="not taken"):
        location.write_new("a", b"second")
    assert location.read("a").to_pybytes() == b"first"


def test_a_failing_link_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(errno.ENOSPC))
    with pytest.raises(StateError, match="disk is full"):
        Location.of(tmp_path).write_new("a", b"x")
    assert list(tmp_path.iterdir()) == []


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail
