"""Names of files from patterns, in an order that is always the same."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence

from thalweg.errors import UsageError, explain, shorten

Pattern = str | os.PathLike[str]

#: Ends of names under which files are written before they are complete.
_UNFINISHED = (".part", ".tmp")


def patterns_of(given: Pattern | Iterable[Pattern]) -> tuple[str, ...]:
    """Check one pattern, or several."""
    several = [given] if isinstance(given, str | os.PathLike) else list(given)
    if not several or not all(isinstance(p, str | os.PathLike) and os.fspath(p) for p in several):
        expected = "a path, a pattern such as 'posts/*.jsonl', or a list of them"
        raise UsageError(explain("files", expected=expected, got=shorten(given, 80)))
    return tuple(os.fspath(pattern) for pattern in several)


def matching(patterns: Sequence[str]) -> list[str]:
    """List the files that match; sorted within each pattern, and each file once."""
    found = [path for pattern in patterns for path in _expand(pattern)]
    return list(dict.fromkeys(found))


def matching_or_fail(patterns: Sequence[str]) -> list[str]:
    """List the files that match, each pattern at least one."""
    for pattern in patterns:
        if not _expand(pattern):
            raise UsageError(
                explain(
                    f"files {pattern!r}",
                    expected="at least one file",
                    got=_what_is_there(folder_of(pattern)),
                    hint="a relative path starts at the current folder",
                )
            )
    return matching(patterns)


def folder_of(pattern: str) -> str:
    """Give the folder in which a pattern is searched: all before its first wildcard.

    >>> folder_of("logs/2024/*.log")
    'logs/2024'
    """
    if os.path.isdir(pattern):
        return pattern
    folder = os.path.dirname(pattern)
    while glob.has_magic(folder):
        folder = os.path.dirname(folder)
    return folder or os.curdir


def _expand(pattern: str) -> list[str]:
    if os.path.isdir(pattern):
        pattern = os.path.join(glob.escape(pattern), "*")
    elif os.path.exists(pattern):  # also names that happen to contain wildcards
        return [pattern]
    found = sorted(glob.glob(pattern, recursive=True))
    return [p for p in found if os.path.isfile(p) and not p.endswith(_UNFINISHED)]


def _what_is_there(folder: str) -> str:
    shown = os.path.abspath(folder)
    if not os.path.isdir(folder):
        return f"no folder {shown!r}"
    with os.scandir(folder) as entries:
        count = sum(1 for _ in entries)
    return f"none among the {count} entries of folder {shown!r}"
