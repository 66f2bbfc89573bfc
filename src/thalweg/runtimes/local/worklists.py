"""What waits at one operator, by bucket, and who may take it.

A bucket is a task of the operator; which keys belong to it was decided before. What is added to a
bucket is taken in that order, and one worker at a time works on it: from :meth:`Worklist.take` to
:meth:`Worklist.release` the bucket is *owned*. No call ever waits for a worker; inside is a lock
that is held for a few steps only.

An item without rows counts as one row: it is work too, and a list that holds nothing else must
not look empty. So nobody takes more than ``most`` items at once either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Generic, Protocol, TypeVar

import msgspec

from thalweg.errors import UsageError, explain

T = TypeVar("T")


class Taken(msgspec.Struct, Generic[T], frozen=True):
    """What a worker took: items of one bucket, the oldest first."""

    bucket: int
    items: list[T]
    rows: int


class Worklist(Protocol[T]):
    """What waits at one operator. Every item is given out once, in its bucket's order."""

    @property
    def rows(self) -> int:
        """Rows that wait."""

    def __len__(self) -> int:
        """Count the items that wait."""

    def add(self, bucket: int, item: T, rows: int) -> None:
        """Let an item wait in a bucket."""

    def take(self, worker: int, most: int) -> Taken[T] | None:
        """Give items of one bucket, at least one and up to ``most`` rows; None if there is nothing.

        The worker owns the bucket until it is released.
        """

    def release(self, bucket: int) -> None:
        """End the ownership of a bucket: what was taken is done."""

    @property
    def takes(self) -> int:
        """Number of workers that could take something now."""

    def ready(self, worker: int) -> bool:
        """Tell whether ``take`` would give something to this worker now."""

    def hold(self, bucket: int) -> None:
        """Let nobody take a bucket until it is freed; its owner, if any, may finish."""

    def free(self, bucket: int) -> None:
        """End a hold."""

    def in_use(self, first: int) -> bool:
        """Say whether something waits in a bucket from this one on, or somebody owns one."""

    def resize(self, buckets: int, lines: int | None = None) -> bool:
        """Have other numbers of buckets and workers; False while a bucket that goes is in use."""

    def take_all(self) -> list[tuple[int, T]]:
        """Take back all that waits, whoever owns its bucket; with the bucket of each item."""


