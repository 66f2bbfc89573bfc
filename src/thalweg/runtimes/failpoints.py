"""Named moments at which tests let a process fail; they do nothing unless armed.

``THALWEG_FAILPOINTS`` names a folder. Its file ``armed`` holds lines ``name=action@count,count``:
something happens when processes come to the moment for the count-th time, over all of them and
all restarts. The name ``any`` counts every moment. Actions: ``raise`` an error, ``kill`` the
process, ``kill executor`` or ``kill driver`` (its id is in the file ``driver``), or ``wait`` until
there is a file ``go``. Each failure leaves a file behind that is named after it and says on which
host it was.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

_VARIABLE = "THALWEG_FAILPOINTS"
_PAUSE = 0.01


class FailpointReached(Exception):
    """Raised where a test has armed a failpoint; Spark sees it, no error policy does."""


def hit(name: str) -> None:
    """Pass a moment; fails when a test has asked for it."""
    folder = os.environ.get(_VARIABLE)
    if folder:
        _pass(Path(folder), name)


def _pass(folder: Path, name: str) -> None:
    try:
        lines = (folder / "armed").read_text().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        target, _, rest = line.partition("=")
        action, _, counts = rest.partition("@")
        if target in (name, "any") and (count := _count(folder / target)) in _numbers(counts):
            (folder / f"{target} {count}: {action}").write_text(socket.gethostname())
            _fail(folder, name, action)


def _numbers(text: str) -> set[int]:
    return {int(number) for number in text.split(",")}


def _count(file: Path) -> int:
    """Count one more; each process that asks gets another number."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, b".")
        return os.lseek(descriptor, 0, os.SEEK_CUR)
    finally:
        os.close(descriptor)


def _fail(folder: Path, name: str, action: str) -> None:
    match action:
        case "raise":
            raise FailpointReached(name)
        case "wait":
            while not (folder / "go").exists():
                time.sleep(_PAUSE)
        case "kill":
            _kill(os.getpid())
        case "kill executor":  # it is the parent of the daemon that is the parent of this process
            _kill(_parent(os.getppid()))
        case "kill driver":
            _kill(int((folder / "driver").read_text()))


def _kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def _parent(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))
