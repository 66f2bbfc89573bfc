"""Locations keep their promises in an object store as on a disk."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from s3server import SECRET, USER, Server, s3_server

from thalweg.errors import StateError
from thalweg.statelog import CorruptRun, Location, Manifest, Manifests, MissingObject, Runs
from thalweg.statelog.runs import write_run


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Give a folder of the bucket that no other test uses."""
    return f"{tmp_path.parent.name}/{tmp_path.name}"


@pytest.fixture(params=["local", "s3"])
def location(request: pytest.FixtureRequest, s3: Server, tmp_path: Path, folder: str) -> Location:
    return Location.of(tmp_path / "state") if request.param == "local" else s3.location(folder)


# --- as on a disk ---------------------------------------------------------------------------------


def test_what_was_written_is_read(location: Location) -> None:
    location.write("a/b/c", b"one")
    location.write("a/b/c", b"two")
    location.write("a/empty", b"")
    location.write("a/packed.gz", b"as it is")
    assert location.read("a/b/c").to_pybytes() == b"two"
    assert location.read("a/empty").to_pybytes() == b""
    assert location.read("a/packed.gz").to_pybytes() == b"as it is"
    assert location.exists("a/b/c")
    assert not location.exists("a/b")
    assert not location.exists("a/x")


def test_large_objects_are_written_in_pieces_and_read_whole(location: Location) -> None:
    data = bytes(range(256)) * (12 << 12)  # more than the 10 MB of one piece
    location.write("large", data)
    assert location.read("large").to_pybytes() == data


def test_objects_are_listed_without_folders_and_leftovers(location: Location) -> None:
    assert location.names() == location.names("nowhere") == []
    for name in ("z", "f/b", "f/a", "f/g/c", "f/.a.123.tmp"):
        location.write(name, b"x")
    assert location.names() == ["z"]
    assert location.names("f") == ["a", "b"]


def test_a_folder_that_was_emptied_is_no_object(location: Location) -> None:
    location.write("f/a", b"x")
    location.delete("f/a")
    location.delete("f/a")
    assert not location.exists("f/a")
    assert not location.exists("f")
    assert location.names("f") == location.names() == []


def test_a_new_object_replaces_none(location: Location) -> None:
    location.write_new("m/1", b"first")
    with pytest.raises(StateError, match=r"'m/1'.*not taken.*another run"):
        location.write_new("m/1", b"second")
    assert location.read("m/1").to_pybytes() == b"first"


def test_a_missing_object_is_named(location: Location) -> None:
    with pytest.raises(MissingObject, match="'runs/x' at "):
        location.read("runs/x")


def test_a_probe_leaves_nothing_behind(location: Location) -> None:
    location.probe()
    assert location.names() == []


def test_children_are_folders(location: Location) -> None:
    location.child("inner").write("a", b"x")
    assert location.read("inner/a").to_pybytes() == b"x"


