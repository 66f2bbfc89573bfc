"""A process that has loaded everything and forks worker processes, so that they start at once.

Loading is nearly all that the start of a worker process takes. What is forked does the same as one
that is started as usual. It has no thread, so that forking is safe; it ends with who made it.
"""

from __future__ import annotations

import importlib
import os
import socket
import struct
import subprocess
import sys
import threading
import traceback
from dataclasses import dataclass

import pyarrow as pa

from thalweg.runtimes.local.child import main as work

#: What is asked for, and a number.
_ASKED = struct.Struct("<cq")
_ANSWER = struct.Struct("<q")
_FORK, _WAIT, _COUNT = b"f", b"w", b"n"


@dataclass(frozen=True)
class Forked:
    """A worker process that was forked."""

    nursery: Nursery
    pid: int

    def wait(self) -> int:
        """Wait until it has ended; gives how."""
        return self.nursery.ask(_WAIT, self.pid)


class Nursery:
    """The way to the process that forks."""

    def __init__(self, *modules: str) -> None:
        """Begin; modules are loaded before anything is forked."""
        self._mine, theirs = socket.socketpair()
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self._process = subprocess.Popen(  # noqa: S603 (this very program)
            [sys.executable, __file__, str(theirs.fileno()), *modules],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": path},
        )
        theirs.close()
        self._lock = threading.Lock()

    def launch(self, incoming: int, outgoing: int) -> Forked:
        """Start a worker process between two ends of pipes."""
        return Forked(self, self.ask(_FORK, 0, [incoming, outgoing]))

    def ask(self, what: bytes, number: int, files: list[int] | None = None) -> int:
        """Ask, and give the answer."""
        with self._lock:
            socket.send_fds(self._mine, [_ASKED.pack(what, number)], files or [])
            answer: int = _ANSWER.unpack(self._mine.recv(_ANSWER.size, socket.MSG_WAITALL))[0]
            return answer

    @property
    def left(self) -> int:
        """Worker processes that nobody has waited for."""
        return self.ask(_COUNT, 0)

    def close(self) -> None:
        """End it."""
        self._mine.close()
        self._process.wait()


def _fork(mine: socket.socket, files: list[int]) -> int:
    child = os.fork()
    if child:
        for file in files:
            os.close(file)
        return child
    try:
        mine.close()
        work(*files)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Fork, and wait for what was forked, until nobody asks any more."""
    mine = socket.socket(fileno=int(sys.argv[1]))
    for module in sys.argv[2:]:
        importlib.import_module(module)
    pa.array([1])  # loads what pyarrow loads late
    there: set[int] = set()
    while True:
        data, files, _, _ = socket.recv_fds(mine, _ASKED.size, 2)
        if not data:
            return
        what, answer = _ASKED.unpack(data)
        if what == _FORK:
            answer = _fork(mine, files)
            there.add(answer)
        elif what == _WAIT:
            there.discard(answer)
            answer = os.waitstatus_to_exitcode(os.waitpid(answer, 0)[1])
        else:
            answer = len(there)
        mine.sendall(_ANSWER.pack(answer))


if __name__ == "__main__":
    main()
