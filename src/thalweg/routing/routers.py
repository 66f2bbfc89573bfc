"""Routers: each applies one grouping to blocks.

Every router gives each tuple to exactly one task, except the one for ``All``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from thalweg import groupings
from thalweg.blocks import Block, Rows
from thalweg.errors import RAISED, StateError, ThalwegError, as_error, explain, locate
from thalweg.groupings import Choices, CustomGrouping, Grouping
from thalweg.hashing import Hashes, hash_columns
from thalweg.keys import refusal
from thalweg.routing.choices import HeavyChoices, TwoChoices
from thalweg.routing.table import Places, RoutingTable


class Router(Protocol):
    """Splits a block among tasks."""

    def route(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Give (task, part) for every task that gets something."""


def make_router(grouping: Grouping, table: RoutingTable) -> Router:
    """Find the router for a grouping; the table's places are the receiver's tasks."""
    tasks = table.places
    match grouping:
        case groupings.Fields(names, bounds):
            return RangeRouter(names[0], bounds, tasks) if bounds else KeyRouter(names, table)
        case groupings.PartialKey(names, choices):
            return PartialKeyRouter(names, tasks, choices)
        case groupings.All():
            return AllRouter(tasks)
        case groupings.Global():
            return GlobalRouter()
        case groupings.Direct():
            return DirectRouter(tasks)
        case groupings.LocalOrShuffle():
            return LocalRouter(tasks)
        case groupings.Custom(rule):
            return CustomRouter(rule, tasks)
    # Shuffle, none, and load-aware, which goes round robin until costs are known.
    return ShuffleRouter(tasks)


def _parts(block: Block, targets: Rows, tasks: int) -> Iterator[tuple[int, Block]]:
    parts = enumerate(block.split(targets, tasks))
    return ((task, part) for task, part in parts if len(part))


class ShuffleRouter:
    """Equal shares in turn; a task's share of a block is a run of neighbouring rows."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._next = 0

    def route(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Cut the block into runs; who gets the longer ones rotates."""
        if self._tasks == 1:
            yield 0, block.slice(0, len(block))
            return
        if block.targets is not None and len(block) and block.targets.max() < 0:
            # The sender asked who gets what, and has been told: these are turns, not tasks.
            yield from _parts(block, (-1 - block.targets) % self._tasks, self._tasks)
            return
        share, left = divmod(len(block), self._tasks)
        first, self._next = self._next, (self._next + left) % self._tasks
        start = 0
        for i in range(self._tasks):
            stop = start + share + (i < left)
            if stop > start:
                yield (first + i) % self._tasks, block.slice(start, stop)
            start = stop


