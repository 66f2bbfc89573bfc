"""Who may look at a dashboard, who may act, and what its answers allow a browser to do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from visiting import Answer, ask, bearer, told

from thalweg.dashboard.actions import Actions
from thalweg.dashboard.door import SAID, Door
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.serving import Dashboard
from thalweg.execution import Steering
from thalweg.server.access import Access

READS = ["/", "/static/main.js", "/api/state", "/api/records", "/api/topology", "/metrics"]
TOKEN = "t" * 43


@pytest.fixture(scope="module")
def dashboard() -> Iterator[Dashboard]:
    hub, steering = Hub(), Steering()
    told(hub)
    names = ("pause", "resume", "rebalance")
    with Dashboard(
        hub, None, Actions(steering, threading.Event(), names, lambda: ("count",))
    ) as made:
        yield made


def own(dashboard: Dashboard) -> str:
    return f"http://127.0.0.1:{dashboard.access.port}"


def cookie(dashboard: Dashboard, token: str | None = None) -> dict[str, str]:
    name = Door(dashboard.access).cookie
    return {"Cookie": f"theirs=1; {name}={token or dashboard.access.token}"}


def pause(dashboard: Dashboard, **headers: str) -> Answer:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return ask(dashboard, "/api/actions/pause", "POST", b"{}", given)


@pytest.mark.parametrize("path", READS)
def test_on_loopback_all_may_look(dashboard: Dashboard, path: str) -> None:
    assert ask(dashboard, path).status == 200


@pytest.mark.parametrize("path", [*READS, "/none", "/api/actions/pause"])
def test_every_answer_binds_the_browser(dashboard: Dashboard, path: str) -> None:
    answer = ask(dashboard, path)
    assert {name: answer.headers[name.lower()] for name in SAID} == SAID
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("site", ["none", "cross-site"])
def test_what_is_no_path_is_refused(dashboard: Dashboard, site: str) -> None:
    assert ask(dashboard, "*", "OPTIONS", headers={"Sec-Fetch-Site": site}).status == 400


@pytest.mark.parametrize("host", ["evil.example:{port}", "evil.example", "127.0.0.1:1"])
@pytest.mark.parametrize("path", READS)
def test_a_name_that_came_to_mean_this_machine_is_not_heard(
    dashboard: Dashboard, path: str, host: str
) -> None:
    given = host.format(port=dashboard.access.port)
    assert ask(dashboard, path, headers={"Host": given}).status == 421
    assert ask(dashboard, path, headers={"Host": given} | bearer(dashboard)).status == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_a_page_from_elsewhere_is_not_heard(dashboard: Dashboard, origin: str) -> None:
    for headers in ({"Origin": origin}, {"Origin": origin} | cookie(dashboard)):
        assert ask(dashboard, "/api/records", headers=headers).status == 403
        assert pause(dashboard, **headers).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_no_other_page_loads_anything_but_a_link_to_the_page(
    dashboard: Dashboard, site: str
) -> None:
    headers = {"Sec-Fetch-Site": site}
    assert ask(dashboard, "/api/records", headers=headers).status == 403
    assert ask(dashboard, "/static/main.js", headers=headers).status == 403
    assert ask(dashboard, "/", headers=headers).status == 200


def test_an_action_needs_the_token(dashboard: Dashboard) -> None:
    wrong = {"Authorization": f"Bearer {'x' * 43}"}
    assert pause(dashboard).status == 401
    assert pause(dashboard, **wrong).status == 401
    assert pause(dashboard, Origin=own(dashboard)).status == 401
    assert pause(dashboard, **cookie(dashboard, "x" * 43)).status == 401
    assert pause(dashboard, **bearer(dashboard)).status == 200


def test_a_cookie_acts_only_for_its_own_page(dashboard: Dashboard) -> None:
    assert pause(dashboard, **cookie(dashboard)).status == 403
    assert pause(dashboard, **cookie(dashboard), Origin=own(dashboard)).status == 200


def test_what_a_form_can_send_is_no_action(dashboard: Dashboard) -> None:
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data"):
        assert pause(dashboard, **bearer(dashboard), Content_Type=kind).status == 415


def test_a_token_in_the_address_of_an_action_is_none(dashboard: Dashboard) -> None:
    path = f"/api/actions/pause?token={dashboard.access.token}"
    assert ask(dashboard, path, "POST", b"{}").status == 401


def test_the_address_becomes_a_cookie_that_scripts_cannot_read(dashboard: Dashboard) -> None:
    answer = ask(dashboard, f"/?token={dashboard.access.token}")
    assert (answer.status, answer.headers["refresh"]) == (200, "0; url=/")
    attributes = answer.headers["set-cookie"].lower()
    assert "httponly" in attributes
    assert "samesite=strict" in attributes
    assert ask(dashboard, "/api/state", headers=cookie(dashboard)).json["known"] is True
    assert ask(dashboard, "/api/state").json["known"] is False


def test_a_wrong_token_becomes_no_cookie(dashboard: Dashboard) -> None:
    for query in ("token=wrong", "token=", f"token={dashboard.access.token}&token=other"):
        answer = ask(dashboard, f"/?{query}")
        assert answer.status == 303
        assert "set-cookie" not in answer.headers


def test_the_token_is_in_no_answer_but_that_cookie(dashboard: Dashboard) -> None:
    token = dashboard.access.token.encode()
    letting_in = ask(dashboard, f"/?token={dashboard.access.token}")
    assert token not in letting_in.body
    for path in READS:
        answer = ask(dashboard, path, headers=cookie(dashboard))
        assert token not in answer.body
        assert token.decode() not in str(answer.headers)
    assert dashboard.access.token not in repr(dashboard.access)


@pytest.mark.parametrize("path", READS)
def test_beyond_loopback_everything_needs_the_token(path: str) -> None:
    door = Door(Access(TOKEN, "0.0.0.0", 7788))  # noqa: S104 (as an owner may say)
    scope = {"method": "GET", "path": path, "query_string": b""}
    host = {b"host": "10.0.0.1:7788"}
    refused = door.check(scope, host)
    assert refused is not None
    assert refused.status == 401
    assert TOKEN not in str(refused)
    assert door.check(scope, host | {b"cookie": f"{door.cookie}={TOKEN}"}) is None
    assert door.check(scope, host | {b"authorization": f"Bearer {TOKEN}"}) is None
    in_query = door.check(scope | {"query_string": f"token={TOKEN}".encode()}, host)
    assert (in_query is None) == (path == "/")


def test_a_cookie_of_another_port_is_none() -> None:
    door = Door(Access(TOKEN, "127.0.0.1", 7788))
    assert not door.is_known({b"cookie": f"thalweg-7789={TOKEN}"})
    assert door.is_known({b"cookie": f"a=b;thalweg-7788={TOKEN};c"})


@pytest.mark.parametrize(
    "path",
    ["/static/../web.py", "/static/%2e%2e/web.py", "/static//etc/passwd", "/static/", "/static/x"],
)
def test_only_the_files_of_the_page_are_served(dashboard: Dashboard, path: str) -> None:
    assert ask(dashboard, path).status == 404


def test_too_much_is_not_read(dashboard: Dashboard) -> None:
    headers = bearer(dashboard) | {"Content-Length": "5000"}
    answer = ask(dashboard, "/api/actions/pause", "POST", b"{}", headers)
    assert answer.status == 413


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"other": 1}', b'"pause"'])
def test_what_is_no_request_is_refused(dashboard: Dashboard, body: bytes) -> None:
    answer = ask(dashboard, "/api/actions/pause", "POST", body, bearer(dashboard))
    assert answer.status == 400


@pytest.mark.parametrize("after", ["-1", "x", "1e9", "9" * 30, "\u0661"])
def test_what_is_no_number_of_a_record_is_refused(dashboard: Dashboard, after: str) -> None:
    for path in ("records", "stream"):
        assert ask(dashboard, f"/api/{path}?after={quote(after)}").status == 400


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"component": "count", "degree": 0}', "1 to 1024"),
        (b'{"component": "count", "degree": 1000000}', "1 to 1024"),
        (b'{"component": "source", "degree": 2}', "one of count"),
        (b'{"component": "count"}', "degree"),
    ],
)
def test_degrees_that_make_no_sense_are_refused(
    dashboard: Dashboard, body: bytes, said: str
) -> None:
    answer = ask(dashboard, "/api/actions/rebalance", "POST", body, bearer(dashboard))
    assert answer.status == 400
    assert said in answer.json["error"]


@pytest.mark.parametrize("name", ["kill", "policy", "none"])
def test_an_action_that_the_run_does_not_support_is_refused(
    dashboard: Dashboard, name: str
) -> None:
    answer = ask(dashboard, f"/api/actions/{name}", "POST", b"{}", bearer(dashboard))
    assert answer.status == 404
    assert "pause, resume, rebalance" in answer.json["error"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "127.0.0.1:80"])
def test_browsers_leave_out_the_port_of_http(host: str) -> None:
    scope = {"method": "GET", "path": "/", "query_string": b""}
    headers = {b"host": host, b"origin": f"http://{host}"}
    assert Door(Access(TOKEN, "127.0.0.1", 80)).check(scope, headers) is None
    refused = Door(Access(TOKEN, "127.0.0.1", 81)).check(scope, headers)
    assert refused is not None
    assert refused.status == 421


def test_who_brings_the_token_of_another_run_is_told_so_and_it_is_not_printed(
    dashboard: Dashboard,
) -> None:
    path, other = "/api/actions/pause", "x" * 43
    assert "got none" in ask(dashboard, path, "POST", b"{}").json["error"]
    for headers in ({"Authorization": f"Bearer {other}"}, cookie(dashboard, other)):
        error = ask(dashboard, path, "POST", b"{}", headers).json["error"]
        assert "got another one" in error
        assert other not in error
        said = ask(dashboard, path, "POST", b"{}", headers | {"Accept": "text/html"}).body
        assert b"The token is not that of this page" in said
        assert other.encode() not in said
    unlike = {"Cookie": "thalweg-1=x"}  # of the page of another run, at its own port
    assert "got none" in ask(dashboard, path, "POST", b"{}", unlike).json["error"]
    beyond = Door(Access(TOKEN, "0.0.0.0", 7788))  # noqa: S104 (as an owner may say)
    scope = {"method": "GET", "path": "/", "query_string": b"token=" + other.encode()}
    refused = beyond.check(scope, {b"host": "10.0.0.1:7788"})
    assert "got another one" in str(refused)
    assert other not in str(refused)


def test_a_browser_without_the_token_reads_a_sentence_and_a_program_reads_json(
    dashboard: Dashboard,
) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    path = "/api/actions/pause"
    answer = ask(dashboard, path, "POST", b"{}", browser)
    assert answer.status == 401
    assert answer.headers["content-type"].startswith("text/html")
    assert b"Open the address that was printed" in answer.body
    assert "error" in ask(dashboard, path, "POST", b"{}").json
    strange = ask(dashboard, "/", headers=browser | {"Host": "<b>evil</b>:1"})
    assert strange.status == 421
    assert b"<b>" not in strange.body
