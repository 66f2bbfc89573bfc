"""Whatever visitors send, the log of a run stays a log, and those who say nothing do not stay."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

import pytest
from running_page import program
from visiting import ask, bearer, canned, told

from thalweg.connectors import http_waiting
from thalweg.dashboard import serving
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.serving import Dashboard
from thalweg.events import Noticed

LARGE = b"2000\r\n" + b"x" * 0x2000 + b"\r\n0\r\n\r\n"


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    words = ["run", str(program(tmp_path)), "--ui", "--log-format", "json"]
    made = subprocess.Popen(  # noqa: S603 (our own program)
        [sys.executable, "-m", "thalweg", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with made:
        yield made
        made.kill()


def page_said_by(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Read the log up to where the page is."""
    assert process.stderr is not None
    for line in process.stderr:
        if (record := json.loads(line))["kind"] == "page":
            return dict(record)
    raise AssertionError("no page")


def connected(port: int, *lines: str, body: bytes = b"") -> socket.socket:
    """Send something, whatever it is."""
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    return made


def said(port: int, *lines: str, body: bytes = b"") -> bytes:
    """Send something; gives the first line of the answer."""
    with connected(port, *lines, body=body) as made, made.makefile("rb") as answer:
        return answer.readline()


def test_no_request_gets_text_into_a_log_of_json(process: subprocess.Popen[str]) -> None:
    page = page_said_by(process)
    address = urlsplit(Path(page["token_in"]).read_text().strip())
    port, token = address.port or 0, parse_qs(address.query)["token"][0]
    host, chunked = f"Host: 127.0.0.1:{port}", "Transfer-Encoding: chunked"
    act = ("POST /api/actions/pause HTTP/1.1", host, f"Authorization: Bearer {token}")
    assert said(port, "nonsense").split()[1] == b"400"
    assert said(port, "GET / HTTP/1.1", host, "Upgrade: websocket", "Connection: Upgrade")
    assert said(port, "GET /api/stream HTTP/1.1", host, chunked, body=LARGE)
    assert said(port, *act, chunked, body=LARGE).split()[1] == b"413"
    connected(port, *act, "Content-Length: 100", body=b"{").close()  # leaves in the middle of it
    assert said(port, "GET /api/state HTTP/1.1", host).split()[1] == b"200"
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    kinds = [json.loads(line)["kind"] for line in process.stderr]
    assert "run_finished" in kinds


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/stream", "/static/main.js"])
def test_who_only_looks_sends_no_body(path: str) -> None:
    with canned() as made:
        for length in ({"Content-Length": "1"}, {"Transfer-Encoding": "chunked"}):
            answer = ask(made, path, headers=bearer(made) | length)
            assert answer.status == 413
            assert answer.json["error"] == "request: expected no body with GET, got one"
        if path != "/api/stream":  # which has no end
            assert ask(made, path, headers={"Content-Length": "0"}).status == 200


# --- silence --------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_waiting, "_HEAD_SECONDS", 0.2)


def until_closed(made: socket.socket) -> None:
    with suppress(ConnectionError):  # closed while something was sent
        while made.recv(65536):
            pass


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: "])
@pytest.mark.usefixtures("impatient")
def test_who_sends_no_whole_head_is_not_waited_for(sent: bytes) -> None:
    with canned() as made, socket.create_connection(("127.0.0.1", made.access.port)) as silent:
        with suppress(ConnectionError):  # closed already, on a machine that is busy
            silent.sendall(sent)
        until_closed(silent)


def heard(port: int, path: str) -> tuple[socket.socket, BinaryIO]:
    """Ask until it was heard: on a machine that is busy even a whole head may come too late."""
    while True:
        made = socket.create_connection(("127.0.0.1", port))
        answer = made.makefile("rb")
        with suppress(ConnectionError):
            made.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            if answer.readline() == b"HTTP/1.1 200 OK\r\n":
                return made, answer
        answer.close()
        made.close()


@pytest.mark.usefixtures("impatient")
def test_who_begins_another_request_and_does_not_go_on_is_not_waited_for() -> None:
    with canned() as made:
        visitor, answer = heard(made.access.port, "/api/state")
        with visitor, answer:
            with suppress(ConnectionError):  # closed already
                visitor.sendall(b"G")
            until_closed(visitor)


@pytest.mark.usefixtures("impatient")
def test_who_was_heard_is_told_however_long_it_takes() -> None:
    hub = Hub()
    telling = told(hub)
    with Dashboard(hub) as made:
        visitor, answer = heard(made.access.port, "/api/stream")
        with visitor, answer:
            with socket.create_connection(("127.0.0.1", made.access.port)) as later:
                until_closed(later)  # so the visitor's time was over before that
            telling.listen(Noticed("later"))
            assert any(b'"later"' in line for line in answer)


@pytest.mark.usefixtures("impatient")
def test_who_says_nothing_shuts_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_MOST_REQUESTS", 3)
    with canned() as made, ExitStack() as stack:
        where = ("127.0.0.1", made.access.port)
        for each in [stack.enter_context(socket.create_connection(where)) for _ in range(10)]:
            until_closed(each)
        visitor, answer = heard(made.access.port, "/api/state")
        answer.close()
        visitor.close()
