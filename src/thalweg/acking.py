"""Which source tuples are processed completely: a state machine without I/O.

A *root* is a tuple that its spout emitted with an id. It is held once for every delivery of a
tuple that stems from it, and complete when all of them have been released. One that fails has ended
at once; what stems from it is counted on, to know what bolts may still keep of it.

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
from itertools import takewhile

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
        #: Those of them that have ended, badly.
        self._failed: set[int] = set()

    def __len__(self) -> int:
        return len(self._held) - len(self._failed)

    @property
    def counts(self) -> bool:
        """Whether something may be under way, be it of roots that have failed."""
        return bool(self._held)

    def open(self, now: float) -> int:
        """Begin a root; nothing holds it yet."""
        root = self._next
        self._next += 1
        self._held[root] = 0
        self._deadline[root] = now + self._timeout
        return root

    def hold(self, rows: Iterable[Roots]) -> None:
        """Note a delivery for each row; roots that are over are left alone."""
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
                    if self._held[root] <= 0 and self._drop(root):
                        completed.append(Completed(root, True))
        return completed

    def settle(self, root: int) -> list[Completed]:
        """End a root at once when nothing holds it (nobody read its tuple)."""
        over = self._held.get(root) == 0 and self._drop(root)
        return [Completed(root, True)] if over else []

    def fail(self, rows: Iterable[Roots]) -> list[Completed]:
        """End these roots, whatever holds them; give those that had not ended."""
        own = dict.fromkeys(root for roots in rows for root in roots)
        fresh = [root for root in own if root in self._held and root not in self._failed]
        self._failed.update(fresh)
        return [Completed(root, False) for root in fresh]

    def expire(self, now: float) -> tuple[list[int], list[Completed]]:
        """Name the roots that have taken too long; give those that this ends, as failed."""
        due = takewhile(lambda each: each[1] <= now, self._deadline.items())  # in that order
        late = [root for root, _ in due]
        return late, [Completed(root, False) for root in late if self._drop(root)]

    def _drop(self, root: int) -> bool:
        """Count a root no longer; False when it had ended before."""
        del self._held[root], self._deadline[root]
        if root in self._failed:
            self._failed.discard(root)
            return False
        return True

    def validate(self) -> None:
        """Check what must always hold."""
        if min(self._held.values(), default=0) < 0 or not self._failed <= self._held.keys():
            text = f"acker out of balance: held {self._held}, failed {self._failed}"
            raise ThalwegError(text)