class KeyRouter:
    """By routing table: one task per key and epoch."""

    def __init__(self, names: tuple[str, ...], table: RoutingTable) -> None:
        self._names = names
        self.table = table

    def route(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Split by the owner of each row's key."""
        if self.table.places == 1:
            _check_keys(block, self._names)
            return iter([(0, block.slice(0, len(block)))])
        return _parts(block, self.owners(block), self.table.places)

    def owners(self, block: Block) -> Places:
        """Give the owner of each row's key."""
        return self.table.places_of(_hashes(block, self._names))


class PartialKeyRouter:
    """By key, to the less loaded of two tasks, or of more where a key is heavy."""

    def __init__(self, names: tuple[str, ...], tasks: int, choices: Choices = 2) -> None:
        self._names = names
        self._tasks = tasks
        self._choices = HeavyChoices(tasks) if choices == "heavy" else TwoChoices(tasks)

    def route(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Choose for each row."""
        return _parts(block, self._choices.choose(_hashes(block, self._names)), self._tasks)


class RangeRouter:
    """By range of one field; what has no value goes to the first task."""

    def __init__(self, name: str, bounds: tuple[object, ...], tasks: int) -> None:
        self._name = name
        self._bounds = bounds
        self._tasks = tasks

    def route(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Find the range of each row's value."""
        last, bounds = self._tasks - 1, self._bounds
        values = block.batch.column(self._name).to_pylist()
        try:
            found = [0 if v is None else min(bisect_right(bounds, v), last) for v in values]
        except TypeError as error:
            text = explain(
                f"field {self._name!r} of {_stream(block)}",
                expected=f"values that compare with the bounds {bounds!r}",
                got=str(block.batch.schema.field(self._name).type),
                hint=str(error),
            )
            raise ThalwegError(text) from error
        return _parts(block, np.array(found, dtype=np.int64), self._tasks)


class AllRouter:
    """Everything to everyone."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks

    def route(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Repeat the block."""
        return ((task, block.slice(0, len(block))) for task in range(self._tasks))


class GlobalRouter:
    """Everything to the first task."""

    def route(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Pass the block."""
        return iter([(0, block.slice(0, len(block)))])


class LocalRouter:
    """To the task at the sender's place, where there is one; the k-th task is at the k-th place."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._shuffle = ShuffleRouter(tasks)

    def route(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Stay at the place, or shuffle."""
        if block.origin.task < self._tasks:
            return iter([(block.origin.task, block.slice(0, len(block)))])
        return self._shuffle.route(block)


class DirectRouter:
    """To the task that the sender named."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks

    def route(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Split by the named task."""
        if block.targets is None or len(block.targets) != len(block):
            raise ThalwegError(
                explain(
                    _stream(block),
                    expected="emit_direct(task, ...) on a direct stream",
                    got="emit(...)" if block.targets is None else "emit(...) among them",
                )
            )
        _check_targets(block.targets, self._tasks, f"emit_direct on {_stream(block)}")
        return _parts(block, block.targets, self._tasks)


class CustomRouter:
    """By a user's object."""

    def __init__(self, rule: CustomGrouping, tasks: int) -> None:
        self._rule = rule
        self._tasks = tasks
        try:
            rule.prepare(tasks)
        except ThalwegError:
            raise
        except RAISED as error:
            raise self._failed(error, "prepare") from error

    def route(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Ask the object."""
        where = _stream(block)
        try:
            targets = np.asarray(self._rule.choose(block.batch), dtype=np.int64)
        except ThalwegError:
            raise
        except RAISED as error:
            raise self._failed(error, "choose", where) from error
        subject = f"{type(self._rule).__name__}.choose"
        if targets.shape != (len(block),):
            text = explain(subject, where, f"{len(block)} task indexes", f"{targets.shape}")
            raise ThalwegError(text)
        _check_targets(targets, self._tasks, f"{subject} in {where}")
        return _parts(block, targets, self._tasks)

    def _failed(self, raised: BaseException, method: str, where: str = "") -> ThalwegError:
        error, subject = as_error(raised), f"{method} of custom grouping {locate(type(self._rule))}"
        return ThalwegError(explain(subject, where, got=f"{type(error).__name__}: {error}"))


def _stream(block: Block) -> str:
    return f"stream {block.origin.stream!r} of {block.origin.component!r}"


def _check_targets(targets: Rows, tasks: int, who: str) -> None:
    wrong = targets[(targets < 0) | (targets >= tasks)]
    if len(wrong):
        raise ThalwegError(
            explain(who, expected=f"a task from 0 to {tasks - 1}", got=f"{wrong[0]}")
        )


def _hashes(block: Block, names: tuple[str, ...]) -> Hashes:
    _check_keys(block, names)
    return hash_columns([block.batch.column(name) for name in names])


def _check_keys(block: Block, names: tuple[str, ...]) -> None:
    """Refuse a key whose type was learnt from the values and has no stable hash."""
    for name in names:
        reason = refusal(block.batch.schema.field(name).type)
        if reason:
            raise StateError(
                explain(
                    f"key {name!r} from {block.origin.component!r}",
                    expected="a type that hashes alike everywhere",
                    got=reason,
                    hint="use a number, text, bytes, date or time",
                )
            )
