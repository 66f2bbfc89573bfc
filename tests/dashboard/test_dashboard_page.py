"""The page in a real browser: every view, with live data and with hostile texts.

Screenshots are written to the folder that THALWEG_SCREENSHOTS names; scripts/test names one.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from running_page import Running, program, running
from visiting import HOSTILE, LONG, RIGHT_TO_LEFT, address, canned, keys, snapshot, told, words

import thalweg as tw
from browsing import (
    CHROMIUM,
    LIMIT,
    SEEN,
    VIEWS,
    chromium,
    drawn,
    page_of,
    same,
    shot,
    until,
    visit,
)
from thalweg.dashboard import web
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.serving import Dashboard
from thalweg.dashboard.telling import Telling
from thalweg.demo.playing import Continued
from thalweg.events import (
    Activated,
    Decided,
    KeyCount,
    KeyLink,
    Keys,
    Noticed,
    Progress,
    Reconfigured,
    RunFailed,
    RunStarted,
)

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
if CHROMIUM is None:
    pytest.skip("no Chromium: scripts/setup installs it", allow_module_level=True)

ORDER = ["component", "asked", "in force", "waiting", "reordering", "head", "mean", "waited"]
SIZES = {"laptop": (1280, 800), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


def titled(*words: str) -> str:
    """Give the title of a window."""
    return " \N{EN DASH} ".join([*words, "Thalweg"])


# --- a live run -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("live")
    words = ["run", str(program(folder)), "--ui", "--locality", "ask", "--quiet"]
    with running(*words) as run:
        yield run


def in_charge(page: Any, run: Running) -> None:
    """Come by the address that was printed."""
    page.goto(run.address)
    until(page, "() => document.querySelector('#state')?.textContent === 'running'")
    assert "token" not in page.url


def act(page: Any, name: str) -> None:
    """Press the button of an action, and confirm."""
    visit(page, "overview")
    page.locator(f"button[data-action='{name}']").click()
    page.locator("#dialog-yes").click()


#: What each view of a run has to show, and of what kind.
SHOWN = {
    "overview": ("[aria-label='Components'] tbody tr", r"posts.*\d/s"),
    "graph": ("svg a.box text", r"^[\d.,]+ ?[kM]?/s, capacity \d"),
    "keys": ("[aria-label='Frequent pairs'] tbody tr", r"region \d"),
    "reconfigurations": ("figure canvas", ""),
    "scaling": ("figure canvas", ""),
    "order": ("[aria-label='Order by component'] tbody tr", "by_tag"),
    "logs": ("[aria-label='Log'] tbody tr", "no post"),
}
#: Whether something of this kind is to be seen.
SEES = """([where, text]) => [...document.querySelectorAll(where)].some((each) =>
  each.getClientRects().length > 0 && new RegExp(text).test(each.textContent))"""


def test_every_view_shows_a_live_run(browser: Any, live: Running) -> None:
    with page_of(browser) as page:
        in_charge(page, live)
        assert page.locator("#name").inner_text() == "live"
        for view in VIEWS:
            visit(page, view)
            until(page, SEES, SHOWN[view])
            before = page.evaluate("document.body.dataset.drawn")
            until(page, "(before) => document.body.dataset.drawn !== before", before)
            assert page.locator("nav a[aria-current]").inner_text().lower() == view
            shot(page, f"live-{view}")


def test_a_visitor_without_the_token_looks_and_cannot_act(browser: Any, live: Running) -> None:
    with page_of(browser) as page:
        page.goto(live.plain)
        until(page, "() => document.querySelector('#state').textContent === 'running'")
        button = page.locator("button[data-action='kill']")
        assert button.is_disabled()
        assert "it has the token" in page.locator("main").inner_text()
        answer = page.request.post(
            f"{live.plain}api/actions/kill",
            data="{}",
            timeout=LIMIT,
            headers={"Content-Type": "application/json"},
        )
        assert answer.status == 401
        assert page.evaluate("document.cookie") == ""


def figures(run: Running) -> dict[tuple[str, ...], float]:
    """Give the figures that Prometheus is told, by name and labels."""
    with urllib.request.urlopen(f"{run.plain}metrics") as answer:  # noqa: S310 (our own server)
        text = answer.read().decode()
    found = re.findall(r"^thalweg_(\w+)\{(.*)\} (\S+)$", text, re.MULTILINE)
    labels = r"(component|task|quantile)=\"(.*?)\""
    return {
        (name, *(value for _, value in re.findall(labels, of))): float(number)
        for name, of, number in found
    }


#: Tiles, columns of the table of components, and what other programs call them.
TILES = {
    "tuples_in": "tuples_in_total",
    "tuples_out": "tuples_out_total",
    "errors": "errors_total",
    "pending": "pending_tuples",
}
COLUMNS = {
    2: "component_degree",
    3: "component_received_total",
    5: "component_emitted_total",
    9: "component_errors_total",
}


def told_figures(run: Running) -> dict[str, str]:
    """Give what other programs are told of what the overview shows."""
    known = figures(run)
    found = {tile: f"{known[of,]:.0f}" for tile, of in TILES.items()}
    # Of the last seconds; nothing where nothing came to its end in them.
    recent = known.get(("recent_latency_seconds", "0.5"))
    found["latency"] = "" if recent is None else f"{recent:.9f}"
    for name in ("posts", "check", "by_region", "by_tag", "out"):
        cells = [f"{known[of, name]:.0f}" for of in COLUMNS.values()]
        found[name] = " ".join(cells)
    return found


def shown_figures(page: Any) -> dict[str, str]:
    """Give the same, as the overview has it."""
    tile = "[data-figure='{}']"
    found = {name: page.locator(tile.format(name)).inner_text() for name in TILES}
    latency = page.locator(tile.format("latency")).get_attribute("data-value")
    found["latency"] = f"{float(latency):.9f}" if latency else ""
    for row in page.locator("[aria-label='Components'] tbody tr").all():
        cells = row.locator("td").all_inner_texts()
        found[cells[0]] = " ".join(cells[at] for at in COLUMNS)
    return {name: text.replace(",", "") for name, text in found.items()}


def shown_tasks(page: Any) -> list[str]:
    """Give what each task of the component that is shown has received."""
    rows = page.locator("[aria-label='Figures by task'] tbody tr").all()
    return [row.locator("td").all_inner_texts()[-1].replace(",", "") for row in rows]


def rebalance(page: Any, component: str, degree: int) -> None:
    """Ask for another number of tasks, and wait until they are there."""
    page.evaluate("(name) => { location.hash = `#/component/${name}`; }", component)
    page.wait_for_selector("[data-view='component']")
    page.locator("#degree").fill(str(degree))
    page.locator("button[data-action='rebalance']").click()
    page.locator("#dialog-yes").click()
    about = "(wanted) => document.querySelector('.view .muted').textContent.includes(wanted)"
    until(page, about, f"with {degree} tasks")


def test_the_page_has_the_figures_that_other_programs_are_told(browser: Any, live: Running) -> None:
    with page_of(browser) as page:
        in_charge(page, live)
        # Nobody is told a figure before the first look at the run.
        until(page, "() => document.querySelector('[data-figure=tuples_in]').dataset.value > 0")
        rebalance(page, "by_tag", 3)
        act(page, "pause")
        until(page, "() => document.querySelector('#state').textContent === 'paused'")
        # What is under way comes to its end; then both say the same.
        same(lambda: told_figures(live), lambda: shown_figures(page))
        assert figures(live)["tuples_in_total",] > 0
        page.evaluate("location.hash = '#/component/by_tag'")
        page.wait_for_selector("[data-view='component']")
        tasks = [f"{figures(live)['task_received_total', 'by_tag', str(n)]:.0f}" for n in range(3)]
        same(lambda: tasks, lambda: shown_tasks(page))
        act(page, "resume")
        until(page, "() => document.querySelector('#state').textContent === 'running'")
        rebalance(page, "by_tag", 2)


def test_a_component_gets_another_degree_from_its_page(browser: Any, live: Running) -> None:
    with page_of(browser) as page:
        in_charge(page, live)
        visit(page, "keys")
        page.wait_for_selector("[aria-label='Frequent pairs'] tbody tr")
        visit(page, "graph")
        page.locator("svg a", has_text="by_tag").click()
        page.wait_for_selector("[data-view='component']")
        until(page, "() => document.querySelector('#degree').value === '2'")
        for wanted in (3, 2):
            rebalance(page, "by_tag", wanted)
            shot(page, "live-component")
            # The question says so before anybody is asked: the two counted keys together.
            apart = "Keys are brought together only while by_region and by_tag have as many tasks."
            assert (apart in page.locator("#dialog-text").text_content()) == (wanted == 3)
        # Told when it was measured what came of it, with the degrees that there were before.
        visit(page, "reconfigurations")
        until(page, "() => document.querySelectorAll('.scroll tbody tr').length > 0")
        assert "by_tag" in page.locator(".scroll tbody").first.inner_text()


def test_another_policy_is_chosen_and_confirmed_and_then_decides(
    browser: Any, live: Running
) -> None:
    with page_of(browser) as page:
        in_charge(page, live)
        visit(page, "scaling")
        assert "no policy decides" in page.locator("#leading").inner_text()
        page.locator("#policy").select_option("static")
        page.locator("button[data-action='set-policy']").click()
        assert "stay as they are" in page.locator("#dialog-text").inner_text()
        page.locator("#dialog-yes").click()
        until(page, "() => document.querySelector('#leading').textContent.startsWith('static')")
        assert "policy static" in page.locator("#runtime").inner_text()
        assert "a visitor of the page" in page.locator("[aria-label='Decisions']").inner_text()
        shot(page, "live-policy")


def test_an_action_that_is_not_confirmed_is_not_done(browser: Any, live: Running) -> None:
    with page_of(browser) as page:
        in_charge(page, live)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.method))
        page.locator("button[data-action='kill']").click()
        assert page.locator("#dialog").is_visible()
        page.keyboard.press("Escape")
        page.wait_for_selector("#dialog", state="hidden")
        assert "POST" not in asked


def test_hostile_tuples_of_a_run_are_text(browser: Any, live: Running) -> None:
    with page_of(browser) as page:
        in_charge(page, live)
        visit(page, "logs")
        until(page, "() => document.querySelector('tbody').textContent.includes('<img src=x')")
        assert page.locator("main img").count() == 0
        assert page.evaluate("window.hacked") is None


# --- a run in which everything has happened -------------------------------------------------------


@pytest.fixture
def whole() -> Iterator[Dashboard]:
    with canned() as dashboard:
        yield dashboard


TEXTS = {
    "keys": [HOSTILE, RIGHT_TO_LEFT, LONG[:1000]],
    "reconfigurations": [HOSTILE],
    "scaling": [HOSTILE],
    "logs": [HOSTILE, RIGHT_TO_LEFT, LONG[:1000]],
}


def test_user_texts_are_shown_as_they_are_and_never_read_as_markup(
    browser: Any, whole: Dashboard
) -> None:
    with page_of(browser) as page:
        page.goto(address(whole))
        drawn(page)
        for view in VIEWS:
            visit(page, view)
            shown = page.evaluate("document.querySelector('main').textContent")
            assert [text for text in TEXTS.get(view, []) if text not in shown] == [], view
            assert page.locator("main img, main script").count() == 0
            assert page.evaluate("window.hacked") is None


def test_a_run_on_spark_shows_its_batches(browser: Any) -> None:
    with canned("spark") as dashboard, page_of(browser) as page:
        page.goto(address(dashboard))
        drawn(page)
        visit(page, "order")
        assert page.locator("h2:visible").first.inner_text() == "Batches"
        assert page.locator(".scroll tbody tr:visible").count() == 3
        assert page.locator("figure canvas:visible").count() == 6
        shot(page, "spark-batches")


def test_a_box_says_how_the_time_of_its_tasks_was_spent(browser: Any, whole: Dashboard) -> None:
    with page_of(browser) as page:
        page.goto(address(whole))
        drawn(page)
        visit(page, "graph")
        boxes = [page.locator("svg a.box").nth(at) for at in range(2)]
        said = [box.locator("text.about").all_text_contents() for box in boxes]
        assert said[0] == [
            "spout, 1 task",
            "1,000/s, capacity 30 %",
            "busy 30 %, waiting 20 %",
            "back-pressured 50 %",
        ]
        assert said[1][2:] == ["busy 15 %, waiting 85 %", "back-pressured 0 %"]  # two tasks
        titles = page.locator("svg a.box > title").all_text_contents()
        assert "busy 30 %, waiting 20 %, back-pressured 50 %" in titles[0]


def test_the_order_in_force_is_shown_and_how_long_blocks_wait(
    browser: Any, whole: Dashboard
) -> None:
    with page_of(browser) as page:
        page.goto(address(whole))
        drawn(page)
        visit(page, "order")
        rows = page.locator("[aria-label='Order by component'] tbody tr").all_inner_texts()
        cells = dict(zip(ORDER, rows[0].split("\t"), strict=False))
        assert cells == {
            "component": "count",
            "asked": "sender",
            "in force": "total",
            "waiting": "7",
            "reordering": "3",
            "head": "250 ms",
            "mean": "20.0 ms",
            "waited": "35",
        }


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (0.5, "too few to say how frequent keys are among all tuples"),
        (0.101, "among all tuples a share may be up to 11 points higher or lower"),
    ],
)
def test_what_is_said_of_keys_depends_on_how_many_tuples_were_counted(
    browser: Any, error: float, said: str
) -> None:
    hub = Hub()
    told(hub).listen(keys(0.5, share_error=error))
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(f"{address(made)}#/keys")
        until(page, "(said) => document.querySelector('main').textContent.includes(said)", said)
        about = page.locator("[data-view='keys'].view").inner_text()
        assert "of the tuples counted, a count may be up to 4 too low" in about


@pytest.mark.parametrize("width", [1280, 390])
def test_names_in_the_key_graph_are_within_the_picture(browser: Any, width: int) -> None:
    names = (
        "W" * 40,
        "i" * 40,
        "\N{GRINNING FACE}" * 40,
        "short",
        "語" * 20,
        RIGHT_TO_LEFT * 5,
        LONG,
    )
    counts = tuple(KeyCount(name, 9.0, at) for at, name in enumerate(names))
    link = KeyLink("count", "out", 200.0, 4.0, 0.5, counts, counts, (), 0.1)
    hub = Hub()
    told(hub).listen(Keys((link,), 0.5, {}, {}))
    with (
        Dashboard(hub) as made,
        page_of(browser, viewport={"width": width, "height": 800}) as page,
    ):
        page.goto(f"{address(made)}#/keys")
        until(page, "() => document.querySelectorAll('.key-graph text:not(.at)').length === 14")
        # All at once: the next record may draw them anew.
        found = page.evaluate(
            "() => [...document.querySelectorAll('.key-graph text:not(.at)')].map((text) => {"
            "  const box = text.getBBox(), all = text.ownerSVGElement.viewBox.baseVal.width;"
            "  return [text.textContent, box.x, all - box.x - box.width, box.width];"
            "})"
        )
        texts, boxes = [each[0] for each in found], [each[1:] for each in found]
        assert all(left >= 0 and right >= 0 for left, right, _ in boxes)
        assert texts[3] == texts[10] == "short"
        # Of narrow letters there is room for more than of wide ones, and hardly any is wasted.
        assert 2 < len(texts[0]) < len(texts[1]) <= 40
        assert boxes[0][2] > 0.8 * max(wide for _, _, wide in boxes)


def test_shares_of_few_tuples_are_shown_with_how_far_off_they_may_be(browser: Any) -> None:
    hub = Hub()
    before, after = ({"locality": 0.5, "imbalance": 1.0, "error": off} for off in (0.041, 0.0))
    report = {"epoch": 5, "reason": "more even", "keys": 1, "bytes": 1, "steps": 1, "pause": 0.0}
    report |= {"before": before, "predicted": None, "after": after}
    told(hub).listen(Reconfigured("epoch 5", report))
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(f"{address(made)}#/reconfigurations")
        until(page, "() => document.querySelector('main').textContent.includes('more even')")
        cells = page.locator("tbody tr", has_text="more even").locator("td").all_inner_texts()
        assert cells[7:10] == ["50 % ± 5", "\N{EN DASH}", "50 %"]


def test_it_is_said_why_keys_are_not_counted_any_more(browser: Any) -> None:
    hub = Hub()
    telling = told(hub)
    for _ in range(25):
        telling.listen(Progress(snapshot(4.0)))
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(f"{address(made)}#/keys")
        said = ": keys are brought together only while count and out have as many tasks."
        until(page, "(said) => document.querySelector('main').textContent.includes(said)", said)
        assert "counted until" in page.locator("[data-view='keys'].view").inner_text()


def test_the_keys_that_a_reconfiguration_moved_are_shown(browser: Any, whole: Dashboard) -> None:
    with page_of(browser) as page:
        page.goto(address(whole))
        drawn(page)
        visit(page, "keys")
        chosen = page.locator("#reconfiguration")
        assert len(chosen.locator("option").all()) == 2
        assert "0 keys with state" in page.locator("main").inner_text()  # the newest one
        chosen.select_option(index=1)
        until(page, "() => document.querySelector('main').textContent.includes('1,234 keys')")
        table = page.locator("[aria-label='Keys that have another place'] tbody tr")
        rows = [row.locator("td").all_text_contents() for row in table.all()]
        keys = (HOSTILE, RIGHT_TO_LEFT, "plain")
        assert rows == [["count", key, "0", "1", "9"] for key in keys]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_view_fits_the_screen_in_both_schemes(
    browser: Any, whole: Dashboard, size: str, scheme: str
) -> None:
    width, height = SIZES[size]
    viewport = {"width": width, "height": height}
    with page_of(browser, viewport=viewport, color_scheme=scheme) as page:
        page.goto(address(whole))
        drawn(page)
        for view in [*VIEWS, "component"]:
            if view == "component":
                page.goto(f"{address(whole)}#/component/count")
                page.wait_for_selector("[data-view='component'].view")
            else:
                visit(page, view)
            wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
            assert not page.evaluate(wide), view
            tab = page.locator("nav a[aria-current]").bounding_box()
            assert tab["x"] >= 0, view
            assert tab["x"] + tab["width"] <= width, view
            shot(page, f"{size}-{scheme}-{view}")


def back_to(page: Any, moment: float) -> None:
    """Move the slider, to seconds since the start."""
    page.evaluate(
        "(at) => { const slider = document.querySelector('#slider'); slider.value = String(at);"
        " slider.dispatchEvent(new Event('input')); }",
        round(10 * moment),
    )


def test_the_slider_goes_back_in_time(browser: Any, whole: Dashboard) -> None:
    with page_of(browser) as page:
        page.goto(address(whole))
        drawn(page)
        last = page.locator("[data-figure='tuples_in']").get_attribute("data-value")
        assert last == "3500"
        back_to(page, 4.0)
        until(page, "() => document.querySelector('#state').textContent === 'looking back'")
        then = page.locator("[data-figure='tuples_in']").get_attribute("data-value")
        assert then == "1500"
        page.locator("#follow").click()
        until(page, "() => document.querySelector('#state').textContent === 'recording'")


def test_who_looks_back_when_another_run_begins_is_shown_that_one(browser: Any) -> None:
    hub, numbering = Hub(), Continued()
    telling = Telling(hub, words(), "local", "", numbering)
    for at in range(1, 6):
        telling.listen(Progress(snapshot(float(at))))
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(address(made))
        until(page, "() => document.querySelector('[data-figure=tuples_in]').dataset.value > 0")
        back_to(page, 0.0)
        until(page, "() => document.querySelector('#state').textContent === 'looking back'")
        Telling(hub, words("another"), "local", "", numbering).listen(RunStarted("another", ""))
        until(page, "() => document.querySelector('#name').textContent === 'another'")
        until(page, "() => document.querySelector('#state').textContent !== 'looking back'")


def test_before_the_first_look_nothing_of_later_ones_is_shown(
    browser: Any, whole: Dashboard
) -> None:
    with page_of(browser) as page:
        page.goto(address(whole))
        drawn(page)
        assert page.locator("figure canvas:visible").count() == 2
        assert page.locator(".tile.bad").count() == 1
        back_to(page, 0.0)
        until(
            page,
            "() => document.querySelector('[data-figure=tuples_in]').textContent === '\N{EN DASH}'",
        )
        assert page.locator("figure canvas:visible").count() == 0
        assert page.locator(".tile.bad").count() == 0
        assert page.locator("[aria-label='Components'] tbody tr").count() == 0


def test_a_pause_is_shown_however_much_was_said_since(browser: Any) -> None:
    hub = Hub()
    telling = told(hub)
    telling.listen(Activated(False))
    paused = hub.after(0)[-1].n
    for number in range(6_000):
        telling.listen(Noticed(f"notice {number}"))
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(address(made))
        until(page, "() => document.querySelector('#state').textContent === 'paused'")
        for n, state in ((paused - 1, "looking back"), (paused + 1, "was paused")):
            back_to(page, 0.5 * (n - 1))
            until(page, "(state) => document.querySelector('#state').textContent === state", state)


def test_all_can_be_reached_with_the_keyboard(browser: Any, whole: Dashboard) -> None:
    with page_of(browser) as page:
        page.goto(address(whole))
        drawn(page)
        reached = []
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.append(
                page.evaluate(
                    "document.activeElement.dataset.view || document.activeElement.id"
                    " || document.activeElement.tagName"
                )
            )
        assert set(VIEWS) <= set(reached)
        assert "slider" in reached
        page.locator("nav a[data-view='graph']").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("[data-view='graph'].view")


#: Whether what has the focus is under the bar at the bottom, at least in part.
UNDER = """() => {
  const at = document.activeElement, bar = document.querySelector("footer");
  if (at === document.body || bar.contains(at)) return null;
  const here = at.getBoundingClientRect(), top = bar.getBoundingClientRect().top;
  return here.height < 60 && here.bottom > top ? at.outerHTML.slice(0, 80) : null;
}"""


@pytest.mark.parametrize("size", [(1280, 600), (390, 700)], ids=SIZES)
def test_what_has_the_focus_is_above_the_bar_at_the_bottom(
    browser: Any, whole: Dashboard, size: tuple[int, int]
) -> None:
    viewport = dict(zip(("width", "height"), size, strict=True))
    with page_of(browser, viewport=viewport) as page:
        page.goto(address(whole))
        drawn(page)
        hidden = []
        for _ in range(30):
            page.keyboard.press("Tab")
            hidden.append(page.evaluate(UNDER))
        assert [each for each in hidden if each] == []


def test_a_chosen_box_hands_the_focus_to_the_heading_of_its_page(
    browser: Any, whole: Dashboard
) -> None:
    with page_of(browser) as page:
        page.goto(address(whole))
        drawn(page)
        assert page.title() == titled("Overview", "words")
        visit(page, "graph")
        page.locator("svg a", has_text="count").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("[data-view='component']")
        assert page.evaluate("document.activeElement.textContent") == "count"
        assert page.title() == titled("count", "words")


def test_what_scrolls_and_nothing_else_is_a_stop_of_the_keyboard(
    browser: Any, whole: Dashboard
) -> None:
    with page_of(browser) as page:
        page.goto(address(whole))
        drawn(page)
        region = "document.querySelector('[aria-label=Components]')"
        until(page, f"() => !{region}.hasAttribute('tabindex')")
        page.set_viewport_size({"width": 390, "height": 844})
        until(page, f"() => {region}.getAttribute('tabindex') === '0'")


def test_a_component_that_is_none_is_said_to_be_none(browser: Any, whole: Dashboard) -> None:
    with page_of(browser) as page:
        page.goto(f"{address(whole)}#/component/%3Cb%3Enone%3C%2Fb%3E")
        drawn(page)
        assert page.locator("main h2").first.inner_text() == "<b>none</b>"
        assert "There is no component of this name" in page.locator("main").inner_text()


# --- runs that fail, are large, or have many visitors ---------------------------------------------


def test_every_view_says_why_a_run_failed(browser: Any) -> None:
    hub = Hub()
    telling = told(hub)
    telling.listen(RunFailed(f"{HOSTILE} is no number", "count", 1, "('a',)"))
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(address(made))
        until(page, "() => document.querySelector('#state').textContent === 'failed'")
        for view in VIEWS:
            visit(page, view)
            assert f"failed in count: {HOSTILE} is" in page.locator("#failure").inner_text()
        page.locator("#kind").select_option("failure")
        rows = page.locator("[aria-label='Log'] tbody tr")
        until(page, "() => document.querySelectorAll('[aria-label=Log] tbody tr').length === 1")
        assert "count, task 1" in rows.first.inner_text()
        shot(page, "failed-logs")
        page.goto(f"{address(made)}#/component/count")
        first = page.locator("[aria-label='Errors'] tbody tr").first
        assert "is no number" in first.inner_text()
        back_to(page, 4.0)
        page.wait_for_selector("#failure", state="hidden")


def large() -> tw.Topology:
    """Describe a topology that is wider than a page, with a name that is wider than a phone."""
    flow = tw.Flow("large")
    source = flow.source("source", tw.items(["a"]), fields={"word": str})
    for number in range(7):
        source.tally(f"count_{number}", key="word").sink(f"{LONG_NAME}_{number}", tw.collect([]))
    return flow.build()


LONG_NAME = "a_very_long_component_name_indeed_it_is"


def large_run(hub: Hub) -> None:
    """Tell of a run of it, of which one policy was asked."""
    topology = large()
    telling = Telling(hub, topology, "local", "ds2")
    for at in range(1, 4):
        telling.listen(Progress(snapshot(float(at), names=tuple(c.name for c in topology))))
    telling.listen(Decided("", "ds2", 1.0, {"count_0": (1, 1)}))


def test_a_wide_topology_has_the_whole_width_and_begins_in_the_middle(browser: Any) -> None:
    hub = Hub()
    large_run(hub)
    with Dashboard(hub) as made, page_of(browser) as page:
        page.goto(f"{address(made)}#/graph")
        page.wait_for_selector("svg a.box")
        shown = page.locator("[aria-label='Graph of components']").bounding_box()
        assert shown["width"] > 1100
        source = page.locator("svg a.box", has_text="source").bounding_box()
        assert shown["x"] < source["x"] < shown["x"] + shown["width"] - source["width"]
        assert 0.8 * 220 <= source["width"] < 200  # smaller, and still to be read
        shot(page, "large-graph")
        visit(page, "scaling")
        assert "Only ds2 was asked" in page.locator("main").inner_text()


def test_a_long_name_leaves_room_for_other_columns_on_a_phone(browser: Any) -> None:
    hub = Hub()
    large_run(hub)
    with (
        Dashboard(hub) as made,
        page_of(browser, viewport={"width": 390, "height": 844}) as page,
    ):
        page.goto(address(made))
        row = page.locator("[aria-label='Components'] tbody tr", has_text=LONG_NAME).first
        row.wait_for()
        cells = [cell.bounding_box() for cell in row.locator("td").all()[:3]]
        assert cells[0]["width"] < 200
        assert cells[2]["x"] + cells[2]["width"] < 390
        shot(page, "phone-long-names")


def test_many_tabs_do_not_keep_each_other_from_the_run(browser: Any) -> None:
    hub = Hub()
    telling = told(hub)
    with Dashboard(hub) as made, ExitStack() as stack:
        context = browser.new_context()
        stack.callback(context.close)
        context.add_init_script(SEEN)
        tabs = [context.new_page() for _ in range(8)]  # a browser has six connections to a host
        for tab in tabs:
            tab.set_default_timeout(LIMIT)
            tab.goto(address(made))
            drawn(tab)
            if tab is not tabs[-1]:
                tab.evaluate("see(false)")
        same(lambda: 1, lambda: len(hub._waiting))  # streams: only the tab that is seen has one
        telling.listen(Noticed("somebody sees this"))
        newest = str(hub.after(0)[-1].n)
        until(tabs[-1], "(n) => document.body.dataset.drawn === n", newest)
        tabs[0].evaluate("see(true)")
        until(tabs[0], "(n) => document.body.dataset.drawn === n", newest)


def test_a_visitor_for_whom_there_is_no_room_is_told_so_and_followed_up(
    browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub()
    telling = told(hub)
    monkeypatch.setattr(web, "_MOST_STREAMS", 0)
    with Dashboard(hub) as made, ExitStack() as stack:
        context = browser.new_context()  # which may say that a request has failed
        stack.callback(context.close)
        page = context.new_page()
        page.set_default_timeout(LIMIT)
        page.goto(address(made))
        state = "() => document.querySelector('#state').textContent"
        until(page, f"{state} === 'not connected: visitors: expected 0 at most'")
        telling.listen(Noticed("for all"))
        until(page, "(n) => document.body.dataset.drawn === n", str(hub.after(0)[-1].n))
        monkeypatch.setattr(web, "_MOST_STREAMS", 16)
        until(page, f"{state} === 'recording'")
