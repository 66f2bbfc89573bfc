"""Visitors come in by a link from anywhere, as many as may, and make room when they leave."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Any

import pytest
from visiting import canned, told

from browsing import CHROMIUM, chromium, page_of, until
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.serving import Dashboard, Where

ELSEWHERE = "http://elsewhere.example/"


def click_on_a_link_elsewhere(page: Any, address: str) -> None:
    """Come from the page of another site."""
    html = f"<!doctype html><title>elsewhere</title><a href='{address}'>look</a>"
    page.route(ELSEWHERE, lambda route: route.fulfill(body=html, content_type="text/html"))
    page.goto(ELSEWHERE)
    page.locator("a").click()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: scripts/setup installs it")
def test_a_link_from_another_site_lets_in_who_has_the_token_and_the_address_loses_it() -> None:
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    hub = Hub()
    told(hub)
    beyond_loopback = Where("0.0.0.0")  # noqa: S104 (as an owner may say)
    with Dashboard(hub, beyond_loopback) as made, chromium() as browser, page_of(browser) as page:
        plain = f"http://127.0.0.1:{made.access.port}/"
        click_on_a_link_elsewhere(page, f"{plain}?token={made.access.token}")
        until(page, "() => document.querySelector('#name')?.textContent === 'words'")
        assert page.url.partition("#")[0] == plain
        page.reload()
        until(page, "() => document.querySelector('#name')?.textContent === 'words'")
        page.go_back()
        page.wait_for_function("() => document.title === 'elsewhere'")


# --- streams --------------------------------------------------------------------------------------


def opened(dashboard: Dashboard) -> socket.socket:
    """Ask for the stream of records, without waiting for it."""
    port = dashboard.access.port
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall(f"GET /api/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    return made


def status(connected: socket.socket) -> int:
    """Wait for the status of an answer; what follows it stays unread."""
    line = b""
    while not line.endswith(b"\r\n"):
        piece = connected.recv(1)
        assert piece, "closed without an answer"
        line += piece
    return int(line.split()[1])


def test_of_all_who_come_at_once_only_as_many_are_told_as_may_be() -> None:
    with canned() as made, ExitStack() as open_ones:
        visitors = [open_ones.enter_context(opened(made)) for _ in range(20)]
        assert sorted(map(status, visitors)) == [200] * 16 + [503] * 4


@pytest.mark.parametrize("waits", [True, False], ids=["told", "never told"])
def test_who_leaves_makes_room_for_another(waits: bool) -> None:
    with canned() as made:
        with ExitStack() as open_ones:
            visitors = [open_ones.enter_context(opened(made)) for _ in range(20)]
            assert not waits or 503 in map(status, visitors)
        while not is_let_in(made):
            pass


def is_let_in(dashboard: Dashboard) -> bool:
    with opened(dashboard) as visitor:
        return status(visitor) == 200