class _Counted:
    """The lock, and counts of what waits."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._items = 0
        self._rows = 0

    @property
    def rows(self) -> int:
        """Rows that wait."""
        return self._rows

    def __len__(self) -> int:
        return self._items

    def _added(self, rows: int) -> None:
        self._items += 1
        self._rows += rows

    def _gone(self, items: int, rows: int) -> None:
        self._items -= items
        self._rows -= rows


class _Lined(_Counted, Generic[T]):
    """Queues per bucket, and lines of the buckets that can be taken.

    A bucket stands in its line, once, exactly while it has items and is neither owned nor held.
    """

    def __init__(self, buckets: int, lines: int) -> None:
        super().__init__()
        _check(buckets, lines)
        self._queues: list[deque[tuple[T, int]]] = [deque() for _ in range(buckets)]
        self._lines: list[deque[int]] = [deque() for _ in range(lines)]
        self._line_of = [self._lines[bucket * lines // buckets] for bucket in range(buckets)]
        self._owned = [False] * buckets
        self._held = [False] * buckets

    def add(self, bucket: int, item: T, rows: int) -> None:
        """Let an item wait in a bucket."""
        rows = rows or 1
        with self._lock:
            queue = self._queues[bucket]
            queue.append((item, rows))
            self._added(rows)
            if len(queue) == 1:
                self._line_up(bucket)

    def release(self, bucket: int) -> None:
        """End the ownership of a bucket; if more waits in it, it goes to the end of its line."""
        with self._lock:
            if not self._owned[bucket]:
                raise _not_owned(bucket)
            self._owned[bucket] = False
            self._line_up(bucket)

    def hold(self, bucket: int) -> None:
        """Let nobody take a bucket until it is freed; its owner, if any, may finish."""
        with self._lock:
            self._held[bucket] = True
            if bucket in self._line_of[bucket]:
                self._line_of[bucket].remove(bucket)

    def free(self, bucket: int) -> None:
        """End a hold."""
        with self._lock:
            if self._held[bucket]:
                self._held[bucket] = False
                self._line_up(bucket)

    def in_use(self, first: int) -> bool:
        """Say whether something waits in a bucket from this one on, or somebody owns one."""
        return any(self._queues[first:]) or any(self._owned[first:])

    def waiting(self, bucket: int) -> int:
        """Count the rows that wait in a bucket."""
        with self._lock:
            queues = self._queues[bucket : bucket + 1]
            return sum(rows for queue in queues for _, rows in queue)

    def resize(self, buckets: int, lines: int | None = None) -> bool:
        """Have another number of buckets; each goes to the line that is now its own."""
        with self._lock:
            if self.in_use(buckets):
                return False
            _fit(self._queues, buckets, deque)
            for flags in (self._owned, self._held):
                _fit(flags, buckets, bool)
            ready = [bucket for line in self._lines for bucket in line]
            _fit(self._lines, lines or len(self._lines), deque)
            lines = len(self._lines)
            self._line_of = [self._lines[bucket * lines // buckets] for bucket in range(buckets)]
            for line in self._lines:
                line.clear()
            for bucket in ready:
                self._line_of[bucket].append(bucket)
            return True

    def take_all(self) -> list[tuple[int, T]]:
        """Take back all that waits, whoever owns its bucket; with the bucket of each item."""
        with self._lock:
            found = [(b, item) for b, queue in enumerate(self._queues) for item, _ in queue]
            for queue in self._queues:
                queue.clear()
            for line in self._lines:
                line.clear()
            self._gone(self._items, self._rows)
        return found

    @property
    def takes(self) -> int:
        """Number of buckets that could be taken now."""
        return sum(map(len, self._lines))

    def _line_up(self, bucket: int) -> None:
        if self._queues[bucket] and not self._owned[bucket] and not self._held[bucket]:
            self._line_of[bucket].append(bucket)

    def _take(self, line: deque[int], most: int) -> Taken[T] | None:
        if not line:  # the common answer to an idle worker, without the lock
            return None
        with self._lock:
            if not line:
                return None
            bucket = line.popleft()
            self._owned[bucket] = True
            items, rows = _first(self._queues[bucket], most)
            self._gone(len(items), rows)
        return Taken(bucket, items, rows)


class HybridWorklist(_Lined[T]):
    """Any worker takes the bucket that has waited longest. The default.

    This is the hybrid queue of the ordered multi-core document. There, the master queue holds the
    bucket of every item, and ``count[p]`` is above zero exactly while bucket p has an owner; a
    worker that meets an owned bucket adds to the count, and the owner does that item too. Here the
    count is kept as ownership: an owned bucket is not in the master queue, so nobody meets it, and
    what is added to it is delegated to the owner without a word. Hence both theorems hold: one
    worker per bucket, each item once and in order. In place of going on until the count is zero,
    the owner releases, and the bucket goes to the end of the master queue: none starves.

    >>> waiting = HybridWorklist[str](buckets=4)
    >>> for item in ("a", "b", "c"): waiting.add(2, item, rows=10)
    >>> waiting.take(worker=0, most=20)
    Taken(bucket=2, items=['a', 'b'], rows=20)
    >>> waiting.ready(worker=1)  # bucket 2 is owned
    False
    >>> waiting.release(2)
    >>> waiting.take(worker=1, most=20)
    Taken(bucket=2, items=['c'], rows=10)
    """

    def __init__(self, buckets: int) -> None:
        super().__init__(buckets, lines=1)
        self._master = self._lines[0]

    def take(self, worker: int, most: int) -> Taken[T] | None:
        """Give items of the bucket at the head of the master queue; None if it is empty."""
        return self._take(self._master, most)

    def ready(self, worker: int) -> bool:
        """Tell whether ``take`` would give something now, to any worker."""
        return bool(self._master)


class PartitionedWorklist(_Lined[T]):
    """Each worker takes from its own range of buckets only, and idles when they are empty.

    Bucket b belongs to worker ``b * workers // buckets``: neighbours stay together, so that keys
    which are crowded in one range burden one worker.
    """

    def __init__(self, buckets: int, workers: int) -> None:
        super().__init__(buckets, lines=workers)

    def take(self, worker: int, most: int) -> Taken[T] | None:
        """Give items of the worker's own buckets; None if nothing waits there."""
        return self._take(self._lines[worker], most)

    def ready(self, worker: int) -> bool:
        """Tell whether one of the worker's own buckets can be taken."""
        return bool(self._lines[worker])


