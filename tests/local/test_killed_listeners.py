"""A run that takes requests is killed again and again: nothing is lost that was answered."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import thalweg as tw

PROGRAM = str(Path(__file__).with_name("killed_listener.py"))
POINTS = {"before log": "5,30", "after log": "12,45", "before manifest": "4", "after manifest": "8"}
LAST = 100


class Sender:
    """Sends numbers one by one, each until it is answered."""

    def __init__(self) -> None:
        self.answered: list[int] = []

    def send(self, port: int) -> None:
        """Send what is left, until the server goes away or all is answered."""
        with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            while len(self.answered) <= LAST:
                n = len(self.answered)
                connection.request("POST", "/", json.dumps({"n": n}))
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    self.answered.append(n)


@contextmanager
def listening(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start the program, and hear where it listens."""
    process = subprocess.Popen(  # noqa: S603 (our own program)
        [sys.executable, PROGRAM, str(folder), "0", str(LAST)],
        env={**os.environ, "THALWEG_FAILPOINTS": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        found = re.search(r":(\d+)/", process.stdout.readline())
        yield process, int(found[1]) if found else 0


def test_what_was_answered_is_there(tmp_path: Path) -> None:
    armed = "\n".join(f"{point}=kill@{counts}" for point, counts in POINTS.items())
    (tmp_path / "armed").write_text(armed)
    sender, codes = Sender(), list[int]()
    while not codes or codes[-1] == -signal.SIGKILL:
        with listening(tmp_path) as (process, port):
            while len(sender.answered) <= LAST and process.poll() is None:
                # It is killed, or lets go of a connection on which nothing has come for a while.
                with suppress(OSError, http.client.HTTPException):
                    sender.send(port)
        codes.append(process.returncode)
    assert codes[-1] == 0
    assert len(codes) == 7
    kept = tw.read_table(tmp_path / "kept").to_table().column("n").to_pylist()
    assert sender.answered == list(range(LAST + 1))
    assert sorted(set(kept)) == sender.answered
    # Only what was logged and then not answered was sent again.
    assert len(kept) - len(set(kept)) <= len(codes)
