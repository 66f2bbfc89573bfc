"""A source that emits items at the times a profile says."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from thalweg.components import BlockSpout, Shared
from thalweg.connectors.memory import fitting_batch
from thalweg.connectors.profiles import Profile
from thalweg.contexts import TaskContext
from thalweg.errors import RAISED, UsageError, as_error, explain, locate, shorten

#: Seconds to wait at least: less can be lost when it is added to a clock that shows days.
_SHORTEST_WAIT = 1e-6


class Rate(Shared, BlockSpout):
    """Items at the rate of a profile; task k of n emits the items k, k + n, k + 2n ..."""

    slowable = False

    def __init__(self, profile: Profile, make: Any, count: int | None) -> None:
        self.profile = profile
        self.make = make
        #: Items of all tasks together.
        self.total = profile.total if count is None else min(count, profile.total)

    def prepare(self, context: TaskContext) -> None:
        """Begin with this task's first item."""
        self._next, self._step, self._total = context.task, context.degree, self.total
        self._begin: float | None = None
        self._items: Iterator[Any] | None = None
        if isinstance(self.make, Iterator) and context.degree > 1:
            # One iterator cannot be shared: the first task takes it all.
            self._next, self._step = 0, 1
            self._total = self.total if context.task == 0 else 0
        if not _takes_number(self.make):
            made = self.make() if callable(self.make) else self.make
            self._items = islice(iter(made), self._next, None, self._step)

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Emit what is due by now, also what should have been emitted during a stall."""
        elapsed = self._elapsed()
        stop = min(self.profile.count_by(elapsed), self._total)
        numbers = range(self._next, int(stop), self._step)[:limit]
        self._next += len(numbers) * self._step
        made = self._make(numbers)
        if self._next >= self._total:
            self.finish()
        return fitting_batch(self.context, made)

    def resume(self, rows: int) -> None:
        """Go on behind so many rows, as if no time had passed since the last of them."""
        while rows > 0 and self._next < self._total:
            numbers = range(self._next, self._next + rows * self._step, self._step)
            self._next += len(numbers) * self._step
            made = self._make(numbers)
            batch = fitting_batch(self.context, made)
            rows -= 0 if batch is None else batch.num_rows
            if self._items is not None and len(made) < len(numbers):
                return  # there are no more items
        due = self.profile.due(self._next)
        self._begin = None if due is None else self.context.clock.now() - due

    def wait_hint(self) -> float:
        """Give the time until the next item is due."""
        due = self.profile.due(self._next)
        return 0.0 if due is None else max(due - self._elapsed(), _SHORTEST_WAIT)

    def backlog(self) -> int:
        """Count the items that are due and were not given yet."""
        due = min(self.profile.count_by(self._elapsed()), self._total)
        return len(range(self._next, int(due), self._step))

    def _elapsed(self) -> float:
        now = self.context.clock.now()
        if self._begin is None:
            self._begin = now
        return now - self._begin

    def _make(self, numbers: range) -> list[Any]:
        if self._items is None:
            return [item for number in numbers for item in self._make_one(number)]
        made = list(islice(self._items, len(numbers)))
        if len(made) < len(numbers):
            self.finish()
        return made

    def _make_one(self, number: int) -> tuple[Any, ...]:
        try:
            return (self.make(number),)
        except RAISED as raised:
            error = as_error(raised)
            why = f"{locate(self.make)} raised {type(error).__name__}: {error}"
            self.context.refuse_record(f"item {number}", why)
            return ()


def rate(
    profile: Profile,
    make: Callable[[int], Any] | Callable[[], Iterable[Any]] | Iterable[Any],
    *,
    count: int | None = None,
) -> Rate:
    """Make a source that emits items at the times a profile says, and never earlier.

    ``make(i)`` gives the i-th item; an iterable of items, or a function without arguments that
    returns one, will do as well. It ends with the profile, the items, or after ``count`` of them.

    >>> from thalweg.connectors.profiles import constant
    >>> clicks = rate(constant(1000), lambda i: (i % 7, "click"), count=5000)
    """
    if not isinstance(profile, Profile):
        expected = "a profile: constant(...), steps(...), ramp(...) or trace(...)"
        raise UsageError(explain("rate", expected=expected, got=shorten(profile, 80)))
    if not callable(make) and not isinstance(make, Iterable):
        expected = "a function of the item's number, or an iterable"
        raise UsageError(explain("items of a rate", expected=expected, got=shorten(make, 80)))
    if count is not None and count < 0:
        raise UsageError(explain("count of a rate", expected="0 or more", got=repr(count)))
    return Rate(profile, make, count)


def _takes_number(make: Any) -> bool:
    if not callable(make):
        return False
    try:
        parameters = inspect.signature(make).parameters.values()
    except ValueError:  # some functions of C do not tell
        return True
    return any(p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters)
