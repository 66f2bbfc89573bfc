"""The pages of topologies whose files are not there yet, cannot be read, or go."""

from __future__ import annotations

import asyncio
import gc
import json
import shutil
import weakref
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Message

import thalweg as tw
from thalweg.dashboard.assets import assets
from thalweg.dashboard.door import Door
from thalweg.dashboard.several import server_app
from thalweg.dashboard.topologies import Topologies
from thalweg.recording import files
from thalweg.recording.records import topology_record
from thalweg.server.access import Access
from thalweg.server.folders import Home, Root


def words() -> tw.Topology:
    flow = tw.Flow("words")
    flow.source("words", tw.items(["to"]), fields={"word": str}).tally("counts", key="word")
    return flow.build()


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """Give a root with a topology whose program was never loaded."""
    made = Root(tmp_path / "root")
    made.prepare()
    made.home("shop").path.mkdir()
    return made


def record(home: Home) -> None:
    """Write what a process leaves that has loaded its program."""
    recording = files.create(home.path / "run-1.sqlite")
    files.add(recording, [topology_record(words(), "local")])
    files.finish(recording)


def app_of(topologies: Topologies) -> ASGIApp:
    return server_app(topologies, Door(Access("t" * 43, "127.0.0.1", 7788)))


def get(app: ASGIApp, path: str) -> tuple[int, Any]:
    """Ask without a server; gives the status, and the JSON of the answer."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "root_path": ""}
    headers = [(b"host", b"127.0.0.1:7788")]
    asyncio.run(app(scope | {"headers": headers}, receive, send))
    return sent[0]["status"], json.loads(b"".join(each.get("body", b"") for each in sent))


def test_a_page_stays_the_same_until_there_is_a_recording(root: Root) -> None:
    topologies = Topologies(root.path)
    app, path = app_of(topologies), "/topologies/shop/api/state"
    before = get(app, path)[1]
    assert before["bolts"] == []
    topologies.look()
    assert get(app, path) == (200, before)
    recording = files.create(root.home("shop").path / "run-1.sqlite")
    topologies.look()
    begun = get(app, path)[1]
    assert begun["run"] != before["run"]
    # What can be rebalanced is known when the program says so.
    files.add(recording, [topology_record(words(), "local")])
    files.finish(recording)
    topologies.look()
    assert get(app, path) == (200, begun | {"bolts": ["counts"], "newest": 1})
    topologies.close()


def test_the_files_of_the_page_are_read_once() -> None:
    assert assets() is assets()


def test_what_was_shown_goes_with_its_topology(root: Root) -> None:
    record(root.home("shop"))
    topologies = Topologies(root.path)
    app, path = app_of(topologies), "/topologies/shop/api/state"
    assert get(app, path)[0] == 200
    shown = weakref.ref(topologies.open("shop"))
    shutil.rmtree(root.home("shop").path)
    topologies.look()
    assert get(app, path)[0] == 404
    gc.collect()
    assert shown() is None


def test_trouble_with_one_topology_is_not_felt_by_others(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.home("store").path.mkdir()
    topologies = Topologies(root.path)
    for name in ("shop", "store"):
        assert topologies.open(name) is not None
    found = Home.recordings

    def recordings(home: Home) -> list[Path]:
        if home.name != "store":
            text = "stale file handle"
            raise OSError(text)
        return found(home)

    monkeypatch.setattr(Home, "recordings", recordings)
    record(root.home("store"))
    topologies.look()
    store = topologies.open("store")
    assert store is not None
    assert store.hub.last("topology") is not None
    root.home("third").path.mkdir()
    assert topologies.open("third") is not None
    topologies.close()
