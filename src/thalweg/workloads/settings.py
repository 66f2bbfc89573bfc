"""Settings of a workload, read from the text that ``--set`` gives."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from thalweg.errors import UsageError, explain, meant

S = TypeVar("S")


def read_settings(kind: type[S], values: Mapping[str, str]) -> S:
    """Make a settings dataclass of text values; a name or value that does not fit is an error.

    >>> import dataclasses
    >>> @dataclasses.dataclass(frozen=True)
    ... class Size:
    ...     rows: int = 10
    >>> read_settings(Size, {"rows": "1_000"})
    Size(rows=1000)
    """
    known = typing.get_type_hints(kind)
    for name in values:
        if name not in known:
            hint = meant(name, known)
            raise UsageError(explain(f"setting {name!r}", "", f"one of {list(known)}", hint=hint))
    return kind(**{name: _read(name, value, known[name]) for name, value in values.items()})


def _read(name: str, value: str, kind: type) -> Any:
    try:
        return msgspec.convert(value.replace("_", ""), kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(
            explain(f"setting {name!r}", expected=kind.__name__, got=repr(value))
        ) from error


def check_setting(workload: str, name: str, value: Any, good: bool, expected: str) -> None:
    """Refuse a value that makes no sense."""
    if not good:
        raise UsageError(explain(f"setting {name!r} of {workload}", "", expected, repr(value)))
