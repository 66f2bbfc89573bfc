"""``--record``, ``--log-format`` and ``thalweg report``: what is kept of a run, and shown later."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from thalweg.cli.bars import bar
from thalweg.cli.output import writing
from thalweg.cli.saying import log, note_told, say
from thalweg.cli.watching import Begun, Listener, Watcher
from thalweg.errors import UsageError, explain
from thalweg.events import Event, Progress, RunFailed
from thalweg.recording.files import check_new
from thalweg.recording.reading import Recording
from thalweg.recording.recorder import Recorder
from thalweg.recording.records import Numbering, Record
from thalweg.recording.report import report_page

#: Seconds between two lines of progress in a log.
_PROGRESS_EVERY = 10.0


class LogFormat(StrEnum):
    """How a run speaks on standard error."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class RecordOptions:
    """What is kept of a run; each field is an option of the command."""

    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.sqlite", help="Keep what happens in a new file, for thalweg report."
        ),
    ] = None
    log_format: Annotated[
        LogFormat,
        typer.Option(help="How the run speaks on standard error: for people, or a JSON per line."),
    ] = LogFormat.TEXT

    @property
    def watchers(self) -> list[Watcher]:
        """Give those who follow the run."""
        logged: list[Watcher] = [JsonLog()] if self.logs else []
        if self.record is None:
            return logged
        check_new(self.record)  # now, before anything is started
        return [Recorded(self.record, self.logs), *logged]

    @property
    def logs(self) -> bool:
        """Whether lines of JSON stand for what people are shown."""
        return self.log_format is LogFormat.JSON

    @property
    def words(self) -> list[str]:
        """Give these options as they are written.

        >>> RecordOptions(Path("run.sqlite")).words
        ['--record', 'run.sqlite']
        """
        kept = [] if self.record is None else ["--record", str(self.record)]
        return [*kept, "--log-format", "json"] if self.logs else kept


@dataclass(frozen=True)
class Recorded:
    """Keeps a run in a file."""

    path: Path
    #: Whether lines of JSON stand for what people are shown.
    logs: bool = False
    #: It only looks on.
    steers: ClassVar[bool] = False

    @contextmanager
    def watch(self, run: Begun) -> Iterator[Listener]:
        """Record a run, and say what came of it."""
        recorder = Recorder(self.path, run.topology, run.runtime, run.policy)
        try:
            with recorder:
                yield recorder.listen
        finally:
            if recorder.failure:  # also where nothing else is shown
                text = f"recording {str(self.path)!r} ends early: {recorder.failure}"
                say(text, self.logs)
            else:
                lost = f", {recorder.lost:,} looks left out" if recorder.lost else ""
                run.say(f"recorded {recorder.kept:,} records in {self.path}{lost}")


@dataclass(frozen=True)
class JsonLog:
    """Writes what happens as lines of JSON; looks at metrics now and then, without components."""

    steers: ClassVar[bool] = False

    @contextmanager
    def watch(self, run: Begun) -> Iterator[Listener]:
        """Begin with the topology."""
        numbering, shown, lock = Numbering(), -_PROGRESS_EVERY, threading.Lock()
        self._line(numbering.topology(run.topology, run.runtime, run.policy))

        def hear(event: Event) -> None:
            nonlocal shown
            if isinstance(event, Progress):
                if event.snapshot.elapsed - shown < _PROGRESS_EVERY:
                    return
                shown = event.snapshot.elapsed
            with lock:
                self._line(numbering.record(event))

        try:
            yield hear
        except BaseException as error:
            hear(RunFailed.of(error))
            note_told(error)
            raise
        finally:
            with lock:
                self._line(numbering.lost())

    def _line(self, record: Record | None) -> None:
        if record is None:
            return
        if "snapshot" in record:
            whole = {**record["snapshot"]}
            del whole["components"]
            record = {**record, "snapshot": whole}
        record.pop("difference", None)  # hundreds of keys
        log(record)


def _own(path: str, flags: int) -> int:
    """Open a file that, where it is new, only its owner can read: it has tuples in it."""
    return os.open(path, flags, 0o600)


def write_report(file: Path, to: Path | None) -> None:
    """Write the report of a recording: to a file, or to standard output."""
    with Recording.open(file) as recording, bar(f"reading {file}"):
        text = report_page(recording)
    if to is None:
        with writing():
            sys.stdout.write(text)
        return
    try:
        with open(to, "w", encoding="utf-8", opener=_own) as page:
            page.write(text)
    except OSError as error:
        got = error.strerror or str(error)
        raise UsageError(explain(f"report {str(to)!r}", "", "to be written", got)) from error
    say(f"written to {to}")
