"""The process of one topology; it outlives the server that started it.

Started as ``python -m thalweg.server.runner FOLDER LOCK ALLOWED...``: the folder says what to run,
the descriptor holds the lock that tells servers that it is alive, and files of projects are looked
for below the folders that are allowed only.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec.structs import replace

from thalweg.errors import ThalwegError
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
from thalweg.execution import Steering
from thalweg.recording.recorder import Recorder, RecorderSettings
from thalweg.server.folders import Home, Status, say_holder
from thalweg.server.life import Outcome, Record
from thalweg.server.logs import rotate
from thalweg.server.programs import prepared
from thalweg.signals import unless_forked
from thalweg.storm.hosting import forwarded
from thalweg.storm.logs import LEVELS
from thalweg.topology import Topology

#: Seconds between two looks at what is wanted.
_EVERY = 0.1
#: Seconds after which a runner says how it is, whether or not anything has changed.
_SAY_EVERY = 0.5
#: Characters of what was refused last; it is told again and again.
_MOST_REFUSED = 300


#: How runs are recorded: a look each second, of which every second one goes when there are many.
_RECORDING = RecorderSettings(widest=1.0)


def _forget(_event: Event) -> None:
    """Keep nothing."""


class Runner:
    """Runs a topology as its record says, and says how it is."""

    def __init__(self, home: Home, allowed: Sequence[Path] = ()) -> None:
        self._home, self._allowed = home, tuple(allowed)
        self._stop, self._steering = threading.Event(), Steering()
        self._over = threading.Event()
        self._told = Status(os.getpid(), time.time())
        self._saying = threading.Lock()
        self._asked_to_stop = False
        self._wanted: Record | None = None
        self._policy: str | None = None
        self._record: Callable[[Event], None] = _forget

    def run(self) -> Outcome:
        """Run until the end; gives how it ended."""
        signal.signal(signal.SIGTERM, unless_forked(self._hear))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._look()
        watching = threading.Thread(target=self._watch, name="watching", daemon=True)
        watching.start()
        try:
            return self._run()
        finally:
            self._over.set()
            watching.join()

    def _run(self) -> Outcome:
        record = self._home.record()
        if record is None:
            return Outcome("refused", "its record is gone")
        try:
            made = prepared(record.program, self._home.checkpoint, self._allowed)
            for note in made.notes:
                log(note)
            self._tell(topology=made.topology.name)
            with self._recording(made.topology, made.on.name), _logs(made.storm):
                result = made.topology.run(
                    on=made.on,
                    stop=self._stop,
                    listen=self._listen,
                    steering=self._steering,
                    **made.arguments,
                )
        except (Exception, SystemExit) as error:
            log("".join(traceback.format_exception(error)))
            text = str(error) if isinstance(error, ThalwegError) else repr(error)
            if isinstance(error, SystemExit):
                text = f"the program called sys.exit: {text}"
            return Outcome("failed" if self._told.since else "refused", text)
        return Outcome("stopped" if result.stopped else "ended")

    @contextmanager
    def _recording(self, topology: Topology, runtime: str) -> Iterator[None]:
        """Keep what happens, for pages; where that cannot be, the topology runs all the same."""
        try:
            path = self._home.next_recording()
            recorder = Recorder(path, topology, runtime, settings=_RECORDING)
        except (OSError, ThalwegError) as error:
            log(f"nothing is recorded: {error}")
            yield
            return
        with recorder:
            self._record = recorder.listen
            yield
        if recorder.failure:
            log(f"the recording ended early: {recorder.failure}")

    def _hear(self, _signal: int, _frame: FrameType | None) -> None:
        # Takes no lock: the server asks again and again, also in the middle of this.
        self._asked_to_stop = True

    # --- what is wanted ----------------------------------------------------------------------

    def _watch(self) -> None:
        """Do what is wanted, say how it is, and keep the log short, until the end."""
        said = 0.0
        while not self._over.wait(_EVERY):
            if self._asked_to_stop:
                self._stop.set()
            try:
                self._look()
                rotate(self._home.log)
                if time.monotonic() - said >= _SAY_EVERY:
                    said = time.monotonic()
                    self._say()
            except Exception as error:  # a full disk, say: the topology goes on
                log(f"cannot look or speak: {error}")

    def _look(self) -> None:
        """Do as the record says, if it is another one than before."""
        record = self._home.record()
        if record is None or record == self._wanted:
            return
        self._wanted = record
        if record.active:
            self._steering.activate()
        else:
            self._steering.deactivate()
        if record.policy is not None and record.policy != self._policy:
            self._steering.set_policy(record.policy, by=record.policy_by)
            self._policy = record.policy

    # --- what happens ------------------------------------------------------------------------

    def _listen(self, event: Event) -> None:
        self._change(updated=time.time())
        self._record(event)
        match event:
            case Progress(snapshot):
                self._change(snapshot=snapshot)
            case RunStarted():
                log(f"{event.topology} runs on {event.runtime}")
                self._tell(since=time.time())
            case RunFinished():
                log("stopped" if event.stopped else "its sources have ended")
                self._tell(snapshot=event.snapshot)
            case Activated(active):
                log(f"sources are {'asked again' if active else 'not asked for now'}")
                self._tell(active=active)
            case Decided(text, policy) if event.replaces is not None:
                log(text)
                self._tell(policy=policy)
            case Noticed(text) | Reconfigured(text):
                log(text)
            case ChildSaid(component, task, level, text) if level >= LEVELS["info"]:
                log(f"{component!r}, task {task}: {text}")
            case TupleRefused():
                self._refused(event, event.tuple_text)
            case RecordRefused():
                self._refused(event, event.raw)

    def _refused(self, event: TupleRefused | RecordRefused, what: str) -> None:
        text = f"refused by {event.component!r}: {event.reason}\n  {what}"
        log(text)
        self._change(refused=text[:_MOST_REFUSED])

    def _change(self, **news: object) -> None:
        with self._saying:
            self._told = replace(self._told, **news)

    def _tell(self, **news: object) -> None:
        """Say at once what is new."""
        self._change(**news)
        self._say()

    def _say(self) -> None:
        with self._saying:
            self._home.say(self._told)


def _logs(storm: Mapping[str, Any] | None) -> AbstractContextManager[None]:
    """Let what modules of Storm's components log be in the log too."""
    return nullcontext() if storm is None else forwarded(storm, log)


def log(text: str) -> None:
    """Write a line to the log, which is standard error; a full disk is no reason to end."""
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    with suppress(OSError):
        sys.stderr.write(f"{now}  {text.rstrip()}\n")
        sys.stderr.flush()


def main() -> None:
    """Run the topology of a folder, and write down how that ended."""
    home, held = Home(Path(sys.argv[1])), int(sys.argv[2])
    os.set_inheritable(held, False)  # what it starts may live longer
    say_holder(held, os.getpid())
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # a text file
    outcome = Runner(home, [Path(folder) for folder in sys.argv[3:]]).run()
    home.end(outcome)
    sys.exit(0 if outcome.how in ("ended", "stopped") else 1)


if __name__ == "__main__":
    main()
