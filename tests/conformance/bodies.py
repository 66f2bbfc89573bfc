"""Spouts and bolts that several cases use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from thalweg.components import Bolt, Kind, Spout


class Numbers(Spout):
    """Emits numbers, several per call; the k-th task emits every k-th number."""

    outputs = {"n": int}

    def __init__(self, count: int) -> None:
        self.count = count

    def prepare(self, context) -> None:
        self.left = list(range(context.task, self.count, context.degree))

    def next_tuple(self) -> None:
        for _ in range(3):
            if not self.left:
                self.finish()
                return
            self.emit(self.left.pop(0))


class WhoGotIt(Bolt):
    """Passes each tuple on, with the number of the task that got it."""

    def __init__(self, *names: str) -> None:
        self.outputs = [*names, "task"]

    def process(self, t) -> None:
        self.emit(*t, self.context.task)


class CountByKey(Bolt):
    """A word count in Storm's manner, with its state in the keyed state."""

    kind = Kind.KEYED
    outputs = ("word", "n")

    def process(self, t) -> None:
        n = self.state.get(t.word, 0) + 1
        self.state.put(t.word, n)
        self.emit(t.word, n)


class Split(Bolt):
    outputs = ("word",)

    def process(self, t) -> None:
        for word in t.text.split():
            self.emit(word)


def tasks_by_key(rows: Iterable[tuple[Any, ...]], width: int = 1) -> dict[Any, set[int]]:
    """Read the rows of WhoGotIt: which tasks got each key (the first ``width`` fields)."""
    tasks: dict[Any, set[int]] = {}
    for row in rows:
        tasks.setdefault(row[:width], set()).add(row[-1])
    return tasks
