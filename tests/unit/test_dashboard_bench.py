"""The benchmark of the page: a visitor sees the run, and runs with and without count the same."""

from __future__ import annotations

from typing import Any

import pytest

from thalweg.bench import dashboard
from thalweg.errors import ThalwegError


@pytest.mark.parametrize("name", ["bolts", "blocks", "refused"])
def test_a_run_counts_all_words(name: str) -> None:
    found = dashboard.measured(name, 1000, dashboard.FollowOptions())
    assert found["per_second"] > 0
    assert found["per_cpu_second"] > 0


def test_a_run_that_is_shown_has_a_visitor() -> None:
    found = dashboard.once("blocks", dashboard.SHOWN, 1000)
    assert found["visitor_records"] >= 1  # the topology; the others as long as the page is there
    assert found["bytes"] > 0


def test_runs_come_as_without_with_with_without(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def once(name: str, how: str, _words: int) -> dict[str, float]:
        asked.append((name, how))
        shown = 50.0 if name == "refused" else 95.0
        speed = shown if how == dashboard.SHOWN else 100.0
        return {"per_second": speed, "per_cpu_second": speed}

    monkeypatch.setattr(dashboard, "once", once)
    told: list[str] = []
    found: dict[str, Any] = dashboard.run(True, told.append, dashboard.Options())
    assert [how for name, how in asked if name == "bolts"] == ["without", "with", "with", "without"]
    assert set(found) == {"name", "environment", "results", "summary"}
    assert found["summary"]["overhead_share"] == pytest.approx(0.05)
    assert found["summary"]["refused_overhead_share"] == pytest.approx(0.5)
    assert len(told) == len(asked) == 12


def test_a_wrong_count_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard.chains, "SENTENCE", 11)
    with pytest.raises(ThalwegError, match="words instead of"):
        dashboard.measured("blocks", 1000, dashboard.FollowOptions())
