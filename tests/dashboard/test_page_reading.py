"""What people read off the page and reach on it, in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from visiting import address, canned, snapshot, told

from browsing import CHROMIUM, LIMIT, VIEWS, chromium, drawn, page_of, same, shot, until, visit
from recording.runs import recorded
from thalweg.dashboard import web
from thalweg.dashboard.actions import Actions
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.serving import Dashboard
from thalweg.events import Decided, RunFinished, TupleRefused
from thalweg.execution import Steering
from thalweg.recording.reading import Recording
from thalweg.recording.report import report_page

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
if CHROMIUM is None:
    pytest.skip("no Chromium: scripts/setup installs it", allow_module_level=True)

PHONE = {"width": 390, "height": 500}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


@pytest.fixture
def whole() -> Iterator[Dashboard]:
    with canned() as dashboard:
        yield dashboard


#: What is where the slider is, at every place that the page can be scrolled to.
AT_THE_SLIDER = """() => {
  const found = new Set();
  const { left, top, height } = document.querySelector("#slider").getBoundingClientRect();
  for (let down = 0; down <= document.documentElement.scrollHeight; down += 10) {
    window.scrollTo(0, down);
    found.add(document.elementFromPoint(left + 20, top + height / 2).id);
  }
  return [...found];
}"""


def test_on_a_phone_no_cell_lies_over_the_slider(browser: Any, whole: Dashboard) -> None:
    with page_of(browser, viewport=PHONE) as page:
        page.goto(address(whole))
        drawn(page)
        for view in VIEWS:
            visit(page, view)
            assert page.evaluate(AT_THE_SLIDER) == ["slider"], view


#: The lines of a chart with their colours.
LINES = """(chart) => [...chart.querySelectorAll(".u-marker")].map((each) =>
  [each.nextSibling.textContent, getComputedStyle(each).borderTopColor])"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_how_time_was_spent_has_the_same_colours_everywhere(
    browser: Any, whole: Dashboard, scheme: str
) -> None:
    with page_of(browser, color_scheme=scheme) as page:
        page.goto(address(whole))
        drawn(page)
        visit(page, "graph")
        box = page.locator("svg a.box", has_text="source")
        fill = "(each) => getComputedStyle(each).fill"
        bars = [box.locator(f"rect.{name}").evaluate(fill) for name in ("busy", "pressed")]
        box.click()
        chart = page.locator("figure", has_text="time was spent")
        chart.locator(".u-marker").first.wait_for()
        lines = dict(chart.evaluate(LINES))
        assert [lines["busy"], lines["back-pressured"]] == bars
        assert lines["waiting"] not in bars


def test_a_stronger_colour_is_said_to_be_a_busier_task(browser: Any, whole: Dashboard) -> None:
    with page_of(browser, color_scheme="dark") as page:
        page.goto(address(whole))
        drawn(page)
        visit(page, "graph")
        about = page.locator("main").inner_text()
        assert "a box in a stronger colour is a task that was busier" in about


def test_on_a_phone_a_question_keeps_off_the_edges(browser: Any, whole: Dashboard) -> None:
    with page_of(browser, viewport=PHONE) as page:
        page.goto(address(whole))
        drawn(page)
        text = "(node) => { node.textContent = 'word '.repeat(50); }"
        page.locator("#dialog-text").evaluate(text)
        page.locator("#dialog").evaluate("(dialog) => dialog.showModal()")
        asked = page.locator("#dialog").bounding_box()
        assert asked["x"] >= 16
        assert asked["x"] + asked["width"] <= PHONE["width"] - 16


# --- what can be done, and why not ----------------------------------------------------------------

LOADING = "Loading."
LOST = "Not connected: actions come back with the connection."
OVER = "The run is over."
#: Where a view says what hinders its actions.
NOTES = {
    "#/overview": "button[data-action='pause']",
    "#/scaling": "button[data-action='set-policy']",
    "#/component/count": "button[data-action='rebalance']",
}


def steered(hub: Hub) -> Dashboard:
    """Make the page of a run that goes on."""
    names = ("pause", "resume", "kill", "rebalance", "set-policy")
    actions = Actions(Steering(), threading.Event(), names, lambda: ("count",))
    return Dashboard(hub, None, actions)


def says(page: Any, state: str, note: str) -> None:
    """Wait until every view says how the run is, and why nothing can be done."""
    until(page, "(state) => document.querySelector('#state').textContent === state", state)
    for view, button in NOTES.items():
        page.evaluate("(view) => { location.hash = view; }", view)
        page.wait_for_selector(button)
        section = page.locator("section", has=page.locator(button)).last
        assert section.locator(".note").last.inner_text() == note
        assert page.locator(button).is_disabled() == (note != "")


