"""Which source tuples are processed completely: a state machine without I/O.

A *root* is a tuple that its spout emitted with an id. It is held once for every delivery of a
tuple that stems from it, and complete when all of them have been released.

>>> acker = Acker(timeout=30)
>>> root = acker.open(now=0)
>>> acker.hold([(root,), (root,)])
>>> acker.release([(root,)])
[]
>>> acker.release([(root,)])
[Completed(root=1, ok=True)]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from thalweg.errors import ThalwegError

Roots = tuple[int, ...]


@dataclass(frozen=True)
class Completed:
    """The end of a root."""

    root: int
    ok: bool


class Acker:
    """Counts deliveries per root."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._next = 1
        self._held: dict[int, int] = {}
        self._deadline: dict[int, float] = {}
        self._failed: set[int] = set()

    def __len__(self) -> int:
        return len(self._held)

    def open(self, now: float) -> int:
        """Begin a root; nothing holds it yet."""
        root = self._next
        self._next += 1
        self._held[root] = 0
        self._deadline[root] = now + self._timeout
        return root

    def hold(self, rows: Iterable[Roots]) -> None:
        """Note a delivery for each row; roots that have ended are left alone."""
        for roots in rows:
            for root in roots:
                if root in self._held:
                    self._held[root] += 1

    def release(self, rows: Iterable[Roots]) -> list[Completed]:
        """Note that deliveries are done; give the roots that this completes."""
        completed = []
        for roots in rows:
            for root in roots:
                if root in self._held:
                    self._held[root] -= 1
                    if self._held[root] <= 0:
                        completed.append(self._end(root))
        return completed

    def settle(self, root: int) -> list[Completed]:
        """End a root at once when nothing holds it (nobody read its tuple)."""
        return [self._end(root)] if self._held.get(root) == 0 else []

    def fail(self, rows: Iterable[Roots]) -> None:
        """Note that these roots will end badly."""
        self._failed.update(root for roots in rows for root in roots if root in self._held)

    def expire(self, now: float) -> list[Completed]:
        """End, as failed, the roots that have taken too long."""
        late = [root for root, deadline in self._deadline.items() if deadline <= now]
        self._failed.update(late)
        return [self._end(root) for root in late]

    def _end(self, root: int) -> Completed:
        ok = root not in self._failed
        self._failed.discard(root)
        del self._held[root], self._deadline[root]
        return Completed(root, ok)

    def validate(self) -> None:
        """Check what must always hold."""
        if min(self._held.values(), default=0) < 0 or not self._failed <= self._held.keys():
            text = f"acker out of balance: held {self._held}, failed {self._failed}"
            raise ThalwegError(text)
