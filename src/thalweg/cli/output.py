"""Standard output that is closed, full, or knows few letters."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from thalweg.cli.remedies import remedy
from thalweg.errors import UsageError, explain


def prepare() -> None:
    """Make standard output and error usable, whatever the shell has made of them."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as by >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (stays open)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that lacks some letters is no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def writing() -> Iterator[None]:
    """Explain why standard output takes no more; a reader that left is another matter."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence()
        got = error.strerror or str(error)
        text = explain("standard output", "", "to be written", got, remedy(error))
        raise UsageError(text) from None


def flush_or_silence() -> None:
    """Write what is left if that works; what has failed was reported before."""
    try:
        sys.stdout.flush()
    except OSError:
        silence()


def silence() -> None:
    """Send what is still to be written nowhere: Python flushes it at exit, and would complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


def can_write(text: str) -> bool:
    """Whether the encoding of standard output has all these letters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
