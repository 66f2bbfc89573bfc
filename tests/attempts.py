"""Runs that are killed again and again until one comes to its end: what such tests share.

A program makes attempts, each a fork of its process, which has loaded everything but started no
thread; the test starts the program and reads what came of it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

#: What a line of the file takes: where a process is killed, a write ends between two pages.
_LINE_BYTES = 64


def make_attempts(
    program: Path, job: Any, armed: Sequence[str], environment: Mapping[str, str] | None = None
) -> None:
    """Run a program on a job (a dataclass with a ``folder``) to its end, with failpoints armed."""
    folder = Path(job.folder)
    failpoints = folder / "failpoints"
    failpoints.mkdir()
    (failpoints / "armed").write_text("\n".join(armed))
    (folder / "job.json").write_text(json.dumps(asdict(job)))
    known = {"THALWEG_FAILPOINTS": str(failpoints), "PYTHONPATH": str(Path(__file__).parent)}
    with open(folder / "log", "wb") as log:
        done = subprocess.run(  # noqa: S603 (our own program)
            [sys.executable, program, "job.json"],
            cwd=folder,
            env={**os.environ, **known, **(environment or {})},
            stdout=log,
            stderr=log,
            check=False,
        )
    assert done.returncode == 0, (folder / "log").read_text()[-5000:]


def appending(path: Path) -> Callable[[Any], None]:
    """Write each tuple as one line; a line is there or not, for none crosses a page of the file."""

    def write(t: Any) -> None:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, json.dumps([t.n, t.word, t.value]).encode().ljust(_LINE_BYTES - 1) + b"\n")
        os.close(file)

    return write


def forked(attempt: Callable[[], None], out: Path, lines: int | None) -> int:
    """Make an attempt in a process of its own, killed after some lines; gives how it ended.

    SIGCHLD has to be blocked, so that it can be waited for.
    """
    child = os.fork()
    if not child:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            attempt()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if lines is not None and not _ended_before(out, lines):
        os.kill(child, signal.SIGKILL)
    ended = os.waitpid(child, 0)[1]
    signal.sigtimedwait({signal.SIGCHLD}, 0)  # heard of, so that nobody hears of it again
    return os.waitstatus_to_exitcode(ended)


def _ended_before(out: Path, lines: int) -> bool:
    """Wait until an attempt has written so many bytes more, about; True when it ends before."""
    out.touch()
    enough = out.stat().st_size + lines * _LINE_BYTES
    while out.stat().st_size < enough:
        if signal.sigtimedwait({signal.SIGCHLD}, 0.001) is not None:
            return True
    return False
