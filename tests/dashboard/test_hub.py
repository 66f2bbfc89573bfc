"""A hub keeps what matters within bounds, and wakes those who wait."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.dashboard.hub import Hub, Limits, leading
from thalweg.recording.records import LOOKS, shelf

SMALL = Limits(looks=8, others=6, bytes=4000)
KINDS = st.sampled_from(["progress", "keys", "batch_done", "noticed", "tuple_refused", "topology"])


def record(n: int, kind: str = "noticed", **fields: Any) -> dict[str, Any]:
    return {"n": n, "at": float(n), "wall": 0.0, "kind": kind, **fields}


def numbers(hub: Hub, after: int = 0) -> list[int]:
    return [kept.n for kept in hub.after(after)]


@given(st.lists(st.tuples(KINDS, st.integers(0, 900)), max_size=120))
def test_whatever_comes_the_hub_stays_small_and_in_order(told: list[tuple[str, int]]) -> None:
    hub = Hub(SMALL)
    kinds: dict[int, str] = {}
    for n, (kind, size) in enumerate(told, 1):
        hub.add(record(n, kind, text="x" * size))
        kinds[n] = kind
        kept = hub.after(0)
        found = [each.n for each in kept]
        assert found == sorted(set(found))
        assert n in found  # the newest is always there
        for look in LOOKS:
            of_look = [each for each in kept if kinds[each.n] == look]
            assert len(of_look) <= SMALL.looks
            assert len(of_look) == 1 or sum(len(each.data) for each in of_look) <= SMALL.bytes
        for other in ("noticed", "tuple_refused"):
            assert sum(kinds[each] == other for each in found) <= SMALL.others
        assert hub.gone == n - len(found)


@given(st.lists(KINDS, max_size=40), st.integers(0, 45))
def test_behind_a_number_comes_all_that_is_kept(kinds: list[str], after: int) -> None:
    hub = Hub(SMALL)
    for n, kind in enumerate(kinds, 1):
        hub.add(record(n, kind))
    assert numbers(hub, after) == [n for n in numbers(hub) if n > after]


def test_the_whole_run_stays_visible_at_wider_intervals() -> None:
    hub = Hub(Limits(looks=100))
    for n in range(1, 10_001):
        hub.add(record(n, "progress"))
    found = numbers(hub)
    assert found[0] == 1
    assert found[-1] == 10_000
    assert 40 <= len(found) <= 100
    gaps = [after - before for before, after in pairwise(found)]
    assert max(gaps) <= 4 * 10_000 / 50


def test_a_flood_of_refusals_drives_out_nothing_else() -> None:
    hub = Hub(SMALL)
    hub.add(record(1, "topology", name="words"))
    hub.add(record(2, "progress"))
    hub.add(record(3, "noticed", text="a host has joined"))
    for n in range(4, 200, 2):
        hub.add(record(n, "tuple_refused"))
        hub.add(record(n + 1, "child_said"))
    assert numbers(hub)[:3] == [1, 2, 3]
    assert hub.last("topology") == record(1, "topology", name="words")
    assert hub.last("noticed") == record(3, "noticed", text="a host has joined")
    assert len(hub.recent(("tuple_refused",), 100)) == SMALL.others


def test_who_gets_a_record_is_told_its_shelf() -> None:
    hub = Hub()
    hub.add(record(1, "record_refused"))
    assert json.loads(hub.after(0)[0].data) == {**record(1, "record_refused"), "shelf": "refused"}


def test_much_is_given_in_pieces() -> None:
    hub = Hub()
    for n in range(1, 101):
        hub.add(record(n, text="x" * 1000))
    read, pieces = 0, 0
    while found := hub.after(read, most_bytes=10_000):
        assert [kept.n for kept in found] == list(range(read + 1, found[-1].n + 1))
        read, pieces = found[-1].n, pieces + 1
    assert read == 100
    assert 8 <= pieces <= 12


def test_the_last_ones_of_some_kinds_come_oldest_first() -> None:
    hub = Hub()
    for n, kind in enumerate(["noticed", "tuple_refused", "noticed", "record_refused"], 1):
        hub.add(record(n, kind))
    assert [each["n"] for each in hub.recent(("tuple_refused", "record_refused"), 5)] == [2, 4]
    assert [each["n"] for each in hub.recent(("noticed",), 1)] == [3]
    assert hub.last("progress") is None


def test_who_waits_is_woken_until_it_leaves() -> None:
    hub, woken = Hub(), []
    leave = hub.wake_with(lambda: woken.append(numbers(hub)))
    hub.add(record(1))
    leave()
    hub.add(record(2))
    hub.close()
    assert woken == [[1]]
    assert hub.closed


# --- how things are ------------------------------------------------------------------------------

PAUSED: dict[str, Any] = {"kind": "activated", "active": False}
RESUMED: dict[str, Any] = {"kind": "activated", "active": True}
LED: dict[str, Any] = {"kind": "decided", "policy": "ds2", "replaces": "static"}
LOOKED: dict[str, Any] = {"kind": "decided", "policy": "ds2", "replaces": None}
DONE: dict[str, Any] = {**LOOKED, "text": "ds2: count 1 -> 2", "carried_out": True}
WISHED: dict[str, Any] = {**DONE, "carried_out": False}
MOVED: dict[str, Any] = {"kind": "reconfigured", "report": {"epoch": 1}}
REFUSED: dict[str, Any] = {"kind": "tuple_refused"}
TOLD = st.sampled_from([PAUSED, RESUMED, LED, LOOKED, DONE, WISHED, MOVED, REFUSED])


def test_a_new_page_is_told_first_that_sources_pause_and_who_decides() -> None:
    hub = Hub()
    hub.add(record(1, "topology", name="words"))
    for n, told in enumerate([LED, MOVED, PAUSED], 2):
        hub.add(record(n, **told))
    for n in range(5, 6_005):
        hub.add(record(n, "tuple_refused"))
    assert numbers(hub)[:4] == [1, 2, 3, 4]
    assert len(numbers(hub)) == 4 + Limits().others
    assert hub.last("activated") == record(4, **PAUSED)
    assert hub.last("decided") == record(2, **LED)


def test_who_leads_is_known_after_any_number_of_decisions() -> None:
    hub = Hub(SMALL)
    hub.add(record(1, **LED))
    for n in range(2, 100):
        hub.add(record(n, **LOOKED))
    assert numbers(hub) == [1, *range(94, 100)]
    assert [each["n"] for each in hub.recent(("decided",), 7)] == numbers(hub)


@pytest.mark.parametrize("many", [LOOKED, WISHED], ids=["looks", "wishes"])
def test_what_was_carried_out_is_not_driven_out_by_what_was_not(many: dict[str, Any]) -> None:
    hub = Hub(SMALL)
    hub.add(record(1, **DONE))
    for n in range(2, 100):
        hub.add(record(n, **many))
    assert numbers(hub) == [1, *range(94, 100)]
    assert [each["n"] for each in hub.recent(("decided",), 7)] == numbers(hub)


def test_who_leads_is_whose_decisions_are_carried_out() -> None:
    hub = Hub()
    assert leading(hub) == ""
    hub.add(record(1, "topology", policy="thalweg"))
    assert leading(hub) == "thalweg"
    hub.add(record(2, "decided", policy="ds2", carried_out=True))
    for n in range(3, 9):
        hub.add(record(n, "decided", policy="static", carried_out=False))
    assert leading(hub) == "ds2"
    hub.add(record(9, "decided", policy="static", carried_out=True, replaces="ds2"))
    assert leading(hub) == "static"


def test_of_policies_that_are_only_asked_none_leads() -> None:
    hub = Hub()
    hub.add(record(1, "topology", policy="ds2"))
    hub.add(record(2, "decided", policy="ds2", carried_out=False))
    assert leading(hub) == ""


@given(st.lists(TOLD, max_size=60))
def test_of_all_that_says_how_things_are_the_last_is_known_at_any_moment(
    told: list[dict[str, Any]],
) -> None:
    hub, named = Hub(SMALL), dict[str, list[int]]()
    for n, each in enumerate(told, 1):
        hub.add(record(n, **each))
        named.setdefault(shelf(each), []).append(n)
    assert numbers(hub) == sorted(n for each in named.values() for n in each[-SMALL.others :])