def test_a_page_that_loads_says_so_and_not_that_the_run_is_over(browser: Any) -> None:
    hub, held = Hub(), list[Any]()
    told(hub)
    with steered(hub) as made, page_of(browser) as page:
        page.route("**/api/state", lambda route: held.append(route))  # noqa: PLW0108 (sets attributes)
        page.goto(made.address)
        until(page, "() => document.querySelector('#state').textContent === 'loading'")
        assert LOADING in page.locator("main").inner_text()
        for text in ("recording", "over", "onnected", "waiting for a run"):
            assert text not in page.locator("body").inner_text()
        same(lambda: 1, lambda: page.evaluate("1") and len(held))
        held[0].continue_()
        says(page, "running", "")


def test_who_loses_the_connection_is_told_that_actions_come_back(
    browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub()
    telling = told(hub)
    monkeypatch.setattr(web, "_MOST_STREAMS", 0)
    with steered(hub) as made, ExitStack() as stack:
        context = browser.new_context()  # which may say that a request has failed
        stack.callback(context.close)
        page = context.new_page()
        page.set_default_timeout(LIMIT)
        page.goto(made.address)
        says(page, "not connected: visitors: expected 0 at most", LOST)
        monkeypatch.setattr(web, "_MOST_STREAMS", 16)
        says(page, "running", "")
        telling.listen(RunFinished(snapshot(9.0), stopped=False))
        says(page, "ended", OVER)
        page.locator("#slider").fill("40")
        says(page, "looking back", OVER)


def asked(page: Any) -> str:
    """Press the button that gives a component another degree; gives what is to be confirmed."""
    page.wait_for_selector("button[data-action='rebalance']:enabled")
    page.locator("button[data-action='rebalance']").click()
    text = page.locator("#dialog-text").inner_text()
    page.locator("#dialog-no").click()
    return str(text)


def test_who_rebalances_is_told_before_that_a_policy_may_undo_it(browser: Any) -> None:
    hub = Hub()
    telling = told(hub)
    with steered(hub) as made, page_of(browser) as page:
        page.goto(made.address)
        drawn(page)
        page.evaluate("location.hash = '#/component/count'")
        assert "policy ds2 may change it again; with the policy static" in asked(page)
        telling.listen(Decided("as asked", "static", 9.0, {}, replaces="ds2"))
        until(page, "() => document.querySelector('#runtime').textContent.includes('static')")
        assert "may change it again" not in asked(page)


# --- what was decided, and what was only wished ---------------------------------------------------


@pytest.fixture
def wishing() -> Iterator[Dashboard]:
    """Serve the page of a run with one decision, and hundreds of wishes after it."""
    hub = Hub()
    telling = told(hub)
    for at in range(400):
        text, degrees = f"wish {at}", {"count": (2, 4 + at // 200)}
        telling.listen(Decided(text, "thalweg", float(at), degrees, carried_out=False))
    with Dashboard(hub) as made:
        yield made


def rows(page: Any, table: str) -> list[list[str]]:
    """Give the texts of a table."""
    found = page.locator(f"[aria-label='{table}'] tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in found]


def test_decisions_stand_apart_from_wishes_which_are_counted(
    browser: Any, wishing: Dashboard
) -> None:
    with page_of(browser) as page:
        page.goto(address(wishing))
        drawn(page)
        visit(page, "scaling")
        (decision,) = rows(page, "Decisions")
        assert "count 2 -> 3 because" in decision[2]
        assert [row[2:] for row in rows(page, "Wishes")] == [
            ["thalweg", "200", "wish 399"],
            ["thalweg", "200", "wish 199"],
        ]
        shot(page, "wishes-scaling")


def test_the_log_shows_wishes_to_those_who_ask_for_them(browser: Any, wishing: Dashboard) -> None:
    with page_of(browser) as page:
        page.goto(address(wishing))
        drawn(page)
        visit(page, "logs")
        assert [row[1] for row in rows(page, "Log")].count("decision") == 1
        assert "wish" not in page.locator("[aria-label='Log']").inner_text()
        for kind, first in (("would do", "wish 399"), ("decision", "ds2: count 2 -> 3")):
            page.locator("#kind").select_option(kind)
            shown = page.locator("[aria-label='Log'] tbody tr").first.locator("td")
            assert shown.nth(1).inner_text() == kind
            assert shown.nth(2).inner_text().startswith(first)


# --- the report of a recording --------------------------------------------------------------------


@pytest.mark.parametrize("text", ["k" * 10_000, "word " * 2_000], ids=["a word", "words"])
def test_long_texts_of_a_report_scroll_and_are_printed_whole(
    browser: Any, tmp_path: Path, text: str
) -> None:
    recorded(tmp_path / "run.sqlite", [(1.0, TupleRefused("counts", 0, text, text))])
    with Recording.open(tmp_path / "run.sqlite") as recording:
        (tmp_path / "report.html").write_text(report_page(recording))
    with page_of(browser) as page:
        page.goto((tmp_path / "report.html").as_uri())
        long = page.locator("td bdi", has_text=text[:100]).first
        assert long.bounding_box()["height"] < 150
        assert long.evaluate("(node) => node.scrollHeight > node.clientHeight")
        page.set_viewport_size(PHONE)
        assert long.bounding_box()["width"] > 100
        page.emulate_media(media="print")
        assert long.evaluate("(node) => node.getBoundingClientRect().height") > 300
