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

import difflib
import inspect
import os
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterable
from typing import Any

__all__ = [
    "RAISED",
    "Aborted",
    "ComponentError",
    "RecordError",
    "SchemaError",
    "StateError",
    "ThalwegError",
    "TopologyError",
    "UsageError",
    "as_error",
    "explain",
    "locate",
    "meant",
    "raised_at",
    "short_path",
    "shorten",
    "user_frame",
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

    def __str__(self) -> str:
        """Give the message, and a line that says where the user's own code raised."""
        text, cause = super().__str__(), self.__cause__
        place = "" if cause is None else raised_at(cause)
        return f"{text}\n  {place}" if place else text


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


def meant(
    name: str, known: Iterable[str], alike: float = 0.6, show: Callable[[str], str] = str
) -> str:
    """Ask whether the closest of some names was meant; empty where none is close.

    ``alike`` is how close it has to be, up to 1 for the same; ``show`` writes it out.

    >>> meant("sprak", ["local", "spark"]), meant("abacus", ["local", "spark"])
    ("did you mean 'spark'?", '')
    >>> meant("sprak", ["spark"], alike=0.9), meant("sprak", ["spark"], show=str.upper)
    ('', "did you mean 'SPARK'?")
    """
    close = difflib.get_close_matches(name, list(known), 1, alike)
    return f"did you mean {show(close[0])!r}?" if close else ""


#: What counts as an error of the user's code that raises it. KeyboardInterrupt does not: somebody
#: ends the run with it. Nor do exceptions outside of Exception that libraries make.
RAISED = (Exception, SystemExit, GeneratorExit)


def as_error(raised: BaseException) -> Exception:
    """Give what a user's code has raised as an error: an exit must not end the whole run.

    >>> as_error(SystemExit(3))
    RuntimeError('it called sys.exit(3)')
    """
    if isinstance(raised, Exception):
        return raised
    text = f"it raised {type(raised).__name__}"
    if isinstance(raised, SystemExit):
        text = f"it called sys.exit({'' if raised.code is None else repr(raised.code)})"
    error = RuntimeError(text)
    error.__cause__ = raised
    return error.with_traceback(raised.__traceback__)


def locate(function: Any) -> str:
    """Name a function or class with the file and line that define it; text is a name already.

    >>> locate(len), locate("greater(n, 300)")
    ('len', 'greater(n, 300)')
    """
    if isinstance(function, str):
        return function
    target = inspect.unwrap(function) if callable(function) else type(function)
    name = getattr(target, "__qualname__", type(target).__qualname__)
    code = getattr(target, "__code__", None)
    if code is not None:
        return f"{name} ({short_path(code.co_filename)}:{code.co_firstlineno})"
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
    return f"{name} ({short_path(path)}:{first})" if lines else name


def shorten(value: object, limit: int = 200) -> str:
    """Write a value in at most about ``limit`` characters.

    >>> shorten("x" * 500, 20)
    "'xxxxxxxxxxxxxxxxxx…"
    """
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def short_path(path: str) -> str:
    """Write a path as it is seen from here, unless it is elsewhere."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


#: Where code is that is not the user's own: Thalweg's, Python's, installed packages, made code.
_LIBRARIES = (
    os.path.join(os.path.dirname(__file__), ""),
    *(os.path.join(sysconfig.get_path(n), "") for n in ("stdlib", "purelib", "platlib")),
    "<",
)

#: Sources of compiled code, which name themselves from where they were made.
_COMPILED = (".pyx", ".pxi")


def user_frame(error: BaseException) -> traceback.FrameSummary | None:
    """Find the innermost call on the way to an error that is the user's own, not a library's."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame
        for frame in frames
        if not frame.filename.startswith(_LIBRARIES) and not frame.filename.endswith(_COMPILED)
    ]
    return own[-1] if own else None


def raised_at(error: BaseException) -> str:
    """Say in one line where the user's code raised; nothing if it was not the user's."""
    frame = user_frame(error)
    if frame is None:
        return ""
    place = f"{short_path(frame.filename)}:{frame.lineno}, in {frame.name}"
    return f"raised at {place}: {frame.line}" if frame.line else f"raised at {place}"
