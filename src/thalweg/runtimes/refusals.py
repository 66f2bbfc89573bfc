"""What happens to a tuple or record that cannot be processed: fail, skip, or keep aside."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol

import msgspec
import pyarrow as pa

from thalweg.components import BlockBolt, Bolt
from thalweg.config import DeadLetter, OnError
from thalweg.errors import ComponentError, RecordError, explain, locate, shorten
from thalweg.events import Event, RecordRefused, TupleRefused
from thalweg.foreign import row_shown
from thalweg.metrics import Counter
from thalweg.topology import Component
from thalweg.tuples import Tuple


class DeadLetters:
    """A file that takes what was refused, one line each; opened with the first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def write(self, line: bytes) -> None:
        """Add lines; they are in the file when this returns."""
        if self._file is None:
            os.makedirs(self._path.parent, exist_ok=True)
            self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115 (closed below)
        self._file.write(line)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class Lines(Protocol):
    """Something that takes lines."""

    def write(self, line: bytes) -> None:
        """Take one or more lines."""

    def close(self) -> None:
        """Let go of what is open."""


class Refusals:
    """Applies a component's policy at one task."""

    def __init__(
        self,
        component: Component,
        task: int,
        counter: Counter,
        listen: Callable[[Event], None],
        letters: Lines | None = None,
    ) -> None:
        self._component = component
        self._task = task
        self._counter = counter
        self.tally = counter.tally
        self._listen = listen
        self._policy: OnError = component.options.on_error
        self._letters = letters
        if letters is None and isinstance(self._policy, DeadLetter):
            self._letters = DeadLetters(self._policy.path)

    def tuple_failed(
        self, values: dict[str, Any], error: Exception, call: Any, hint: str = ""
    ) -> None:
        """Raise, or note and go on, after a component raised on a tuple."""
        text = ", ".join(f"{name}={shorten(value, 80)}" for name, value in values.items())
        reason = f"{type(error).__name__}: {error}{hint or _attribute_hint(error)}"
        if self._policy == "fail":
            raise self._error(reason, call, "tuple", shorten_text(text)) from error
        self._counter.errors += 1
        self._keep({"tuple": values, "reason": reason})
        self._listen(TupleRefused(self._component.name, self._task, shorten_text(text), reason))

    def block_failed(self, batch: pa.RecordBatch, error: Exception, call: Any) -> None:
        """Do the same for all tuples of a block on which a vectorised component raised."""
        if self._policy == "fail" and batch.num_rows > 1:
            reason = f"{type(error).__name__}: {error}"
            block = f"{batch.num_rows} tuples, none of which it names"
            raise self._error(reason, call, "block", block) from error
        for row in range(batch.num_rows):
            self.tuple_failed(row_shown(batch, row), error, call)

    def call_failed(self, error: Exception, call: Any) -> ComponentError:
        """Make the error for a call that has no tuple: prepare, a tick, the end."""
        return self._error(f"{type(error).__name__}: {error}", call)

    def record_failed(self, raw: str, reason: str) -> None:
        """Raise, or note and go on, after a source met input that it cannot read."""
        if self._policy == "fail":
            text = explain(f"record {shorten(raw)}", f"source {self._component.name!r}")
            program = "in a program on_error='skip' or dead_letter(path)"
            hint = f"{program} would go on, with thalweg sql --on-error skip"
            raise RecordError(f"{text}: {reason} ({hint})")  # noqa: EM102 (built above)
        self._counter.errors += 1
        self._keep({"raw": raw, "reason": reason})
        self._listen(RecordRefused(self._component.name, shorten(raw), reason))

    def close(self) -> None:
        """Let go of the dead letters."""
        if self._letters is not None:
            self._letters.close()

    def _error(self, reason: str, call: Any, on: str = "", shown: str = "") -> ComponentError:
        name = self._component.name
        text = f"component {name!r}, task {self._task}, in {locate(call)}: {reason}"
        if on:
            text += f"\n  {on}: {shown}"
        return ComponentError(name, self._task, text, shown if on == "tuple" else None)

    def _keep(self, record: dict[str, Any]) -> None:
        if not isinstance(self._policy, DeadLetter) or self._letters is None:
            return
        about = {"component": self._component.name, "task": self._task}
        self._letters.write(msgspec.json.encode(about | record, enc_hook=repr) + b"\n")


def _attribute_hint(error: Exception) -> str:
    """Help with the two attributes that beginners look for in vain."""
    if not isinstance(error, AttributeError):
        return ""
    if isinstance(error.obj, Tuple):
        return f" (this tuple has {', '.join(error.obj.__struct_fields__)})"
    if error.name == "state" and isinstance(error.obj, Bolt | BlockBolt):
        return " (bolts have state when they say kind = Kind.KEYED or Kind.GLOBAL)"
    return ""


def shorten_text(text: str, limit: int = 300) -> str:
    """Cut text to a length that fits a message."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
