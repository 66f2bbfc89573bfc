"""``thalweg run --ui`` as a process of its own, and the address that it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Posts whose keys go together, some of them hostile; one of a hundred is refused.
PROGRAM = """
import thalweg as tw

HOSTILE = "<img src=x onerror='window.hacked = true'>"


def post(n):
    tag = HOSTILE if n % 10 == 0 else f"tag {n % 40}"
    return n, f"region {n % 4}", tag


def checked(number, region, hashtag):
    if number % 100 == 0:
        raise ValueError(f"no post: {hashtag}")
    return number, region, hashtag


fields = {"number": int, "region": str, "hashtag": str}
flow = tw.Flow("live")
stream = flow.source("posts", tw.rate(tw.constant(2000), post), fields=fields)
stream = stream.map(checked, name="check", fields=fields, on_error="skip")
stream = stream.tally("by_region", key="region", degree=2)
stream.tally("by_tag", key="hashtag", degree=2).sink("out", tw.call(lambda t: None))
"""


class Running:
    """A command that serves a page."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        #: With the token, as it was printed; and without.
        self.address = address
        self.plain = address.partition("?")[0]

    def until_said(self, text: str) -> None:
        """Read what it says, until it has said this."""
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if text in line:
                return
        raise AssertionError("".join(said))

    def end(self, code: int = 0) -> str:
        """Wait until it has ended, well unless told otherwise; gives what it said behind that."""
        assert self.process.stderr is not None
        said = self.process.stderr.read()
        assert self.process.wait() == code, said
        return said


@contextmanager
def running(*words: str) -> Iterator[Running]:
    """Start a command, and read the address of its page."""
    process = subprocess.Popen(  # noqa: S603 (our own program)
        [sys.executable, "-m", "thalweg", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Running(process, _address(process))
    finally:
        process.kill()  # where a test has ended it before, nothing is left to kill
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def _address(process: subprocess.Popen[str]) -> str:
    said = []
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line)
        if found := re.match(r"page: (http://\S+)$", line.strip()):
            return found[1]
    raise AssertionError("".join(said))


def program(folder: Path) -> Path:
    """Write the program down."""
    path = folder / "live.py"
    path.write_text(PROGRAM)
    return path
