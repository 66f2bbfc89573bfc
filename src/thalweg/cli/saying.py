"""What a command says beside its results: to people, or as lines of JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from thalweg.cli.showing import error_console
from thalweg.recording.records import plain

#: What an error has that was told.
_TOLD = "was_told"


def log(record: Mapping[str, Any]) -> None:
    """Write a line of JSON."""
    sys.stderr.write(msgspec.json.encode(record).decode() + "\n")


def say(text: str, logs: bool = False, kind: str = "noticed") -> None:
    """Say something; ``logs`` where lines of JSON stand for what people are shown."""
    if logs:
        log(plain({"kind": kind, "text": text}, longest=None))
    else:
        error_console().print(text, markup=False, highlight=False, soft_wrap=True)


def note_told(error: BaseException) -> None:
    """Remember that an error was told, so that it is not told twice.

    >>> error = ValueError("no number")
    >>> note_told(error)
    >>> was_told(error), was_told(ValueError("no number"))
    (True, False)
    """
    setattr(error, _TOLD, True)


def was_told(error: BaseException) -> bool:
    """Say whether an error was told."""
    return getattr(error, _TOLD, False)
