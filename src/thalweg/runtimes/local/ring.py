"""Puts the units that workers finish in any order back into the order of their numbers.

Both buffers are a bounded ring. Unit ``n`` waits in slot ``n mod size`` until all before it are
sent; a unit too far ahead is refused, and its bucket has to wait until ``next`` moves.

Why the non-blocking one is right, also without a global interpreter lock. Reading or writing a
slot of a list, reading or writing the attribute ``_next``, and taking or clearing the flag must
each be atomic; they are, and taking and clearing a lock are memory barriers besides. Then:

- Only who holds the flag sends, moves ``_next`` and empties slots. A slot is emptied *before*
  ``_next`` lets the number that shares it in, so nobody overwrites what waits. An old value of
  ``_next`` only makes the window look narrower than it is.
- Nothing stays behind. Whoever fills a slot looks for work afterwards. If it finds the flag taken,
  the holder has yet to clear it, and looks again *after* clearing it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, Generic, NamedTuple, TypeVar

from thalweg.errors import UsageError, explain

T = TypeVar("T")

#: Nothing waits in a slot. A unit may be None, so None cannot say this.
_EMPTY: Final = object()
#: A slot whose number belongs to a unit that begins in an earlier slot.
_COVERED: Final = object()


class Waited(NamedTuple):
    """How units have waited for earlier ones; numbers without a unit do not count."""

    #: How many had to, and for how many seconds in all.
    units: int = 0
    seconds: float = 0.0
    #: How many do now.
    waiting: int = 0
    #: How long the one has waited by now that has waited longest; 0 when none waits.
    head: float = 0.0


class _Ring(Generic[T]):
    """The slots, and what both buffers do with them."""

    #: Tells the seconds; asked only for units that are not the next ones.
    now: Callable[[], float] = staticmethod(time.perf_counter)

    def __init__(self, size: int, send: Callable[[int, T], None], first: int = 0) -> None:
        if size < 1:
            raise UsageError(
                explain("reorder buffer", expected="a size of at least 1", got=f"{size}")
            )
        self._size = size
        self._send = send
        self._next = first
        #: A unit with the count of its numbers and the time since when it waits, or a mark.
        self._slots: list[Any] = [_EMPTY] * size
        #: Units that have waited, and their seconds; only who sends writes them.
        self._waited, self._seconds = 0, 0.0

    @property
    def next(self) -> int:
        """The number that is sent next; all before it are sent."""
        return self._next

    @property
    def waited(self) -> Waited:
        """How long units have waited for earlier ones; any thread may look."""
        since = [slot[2] for slot in self._slots if isinstance(slot, tuple) and slot[2]]
        head = max(0.0, self.now() - min(since)) if since else 0.0
        return Waited(self._waited, self._seconds, len(since), head)

    def _put(self, number: int, unit: T, count: int) -> bool:
        """Let a unit wait for its turn; False if it is too far ahead."""
        slots, size, following = self._slots, self._size, self._next
        if count == 1 and following <= number < following + size and slots[number % size] is _EMPTY:
            # What is no unit has nothing that could wait.
            early = number != following and unit is not None
            slots[number % size] = (unit, 1, self.now() if early else 0.0)
            return True
        return self._put_with_care(number, unit, count)

    def _put_with_care(self, number: int, unit: T, count: int) -> bool:
        """Do so for all but the common case: several numbers, too far ahead, or a mistake."""
        slots, size, following = self._slots, self._size, self._next
        if not 0 < count <= size:
            wanted = f"1 to {size} numbers, the size of the buffer"
            raise UsageError(explain(f"unit {number}", expected=wanted, got=f"{count}"))
        if number + count > following + size:
            return False
        numbers = range(number, number + count)
        taken = [n for n in numbers if n < following or slots[n % size] is not _EMPTY]
        if taken:
            wanted, got = "each number once", f"{taken[0]} again, while next is {following}"
            raise UsageError(explain("reorder buffer", expected=wanted, got=got))
        for n in numbers[1:]:
            slots[n % size] = _COVERED
        # Last, because from now on the unit can be sent.
        slots[number % size] = (unit, count, self.now() if number != following else 0.0)
        return True

    def _send_ready(self) -> None:
        """Send until the next number is missing. One thread at a time may do this.

        A unit whose sending raises counts as sent: part of it may be out already, and the error
        ends the run. What matters is that no other worker waits for it on the way to that end.
        """
        slots, size, send = self._slots, self._size, self._send
        number = self._next
        while (entry := slots[number % size]) is not _EMPTY:
            unit, count, since = entry
            if since:
                self._waited += 1
                self._seconds += self.now() - since
            try:
                send(number, unit)
            finally:
                slots[number % size] = _EMPTY
                for covered in range(number + 1, number + count) if count > 1 else ():
                    slots[covered % size] = _EMPTY
                number += count
                self._next = number


class ReorderBuffer(_Ring[T]):
    """Sends units in the order of their numbers; no thread ever waits for one that is sending.

    ``send`` is called once per unit, in order, by one thread at a time, whichever comes by.

    >>> buffer = ReorderBuffer(4, lambda number, unit: print(number, unit))
    >>> buffer.offer(1, "b")
    True
    >>> buffer.offer(0, "a")
    0 a
    1 b
    True
    >>> buffer.offer(6, "too far ahead"), buffer.next
    (False, 2)
    """

    def __init__(self, size: int, send: Callable[[int, T], None], first: int = 0) -> None:
        super().__init__(size, send, first)
        self._flag = Lock()

    def offer(self, number: int, unit: T, count: int = 1) -> bool:
        """Hand in a unit that stands for ``count`` numbers, and send what is ready.

        False: refused, because the last number is not below ``next + size``. Who then sets the
        unit aside looks at ``next`` once more afterwards, for it may have moved meanwhile.
        """
        if not self._put(number, unit, count):
            return False
        slots, size, flag = self._slots, self._size, self._flag
        while slots[self._next % size] is not _EMPTY and flag.acquire(blocking=False):
            try:
                self._send_ready()
            finally:
                flag.release()
        return True


class LockedReorderBuffer(_Ring[T]):
    """The same with a lock, to compare: while one worker sends, all others wait."""

    def __init__(self, size: int, send: Callable[[int, T], None], first: int = 0) -> None:
        super().__init__(size, send, first)
        self._lock = Lock()

    def offer(self, number: int, unit: T, count: int = 1) -> bool:
        """Hand in a unit that stands for ``count`` numbers, and send what is ready.

        False: refused, because the last number is not below ``next + size``.
        """
        with self._lock:
            if not self._put(number, unit, count):
                return False
            self._send_ready()
            return True


#: Either of them.
AnyReorderBuffer = ReorderBuffer[Any] | LockedReorderBuffer[Any]
