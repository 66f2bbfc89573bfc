"""What the page says before the first look, of what is over, of many components; its actions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from visiting import address, ask, bearer, canned, keys, snapshot, told, words

import thalweg as tw
from browsing import CHROMIUM, chromium, drawn, page_of, until, visit
from thalweg.dashboard.actions import Actions
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.serving import Dashboard
from thalweg.dashboard.telling import Telling
from thalweg.events import Activated, Decided, Noticed, Progress, Reconfigured, RunFinished
from thalweg.execution import Steering
from thalweg.recording.records import Numbering

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
if CHROMIUM is None:
    pytest.skip("no Chromium: scripts/setup installs it", allow_module_level=True)

UNMEASURED = "Nothing has been measured yet."
STATE = "(state) => document.querySelector('#state').textContent === state"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


def seen(page: Any, view: str) -> str:
    """Give what a view says first."""
    page.evaluate("(view) => { location.hash = `#/${view}`; }", view)
    page.wait_for_selector(f"[data-view='{view.partition('/')[0]}'].view")
    return str(page.locator("main .view .note:visible").first.inner_text())


# --- before the first look ------------------------------------------------------------------------

VIEWS = ("component/count", "order", "keys")


def test_before_the_first_look_views_say_that_nothing_was_measured(browser: Any) -> None:
    hub = Hub()
    Telling(hub, words(), "local").listen(Noticed("it begins"))
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(address(made))
        until(page, STATE, "recording")
        assert [seen(page, view) for view in VIEWS] == [UNMEASURED] * 3
        assert "no component of this name" in seen(page, "component/none")


def test_who_looks_back_behind_the_first_look_is_told_the_same(browser: Any) -> None:
    with canned() as made, page_of(browser) as page:
        page.goto(address(made))
        drawn(page)
        page.locator("#slider").fill("0")
        until(page, STATE, "looking back")
        assert [seen(page, view) for view in VIEWS] == [UNMEASURED] * 3


@pytest.mark.parametrize("names", [("reroute",), ()])
def test_only_runs_that_do_not_count_keys_are_told_how_to(
    browser: Any, names: tuple[str, ...]
) -> None:
    hub = Hub()
    Telling(hub, words(), "local").listen(Progress(snapshot(1.0)))
    actions = Actions(Steering(), threading.Event(), names)
    with Dashboard(hub, None, actions) as made, page_of(browser) as page:
        page.goto(address(made))
        until(page, "() => document.querySelector('[data-figure=tuples_in]').dataset.value > 0")
        assert ("--locality auto" in seen(page, "keys")) == (names == ())


# --- latency of now -------------------------------------------------------------------------------

TILE = "document.querySelector('[data-figure=latency]').parentElement.textContent"


def test_the_latency_is_that_of_the_last_seconds_beside_that_of_the_run(browser: Any) -> None:
    hub = Hub()
    telling = Telling(hub, words(), "local")
    for elapsed in range(4):
        telling.listen(Progress(snapshot(float(elapsed))))
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(address(made))
        until(page, f"() => {TILE}.includes('Latency p50 of the last 15 s300 ms')")
        assert page.evaluate(TILE).endswith("p95 305 ms, p99 309 ms; whole run p99 9.0 ms")
        captions = "[...document.querySelectorAll('figcaption')].map((each) => each.textContent)"
        assert "Latency of the last 15 s" in page.evaluate(captions)
        # Nothing comes to its end now: what was before says nothing of it.
        telling.listen(Progress(replace(snapshot(60.0), recent=None)))
        until(page, f"() => {TILE}.endsWith('\u2013whole run p99 9.0 ms')")
        telling.listen(RunFinished(snapshot(61.0), False))
        until(page, f"() => {TILE}.endsWith('Latency p502.0 msp95 5.0 ms, p99 9.0 ms')")


# --- event time -----------------------------------------------------------------------------------


def test_tuples_that_came_too_late_are_beside_errors_with_the_watermark(browser: Any) -> None:
    hub, shot = Hub(), snapshot(3.0)
    told_of = {
        "source": {"dropped": 12},
        "count": {"late": 8723, "watermark": 1.7e9, "behind": 2.5},
    }
    changed = tuple(replace(each, **told_of.get(each.component, {})) for each in shot.components)
    Telling(hub, words(), "local").listen(Progress(replace(shot, components=changed)))
    errors = "document.querySelector('[data-figure=errors]').parentElement"
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(address(made))
        until(page, f"() => {errors}.textContent === 'Errors18,723 late, 12 dropped'")
        assert page.evaluate(f"{errors}.classList.contains('bad')")
        rows = page.locator("[aria-label='Components'] tbody tr").all()
        lost = [row.locator("td").all_inner_texts()[-3:] for row in rows]
        assert lost == [["0", "0", "12"], ["1", "8,723", "0"], ["0", "0", "0"]]
        page.evaluate("location.hash = '#/component/count'")
        page.wait_for_selector("[data-view='component'].view")
        text = page.locator("[data-view='component'].view").inner_text()
        behind = "Watermark 2023-11-14 22:13:20.000 UTC, 2.50 s behind the newest tuple"
        assert behind in text
        assert "Not processed: 1 refused, 8,723 too late" in text
        page.evaluate("location.hash = '#/component/out'")
        until(page, "() => document.querySelector('h2.big').textContent === 'out'")
        assert "Watermark" not in page.locator("[data-view='component'].view").inner_text()


# --- counts and wishes of then --------------------------------------------------------------------


def test_keys_that_were_counted_long_ago_are_said_to_be(browser: Any) -> None:
    hub = Hub()
    telling = told(hub)  # half a second between two records
    telling.listen(keys(0.5))
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(f"{address(made)}#/keys")
        about = "() => document.querySelector('[data-view=keys].view').textContent"
        until(page, f"{about}.includes('tuples is counted')")
        assert "counted until" not in page.evaluate(about)
        at = hub.recent(("keys",), 1)[0]["at"]
        for number in range(30):
            telling.listen(Noticed(f"notice {number}"))
        until(page, f"{about}.includes('counted until 00:{int(at):02}')")


def test_only_what_policies_wanted_at_the_newest_look_is_what_they_want_now(browser: Any) -> None:
    hub = Hub()
    telling = told(hub)
    for time, policies in ((2.0, ("ds2", "dhalion", "static")), (3.0, ("ds2", "static"))):
        for policy in policies:
            telling.listen(Decided("", policy, time, {"count": (2, 3)}, carried_out=False))
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(f"{address(made)}#/scaling")
        row = page.locator("[aria-label='What policies want'] tbody tr")
        row.wait_for()
        assert row.locator("td").all_inner_texts() == ["count", "2", "ds2 3, static 3"]


def test_the_log_has_a_reconfiguration_when_it_was_over(browser: Any) -> None:
    hub = Hub()
    steady = iter([0.0, 1.0, 4.0, 9.0, 10.0])
    telling = Telling(hub, words(), "local", "", Numbering(steady.__next__, lambda: 1.7e9))
    telling.listen(Noticed("before"))
    telling.listen(Noticed("after"))
    report = {"epoch": 1, "reason": "", "keys": 0, "bytes": 0, "steps": 0, "pause": 0.0}
    telling.listen(Reconfigured("moved", report | {"ago": 6.0}))
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(f"{address(made)}#/logs")
        rows = page.locator("[aria-label='Log'] tbody tr")
        rows.nth(2).wait_for()
        said = [row.locator("td").all_inner_texts()[:3] for row in rows.all()]
        assert said == [
            ["00:04", "notice", "after"],
            ["00:03", "reconfiguration", "moved"],
            ["00:01", "notice", "before"],
        ]


# --- many components ------------------------------------------------------------------------------

ALIKE = "a_very_long_name_of_a_component"
#: The lines of the chart of degrees: what the legend says, the whole name, the colour.
LINES = """() => [...[...document.querySelectorAll("figure")].at(-1).querySelectorAll(".u-marker")]
  .map((each) => [each.nextSibling.textContent, each.nextSibling.title,
    getComputedStyle(each).borderTopColor]).slice(1)"""


@pytest.fixture
def many() -> Iterator[Dashboard]:
    """Serve the page of a run of many components whose names begin alike."""
    flow = tw.Flow("many")
    source = flow.source("source", tw.items(["a"]), fields={"word": str})
    names = [f"{ALIKE}_{number}" for number in range(12)]
    for name in names:
        source.sink(name, tw.collect([]))
    hub = Hub()
    telling = Telling(hub, flow.build(), "local")
    for at in range(1, 4):
        telling.listen(Progress(snapshot(float(at), names=("source", *names))))
    with Dashboard(hub) as made:
        yield made


def test_the_chosen_component_is_the_first_of_the_degrees_and_each_line_has_a_colour(
    browser: Any, many: Dashboard
) -> None:
    with page_of(browser) as page:
        page.goto(f"{address(many)}#/scaling")
        page.locator("figure canvas").last.wait_for()
        page.locator("#scaled").select_option(f"{ALIKE}_11")
        until(page, f"(name) => ({LINES})()[0][1] === name", f"{ALIKE}_11")
        lines = page.evaluate(LINES)
        assert len(lines) == len({colour for _, _, colour in lines}) == 8
        title = page.locator("figcaption").last.inner_text()
        assert title == "Degree: the chosen one and the 7 highest others of 12"


def test_long_names_that_begin_alike_can_be_told_apart(browser: Any, many: Dashboard) -> None:
    with page_of(browser) as page:
        page.goto(f"{address(many)}#/scaling")
        page.locator("figure canvas").last.wait_for()
        lines = page.evaluate(LINES)
        assert len({label for label, _, _ in lines}) == 8
        assert all(name.startswith(f"{ALIKE}_") for _, name, _ in lines)
        visit(page, "graph")
        boxes = page.locator("svg a.box text.name").all_text_contents()
        assert len(set(boxes)) == 13
        assert all(len(name) <= 22 for name in boxes)


# --- actions --------------------------------------------------------------------------------------


def test_who_pauses_by_keyboard_has_the_focus_where_it_can_be_taken_back(browser: Any) -> None:
    hub = Hub()
    telling = told(hub)
    actions = Actions(Steering(), threading.Event(), ("pause", "resume"))
    with Dashboard(hub, None, actions) as made, page_of(browser) as page:
        page.goto(made.address)
        until(page, STATE, "running")
        page.locator("button[data-action='pause']").focus()
        for active, other in ((False, "resume"), (True, "pause")):
            telling.listen(Activated(active))
            focused = "(name) => document.activeElement.dataset.action === name"
            until(page, focused, other)


@pytest.mark.parametrize("several", [True, False])
def test_between_two_runs_of_a_page_of_several_all_of_them_can_be_stopped(
    browser: Any, several: bool
) -> None:
    hub, stop = Hub(), threading.Event()
    told(hub).listen(RunFinished(snapshot(9.0), stopped=False))
    actions = Actions(Steering(), stop, ("kill",), several=several)
    with Dashboard(hub, None, actions) as made, page_of(browser) as page:
        page.goto(made.address)
        until(page, STATE, "ended")
        note = "(text) => document.querySelector('.buttons + .note').textContent === text"
        until(page, note, "" if several else "The run is over.")
        assert page.locator("button[data-action='kill']").is_enabled() == several
        answer = ask(made, "/api/actions/kill", "POST", b"{}", bearer(made))
        assert (answer.status, stop.is_set()) == ((200, True) if several else (409, False))
