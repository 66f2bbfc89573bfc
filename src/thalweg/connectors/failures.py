"""What can be wrong with a file as a whole, and how fields find their columns."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from itertools import count

from thalweg.errors import RecordError, explain


class BadFile(RecordError):
    """A file that cannot be read, or not to its end."""

    #: Which file; set by whoever knows it.
    path = ""


class MissingField(BadFile):
    """A file that lacks a declared field."""


def field_name(column: str) -> str:
    """Turn the name of a column into one that Python accepts; into none where nothing is left.

    >>> field_name("page 1 (main category)")
    'page_1_main_category'
    >>> field_name("class"), field_name("2024"), field_name("?")
    ('class_', 'c2024', '')
    """
    parts = "".join(c if f"a{c}".isidentifier() else " " for c in column).split()
    name = "_".join(parts).strip("_")
    if keyword.iskeyword(name):
        return f"{name}_"
    return name if not name or name.isidentifier() else f"c{name}"


def field_names(columns: Sequence[str]) -> list[str]:
    """Give the names of fields for all columns of a file; each has one of its own.

    >>> field_names(["", "a b", "class"])
    ['column_1', 'a_b', 'class_']
    >>> field_names(["column_3", "b", ""])
    ['column_3', 'b', 'column_4']
    """
    first: dict[str, str] = {}
    for name, column in zip(_changed(columns), columns, strict=True):
        if name in first:
            got = f"{name!r}, as {first[name]!r} gives"
            hint = "rename one of them in the file"
            raise BadFile(explain(f"column {column!r}", "", "a field of its own", got, hint))
        first[name] = column
    return list(first)


def _changed(columns: Sequence[str]) -> list[str]:
    names = [field_name(column) for column in columns]
    taken = set(names)
    for at, name in enumerate(names):
        if not name:
            numbered = (f"column_{number}" for number in count(at + 1))
            names[at] = next(each for each in numbered if each not in taken)
            taken.add(names[at])
    return names


def find_columns(fields: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Find the column of each field: by its name, or by the name that Python would accept.

    >>> find_columns(["session_ID", "day"], ["day", "session ID"])
    [1, 0]
    """
    by_name = {name: at for at, name in reversed(list(enumerate(_changed(columns))))}
    by_name |= {column: at for at, column in reversed(list(enumerate(columns)))}
    for field in fields:
        if field not in by_name:
            expected = f"one of its columns {list(columns)}"
            raise MissingField(explain(f"field {field!r}", expected=expected, got="no such column"))
    return [by_name[field] for field in fields]
