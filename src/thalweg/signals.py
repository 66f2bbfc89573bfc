"""Signals that a process hears instead of dying, and that its copies die of."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], Any]


def unless_forked(handle: Handler) -> Handler:
    """Make a handler for this process only: copies, such as those of multiprocessing, die.

    Who calls ``terminate`` on one waits for its end.
    """
    here = os.getpid()
    return lambda number, frame: handle(number, frame) if os.getpid() == here else die_of(number)


def left_to_parent() -> Handler:
    """Make a handler that does nothing while the process lives that has started this one.

    Unlike a signal that is ignored, what this process starts gets it as usual.
    """
    parent = os.getppid()  # another one for copies of this process, and for orphans
    return lambda number, _frame: None if os.getppid() == parent else die_of(number)


def die_of(number: int) -> None:
    """End this process as the signal does where nobody hears it."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