def test_a_damaged_run_is_refused(location: Location) -> None:
    ref = write_run(location, "runs/a", {}, (1, 1))
    data = bytearray(location.read("runs/a").to_pybytes())
    data[len(data) // 2] ^= 1
    location.write("runs/a", bytes(data))
    with pytest.raises(CorruptRun, match="'runs/a' at"):
        Runs().open(location, ref)


def manifest(version: int) -> Manifest:
    return Manifest(
        version=version, epoch=0, clock=0.0, seed=0, watermark=None, places=1, runs=[[]]
    )


def test_of_two_commits_of_a_version_the_later_is_refused(location: Location) -> None:
    for version in (1, 2):
        Manifests(location).commit(manifest(version))
    for version in (1, 2):
        with pytest.raises(StateError, match="another run use"):
            Manifests(location).commit(manifest(version))
    assert Manifests(location).latest() == manifest(2)


# --- as users write it ----------------------------------------------------------------------------


def test_credentials_and_server_may_come_from_the_environment(
    s3: Server, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", USER)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    Location.of(f"s3://bucket/{folder}").write("a", b"x")
    assert s3.location(folder).read("a").to_pybytes() == b"x"


def test_a_location_travels_by_value(s3: Server, folder: str) -> None:
    location = s3.location(folder)
    location.write("a", b"x")
    again = pickle.loads(pickle.dumps(location))  # noqa: S301 (made on this line)
    assert again.read("a").to_pybytes() == b"x"


def test_hadoop_is_told_no_credentials(s3: Server) -> None:
    assert s3.location("state").for_hadoop == "s3a://bucket/state"


@pytest.mark.parametrize(
    "uri",
    [
        "s3://me:hush@bucket/state?no=such",
        "s3://me:hu/hush@bucket/state",
        "s3://me:hu@hush@bucket/state",
        "s3://me:hush@bucket/state?secret_key=hush&region=eu",
        "abfs://data@account/state?no=such&sig=hush",
    ],
)
def test_messages_show_no_secrets(uri: str) -> None:
    # All of them are refused before anybody is asked.
    location = Location.of(uri)
    with pytest.raises(StateError) as caught:
        location.child("x").read("a")
    shown = str(location) + repr(location) + str(caught.value)
    assert "hush" not in shown
    assert "state" in shown


# --- what can go wrong ----------------------------------------------------------------------------


ACTS: list[Callable[[Location], object]] = [
    lambda location: location.probe(),
    lambda location: location.write("a", b"x"),
    lambda location: location.write_new("a", b"x"),
    lambda location: location.read("a"),
    lambda location: location.exists("a"),
    lambda location: location.delete("a"),
    lambda location: location.names(),
]


def failure(location: Location, act: Callable[[Location], object]) -> str:
    with pytest.raises(StateError) as caught:
        act(location)
    assert not isinstance(caught.value, MissingObject)
    return str(caught.value)


def messages(location: Location) -> list[str]:
    """Give what each act says when it fails; all of them must."""
    with ThreadPoolExecutor(len(ACTS)) as pool:  # Arrow tries again for some seconds
        told = list(pool.map(lambda act: failure(location, act), ACTS))
    assert not any(SECRET in text or SECRET.replace("/", "%2F") in text for text in told)
    return told


def test_wrong_credentials_are_explained(tmp_path: Path) -> None:
    with s3_server(tmp_path, knows_nobody=True) as server:
        for text in messages(server.location("state")):
            assert "cannot" in text
            assert "may read and write there" in text


def test_a_bucket_that_does_not_exist_is_explained(s3: Server) -> None:
    location = s3.location("state", bucket="elsewhere")
    for act in (location.probe, lambda: location.write("a", b"x")):
        with pytest.raises(StateError, match=r"cannot write .*elsewhere.*bucket does not exist"):
            act()


def test_a_server_that_goes_away_is_explained(tmp_path: Path) -> None:
    with s3_server(tmp_path) as server:
        location = server.location("state")
        location.probe()
        server.end()
        for text in messages(location):
            assert "can reach it" in text


# --- what it costs --------------------------------------------------------------------------------


def cost(server: Server, act: Callable[[], object]) -> dict[str, int]:
    """Count the requests of an act, by method."""
    before = len(server.requests())
    act()
    return dict(Counter(request.method for request in server.requests()[before:]))


def test_acts_take_few_requests(s3: Server, folder: str) -> None:
    location = s3.location(folder)
    location.write("warm", b"x")
    assert cost(s3, lambda: location.write("a", b"x" * 1000)) == {"PUT": 1}
    assert cost(s3, lambda: location.write_new("b", b"x")) == {"HEAD": 1, "PUT": 1}
    assert cost(s3, lambda: location.read("a")) == {"HEAD": 1, "GET": 1}
    assert cost(s3, lambda: location.exists("a")) == {"HEAD": 1}
    assert cost(s3, lambda: location.exists("nothing")) == {"HEAD": 1}
    assert cost(s3, location.names) == {"GET": 1}


def test_a_commit_takes_five_requests(s3: Server, folder: str) -> None:
    manifests = Manifests(s3.location(folder))
    manifests.commit(manifest(1))
    assert sum(cost(s3, lambda: manifests.commit(manifest(2))).values()) == 5
