"""A server process that speaks S3 and keeps its objects in memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from thalweg.statelog.location import Location

BUCKET = "bucket"
USER, SECRET = "somebody", "hush/hush"
_RUNNING = re.compile(r"Running on http://127\.0\.0\.1:(\d+)")
_REQUEST = re.compile(r'"(?:\x1b\[\d+m)*([A-Z]+) (\S+) HTTP/1\.1(?:\x1b\[0m)?" (\d+)')
_PATIENCE = 60.0
#: How many requests the server answers before it asks who somebody is.
_UNTRUSTING = {True: {"INITIAL_NO_AUTH_ACTION_COUNT": "2"}, False: {}}


@dataclass(frozen=True)
class Request:
    """A request that the server has answered."""

    method: str
    #: Behind the name of the bucket.
    path: str
    status: int


@dataclass(frozen=True)
class Server:
    """A running server, whose log tells what it was asked."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def uri(self, folder: str, bucket: str = BUCKET) -> str:
        """Give the URI of a folder as users write it, with everything in it."""
        user = f"{USER}:{SECRET.replace('/', '%2F')}"
        return f"s3://{user}@{bucket}/{folder}?endpoint_override={self.endpoint}&region=us-east-1"

    def location(self, folder: str, bucket: str = BUCKET) -> Location:
        return Location.of(self.uri(folder, bucket))

    def requests(self) -> list[Request]:
        """Give all requests so far; the server notes one before it answers."""
        found = _REQUEST.findall(self.log.read_text())
        return [
            Request(method, path.removeprefix(f"/{BUCKET}"), int(status))
            for method, path, status in found
        ]

    def objects(self, folder: str) -> list[str]:
        """List all objects below a folder of the bucket."""
        opened, path = fs.FileSystem.from_uri(self.uri(folder))
        found = opened.get_file_info(fs.FileSelector(path, recursive=True))
        return sorted(
            info.path.removeprefix(f"{path}/") for info in found if info.type == fs.FileType.File
        )

    def end(self) -> None:
        """End the server, as if its machine had been switched off."""
        self.process.kill()
        self.process.wait()


@contextmanager
def s3_server(folder: Path, *, knows_nobody: bool = False) -> Iterator[Server]:
    """Run a server on a free port, with an empty bucket; its log is in the folder.

    It trusts everybody; one that ``knows_nobody`` refuses all requests but that for the bucket.
    """
    log = folder / "requests.log"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with log.open("wb") as written:
        process = subprocess.Popen(  # noqa: S603 (a command of ours)
            command, stdout=written, stderr=written, env={**os.environ, **_UNTRUSTING[knows_nobody]}
        )
    try:
        server = Server(process, _port(process, log), log)
        uri = server.uri("").replace("region", "allow_bucket_creation=true&region")
        fs.FileSystem.from_uri(uri)[0].create_dir(BUCKET)
        yield server
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    """Wait until the server says where it listens."""
    deadline = time.monotonic() + _PATIENCE
    while (found := _RUNNING.search(log.read_text())) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            text = f"the server did not begin: {log.read_text()}"
            raise RuntimeError(text)
        time.sleep(0.02)
    return int(found[1])
