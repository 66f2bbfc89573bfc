"""Where places are is looked after before each batch, with few questions to Spark."""

from __future__ import annotations

from typing import Any

import pytest

from thalweg.runtimes.spark import anchoring as module
from thalweg.runtimes.spark.anchoring import Anchoring
from thalweg.runtimes.spark.exchange import Anchor
from thalweg.runtimes.spark.placement import Executor


class Pairs:
    """What an anchor is made of."""

    def unpersist(self, _wait: bool) -> None:
        """Nothing is kept here."""


class Hosts:
    """What Spark says of its executors."""

    master = "spark://ant:7077"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **slots: int) -> None:
        self.slots, self.listed, self.anchors = slots, 0, 0
        for name in ("presence", "executors", "make_anchor"):
            monkeypatch.setattr(module, name, getattr(self, name))
        context: Any = self
        self.said: list[str] = []
        self.anchoring = Anchoring(context, "cores", self.said.append)

    def presence(self, _context: Any) -> tuple[frozenset[str], int]:
        return frozenset(f"{host}:1" for host in self.slots), sum(self.slots.values())

    def executors(self, _context: Any) -> tuple[Executor, ...]:
        self.listed += 1
        return tuple(Executor(host, host, slots) for host, slots in self.slots.items() if slots)

    def make_anchor(self, _context: Any, hosts: tuple[str, ...]) -> Anchor:
        self.anchors += 1
        return Anchor(hosts, Pairs())

    def at(self, places: int) -> str:
        """Give the hosts of a batch."""
        self.anchoring.at(places)
        return "".join(self.anchoring.hosts)


def test_shares_follow_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Hosts(monkeypatch, a=1, b=3).at(4) == "abbb"


def test_executors_are_listed_only_when_one_has_come_or_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts = Hosts(monkeypatch, a=1, b=1)
    assert [hosts.at(2) for _ in range(5)] == ["ab"] * 5
    assert (hosts.listed, hosts.anchors) == (1, 1)
    hosts.slots["c"] = 2
    assert [hosts.at(2) for _ in range(5)] == ["ac"] * 5
    assert (hosts.listed, hosts.anchors) == (2, 2)


def test_one_that_takes_no_tasks_any_more_loses_its_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts = Hosts(monkeypatch, a=1, b=1, c=1)
    assert hosts.at(3) == "abc"
    hosts.slots["b"] = 0  # decommissioned: its process is still there
    assert set(hosts.at(3)) == {"a", "c"}


def test_hosts_that_leave_hold_no_place_and_their_going_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts = Hosts(monkeypatch, a=1, b=1, c=1)
    hosts.at(2)
    hosts.anchoring.leave({"a"})
    assert set(hosts.at(2)) == {"b", "c"}
    del hosts.slots["a"]
    hosts.at(2)
    made = hosts.anchors
    hosts.anchoring.leave(())
    hosts.at(2)
    assert hosts.anchors == made


def test_a_host_that_leaves_no_more_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch, a=1, b=1)
    hosts.anchoring.leave({"a"})
    assert hosts.at(2) == "bb"
    hosts.anchoring.leave(())
    assert sorted(hosts.at(2)) == ["a", "b"]


def test_all_are_used_when_all_are_to_be_avoided(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch, a=1, b=1)
    hosts.anchoring.avoid(["a", "b"])
    assert hosts.at(2) == "ab"


def test_on_one_host_nothing_is_anchored(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch, a=4)
    assert hosts.at(2) == ""
    assert hosts.anchoring.executors == (Executor("a", "a", 4),)
