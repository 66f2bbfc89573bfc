"""``thalweg ui`` on a server, as a process of its own, and what visitors ask of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Pages:
    """The pages of a server."""

    def __init__(self, address: str) -> None:
        #: With the token, as it was printed; and without.
        self.address = address
        self.plain, _, self.token = address.partition("?token=")

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.plain + path) as answer:  # noqa: S310 (our own server)
            data = answer.read()
            return json.loads(data) if "json" in answer.headers["content-type"] else data.decode()

    def status(self, path: str, **headers: str) -> int:
        """Ask as a browser or program would that says so; gives the status."""
        request = urllib.request.Request(self.plain + path)  # noqa: S310 (our own server)
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310 (our own server)
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def act(self, path: str, body: dict[str, Any], token: str | None = None) -> tuple[int, str]:
        """Ask for an action; gives the status, and what was said."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.plain + path, data, method="POST")  # noqa: S310 (ours)
        request.add_header("Content-Type", "application/json")
        request.add_header("Authorization", f"Bearer {self.token if token is None else token}")
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310 (our own server)
                return answer.status, json.load(answer)["text"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)["error"]

    def newest(self) -> dict[str, Any]:
        """Give the newest look at all topologies, by name."""
        looks = self.get("api/records")
        return {each["name"]: each for each in looks[-1]["topologies"]} if looks else {}


@contextmanager
def pages_of(root: Path) -> Iterator[Pages]:
    """Show a server until the end."""
    words = [sys.executable, "-m", "thalweg", "ui", "--root", str(root)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)  # noqa: S603 (ours)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.match(r"page: (http://\S+)$", line.strip())
        assert found is not None, line + process.stderr.read()
        yield Pages(found[1])
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()
