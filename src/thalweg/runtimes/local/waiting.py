"""How an executor waits for its queue: the trade of latency against processor time.

*Blocking* sleeps until it is woken. *Sleeping* looks some times, gives way some times, and then
naps. *Yielding* gives way again and again. *Busy-spin* never lets go, which in Python keeps all
other threads from working for as long as a switch takes: it is for machines with cores to spare.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal, Protocol

WaitName = Literal["blocking", "sleeping", "yielding", "busy-spin"]
# Looks without pause, then with a chance for others, and the nap after that, in seconds.
_SPINS, _YIELDS, _NAP = 100, 100, 0.0001

Ready = Callable[[], bool]


class WaitStrategy(Protocol):
    """Waits until something is ready."""

    def wait(self, ready: Ready, signal: threading.Condition) -> None:
        """Return as soon as ``ready()``; whoever makes it so notifies the signal."""


class Blocking:
    """Sleeps until it is woken."""

    def wait(self, ready: Ready, signal: threading.Condition) -> None:
        """Wait for the signal."""
        with signal:
            signal.wait_for(ready)


class Sleeping:
    """Looks, gives way, naps."""

    def wait(self, ready: Ready, signal: threading.Condition) -> None:
        """Look less and less often."""
        looks = 0
        while not ready():
            looks += 1
            if looks > _SPINS + _YIELDS:
                time.sleep(_NAP)
            elif looks > _SPINS:
                time.sleep(0)


class Yielding:
    """Gives way to other threads between two looks."""

    def wait(self, ready: Ready, signal: threading.Condition) -> None:
        """Look again and again."""
        while not ready():
            time.sleep(0)


class BusySpin:
    """Looks without pause."""

    def wait(self, ready: Ready, signal: threading.Condition) -> None:
        """Look."""
        while not ready():
            pass


STRATEGIES: dict[WaitName, type[WaitStrategy]] = {
    "blocking": Blocking,
    "sleeping": Sleeping,
    "yielding": Yielding,
    "busy-spin": BusySpin,
}
