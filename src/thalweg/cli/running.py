"""``thalweg run``: progress and a summary on standard error, Ctrl-C, the result's last words."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

import msgspec
from rich.console import Console

from thalweg.cli.live_line import LiveLine, PlainLines, suits_live_line
from thalweg.cli.recording import JsonLog
from thalweg.cli.showing import (
    Peaks,
    error_console,
    harmless,
    has_stats,
    print_table,
    progress_text,
    stats_table,
    summary_table,
    totals_text,
)
from thalweg.cli.spark_options import SPARK
from thalweg.cli.spark_session import started
from thalweg.cli.watching import Begun, Listener, Watcher
from thalweg.errors import UsageError, explain
from thalweg.events import (
    Activated,
    ChildSaid,
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
from thalweg.execution import Steering, runtime_names
from thalweg.metrics import Snapshot
from thalweg.noticing import late_texts
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.spark.planning import check_kept
from thalweg.runtimes.spark.runtime import Spark
from thalweg.signals import unless_forked
from thalweg.topology import Topology

_STOPPING = "stopping: what is under way will be finished (Ctrl-C again aborts)"
#: Storm's level of what children say from which on people see it: information.
_SHOWN_LEVEL = 2
#: Refused tuples or records of one component that are shown; the others are counted.
_SHOWN_REFUSALS = 3


def run_topology(
    topology: Topology,
    on: str | Spark | Local | None,
    told: Mapping[str, Any],
    quiet: bool = False,
    verbose: bool = False,
    watchers: Sequence[Watcher] = (),
) -> None:
    """Run a topology and show what happens; ``told`` is what else the run is told."""
    if isinstance(on, str) and not on.strip():
        expected = f"one of {runtime_names()} in this version"
        raise UsageError(explain(f"runtime {on!r}", expected=expected))
    if isinstance(on, Spark):
        check_kept(topology)  # before anybody waits for Spark
    stop = threading.Event()
    logs = any(isinstance(watcher, JsonLog) for watcher in watchers)
    console = error_console()
    silence = Silence(None if logs else console, topology)
    display = silence if quiet else Display(console, verbose)
    with ExitStack() as stack:
        stack.enter_context(stop_on_interrupt(stop, logs))
        if isinstance(on, Spark):
            on = stack.enter_context(started(on, topology.name, display.say))
            # Once more, because Spark's session brings a handler of its own.
            stack.enter_context(stop_on_interrupt(stop, logs))
        if stop.is_set():
            raise KeyboardInterrupt
        begun = Begun(topology, on, display.say, stop, Steering())
        heard = [display.listen, *(stack.enter_context(w.watch(begun)) for w in watchers)]
        if any(watcher.steers for watcher in watchers):  # a run that may change costs a little
            told = {**told, "steering": begun.steering}
        stack.enter_context(display.line)  # it goes before those who follow say their last words
        topology.run(on=on, stop=stop, listen=_each(heard), **told)


def _each(listeners: Sequence[Listener]) -> Listener:
    """Let several hear the same."""

    def listen(event: Event) -> None:
        for each in listeners:
            each(event)

    return listen


@contextmanager
def stop_on_interrupt(stop: threading.Event, logs: bool = False) -> Iterator[None]:
    """Let the first Ctrl-C set ``stop``, and the second one interrupt; say so, also in logs.

    SIGTERM, with which other programs end this one, does the same.
    """
    record = msgspec.json.encode({"kind": "noticed", "text": _STOPPING}) + b"\n"
    said = record if logs else f"\n{_STOPPING}\n".encode()

    def handle(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        # Not through a buffered file: the signal may have come in the middle of a write to it.
        os.write(2, said)

    handlers = {signal.SIGINT: handle, signal.SIGTERM: unless_forked(handle)}
    before = {each: signal.signal(each, handler) for each, handler in handlers.items()}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class Silence:
    """Shows nothing but what was lost."""

    line = contextlib.nullcontext()

    def __init__(self, console: Console | None, topology: Topology) -> None:
        self._console, self._topology = console, topology

    def listen(self, event: Event) -> None:
        """Hear one event."""
        if isinstance(event, RunFinished) and self._console is not None:
            for _, text in late_texts(event.snapshot, self._topology):
                self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def say(self, _text: str) -> None:
        """Hear what is going on."""


class Display:
    """Shows the events of a run on a console."""

    def __init__(self, console: Console, verbose: bool = False) -> None:
        self._console = console
        self._peaks = Peaks() if verbose else None
        self.line = LiveLine(console) if suits_live_line(console) else PlainLines(console)
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
            case ChildSaid(component, task, level, text) if level >= _SHOWN_LEVEL:
                self.say(f"{component!r}, task {task}: {text}")
            case Activated(active):
                self.say(f"sources are {'asked again' if active else 'not asked for now'}")
            case Decided(text) if text and self._shows(event):
                self.say(text)
            case RunFinished():
                self._finish(event)

    def _shows(self, event: Decided) -> bool:
        """Say whether people are shown a decision: one about who decides always."""
        return event.replaces is not None or (event.carried_out and self._peaks is not None)

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
        if self._peaks is not None and has_stats(event.snapshot):
            print_table(self._console, stats_table(event.snapshot))
        for component, count in self._refused.items():
            self.say(f"refused by {component!r}: {count:,} in all")
        self.say(totals_text(event.snapshot))
        if event.stopped:
            self.say("stopped early, before the sources had ended")

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self.line.clear()
        self._console.print(harmless(text), markup=False, soft_wrap=True)
