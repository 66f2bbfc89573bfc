"""What waits of a source that cannot be slowed, and what happens when that is too much.

Such a source is asked all the time, whatever waits behind it. What it gives stands in a queue of
its own until there is room. When the queue is full, its policy decides: the oldest rows are dropped
and counted, or the run ends.

>>> import pyarrow as pa
>>> waiting = WaitingRows("clicks", "drop_oldest", bound=3)
>>> waiting.add(Emission("default", pa.record_batch({"n": [1, 2]})))
Dropped(rows=0, ids=[])
>>> waiting.add(Emission("default", pa.record_batch({"n": [3, 4]})))
Dropped(rows=1, ids=[])
>>> waiting.rows, waiting.take(10).batch.to_pylist()
(3, [{'n': 2}])
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from thalweg.config import OverflowName
from thalweg.errors import ComponentError, explain
from thalweg.runtimes.outputs import Emission


@dataclass(frozen=True)
class Dropped:
    """Rows that had to go, and the ids of those that have one."""

    rows: int = 0
    ids: list[Any] = field(default_factory=list)


class WaitingRows:
    """A queue of at most ``bound`` rows, the oldest first."""

    def __init__(self, component: str, policy: OverflowName, bound: int) -> None:
        self._component, self._policy, self._bound = component, policy, bound
        #: With how far their source has said that it has come behind them.
        self._queue: deque[tuple[Emission, int | None]] = deque()
        #: Rows that wait.
        self.rows = 0
        #: What the source has said behind those that were taken.
        self.reached: int | None = None

    def add(self, emission: Emission, reached: int | None = None) -> Dropped:
        """Let rows wait behind all others; gives what was dropped for them."""
        self._queue.append((emission, reached))
        self.rows += emission.batch.num_rows
        if self.rows <= self._bound:
            return Dropped()
        if self._policy == "fail":
            raise self._too_many()
        rows, ids = self.rows - self._bound, list[Any]()
        while self.rows > self._bound:
            gone = self.take(self.rows - self._bound)
            ids += [id_ for id_ in gone.ids or () if id_ is not None]
        return Dropped(rows, ids)

    def take(self, most: int) -> Emission:
        """Give the oldest rows, up to ``most`` of one emission; there must be some."""
        first, reached = self._queue.popleft()
        if first.batch.num_rows > most:
            self._queue.appendleft((_cut(first, most, first.batch.num_rows), reached))
            first = _cut(first, 0, most)
        else:
            self.reached = reached
        self.rows -= first.batch.num_rows
        return first

    def _too_many(self) -> ComponentError:
        text = explain(
            f"source {self._component!r}",
            expected=f"at most {self._bound:,} rows that wait (queue_rows)",
            got=f"{self.rows:,}",
            hint='overflow="drop_oldest" drops and counts them, a larger queue_rows takes more',
        )
        return ComponentError(self._component, 0, text)


def _cut(emission: Emission, start: int, stop: int) -> Emission:
    targets, ids = emission.targets, emission.ids
    return replace(
        emission,
        batch=emission.batch[start:stop],
        targets=None if targets is None else targets[start:stop],
        ids=None if ids is None else ids[start:stop],
        lists={name: values[start:stop] for name, values in emission.lists.items()},
    )
