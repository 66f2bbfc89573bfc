"""One line at the foot of a terminal that never mixes with what components print."""

from __future__ import annotations

import os
import stat
import sys
from types import TracebackType
from typing import Any, Self, TextIO, cast

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

#: Seconds between two lines of progress where they stay, as in a log.
_PLAIN_EVERY = 3.0
_ERASE = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))


def suits_live_line(console: Console) -> bool:
    """Whether a line can be written over: not where a reader of our output uses that terminal."""
    try:
        piped = stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        piped = False
    return console.is_terminal and not console.is_dumb_terminal and not piped


class PlainLines:
    """Progress for files and pipes: a line now and then."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing is left to clear."""

    def show(self, elapsed: float, text: str) -> bool:
        """Show a line unless the last one was just before; tell whether it was shown."""
        if elapsed - self._shown < _PLAIN_EVERY:
            return False
        self._shown = elapsed
        self._console.print(text, markup=False, soft_wrap=True)
        return True

    def clear(self) -> None:
        """Lines stay."""


class LiveLine:
    """Progress for a terminal: a line that is written over.

    While it is entered, standard output to the same terminal first clears the line.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._visible = False
        self._output: _ClearingOutput | None = None

    def __enter__(self) -> Self:
        if sys.stdout.isatty():
            self._output = _ClearingOutput(sys.stdout, self)
            sys.stdout = cast(TextIO, self._output)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self.clear()
        if self._output is not None and cast(object, sys.stdout) is self._output:
            sys.stdout = self._output.file
        self._output = None

    def show(self, _elapsed: float, text: str) -> bool:
        """Write over the line; not while a component is in the middle of a line of its own."""
        if self._output is not None and self._output.unfinished:
            return False
        line = Text(text, style="dim", no_wrap=True)
        # The last column stays free: a full line would make the terminal go on to the next one.
        line.truncate(self._console.width - 1, overflow="ellipsis")
        self._console.control(_ERASE)
        self._console.print(line, end="")
        self._visible = True
        return True

    def clear(self) -> None:
        """Take the line away until it is shown again."""
        if self._visible:
            self._visible = False
            self._console.control(_ERASE)


class _ClearingOutput:
    """Standard output that takes the live line away before each write."""

    def __init__(self, file: TextIO, line: LiveLine) -> None:
        self.file = file
        #: Whether the last text did not end its line.
        self.unfinished = False
        self._line = line

    def write(self, text: str) -> int:
        self._line.clear()
        if text:
            self.unfinished = not text.endswith("\n")
        return self.file.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> Any:
        self._line.clear()
        return self.file.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)
