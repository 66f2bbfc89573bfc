"""What can go wrong, as one tree.

::

    ThalwegError
    ├── TopologyError      a topology that cannot run; raised while it is described or built
    ├── UsageError         a command or call with arguments that make no sense
    ├── ComponentError     a user's function, bolt or spout raised; carries where and on what
    ├── SchemaError        a value does not fit the type of its field
    ├── RecordError        a source met input that it cannot read
    ├── StateError         keyed state refused a key, a value or a snapshot
    └── Aborted            a run was cut off on purpose (``testing.ABORT``)

Every message has the same order: subject, where, expected, got, likely cause.
"""

from __future__ import annotations

import inspect
import os
import threading
from typing import Any

__all__ = [
    "Aborted",
    "ComponentError",
    "RecordError",
    "SchemaError",
    "StateError",
    "ThalwegError",
    "TopologyError",
    "UsageError",
    "explain",
    "locate",
    "shorten",
]


class ThalwegError(Exception):
    """Root of all errors that Thalweg raises on purpose."""


class TopologyError(ThalwegError):
    """A topology that cannot run; raised while it is described or built."""


class UsageError(ThalwegError):
    """A command or call with arguments that make no sense."""


class SchemaError(ThalwegError):
    """A value does not fit the type of its field; ``row`` is where, if it is known."""

    def __init__(self, text: str, row: int | None = None) -> None:
        super().__init__(text)
        self.row = row


class RecordError(ThalwegError):
    """A source met input that it cannot read."""


class StateError(ThalwegError):
    """Keyed state refused a key, a value or a snapshot."""


class Aborted(ThalwegError):
    """A run was cut off on purpose, as a crash would."""


class ComponentError(ThalwegError):
    """A user's component raised; the cause is chained.

    Attributes: ``component``, ``task`` (index), ``tuple_text`` (the tuple, shortened, or None).
    """

    def __init__(self, component: str, task: int, text: str, tuple_text: str | None = None) -> None:
        super().__init__(text)
        self.component = component
        self.task = task
        self.tuple_text = tuple_text


def explain(
    subject: str,
    where: str = "",
    expected: str = "",
    got: str = "",
    hint: str = "",
) -> str:
    """Put the parts of a message into their fixed order.

    >>> explain("degree of 'count'", expected="at least 1", got="0", hint="leave it out for 1")
    "degree of 'count': expected at least 1, got 0 (leave it out for 1)"
    """
    head = f"{subject} in {where}" if where else subject
    parts = [f"expected {expected}" if expected else "", f"got {got}" if got else ""]
    body = ", ".join(part for part in parts if part)
    text = f"{head}: {body}" if body else head
    return f"{text} ({hint})" if hint else text


def locate(function: Any) -> str:
    """Name a function or class with the file and line that define it.

    >>> locate(len)
    'len'
    """
    target = inspect.unwrap(function) if callable(function) else type(function)
    name = getattr(target, "__qualname__", type(target).__qualname__)
    code = getattr(target, "__code__", None)
    if code is not None:
        return f"{name} ({_short_path(code.co_filename)}:{code.co_firstlineno})"
    if inspect.isclass(target):
        return _locate_class(target, str(name))
    return str(name)


# Python's parser, which finds a class in its file, is not safe in several threads (3.11).
_parsing = threading.Lock()


def _locate_class(target: type, name: str) -> str:
    try:
        with _parsing:
            lines, first = inspect.getsourcelines(target)
        path = inspect.getsourcefile(target) or "?"
    except (OSError, TypeError):
        return name
    return f"{name} ({_short_path(path)}:{first})" if lines else name


def shorten(value: object, limit: int = 200) -> str:
    """Write a value in at most about ``limit`` characters.

    >>> shorten("x" * 500, 20)
    "'xxxxxxxxxxxxxxxxxx…"
    """
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _short_path(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
