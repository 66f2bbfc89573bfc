"""What people see when something goes wrong, and the exit code that says so."""

from __future__ import annotations

import select
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from thalweg.cli.output import flush_or_silence, silence, writing
from thalweg.cli.showing import error_console
from thalweg.errors import ThalwegError, UsageError, short_path, user_frame

USER_ERROR = 1
#: What shells report for a command that SIGINT has ended.
INTERRUPTED = 130


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Turn errors into an exit code and a message; with ``debug`` the traceback says it."""
    try:
        yield
        with writing():
            pass  # what is left is flushed
    except KeyboardInterrupt:
        error_console().print("aborted")
        raise typer.Exit(INTERRUPTED) from None
    except (ThalwegError, BrokenPipeError) as error:
        if _stems_from_pipe(error) and _reader_is_gone():
            raise typer.Exit from None
        if not isinstance(error, ThalwegError):
            raise
        if debug:
            traceback.print_exception(error)
        else:
            _print_error(error)
        flush_or_silence()
        raise typer.Exit(USER_ERROR) from None


def _print_error(error: ThalwegError) -> None:
    lines = [f"error: {error}"]
    lines += [f"  {note}" for note in getattr(error, "__notes__", ())]
    if error.__cause__ is not None:
        lines.append("  (--debug shows the whole traceback)")
    error_console().print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def user_error(error: Exception) -> UsageError:
    """Describe what a user's file raised, with the line it happened at."""
    if isinstance(error, SyntaxError):
        place = f"{short_path(error.filename or '?')}:{error.lineno}"
        line = (error.text or "").strip()
        return UsageError(_at(place, f"{type(error).__name__}: {error.msg}", line))
    text = str(error) if isinstance(error, ThalwegError) else f"{type(error).__name__}: {error}"
    frame = user_frame(error)
    if frame is None:
        return UsageError(text)
    place = f"{short_path(frame.filename)}:{frame.lineno}"
    return UsageError(_at(place, text, frame.line or ""))


def _at(place: str, text: str, line: str) -> str:
    return f"{place}: {text}" + (f"\n    {line}" if line else "")


def _stems_from_pipe(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, BrokenPipeError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _reader_is_gone() -> bool:
    """Whether standard output is a pipe that nobody reads; if so, silence it for good."""
    try:
        output = sys.stdout.fileno()
    except (OSError, ValueError):
        return False
    poll = select.poll()
    poll.register(output, select.POLLOUT)
    if not any(state & select.POLLERR for _, state in poll.poll(0)):
        return False
    silence()
    return True
