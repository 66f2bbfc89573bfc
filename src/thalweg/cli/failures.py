"""What people see when something goes wrong, and the exit code that says so."""

from __future__ import annotations

import select
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from thalweg.cli.output import flush_or_silence, silence, writing
from thalweg.cli.remedies import remedy_for
from thalweg.cli.saying import note_told, say, was_told
from thalweg.errors import (
    ComponentError,
    ThalwegError,
    UsageError,
    explain,
    short_path,
    user_frame,
)

USER_ERROR = 1
#: What shells report for a command that SIGINT has ended.
INTERRUPTED = 130
#: Kinds of the records that say it in logs.
_FAILED, _TRACEBACK = "run_failed", "traceback"


@contextmanager
def reported(debug: bool, logs: bool = False) -> Iterator[None]:
    """Turn errors into an exit code and a message; with ``debug`` the traceback says it.

    With ``logs`` the message is a line of JSON.
    """
    try:
        yield
        with writing():
            pass  # what is left is flushed
    except KeyboardInterrupt as error:
        if not was_told(error):
            say("aborted", logs, _FAILED)
        raise typer.Exit(INTERRUPTED) from None
    except (ThalwegError, OSError) as error:
        if _is_of_reader(error):
            silence()
            raise typer.Exit from None
        if not isinstance(error, ThalwegError) and not remedy_for(error):
            raise  # nobody has foreseen it
        if debug:
            say("".join(traceback.format_exception(error)).rstrip(), logs, _TRACEBACK)
        else:
            tell(error, logs)
        flush_or_silence()
        raise typer.Exit(USER_ERROR) from None


def tell(error: Exception, logs: bool = False) -> None:
    """Say what went wrong, if nobody has done so, and it is not that a reader has left."""
    if not (was_told(error) or _is_of_reader(error)):
        note_told(error)
        text = _text_of(error)
        say(text if logs else f"error: {text}", logs, _FAILED)


def _text_of(error: Exception) -> str:
    text, advice = str(error), "" if isinstance(error, ComponentError) else remedy_for(error)
    if advice and not _advises(error):
        text += f" ({advice})"
    lines = [text, *(f"  {note}" for note in getattr(error, "__notes__", ()))]
    if error.__cause__ is not None and not advice and not _advises(error):
        lines.append("  (--debug shows the whole traceback)")
    return "\n".join(lines)


def _advises(error: Exception) -> bool:
    """Whether a message ends with what to do; the line of a user's code may end like that, too."""
    text = str(error)
    is_users = isinstance(error, ComponentError) or "\n" in text
    return text.endswith(")") and not is_users


def user_error(error: Exception, file: Path) -> UsageError:
    """Describe what a user's file raised, with the line it happened at."""
    if isinstance(error, SyntaxError):
        return UsageError(_syntax(error, file))
    text = str(error) if isinstance(error, ThalwegError) else f"{type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError):
        text += " (install what has it, as pip install NAME, or put its file beside this one)"
    frame = user_frame(error)
    if frame is None:
        return UsageError(text)
    place = f"{short_path(frame.filename)}:{frame.lineno}"
    return UsageError(_at(place, text, frame.line or ""))


def _syntax(error: SyntaxError, file: Path) -> str:
    if error.lineno is None:  # as in a file that is no text
        hint = "is it a Python file, in UTF-8?"
        return explain(f"file {str(file)!r}", expected="Python", got=error.msg, hint=hint)
    place = f"{short_path(error.filename or str(file))}:{error.lineno}"
    return _at(place, f"{type(error).__name__}: {error.msg}", (error.text or "").strip())


def _at(place: str, text: str, line: str) -> str:
    return f"{place}: {text}" + (f"\n    {line}" if line else "")


def _is_of_reader(error: Exception) -> bool:
    """Whether it comes from who has read standard output, and reads it no more."""
    return _stems_from_pipe(error) and _reader_is_gone()


def _stems_from_pipe(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, BrokenPipeError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _reader_is_gone() -> bool:
    """Whether standard output is a pipe that nobody reads."""
    try:
        output = sys.stdout.fileno()
    except (OSError, ValueError):
        return False
    poll = select.poll()
    poll.register(output, select.POLLOUT)
    return any(state & select.POLLERR for _, state in poll.poll(0))
