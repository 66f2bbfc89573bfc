"""How the page finds the run and keeps up with it, in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from visiting import address, told, words

from browsing import CHROMIUM, SEEN, chromium, page_of, same, until
from thalweg.dashboard.actions import Actions
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.serving import Dashboard, Where
from thalweg.dashboard.telling import Telling
from thalweg.events import Noticed, RunStarted
from thalweg.execution import Steering

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
if CHROMIUM is None:
    pytest.skip("no Chromium: scripts/setup installs it", allow_module_level=True)

STATE = "(state) => document.querySelector('#state').textContent === state"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


def steered(hub: Hub, where: Where | None = None) -> Dashboard:
    """Make the page of a run that goes on."""
    return Dashboard(hub, where, Actions(Steering(), threading.Event(), ("pause", "resume")))


def test_a_run_that_tells_more_before_each_answer_has_come_is_followed(browser: Any) -> None:
    hub = Hub()
    telling = told(hub)
    with steered(hub) as made, page_of(browser) as page:

        def late(route: Any) -> None:
            telling.listen(Noticed("meanwhile"))
            route.continue_()

        page.route("**/api/records?**", late)
        page.goto(made.address)
        until(page, STATE, "running")
        assert page.locator("button[data-action='pause']").is_enabled()


def test_a_run_of_many_answers_is_loaded_whole_before_it_is_followed(browser: Any) -> None:
    hub = Hub()
    telling = told(hub)
    for number in range(3_000):
        telling.listen(Noticed(f"{number} " + 1_990 * "x"))
    newest = hub.newest
    assert hub.after(0)[-1].n < newest  # more than one answer has
    with steered(hub) as made, page_of(browser) as page:
        shown: list[int] = []

        def look(route: Any) -> None:
            shown.append(int(page.evaluate("Number(document.body.dataset.drawn)")))
            route.continue_()

        page.route("**/api/stream?**", look)
        page.goto(address(made))
        until(page, STATE, "running")
        assert shown == [newest]


def test_a_page_goes_on_with_the_run_that_was_started_at_its_address(browser: Any) -> None:
    first, second = Hub(), Hub()
    told(first)
    Telling(second, words("another"), "local").listen(RunStarted("another", "local"))
    with page_of(browser) as page:
        page.add_init_script(SEEN)
        with steered(first) as made:
            page.goto(made.address)
            until(page, STATE, "running")
            assert page.locator("button[data-action='pause']").is_enabled()
            page.evaluate("see(false)")  # as a process that is killed: nobody says that it is over
            same(lambda: False, lambda: first.followed)
        with steered(second, Where(port=made.access.port)):
            page.evaluate("see(true)")
            until(page, "() => document.querySelector('#name').textContent === 'another'")
            until(page, STATE, "running")
            assert "it has the token" in page.locator("main").inner_text()
