"""``thalweg run``: progress and a summary on standard error, Ctrl-C, the result's last words."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FrameType

from rich.console import Console

from thalweg.cli.live_line import LiveLine, PlainLines
from thalweg.cli.scaling import Wishes
from thalweg.cli.showing import (
    Peaks,
    error_console,
    print_table,
    progress_text,
    summary_table,
    totals_text,
)
from thalweg.cli.spark_options import SPARK
from thalweg.cli.spark_session import started
from thalweg.errors import UsageError, explain
from thalweg.events import (
    Decided,
    Event,
    Noticed,
    Progress,
    Reconfigured,
    RecordRefused,
    RunFinished,
    RunStarted,
    TupleRefused,
)
from thalweg.execution import runtime_names
from thalweg.metrics import Snapshot
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.spark.runtime import Spark
from thalweg.topology import Topology

_STOPPING = b"\nstopping: what is under way will be finished (Ctrl-C again aborts)\n"
#: Refused tuples or records of one component that are shown; the others are counted.
_SHOWN_REFUSALS = 3


def run_topology(
    topology: Topology,
    on: str | Spark | Local | None,
    settings: Mapping[str, str],
    quiet: bool = False,
    verbose: bool = False,
    wishes: Wishes | None = None,
) -> None:
    """Run a topology and show what happens."""
    if isinstance(on, str) and not on.strip():
        expected = f"one of {runtime_names()} in this version"
        raise UsageError(explain(f"runtime {on!r}", expected=expected))
    display = Silence() if quiet else Display(error_console(), verbose)
    stop = threading.Event()
    with ExitStack() as stack:
        stack.enter_context(stop_on_interrupt(stop))
        if isinstance(on, Spark):
            on = stack.enter_context(started(on, topology.name, display.say))
            # Once more, because Spark's session brings a handler of its own.
            stack.enter_context(stop_on_interrupt(stop))
        if stop.is_set():
            raise KeyboardInterrupt
        stack.enter_context(display.line)
        listen = display.listen if wishes is None else wishes.beside(display.listen, display.say)
        topology.run(on=on, stop=stop, settings=settings, listen=listen)


@contextmanager
def stop_on_interrupt(stop: threading.Event) -> Iterator[None]:
    """Let the first Ctrl-C set ``stop``, and the second one interrupt."""

    def handle(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        # Not through a buffered file: the signal may have come in the middle of a write to it.
        os.write(2, _STOPPING)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Silence:
    """Shows nothing."""

    line = contextlib.nullcontext()

    def listen(self, _event: Event) -> None:
        """Hear one event."""

    def say(self, _text: str) -> None:
        """Hear what is going on."""


class Display:
    """Shows the events of a run on a console."""

    def __init__(self, console: Console, verbose: bool = False) -> None:
        self._console = console
        self._peaks = Peaks() if verbose else None
        self.line = LiveLine(console) if _suits_live_line(console) else PlainLines(console)
        self._before: Snapshot | None = None
        self._refused: Counter[str] = Counter()

    def listen(self, event: Event) -> None:
        """Show one event."""
        match event:
            case RunStarted():
                self.say(f"{event.topology} runs on {event.runtime}")
                if event.runtime == SPARK:
                    self.line.show(0.0, "the first batch: Spark starts its Python workers")
            case Progress(snapshot):
                if self._peaks is not None:
                    self._peaks.look(snapshot)
                if self.line.show(snapshot.elapsed, progress_text(snapshot, self._before)):
                    self._before = snapshot
            case TupleRefused():
                subject = f"{event.component!r}, task {event.task}"
                self._refuse(event.component, f"{subject}: {event.reason}", event.tuple_text)
            case RecordRefused():
                self._refuse(event.component, f"{event.component!r}: {event.reason}", event.raw)
            case Noticed(text) | Reconfigured(text):
                self.say(text)
            case Decided(text) if text and event.carried_out and self._peaks is not None:
                self.say(text)
            case RunFinished():
                self._finish(event)

    def _refuse(self, component: str, text: str, what: str) -> None:
        self._refused[component] += 1
        if self._refused[component] <= _SHOWN_REFUSALS:
            self.say(f"refused by {text}\n  {what}")
        elif self._refused[component] == _SHOWN_REFUSALS + 1:
            self.say(f"refused by {component!r}: more of them, counted at the end")

    def _finish(self, event: RunFinished) -> None:
        self.line.clear()
        with contextlib.suppress(OSError):
            sys.stdout.flush()  # what the sinks printed comes before the summary
        print_table(self._console, summary_table(event.snapshot, self._peaks))
        for component, count in self._refused.items():
            self.say(f"refused by {component!r}: {count:,} in all")
        self.say(totals_text(event.snapshot))
        if event.stopped:
            self.say("stopped early, before the sources had ended")

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self.line.clear()
        self._console.print(text, markup=False, soft_wrap=True)


def _suits_live_line(console: Console) -> bool:
    """Whether a line can be written over: not where a reader of our output uses that terminal."""
    try:
        piped = stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        piped = False
    return console.is_terminal and not console.is_dumb_terminal and not piped
