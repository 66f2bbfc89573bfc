"""What a page is told of a run that refuses much."""

from __future__ import annotations

from itertools import count as counting
from typing import Any

import msgspec
import pytest

from dashboard.visiting import words
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.telling import Telling
from thalweg.events import Noticed, TupleRefused
from thalweg.recording import records
from thalweg.recording.floods import BETWEEN, FIRST
from thalweg.recording.records import Numbering

REFUSED = TupleRefused("count", 0, "('a',)", "no number")


def told(hub: Hub, refusals: int, seconds: float) -> Telling:
    """Refuse tuples at equal intervals."""
    steady = counting(0.0, seconds / refusals).__next__
    telling = Telling(hub, words(), "local", "", Numbering(steady, lambda: 0.0))
    for _ in range(refusals):
        telling.listen(REFUSED)
    return telling


def test_of_refused_tuples_a_page_gets_the_first_then_a_few_per_second() -> None:
    hub = Hub()
    telling = told(hub, 20_000, seconds=20.0)
    refused = hub.recent(("tuple_refused",), 20_000)
    after = len(refused) - FIRST
    assert 0 < after <= 19.0 / BETWEEN
    assert [each["n"] for each in refused] == list(range(2, 2 + FIRST + after))
    assert not any("left_out" in each for each in refused[:FIRST])
    assert refused[-1]["left_out"] >= 20_000 - FIRST - after - round(BETWEEN * 1000)
    with telling:
        pass
    lost = hub.last("lost")
    assert lost is not None
    assert (lost["progress"], lost["others"]) == (0, 20_000 - FIRST - after)


def test_nothing_is_made_of_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    hub, made = Hub(), list[Any]()

    def plain(value: Any, longest: int | None = None) -> Any:
        made.append((value, longest))
        return msgspec.to_builtins(value)

    telling = told(hub, FIRST, seconds=0.01)
    monkeypatch.setattr(records, "plain", plain)
    newest = hub.newest
    for _ in range(1000):
        telling.listen(REFUSED)
    assert (made, hub.newest) == ([], newest)
    telling.listen(Noticed("a host has joined"))
    assert len(made) == 1


def test_no_component_hides_what_another_one_refuses() -> None:
    hub = Hub()
    telling = told(hub, 2 * FIRST, seconds=0.01)
    telling.listen(TupleRefused("out", 0, "('b',)", "no room"))
    assert hub.recent(("tuple_refused",), 1)[0]["component"] == "out"


def test_where_nothing_was_left_out_nothing_is_said() -> None:
    hub = Hub()
    with told(hub, 3, seconds=1.0):
        pass
    assert hub.last("lost") is None
