"""What the state of a key begins with, and how objects become states."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from thalweg.errors import TopologyError, explain, shorten
from thalweg.operators.calls import Function


def class_step(logic: type) -> Function:
    """Make a step of a class whose objects, one per key, are the state."""
    process = getattr(logic, "process", None)
    if not callable(process):
        raise TopologyError(
            explain(f"class {logic.__name__}", expected="a method process(self, <fields>)")
        )

    @functools.wraps(process)  # messages name the method
    def step(state: Any, *values: Any) -> tuple[Any, Any]:
        return state, state.process(*values)

    return step


def starter(start: Any, where: str) -> Callable[[], Any]:
    """Take a start that cannot change, or a function that makes one.

    >>> starter(0, "seen")(), starter(set, "seen")()
    (0, set())
    """
    if callable(start):
        return start
    if not _is_immutable(start):
        raise TopologyError(
            explain(
                f"start of {where!r}",
                expected="a value that cannot change, or a function that makes one",
                got=shorten(start),
                hint=f"give {type(start).__name__} itself, or a lambda, instead of an object",
            )
        )
    return Always(start)


@dataclass(frozen=True)
class Always:
    """Gives the same value to all, which cannot change."""

    value: Any

    def __call__(self) -> Any:
        """Give it."""
        return self.value


def _is_immutable(value: Any) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(_is_immutable, value))
    return value is None or isinstance(value, _IMMUTABLE)


_IMMUTABLE = (bool, int, float, complex, str, bytes, Decimal, dt.date, dt.time, dt.timedelta)
