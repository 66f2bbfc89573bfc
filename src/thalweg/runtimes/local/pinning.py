"""Threads that stay on one core each, where the operating system can be asked for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from thalweg.errors import UsageError, explain

#: The cores that threads are shared out to; empty where they may run anywhere.
Cores = tuple[int, ...]


def cores_of(pin: bool | Sequence[int]) -> Cores:
    """Read the setting: True for all cores that this process may use, or a list of some.

    >>> cores_of(False)
    ()
    """
    if pin is False:
        return ()
    if not hasattr(os, "sched_setaffinity"):
        raise UsageError(explain("pin", "this system", "one that pins threads to cores"))
    usable = sorted(os.sched_getaffinity(0))
    chosen = usable if pin is True else list(pin)
    if not chosen or not set(chosen) <= set(usable):
        raise UsageError(explain("pin", "", f"True, or some of the cores {usable}", repr(pin)))
    return tuple(chosen)


def stay(cores: Cores, number: int) -> None:
    """Let the thread that calls stay on one core."""
    if cores:
        os.sched_setaffinity(0, {cores[number % len(cores)]})


@contextmanager
def staying(cores: Cores, number: int) -> Iterator[None]:
    """Let the thread that calls stay on one core for a while."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    stay(cores, number)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
