"""Who asks for a decision hears of the one that is made for it, whoever asks meanwhile."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import thalweg as tw
from thalweg.control.learning import Learner
from thalweg.control.locality import NoChange
from thalweg.control.rerouting import Seen, Tables
from thalweg.runtimes.local.learning import Learning


class Slow(Learner):
    """Has decided when somebody lets it."""

    def __init__(self) -> None:
        super().__init__(tw.Locality(every=None))
        self.begun, self.go = threading.Semaphore(0), threading.Semaphore(0)

    def after(self, seen: Seen, tables: Tables) -> None:
        self.last = NoChange(f"decision {1 if self.last is None else 2}")
        self.begun.release()
        self.go.acquire()


def test_a_second_one_may_ask_before_the_first_one_was_answered() -> None:
    still = SimpleNamespace(
        active=False,
        tables={},
        sizes=dict,
        take_moved=lambda: (0, 0),
        take_report=lambda: None,
        has_report=False,
    )
    pairs = SimpleNamespace(count=lambda _sampling: None, take=lambda: ({}, 0.0), burst=1)
    learner, first, second = Slow(), list[str](), list[str]()
    clock: Any = SimpleNamespace(now=lambda: 0.0)
    learning = Learning(learner, still, pairs, clock, print)  # type: ignore[arg-type]  # as much of them as it needs

    def look_until(done: Any) -> None:
        while not done():
            learning.entered()
            learning.look(0.0)

    learning.ask(True, first.append)
    look_until(lambda: learner.begun.acquire(blocking=False))
    learning.ask(True, second.append)  # it is decided, and nobody was told yet
    learner.go.release()
    look_until(lambda: first)
    assert (first, second) == (["no change: decision 1"], [])
    learner.go.release()
    look_until(lambda: second)
    assert (len(first), second) == (1, ["no change: decision 2"])
    learning.ask(True, first.append)
    learner.go.release(3)  # for those that were begun meanwhile
    learning.close()
    assert first[1:] == ["no change: the run has ended"]
