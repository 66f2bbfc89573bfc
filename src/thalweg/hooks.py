"""Task hooks, in Storm's manner: objects that hear what the tasks of a component do.

A hook has any of the methods of :class:`TaskHook`. It is given to a component (option ``hooks``)
or to all components of a run. Where a component has none, nothing is looked for.

>>> class Slowest(TaskHook):
...     seconds = 0.0
...     def bolt_execute(self, info):
...         self.seconds = max(self.seconds, info.execute_latency)
>>> checked_hooks([Slowest()], "component 'count'")[0].seconds
0.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from thalweg.errors import TopologyError, explain, shorten

#: What hooks may be told, beside ``prepare`` and ``cleanup``.
CALLS = ("emit", "spout_ack", "spout_fail", "bolt_execute", "bolt_ack", "bolt_fail")


class EmitInfo(msgspec.Struct, frozen=True):
    """A tuple was emitted; of vectorised components, a record batch."""

    component: str
    task: int
    stream: str
    values: Any
    #: Receiving task, on direct streams.
    direct: int | None = None
    count: int = 1


class SpoutAckInfo(msgspec.Struct, frozen=True):
    """All that stems from a tuple has been processed; seconds since it was emitted."""

    component: str
    task: int
    id: Any
    complete_latency: float


class SpoutFailInfo(msgspec.Struct, frozen=True):
    """A tuple of a spout has failed; seconds since it was emitted."""

    component: str
    task: int
    id: Any
    fail_latency: float


class BoltExecuteInfo(msgspec.Struct, frozen=True):
    """A tuple was processed; ``tuple`` is a record batch where a bolt takes blocks."""

    component: str
    task: int
    tuple: Any
    execute_latency: float
    count: int = 1


class BoltAckInfo(msgspec.Struct, frozen=True):
    """A bolt is done with a tuple; seconds since it was given it, None where nobody knows."""

    component: str
    task: int
    tuple: Any
    process_latency: float | None
    count: int = 1


class BoltFailInfo(msgspec.Struct, frozen=True):
    """A bolt has let a tuple fail; seconds as for :class:`BoltAckInfo`."""

    component: str
    task: int
    tuple: Any
    fail_latency: float | None
    count: int = 1


class TaskHook:
    """Hears what tasks do; all methods may be left out. Errors are those of the component."""

    def prepare(self, context: Any) -> None:
        """Get ready; called for each task, before its component gets ready."""

    def emit(self, info: EmitInfo) -> None:
        """Hear that something was emitted."""

    def spout_ack(self, info: SpoutAckInfo) -> None:
        """Hear that a tuple of a spout has been processed completely."""

    def spout_fail(self, info: SpoutFailInfo) -> None:
        """Hear that a tuple of a spout has failed."""

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        """Hear that a bolt has processed a tuple."""

    def bolt_ack(self, info: BoltAckInfo) -> None:
        """Hear that a bolt is done with a tuple."""

    def bolt_fail(self, info: BoltFailInfo) -> None:
        """Hear that a bolt has let a tuple fail."""

    def cleanup(self) -> None:
        """Let go of what ``prepare`` took; called for each task, after its component."""


def checked_hooks(hooks: object, where: str) -> tuple[Any, ...]:
    """Check what somebody gave as hooks."""
    if not isinstance(hooks, Iterable) or isinstance(hooks, str):
        raise TopologyError(explain("hooks", where, "a list of objects", shorten(hooks)))
    given = tuple(hooks)
    for hook in given:
        known = any(_heard(hook, call) is not None for call in ("prepare", "cleanup", *CALLS))
        if isinstance(hook, type) or not known:
            hint = "pass an object, not its class" if isinstance(hook, type) else ""
            expected = f"an object with one of the methods {', '.join(CALLS)}"
            raise TopologyError(explain("hook", where, expected, shorten(hook), hint))
    return given


def listeners(hooks: Iterable[Any], call: str) -> tuple[Callable[[Any], None], ...]:
    """Give the methods of hooks that hear a call; those that do nothing are left out."""
    found = (_heard(hook, call) for hook in hooks)
    return tuple(method for method in found if method is not None)


def _heard(hook: Any, call: str) -> Callable[..., None] | None:
    method = getattr(hook, call, None)
    idle = getattr(type(hook), call, None) is getattr(TaskHook, call)
    return method if callable(method) and not idle else None
