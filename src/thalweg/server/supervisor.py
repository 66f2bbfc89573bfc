"""Keeps topologies as they are wanted: starts, watches, restarts and ends their processes."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from thalweg.control.scaling.policies import NAMES
from thalweg.errors import ThalwegError, UsageError, explain, meant
from thalweg.server.access import allowed_file, check_name
from thalweg.server.folders import Home, Root, View, say_holder
from thalweg.server.life import (
    Outcome,
    Program,
    Record,
    Refusal,
    Rules,
    Seen,
    activated,
    check_degrees,
    killed,
    led,
    revived,
    step,
    submitted,
)
from thalweg.server.logs import Place, append, read_on
from thalweg.statelog.location import Location
from thalweg.statelog.requests import Request, Requests

_logger = logging.getLogger("thalweg.server")
#: Seconds between two looks at all topologies.
_EVERY = 0.1
#: Seconds that the end of what was killed is waited for: what runs should not outlive a server.
_DYING = 30.0


class Supervisor:
    """The topologies of a server; any thread may call it."""

    def __init__(
        self,
        root: Root,
        allowed: Sequence[Path],
        rules: Rules,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._root, self._allowed, self._rules, self._now = root, tuple(allowed), rules, now
        self._lock = threading.RLock()
        self._records: dict[str, Record] = {}
        #: Processes that this server has started, to be waited for.
        self._children: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._over = threading.Event()
        self._loop = threading.Thread(target=self._watch, name="supervising")

    # --- begin and end -----------------------------------------------------------------------

    def begin(self) -> None:
        """Find what earlier servers have left, running or not, and watch over it."""
        for home in self._root.homes():
            try:
                record = home.record()
            except ThalwegError as error:
                _logger.error("%s is left alone: %s", home.name, error)
                continue
            if record is not None:
                alive = home.lock.held
                self._records[home.name] = record if alive else _left(home, record)
                _logger.info("%s is %s%s", home.name, record.phase, ", and alive" if alive else "")
        self._loop.start()

    def end(self, leave: bool) -> None:
        """Watch no longer; what runs is stopped, to go on with the next server, or left alone."""
        self._over.set()
        self._loop.join()
        homes = [self._root.home(name) for name in self._records]
        if not leave:
            for how, patience in ((signal.SIGTERM, self._rules.grace), (signal.SIGKILL, _DYING)):
                until = time.monotonic() + patience
                while any(home.lock.held for home in homes) and time.monotonic() < until:
                    for home in homes:
                        self._signal(home, how)
                    self._reap()
                    time.sleep(_EVERY / 2)
        self._reap()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            self._reap()
            for name in list(self._records):
                try:
                    with self._lock:
                        self._step(name)
                except Exception:
                    _logger.exception("%s could not be looked after", name)

    def _reap(self) -> None:
        """Wait for processes that have ended."""
        with self._lock:
            for name, child in self._children:
                if child.poll() is not None:
                    _logger.info("%s: process %d ended: %d", name, child.pid, child.returncode)
            self._children = [pair for pair in self._children if pair[1].returncode is None]

    # --- one topology ------------------------------------------------------------------------

    def _step(self, name: str) -> None:
        record = self._records.get(name)
        if record is None or record.over:
            return
        home = self._root.home(name)
        seen = _look(home)
        if seen.alive and _is_gone(home.lock.holder):
            self._signal(home, signal.SIGKILL)  # what it has forked holds its lock
        next_ = step(record, seen, self._now(), self._rules)
        if next_.record != record:
            self._keep(next_.record)
        if next_.reason and (next_.record != record or next_.order == "force"):
            _logger.info("%s: %s", name, next_.reason)
        if next_.order == "start":
            self._start(home, next_.record)
        elif next_.order != "nothing":
            how = signal.SIGTERM if next_.order == "stop" else signal.SIGKILL
            self._signal(home, how)

    def _keep(self, record: Record) -> None:
        self._root.home(record.name).keep(record)
        self._records[record.name] = record

    def _start(self, home: Home, record: Record) -> None:
        """Start a process; it holds the lock from the beginning, so there is never a second one."""
        held = home.lock.take()
        if held is None:
            return
        try:
            home.clear()
            say_holder(held, None)
            program = record.program
            for path in filter(None, (program.file, program.config)):
                if str(allowed_file(path, self._allowed)) != path:
                    raise UsageError(explain(f"file {path!r}", "", "the same as before", "a link"))
            child = launch(home, held, Path(program.file).parent, self._allowed)
            say_holder(held, child.pid)
            self._children.append((home.name, child))
        except (ThalwegError, OSError) as error:
            home.end(Outcome("refused", str(error)))
        finally:
            os.close(held)

    def _signal(self, home: Home, how: signal.Signals) -> None:
        """Send a signal to the process of a topology; when forced, to all that it has started."""
        pid = home.lock.holder if home.lock.held else None
        if pid is None:  # or it has not said so yet: there is a next time
            return
        try:
            if how == signal.SIGKILL:
                os.killpg(pid, how)
            else:
                os.kill(pid, how)
        except (ProcessLookupError, PermissionError):  # gone, or gone and somebody else's now
            return

    # --- what people ask ---------------------------------------------------------------------

    def submit(self, name: str, program: Program) -> View:
        """Run a program under a name."""
        check_name(name, "--name gives another")
        check_degrees(program.par)
        file = str(allowed_file(program.file, self._allowed))
        config = program.config and str(allowed_file(program.config, self._allowed))
        program = msgspec.structs.replace(program, file=file, config=config)
        with self._lock:
            living = sum(not record.over for record in self._records.values())
            new = submitted(self._records.get(name), Record(name, program, self._now()))
            if living >= self._rules.most:
                hint = "kill one, or start the server with a larger --most"
                got = f"{living} that run"
                raise Refusal(
                    explain("topologies", "", f"{self._rules.most} at most", got, hint), 429
                )
            home = self._root.home(name)
            self._check_free(home)
            home.path.mkdir(exist_ok=True)
            home.clear()
            self._keep(new)
            self._step(name)
            return self.view(name)

    def _check_free(self, home: Home) -> None:
        """Refuse a name under which something runs that nobody watches over."""
        if home.name not in self._records and home.lock.held:
            who = f"process {home.lock.holder}" if home.lock.holder else "a process"
            got = f"{who} whose record cannot be read"
            hint = "choose another one with --name, or end that process"
            text = explain(f"name {home.name!r}", "", "one under which nothing runs", got, hint)
            raise Refusal(text, 409)

    def names(self, everything: bool = False) -> list[str]:
        """Name the topologies; those that were killed only with everything else."""
        with self._lock:
            records = list(self._records.values())
        return sorted(r.name for r in records if everything or r.phase != "killed")

    def view(self, name: str) -> View:
        """Say what there is to know of a topology."""
        with self._lock:
            record, home = self._record(name), self._root.home(name)
            alive = home.lock.held
            return View(record, alive, home.status(), home.lock.holder if alive else None)

    def kill(self, name: str, wait: float) -> View:
        """Pause the sources of a topology, and end it after some seconds."""
        with self._lock:
            self._keep(killed(self._record(name), wait, self._now()))
            self._step(name)
            return self.view(name)

    def forget(self, name: str) -> None:
        """Delete what is left of a topology that is over: its state and its log."""
        with self._lock:
            record = self._record(name)
            if not record.over:
                raise Refusal(
                    explain(f"topology {name!r}", "", "one that is over", record.phase), 409
                )
            shutil.rmtree(self._root.home(name).path)
            del self._records[name]  # only now, so that it can be tried again

    def activate(self, name: str, active: bool) -> View:
        """Let the sources of a topology be asked, or not."""
        with self._lock:
            self._keep(activated(self._record(name), active))
            return self.view(name)

    def set_policy(self, name: str, policy: str, by: str) -> View:
        """Let a scaling policy decide about the degrees of a topology."""
        if policy not in NAMES:  # none that reads a file
            expected = f"one of {', '.join(NAMES)}"
            hint = meant(policy[:80], NAMES)
            raise Refusal(explain("scaling policy", "", expected, repr(policy[:80]), hint))
        with self._lock:
            self._keep(led(self._record(name), policy, by[:80]))
            return self.view(name)

    def rebalance(self, name: str, degrees: Mapping[str, int]) -> str:
        """Ask a topology for other degrees; gives the number of the request."""
        check_degrees(degrees)
        with self._lock:
            record, requests = self._record(name), self._requests(name)
            if record.phase != "running" or not self._root.home(name).lock.held:
                raise Refusal(explain(f"topology {name!r}", "", "one that runs", record.phase), 409)
            if requests.wait_to_be_taken():
                hint = "try again in a moment"
                raise Refusal(
                    explain(f"topology {name!r}", "", "no request that waits", "", hint), 409
                )
            request = Request(degrees=dict(degrees), id=uuid.uuid4().hex)
            requests.ask(request)
            return request.id

    def answer(self, name: str, request: str) -> dict[str, Any] | None:
        """Say what came of a request; None when nothing has yet."""
        with self._lock:
            self._record(name)
        found = self._requests(name).answer_to(Request(id=request))
        return None if found is None else msgspec.to_builtins(found)

    def log(self, name: str, place: Place | None) -> tuple[str, Place]:
        """Give what a topology has printed behind a place in its log."""
        with self._lock:
            self._record(name)
        return read_on(self._root.home(name).log, place)

    def _requests(self, name: str) -> Requests:
        return Requests(Location.of(self._root.home(name).checkpoint).child("state"))

    def _record(self, name: str) -> Record:
        check_name(name)
        if name not in self._records:
            expected = f"one of {self.names(everything=True)}"
            raise Refusal(explain(f"topology {name!r}", "", expected, "none of that name"), 404)
        return self._records[name]


def launch(home: Home, held: int, folder: Path, allowed: Sequence[Path]) -> subprocess.Popen[bytes]:
    """Start the process of a topology in a session of its own, so that it can stay."""
    out = append(home.log)
    # -P: what lies beside the program must not stand in for modules of ours.
    command = [sys.executable, "-P", "-m", "thalweg.server.runner", str(home.path), str(held)]
    command += map(str, allowed)
    try:
        return subprocess.Popen(  # noqa: S603 (this very program)
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            pass_fds=(held,),
            start_new_session=True,
        )
    finally:
        os.close(out)


def _look(home: Home) -> Seen:
    if home.lock.held:
        status = home.status()
        return Seen(alive=True, running=status is not None and status.since is not None)
    return Seen(alive=False, outcome=home.outcome())


def _is_gone(pid: int | None) -> bool:
    """Say whether there is no such process any more; one that was not named may be there."""
    try:
        os.kill(pid or os.getpid(), 0)
    except (ProcessLookupError, PermissionError):  # somebody else's is another one
        return True
    return False


def _left(home: Home, record: Record) -> Record:
    """Give what to make of a topology whose process is gone: how it ended counts, if it said so."""
    outcome = home.outcome()
    return record if outcome is not None and outcome.how == "ended" else revived(record)
