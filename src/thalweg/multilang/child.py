"""A child process, and the pipes to it: bytes go both ways at once, and nobody waits for ever."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import IO, Any

from thalweg.errors import ThalwegError, explain, shorten
from thalweg.multilang.guarding import FOLDERS, GUARD
from thalweg.multilang.settings import Shell
from thalweg.multilang.wire import ProtocolError, make_wire

_CHUNK = 1 << 16
#: Lines of its standard error that an error shows.
_LAST_LINES = 10
_LONGEST_LINE = 2000
#: Seconds that a child has to get ready, at least: a busy machine starts programs slowly.
START = 30.0
#: Seconds that a child has to end by itself.
_GRACE = 2.0
#: Seconds between two looks whether it is still there: what it has started may keep its output.
_LOOK = 0.5


class ChildError(ThalwegError):
    """A child has died, hangs, or does not keep to the protocol."""


class Child:
    """A running child; made ready with the configuration and context that Storm would give it."""

    def __init__(self, shell: Shell, setup: dict[str, Any], log: Callable[[str], None]) -> None:
        self._shell = shell
        #: Takes what it writes to its standard error, line by line.
        self.log = log
        self._wire = make_wire(shell.serializer, shell.most_bytes)
        self._folder = tempfile.mkdtemp(prefix=FOLDERS)
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)
        #: Bytes that wait to be written: answers, which go first, and everything else.
        self._urgent: deque[bytes] = deque()
        self._waiting: deque[bytes] = deque()
        self._writing = memoryview(b"")
        self._came: deque[Any] = deque()
        #: What it said that cannot be read, and what whoever hears its standard error raised.
        self._bad: ProtocolError | None = None
        self._unheard: Exception | None = None
        self._process = self._start()
        #: Whether it is gone, and whether nothing that others write in its name is heard any more.
        self._over, self._deaf = threading.Event(), False
        self._drain = threading.Thread(
            target=self._read_errors, name=f"stderr of {shell.command[0]}", daemon=True
        )
        self._drain.start()
        self._shaken = False
        # It gets ready while nobody waits for it: several do so beside each other.
        self.send(self._wire.encode(setup | {"pidDir": self._folder}))
        self._write()

    def _start(self) -> subprocess.Popen[bytes]:
        shell = self._shell
        env = {**os.environ, **shell.env}
        if "PATH" in shell.env:
            env["PATH"] = os.pathsep.join([shell.env["PATH"], os.environ.get("PATH", "")])
        try:
            process = subprocess.Popen(  # noqa: S603 (what the topology says)
                shell.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=shell.cwd,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            where = f"in folder {shell.cwd}" if shell.cwd else ""
            text = explain(f"command {shlex_join(shell)}", where, "a program", str(error))
            raise NoProgram(text) from error
        GUARD.watch(process.pid, self._folder)
        self._in, self._out = _pipe(process.stdin), _pipe(process.stdout)
        os.set_blocking(self._in.fileno(), False)
        os.set_blocking(self._out.fileno(), False)
        return process

    def get_ready(self) -> None:
        """Wait until it has said that it is there, unless it has."""
        if self._shaken:
            return
        self._shaken = True
        limit = max(START, self._shell.timeout)
        try:
            reply = self.next_message(patience=limit)
        except CleanEnd as error:  # too early to be the end of a source
            raise ChildError(str(error)) from error
        if reply is None:
            why = f"has not said its process id within {limit:g} s; it is taken for hung"
            raise self.broken(why)
        if not isinstance(reply, dict) or not isinstance(reply.get("pid"), int):
            text = explain("first message", "", "its process id, {'pid': ...}", shorten(reply, 120))
            raise self.broken(ProtocolError(text))

    # --- talking -----------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Let bytes wait to be written; they are while somebody waits for a message."""
        self._waiting.append(data)

    def answer(self, message: Any) -> None:
        """Let an answer wait, before everything else."""
        self._urgent.append(self._wire.encode(message))

    def next_message(self, patience: float) -> Any:
        """Wait for its next message; None when ``patience`` seconds have passed without one."""
        self.get_ready()
        due = time.monotonic() + patience
        if self._unheard is not None:
            raise self._unheard
        while not self._came:
            if self._bad is not None:
                raise self.broken(self._bad) from self._bad
            if self._exchange(min(max(0.0, due - time.monotonic()), _LOOK)):
                continue
            # What it said before it ended is still to be read.
            if self._is_over() and not self._exchange(0.0):
                raise self._gone()
            if time.monotonic() >= due:
                return None
        return self._came.popleft()

    def _exchange(self, seconds: float) -> bool:
        """Write and read what is possible, waiting for it at most so long."""
        writable = self._next_bytes()
        poll = select.poll()
        poll.register(self._out, select.POLLIN | select.POLLHUP)
        if writable:
            poll.register(self._in, select.POLLOUT)
        ready = {fd for fd, _ in poll.poll(seconds * 1000)}
        if self._out.fileno() in ready:
            self._read()
        if writable and self._in.fileno() in ready:
            self._write()
        return bool(ready)

    def _next_bytes(self) -> bool:
        """Put the next bytes in place; a message that was begun is finished first."""
        if not self._writing:
            line = self._urgent or self._waiting
            if line:
                self._writing = memoryview(line.popleft())
        return bool(self._writing)

    def _write(self) -> None:
        try:
            while self._next_bytes():
                written = os.write(self._in.fileno(), self._writing[:_CHUNK])
                self._writing = self._writing[written:]
        except BlockingIOError:
            return
        except BrokenPipeError:
            # What it said before it ended is still to be read.
            self._writing = memoryview(b"")
            self._urgent.clear()
            self._waiting.clear()

    def _read(self) -> None:
        try:
            data = os.read(self._out.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if not data:
            raise self._gone()
        try:
            self._came.extend(self._wire.feed(data))
        except ProtocolError as error:
            self._came.extend(error.before)
            self._bad = error

    # --- the end -----------------------------------------------------------------------------

    def _gone(self) -> ChildError:
        """Make the error for one that says nothing any more, and end what is left of it."""
        code = self._ended()
        self._drain.join(_GRACE)  # so that its last words are heard
        if code is None:
            return self.broken("has closed its output")
        if code == 0 and self._wire.begun:
            return self.broken(ProtocolError("it has ended in the middle of a message"))
        return self.broken(_how(code), CleanEnd if code == 0 else ChildError)

    def close(self) -> None:
        """Let it end by itself, since its input does; kill it if it does not."""
        with contextlib.suppress(OSError):
            self._in.close()
        self._ended()
        self._let_go()

    def kill(self) -> None:
        """End it at once."""
        self._end_group()
        with contextlib.suppress(OSError):
            self._in.close()
        self._let_go()

    def _ended(self) -> int | None:
        """Wait for its end; one that goes on without its pipes is killed, and gives None."""
        due, pause = time.monotonic() + _GRACE, 0.001
        while not (over := self._is_over()) and time.monotonic() < due:
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        code = self._end_group()
        return code if over else None

    def _is_over(self) -> bool:
        """Say whether it has ended, without letting go of its number, where that is possible."""
        if self._process.returncode is not None or not hasattr(os, "waitid"):
            return self._process.poll() is not None
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self._process.pid, how) is not None
        except ChildProcessError:  # somebody else has waited for it
            return True

    def _end_group(self) -> int:
        """End it and all that it has started, while the number of the group is surely its own."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        self._over.set()
        return code

    def _let_go(self) -> None:
        GUARD.leave(self._process.pid)
        self._out.close()
        self._drain.join(_GRACE)
        self._deaf = True
        shutil.rmtree(self._folder, ignore_errors=True)

    def broken(self, why: ThalwegError | str, kind: type[ChildError] = ChildError) -> ChildError:
        """Make the error for a child with which one cannot go on."""
        said = "".join(f"\n  {line}" for line in self._lines)
        last = f"; its last words on standard error:{said}" if said else ""
        if isinstance(why, ThalwegError):
            why = f"does not keep to the protocol: {why}"
        return kind(f"command {shlex_join(self._shell)} {why}{last}")

    def _read_errors(self) -> None:
        """Pass on what it writes to its standard error, line by line."""
        stderr, begun = _pipe(self._process.stderr), b""
        with stderr:
            while not self._deaf and (data := self._next_errors(stderr.fileno())):
                *lines, begun = (begun + data).split(b"\n")
                if len(begun) >= _LONGEST_LINE:
                    lines, begun = [*lines, begun], b""
                for line in lines:
                    self._hear_line(line)
        if begun:
            self._hear_line(begun)

    def _next_errors(self, stderr: int) -> bytes:
        """Wait for what is written there; nothing when all is read of one that is gone.

        What it has started may keep it open, in a session of its own.
        """
        poll = select.poll()
        poll.register(stderr, select.POLLIN)
        while True:
            over = self._over.is_set()
            if poll.poll(0 if over else _LOOK * 1000):
                return os.read(stderr, _CHUNK)
            if over:
                return b""

    def _hear_line(self, line: bytes) -> None:
        for start in range(0, len(line) or 1, _LONGEST_LINE):
            part = line[start : start + _LONGEST_LINE]
            text = part.decode(errors="replace").rstrip()
            self._lines.append(text)
            self._pass_on(text)

    def _pass_on(self, text: str) -> None:
        """Let a line be heard; if that fails the run ends, and the child can write all the same."""
        if self._unheard is not None:
            return
        try:
            self.log(text)
        except Exception as error:
            self._unheard = error


class NoProgram(ChildError):
    """There is no such program."""


class CleanEnd(ChildError):
    """A child has ended without an error."""


def shlex_join(shell: Shell) -> str:
    """Write a command as people do."""
    return repr(shorten_words(shell.command))


def shorten_words(words: tuple[str, ...], most: int = 200) -> str:
    """Put words together, as far as they fit a message."""
    text = " ".join(words)
    return text if len(text) <= most else text[: most - 1] + "…"


def _how(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"has ended with status {code}"


def _pipe(end: IO[bytes] | None) -> IO[bytes]:
    assert end is not None  # noqa: S101 (all three are pipes)
    return end
