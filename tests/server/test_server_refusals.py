"""What a server does not do for whoever asks, and what it says instead."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from serverhost import Served, processes_of, served

from thalweg.server.answering import MOST_BYTES
from thalweg.server.folders import Root


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("refusing"), "--most", "1") as made:
        yield made


def ask(
    server: Served, method: str, path: str, body: Any = None, **headers: str | None
) -> tuple[int, Any]:
    """Send a request as a stranger would; headers that are None are left out."""
    address = Root(server.root).address()
    assert address is not None
    token = (server.root / "token").read_text()
    given = {"Host": f"127.0.0.1:{address.port}", "Authorization": f"Bearer {token}"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body else b""
    connection = http.client.HTTPConnection("127.0.0.1", address.port)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in ({"Content-Length": str(len(data))} | given).items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        with suppress(OSError):  # refused before all was said
            connection.send(data)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def test_who_has_the_token_is_heard(server: Served) -> None:
    status, answer = ask(server, "GET", "/status")
    assert (status, answer["topologies"]) == (200, [])


ROUTES = [
    ("GET", "/status"),
    ("POST", "/stop"),
    ("GET", "/topologies"),
    ("POST", "/topologies"),
    ("GET", "/topologies/shop"),
    ("DELETE", "/topologies/shop"),
    ("POST", "/topologies/shop/kill"),
    ("GET", "/topologies/shop/log"),
    ("GET", "/nowhere"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("token", [None, "", "Bearer", "Bearer wrong", "Basic dDp0"])
def test_nothing_is_done_without_the_token(
    server: Served, method: str, path: str, token: str | None
) -> None:
    status, answer = ask(server, method, path, Authorization=token)
    assert status == 401
    assert answer["error"].startswith("token: expected that of this server")


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_another_host_is_refused(server: Served, method: str, path: str) -> None:
    status, answer = ask(server, method, path, Host="evil.example")
    assert status == 421
    assert answer["error"].startswith("header Host: expected 127.0.0.1:")


def test_a_page_from_elsewhere_is_refused(server: Served) -> None:
    status, answer = ask(server, "GET", "/status", Origin="http://evil.example")
    assert status == 403
    assert "header Origin" in answer["error"]


def test_a_large_request_is_refused_before_it_is_read(server: Served) -> None:
    status, answer = ask(server, "POST", "/topologies", b"x", Content_Length=str(MOST_BYTES + 1))
    assert status == 413
    assert answer["error"] == f"request: expected {MOST_BYTES} bytes at most, got more"


def test_a_large_request_that_does_not_say_so_is_refused(server: Served) -> None:
    piece = b"%x\r\n%s\r\n" % (40_000, b" " * 40_000)
    body = piece * 2 + b"0\r\n\r\n"
    chunked = {"Content_Length": None, "Transfer_Encoding": "chunked"}
    status, answer = ask(server, "POST", "/topologies", body, **chunked)
    assert status == 413
    assert "bytes at most" in answer["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"\xff",
        {"name": "shop"},
        {"name": "shop", "program": {"file": 3}},
        {"name": "shop", "program": {"file": "x.py", "settings": {"a": 1}}},
        {"name": "shop", "program": {"file": "x.py"}, "user": "root"},
        {"name": "shop", "program": {"file": "x.py", "user": "root"}},
        {"name": "shop", "program": {"file": "x.py", "par": {"count": 0}}},
    ],
)
def test_what_is_no_program_is_refused(server: Served, body: Any) -> None:
    status, answer = ask(server, "POST", "/topologies", body)
    assert status == 400
    assert answer["error"].startswith("request: expected JSON")


@pytest.mark.parametrize("name", ["", "..", "a/b", "../../etc", "a" * 65, ".hidden", "é"])
def test_what_is_no_name_is_refused(server: Served, name: str) -> None:
    program = server.program("fine", "")
    body = {"name": name, "program": {"file": str(program)}}
    status, answer = ask(server, "POST", "/topologies", body)
    assert status == 400
    assert "letters, digits" in answer["error"]


@pytest.mark.parametrize("file", ["_x", "ümlaut x"])
def test_a_file_whose_name_is_none_for_a_topology_may_have_another(
    server: Served, file: str
) -> None:
    refused = server.say("submit", str(server.program(file, "")))
    assert refused.exit_code == 1
    assert "--name gives another" in refused.output


def test_a_file_outside_of_the_folders_is_refused(server: Served) -> None:
    outside = server.folder / "outside.py"
    outside.write_text("raise SystemExit('it ran')")
    link = server.programs / "link.py"
    link.symlink_to(outside)
    for path in (outside, link, server.programs / "../outside.py"):
        result = server.say("submit", str(path))
        assert result.exit_code == 1
        assert "expected one below" in result.output
        assert "--allow FOLDER" in result.output
    config = {"file": str(server.program("fine", "")), "config": str(outside)}
    status, _ = ask(server, "POST", "/topologies", {"name": "shop", "program": config})
    assert status == 403
    assert not processes_of(server.root / "topologies")


def test_an_unknown_topology_is_named_in_the_answer(server: Served) -> None:
    for words in (["show"], ["kill"], ["activate"], ["deactivate"], ["logs"]):
        result = server.say(*words, "nobody")
        assert result.exit_code == 1
        assert "topology 'nobody': expected one of" in result.output
    refused = server.say("rebalance", "nobody", "count=2")
    assert "topology 'nobody'" in refused.output


@pytest.mark.parametrize("wait", [-1, 1e9, "soon", None])
def test_a_wait_is_a_number_of_seconds(server: Served, wait: Any) -> None:
    status, _ = ask(server, "POST", "/topologies/nobody/kill", {"wait": wait})
    assert status == 400


@pytest.mark.parametrize("degrees", [["count"], ["count=0"], ["count=two"]])
def test_degrees_have_to_be_degrees(server: Served, degrees: list[str]) -> None:
    result = server.say("rebalance", "shop", *degrees)
    assert result.exit_code == 2
    assert "COMPONENT=DEGREE" in result.output


@pytest.mark.parametrize("degree", [0, -1, 1025, 10**12, pytest.param(10**400, id="huge")])
def test_degrees_have_bounds_whoever_asks(server: Served, degree: int) -> None:
    asked = {"degrees": {"count": degree}}
    status, answer = ask(server, "POST", "/topologies/nobody/rebalance", asked)
    assert status == 400
    assert answer["error"].startswith("degree of 'count': expected 1 to 1024, got")


def test_degrees_have_bounds_from_the_beginning(server: Served) -> None:
    program = {"file": str(server.program("wide", "")), "par": {"count": 1025}}
    status, answer = ask(server, "POST", "/topologies", {"name": "wide", "program": program})
    assert status == 400
    assert answer["error"] == "degree of 'count': expected 1 to 1024, got 1025"
    assert not processes_of(server.root / "topologies")


@pytest.mark.parametrize("place", ["9" * 5000 + "-0", "0-" + "9" * 5000])
def test_a_place_in_a_log_has_bounds(server: Served, place: str) -> None:
    status, answer = ask(server, "GET", f"/topologies/nobody/log?place={place}")
    assert status == 400
    assert answer["error"].startswith("place in a log: expected BEGAN-OFFSET")


def test_there_are_only_so_many_topologies_and_names(server: Served) -> None:
    text = """
import thalweg as tw

flow = tw.Flow("slow")
flow.source("n", tw.rate(tw.constant(1), lambda n: n), fields={"n": int}).sink("out", tw.stdout())
"""
    program = str(server.program("slow", text))
    server.done("submit", program)
    twice = server.say("submit", program)
    assert twice.exit_code == 1
    assert "name 'slow': expected one that no topology has, got running" in twice.output
    assert "--name" in twice.output
    many = server.say("submit", program, "--name", "other")
    assert many.exit_code == 1
    assert "1 at most" in many.output
    server.done("kill", "slow", "--wait", "0")


def test_a_server_needs_folders_that_are_there(tmp_path: Path) -> None:
    with served(tmp_path) as made:
        made.end()
        made.process = None
        refused = made.say("start", "--foreground", "--allow", str(tmp_path / "nowhere"))
        assert refused.exit_code == 1
        assert "expected a folder" in refused.output
        nothing = made.say("start", "--foreground")
        assert nothing.exit_code == 2
        assert "--allow" in nothing.output
        os.chmod(made.root / "token", 0o644)
        loose = made.say("start", "--foreground", "--allow", str(made.programs))
        assert loose.exit_code == 1
        assert "chmod 600" in loose.output
