"""Of how many topologies the pages of a server keep the records, and which are let go of."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.dashboard.topologies import Shown, Topologies
from thalweg.recording import files
from thalweg.recording.records import topology_record
from thalweg.server.folders import Root

NAMES = ("bakery", "garden", "market", "school", "station")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a root with topologies that have each written the first record of a run."""
    made = Root(tmp_path_factory.mktemp("server") / "root")
    made.prepare()
    for name in NAMES:
        flow = tw.Flow(name)
        flow.source("words", tw.items(["to"]), fields={"word": str}).tally("counts", key="word")
        made.home(name).path.mkdir()
        recording = files.create(made.home(name).path / "run-1.sqlite")
        files.add(recording, [topology_record(flow.build(), "local")])
        files.finish(recording)
    return made.path


def shown(topologies: Topologies, name: str) -> Shown:
    """Look at a topology, as a request does."""
    found = topologies.open(name)
    assert found is not None
    told = found.hub.last("topology")
    assert told is not None
    assert told["name"] == name
    return found


def test_what_was_looked_at_least_recently_goes_and_is_read_again(root: Path) -> None:
    topologies = Topologies(root, most=2)
    bakery, garden = shown(topologies, "bakery"), shown(topologies, "garden")
    assert shown(topologies, "bakery") is bakery
    shown(topologies, "market")
    assert (bakery.hub.closed, garden.hub.closed) == (False, True)
    gone = weakref.ref(garden)
    del garden
    gc.collect()
    assert gone() is None
    shown(topologies, "garden")
    assert bakery.hub.closed
    topologies.close()


def test_what_a_page_is_open_of_stays(root: Path) -> None:
    topologies = Topologies(root, most=2)
    bakery = shown(topologies, "bakery")
    leave = bakery.hub.wake_with(lambda: None)
    for name in NAMES[1:]:
        shown(topologies, name)
    assert not bakery.hub.closed
    topologies.look()
    leave()
    # It was looked at until now: others go first.
    shown(topologies, "garden")
    assert not bakery.hub.closed
    shown(topologies, "market")
    assert bakery.hub.closed
    topologies.close()


@settings(max_examples=40)
@given(st.lists(st.sampled_from(NAMES), max_size=15), st.integers(1, 4))
def test_those_looked_at_last_are_kept(root: Path, looks: list[str], most: int) -> None:
    topologies, kept = Topologies(root, most=most), dict[str, Shown]()
    for name in looks:
        before = kept.pop(name, None)
        found = kept[name] = shown(topologies, name)
        assert before in (None, found)
        for old in list(kept)[:-most]:
            assert kept.pop(old).hub.closed
        assert not any(each.hub.closed for each in kept.values())
    topologies.close()
