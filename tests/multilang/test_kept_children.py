"""Children that are kept between batches end when nobody has wanted them for a while."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from thalweg.multilang import keeping
from thalweg.multilang.keeping import Keeper
from thalweg.multilang.settings import Shell


class Ending:
    """Stands for a child; notes that it was let go."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    @property
    def closed(self) -> bool:
        return self.ended.is_set()

    def close(self) -> None:
        self.ended.set()


@pytest.fixture
def clock() -> SimpleNamespace:
    return SimpleNamespace(now=100.0)


@pytest.fixture
def keeper(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Keeper:
    made = Keeper(lambda: clock.now)
    monkeypatch.setattr(made, "_watch", lambda: None)
    return made


def kept(keeper: Keeper, task: int, idle: float = 10) -> Any:
    partner: Any = SimpleNamespace(shell=Shell(("x",), idle=idle), child=Ending())
    keeper.keep(("run", "it", task), partner)
    return partner


def test_a_child_that_is_wanted_again_is_the_same(keeper: Keeper) -> None:
    partner = kept(keeper, 0)
    assert keeper.take(("run", "it", 0)) is partner
    assert keeper.take(("run", "it", 0)) is None
    assert not partner.child.closed


def test_children_end_when_they_have_been_idle_for_as_long_as_they_may(
    keeper: Keeper, clock: SimpleNamespace
) -> None:
    one, two = kept(keeper, 0), kept(keeper, 1, idle=15)
    clock.now += 9
    assert keeper.expire() == 1
    clock.now += 1
    assert keeper.expire() == 5
    assert (one.child.closed, two.child.closed) == (True, False)
    clock.now += 5
    assert keeper.expire() is None
    assert two.child.closed
    assert not len(keeper)


def test_the_one_that_was_used_longest_ago_goes_first(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "MOST_KEPT", 2)
    partners = [kept(keeper, task) for task in range(3)]
    assert [partner.child.closed for partner in partners] == [True, False, False]


def test_somebody_looks_after_children_while_there_are_any() -> None:
    keeper = Keeper()
    kept(keeper, 0, idle=0).child.ended.wait()
    kept(keeper, 1, idle=0.05).child.ended.wait()
    assert not len(keeper)
