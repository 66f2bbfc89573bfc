"""What happens to a tuple or record that cannot be processed: fail, skip, or keep aside."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO, Any

import msgspec
import pyarrow as pa

from thalweg.components import BlockBolt, Bolt
from thalweg.config import DeadLetter, OnError
from thalweg.errors import ComponentError, RecordError, explain, locate, shorten
from thalweg.events import Event, RecordRefused, TupleRefused
from thalweg.metrics import Counter
from thalweg.topology import Component
from thalweg.tuples import Tuple


class Refusals:
    """Applies a component's policy at one task."""

    def __init__(
        self,
        component: Component,
        task: int,
        counter: Counter,
        listen: Callable[[Event], None],
    ) -> None:
        self._component = component
        self._task = task
        self._counter = counter
        self._listen = listen
        self._policy: OnError = component.options.on_error
        self._file: IO[bytes] | None = None

    def tuple_failed(
        self, values: dict[str, Any], error: Exception, call: Any, hint: str = ""
    ) -> None:
        """Raise, or note and go on, after a component raised on a tuple."""
        text = ", ".join(f"{name}={shorten(value, 80)}" for name, value in values.items())
        reason = f"{type(error).__name__}: {error}{hint or _attribute_hint(error)}"
        if self._policy == "fail":
            raise self._error(reason, shorten_text(text), call) from error
        self._counter.errors += 1
        self._keep({"tuple": values, "reason": reason})
        self._listen(TupleRefused(self._component.name, self._task, shorten_text(text), reason))

    def block_failed(self, batch: pa.RecordBatch, error: Exception, call: Any) -> None:
        """Do the same for all tuples of a block on which a vectorised component raised."""
        for values in batch.to_pylist() if self._policy != "fail" else batch[:1].to_pylist():
            self.tuple_failed(values, error, call)

    def call_failed(self, error: Exception, call: Any) -> ComponentError:
        """Make the error for a call that has no tuple: prepare, a tick, the end."""
        return self._error(f"{type(error).__name__}: {error}", None, call)

    def record_failed(self, raw: str, reason: str) -> None:
        """Raise, or note and go on, after a source met input that it cannot read."""
        if self._policy == "fail":
            text = explain(f"record {shorten(raw)}", f"source {self._component.name!r}")
            hint = "on_error='skip' or dead_letter(path) would go on"
            raise RecordError(f"{text}: {reason} ({hint})")  # noqa: EM102 (built above)
        self._counter.errors += 1
        self._keep({"raw": raw, "reason": reason})
        self._listen(RecordRefused(self._component.name, shorten(raw), reason))

    def close(self) -> None:
        """Let go of the dead-letter file."""
        if self._file:
            self._file.close()
            self._file = None

    def _error(self, reason: str, tuple_text: str | None, call: Any) -> ComponentError:
        name = self._component.name
        text = f"component {name!r}, task {self._task}, in {locate(call)}: {reason}"
        if tuple_text is not None:
            text += f"\n  tuple: {tuple_text}"
        return ComponentError(name, self._task, text, tuple_text)

    def _keep(self, record: dict[str, Any]) -> None:
        if not isinstance(self._policy, DeadLetter):
            return
        if self._file is None:
            os.makedirs(self._policy.path.parent, exist_ok=True)
            self._file = open(self._policy.path, "ab", buffering=0)  # noqa: SIM115 (closed above)
        about = {"component": self._component.name, "task": self._task}
        self._file.write(msgspec.json.encode(about | record, enc_hook=repr) + b"\n")


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
