"""What can be wrong with a file as a whole, and how fields find their columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from thalweg.errors import RecordError, explain


class BadFile(RecordError):
    """A file that cannot be read, or not to its end."""

    #: Which file; set by whoever knows it.
    path = ""


class MissingField(BadFile):
    """A file that lacks a declared field."""


def field_name(column: str) -> str:
    """Turn the name of a column into one that Python accepts.

    >>> field_name("page 1 (main category)")
    'page_1_main_category'
    """
    return re.sub(r"\W+", "_", column.strip()).strip("_")


def find_columns(fields: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Find the column of each field: by its name, or by the name that Python would accept.

    >>> find_columns(["session_ID", "day"], ["day", "session ID"])
    [1, 0]
    """
    by_name = {field_name(column): at for at, column in reversed(list(enumerate(columns)))}
    by_name |= {column: at for at, column in reversed(list(enumerate(columns)))}
    for field in fields:
        if field not in by_name:
            expected = f"one of its columns {list(columns)}"
            raise MissingField(explain(f"field {field!r}", expected=expected, got="no such column"))
    return [by_name[field] for field in fields]