class SharedWorklist(_Counted, Generic[T]):
    """One queue in the order of arrival, which nobody overtakes.

    While the oldest item belongs to a bucket that is owned or held, no worker gets anything. In
    the document the workers stand and wait there for the lock of the key; here they may go and
    work on another operator.
    """

    def __init__(self, buckets: int) -> None:
        super().__init__()
        _check(buckets)
        self._queue: deque[tuple[int, T, int]] = deque()
        self._owned = [False] * buckets
        self._held = [False] * buckets

    def add(self, bucket: int, item: T, rows: int) -> None:
        """Let an item wait behind all others."""
        rows = rows or 1
        with self._lock:
            self._queue.append((bucket, item, rows))
            self._added(rows)

    def take(self, worker: int, most: int) -> Taken[T] | None:
        """Give the oldest item, and those of its bucket that follow it directly."""
        with self._lock:
            if self._is_blocked():
                return None
            bucket, item, rows = self._queue.popleft()
            items = [item]
            while self._queue and self._queue[0][0] == bucket and rows + self._queue[0][2] <= most:
                _, item, more = self._queue.popleft()
                items.append(item)
                rows += more
            self._owned[bucket] = True
            self._gone(len(items), rows)
        return Taken(bucket, items, rows)

    def release(self, bucket: int) -> None:
        """End the ownership of a bucket."""
        with self._lock:
            if not self._owned[bucket]:
                raise _not_owned(bucket)
            self._owned[bucket] = False

    @property
    def takes(self) -> int:
        """Whether the oldest item could be taken now: 0 or 1."""
        return int(self.ready(0))

    def ready(self, worker: int) -> bool:
        """Tell whether the oldest item can be taken."""
        with self._lock:
            return not self._is_blocked()

    def hold(self, bucket: int) -> None:
        """Let nobody take a bucket, nor what has come after its items, until it is freed."""
        with self._lock:
            self._held[bucket] = True

    def free(self, bucket: int) -> None:
        """End a hold."""
        with self._lock:
            self._held[bucket] = False

    def in_use(self, first: int) -> bool:
        """Say whether something waits in a bucket from this one on, or somebody owns one."""
        return any(self._owned[first:]) or any(bucket >= first for bucket, _, _ in self._queue)

    def resize(self, buckets: int, lines: int | None = None) -> bool:
        """Have another number of buckets."""
        with self._lock:
            if self.in_use(buckets):
                return False
            for flags in (self._owned, self._held):
                _fit(flags, buckets, bool)
            return True

    def take_all(self) -> list[tuple[int, T]]:
        """Take back all that waits, whoever owns its bucket; in the order of arrival."""
        with self._lock:
            found = [(bucket, item) for bucket, item, _ in self._queue]
            self._queue.clear()
            self._gone(self._items, self._rows)
        return found

    def _is_blocked(self) -> bool:
        if not self._queue:
            return True
        bucket = self._queue[0][0]
        return self._owned[bucket] or self._held[bucket]


class OpenWorklist(_Counted, Generic[T]):
    """One queue without ownership, for stateless operators: many workers take at the same time.

    There is one bucket, 0, which is never owned; other numbers mean the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self._queue: deque[tuple[T, int]] = deque()
        self._held = False

    def add(self, bucket: int, item: T, rows: int) -> None:
        """Let an item wait."""
        rows = rows or 1
        with self._lock:
            self._queue.append((item, rows))
            self._added(rows)

    def take(self, worker: int, most: int) -> Taken[T] | None:
        """Give the oldest items, up to ``most`` rows; None if nothing waits."""
        with self._lock:
            if not self._queue or self._held:
                return None
            items, rows = _first(self._queue, most)
            self._gone(len(items), rows)
        return Taken(0, items, rows)

    def release(self, bucket: int) -> None:
        """Do nothing: nobody owned it."""

    @property
    def takes(self) -> int:
        """Number of items that wait, if they may be taken."""
        return len(self) if self.ready(0) else 0

    def ready(self, worker: int) -> bool:
        """Tell whether something waits that is not held."""
        return bool(self._queue) and not self._held

    def take_all(self) -> list[tuple[int, T]]:
        """Take back all that waits."""
        with self._lock:
            found = [(0, item) for item, _ in self._queue]
            self._queue.clear()
            self._gone(self._items, self._rows)
        return found

    def in_use(self, first: int) -> bool:
        """Say that no bucket goes: there is one."""
        return False

    def resize(self, buckets: int, lines: int | None = None) -> bool:
        """Do nothing: there is one bucket."""
        return True

    def hold(self, bucket: int) -> None:
        """Let nobody take anything until it is freed."""
        self._held = True

    def free(self, bucket: int) -> None:
        """End a hold."""
        self._held = False


def _first(queue: deque[tuple[T, int]], most: int) -> tuple[list[T], int]:
    """Remove the first item, and those after it as long as all together have ``most`` rows."""
    item, rows = queue.popleft()
    items = [item]
    while queue and rows + queue[0][1] <= most:
        item, more = queue.popleft()
        items.append(item)
        rows += more
    return items, rows


def _fit(values: list[T], count: int, make: Callable[[], T]) -> None:
    """Make a list shorter or longer, in place: others may be looking at it."""
    del values[count:]
    values.extend(make() for _ in range(len(values), count))


def _check(buckets: int, workers: int = 1) -> None:
    if buckets < 1 or workers < 1:
        got = f"{buckets} buckets, {workers} workers"
        raise UsageError(explain("worklist", expected="at least one of each", got=got))


def _not_owned(bucket: int) -> UsageError:
    wanted = "a bucket that was taken and not released since"
    return UsageError(explain("release", expected=wanted, got=f"bucket {bucket}"))
