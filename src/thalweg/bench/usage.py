"""What a process and those that it has started use: processor time, memory, threads (Linux)."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
# Where /proc/PID/stat has its numbers, behind the name of the program.
_USER, _SYSTEM, _ENDED_USER, _ENDED_SYSTEM, _THREADS = 10, 11, 12, 13, 16
_RESIDENT = 20


@dataclass(frozen=True)
class Usage:
    """Sums over all processes."""

    #: Seconds at work since they began, those of processes that have ended among them.
    cpu: float
    #: Resident size.
    megabytes: float
    threads: int


def usage(pid: int | None = None) -> Usage:
    """Look at a process, this one if none is given, and at all that stem from it.

    >>> now = usage()
    >>> now.cpu > 0, now.megabytes > 1, now.threads >= 1
    (True, True, True)
    """
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    found = [numbers for each in _family(pid or os.getpid()) if (numbers := _stat(each))]
    cpu = sum(n[i] for n in found for i in (_USER, _SYSTEM, _ENDED_USER, _ENDED_SYSTEM))
    resident = sum(n[_RESIDENT] for n in found)
    return Usage(cpu / tick, resident * page / 1e6, sum(n[_THREADS] for n in found))


def _family(pid: int) -> list[int]:
    """Give a process and all that stem from it."""
    found = [pid]
    for each in found:
        tasks = _PROC / str(each) / "task"
        with suppress(OSError):  # it has ended
            for task in os.listdir(tasks):
                with suppress(OSError):  # one of its threads has
                    found += map(int, (tasks / task / "children").read_text().split())
    return found


def _stat(pid: int) -> list[int]:
    """Give the numbers of a process; none when it has ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return []
    return [int(word) for word in text.rpartition(")")[2].split()[1:]]
