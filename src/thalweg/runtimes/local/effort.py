"""How much of its time a thread was at work, rather than waiting for something.

A thread that others keep from the processor does not wait: the kernel takes the processor away from
it (an involuntary switch), while one that waits gives it up (a voluntary one). On a crowded machine
only that tells the two apart.
"""

from __future__ import annotations

import resource
import threading

import msgspec


class Effort(msgspec.Struct, frozen=True, gc=False):
    """What the kernel has seen of a thread so far."""

    #: Seconds at work.
    cpu: float
    #: How often it gave the processor up, and how often that was taken away.
    voluntary: int
    involuntary: int

    @classmethod
    def now(cls) -> Effort:
        """Look at the thread that asks, with what another one has done in its place."""
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        own = cls(usage.ru_utime + usage.ru_stime, usage.ru_nvcsw, usage.ru_nivcsw)
        return own + _elsewhere.effort

    def __add__(self, other: Effort) -> Effort:
        return Effort(
            self.cpu + other.cpu,
            self.voluntary + other.voluntary,
            self.involuntary + other.involuntary,
        )

    def __sub__(self, other: Effort) -> Effort:
        return Effort(
            self.cpu - other.cpu,
            self.voluntary - other.voluntary,
            self.involuntary - other.involuntary,
        )

    def replaces(self, before: Effort) -> None:
        """Count this, of another thread, for what the thread that asks has done since."""
        _elsewhere.effort += self - (Effort.now() - before)

    def worked(self, since: Effort, took: float) -> float:
        """Give the seconds at work of so many that have passed; those without a processor count.

        >>> before = Effort(1.0, voluntary=5, involuntary=0)
        >>> round(Effort(1.1, voluntary=9, involuntary=1).worked(before, took=0.5), 3)  # it waited
        0.1
        >>> Effort(1.1, voluntary=5, involuntary=3).worked(before, took=0.5)  # others were at work
        0.5
        """
        kept_away = self.involuntary - since.involuntary >= self.voluntary - since.voluntary
        return took if kept_away else self.cpu - since.cpu


class _Elsewhere(threading.local):
    """What other threads have done in the place of the one that looks."""

    effort = Effort(0.0, 0, 0)


_elsewhere = _Elsewhere()
