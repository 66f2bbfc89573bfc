"""The pages of a server: all topologies, each of them, and what visitors can let them do."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from serverhost import COUNTING, Served, served, tuples_in, until
from serverpages import Pages, pages_of
from typer.testing import CliRunner

from browsing import LIMIT
from thalweg.cli.app import app
from thalweg.control.scaling.policies import NAMES
from thalweg.dashboard.streaming import OTHER
from thalweg.server.folders import Home

SHOTS = os.environ.get("THALWEG_SCREENSHOTS")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Pages]]:
    """Give a server with two topologies, and its pages."""
    with served(tmp_path_factory.mktemp("server")) as server:
        program = str(server.program("counting", COUNTING))
        for name in ("shop", "store"):
            server.done("submit", program, "--name", name)
        with pages_of(server.root) as pages:
            yield server, pages


def test_all_topologies_are_shown_with_their_figures(shop: tuple[Served, Pages]) -> None:
    _, pages = shop

    def flow(name: str) -> bool:
        found = pages.newest().get(name, {})
        return bool(found.get("tuples_in", 0) > 0 and found["recent"])

    until(lambda: flow("shop") and flow("store"))
    found = pages.newest()["shop"]
    assert (found["state"], found["errors"], found["deaths"]) == ("running", 0, 0)
    for name in ("latency", "recent"):
        assert set(found[name]) >= {"p50", "p95", "p99"}
    assert found["pending"] is not None
    assert "server.js" in pages.get("")


def test_figures_of_all_topologies_are_at_the_root_under_their_names(
    shop: tuple[Served, Pages],
) -> None:
    _, pages = shop
    until(lambda: {"shop", "store"} <= pages.newest().keys())
    until(lambda: all("tuples_in" in each for each in pages.newest().values()))
    text = pages.get("metrics")
    for name in ("shop", "store"):
        assert f'thalweg_tuples_in_total{{topology="{name}"}}' in text
    said = [line for line in text.splitlines() if line.startswith("#")]
    assert len(said) == len(set(said))
    found = pages.get("api/v1/topology/summary")["topologies"]
    assert {each["name"] for each in found} == {"shop", "store"}
    assert pages.get("api/v1/cluster/summary")["topologies"] == 2
    one = pages.get(f"api/v1/topology/{found[0]['encodedId']}")
    assert (one["id"], one["name"]) == (found[0]["id"], found[0]["name"])
    assert {each["boltId"] for each in one["bolts"]} >= {"count"}
    bolt = pages.get(f"api/v1/topology/{found[0]['encodedId']}/component/count")
    assert bolt["id"] == "count"
    assert pages.status("api/v1/topology/none-1-1") == 404


def test_each_topology_has_a_page_with_all_that_a_run_tells(shop: tuple[Served, Pages]) -> None:
    _, pages = shop
    one = "topologies/shop/"
    assert "main.js" in pages.get(one)
    until(lambda: "progress" in {each["kind"] for each in pages.get(f"{one}api/records")})
    records = pages.get(f"{one}api/records")
    assert [each["kind"] for each in records[:2]] == ["topology", "run_started"]
    assert set(pages.get(f"{one}api/topology")["picture"]["boxes"]) >= {"numbers", "count"}
    assert 'thalweg_tuples_in_total{topology="shop"}' in pages.get(f"{one}metrics")
    state = pages.get(f"{one}api/state")
    assert state["served"] == "shop"
    assert "count" in state["bolts"]
    assert state["policies"] == list(NAMES)


def test_figures_have_the_same_names_at_the_root_and_behind_a_topology(
    shop: tuple[Served, Pages],
) -> None:
    _, pages = shop
    path = "api/v1/topology/summary"
    for known in pages.get(path)["topologies"]:
        one = f"topologies/{known['name']}/"
        (found,) = pages.get(f"{one}{path}")["topologies"]
        assert (found["name"], found["id"]) == (known["name"], known["id"])
        assert pages.get(f"{one}api/v1/topology/{known['encodedId']}")["id"] == known["id"]
        text = pages.get(f"{one}metrics")
        assert set(re.findall(r'topology="(\w+)"', text)) == {known["name"]}


def test_there_are_no_other_pages(shop: tuple[Served, Pages]) -> None:
    _, pages = shop
    for name in ("none", "..", "%2e%2e", "..%2f..%2fshop", "shop%00", "token"):
        assert pages.status(f"topologies/{name}/") == 404, name


def test_pages_of_others_reach_no_topology(shop: tuple[Served, Pages]) -> None:
    _, pages = shop
    for path in ("topologies/shop/api/records", "topologies/shop/metrics", "api/records"):
        assert pages.status(path, Host="evil.example:80") == 421
        assert pages.status(path, Origin="http://evil.example") == 403
        assert pages.status(path, Sec_Fetch_Site="cross-site") == 403
    assert pages.status("topologies/shop/", Sec_Fetch_Site="cross-site") == 200  # a link to it


def test_visitors_act_through_the_server_and_only_with_the_token(
    shop: tuple[Served, Pages],
) -> None:
    server, pages = shop
    do = "topologies/store/api/actions/"
    assert pages.act(f"{do}pause", {}, token="x" * 43)[0] == 401
    assert server.client.view("store").record.active
    assert pages.act(f"{do}pause", {})[0] == 200
    assert server.until("store", lambda v: v.status and not v.status.active)
    assert pages.act(f"{do}resume", {})[0] == 200
    assert server.until("store", lambda v: v.status and v.status.active)
    assert pages.act(f"{do}rebalance", {"component": "count", "degree": 3})[0] == 200
    server.until("store", lambda v: v.status.snapshot.component("count").degree == 3)
    status, said = pages.act(f"{do}set-policy", {"policy": "ds3"})
    assert (status, all(name in said for name in NAMES)) == (400, True)
    assert pages.act(f"{do}set-policy", {"policy": "learning:/etc/passwd"})[0] == 400
    assert pages.act(f"{do}reroute", {})[0] == 404
    assert pages.act(f"{do}kill", {})[0] == 200
    server.until("store", lambda v: v.record.phase == "killed")
    until(lambda: "store" not in pages.newest())
    records = "topologies/store/api/records"
    until(lambda: pages.get(records)[-1]["kind"] == "run_finished")


def test_a_policy_is_set_by_a_command_and_stays_after_a_restart(tmp_path: Path) -> None:
    with served(tmp_path, "--delay", "0") as server, pages_of(server.root) as pages:
        server.done("submit", str(server.program("shop", COUNTING)))
        refused = server.say("set-policy", "shop", "ds3")
        assert refused.exit_code == 1
        assert "expected one of thalweg, static" in refused.output
        assert "did you mean 'ds2'?" in " ".join(refused.output.split())
        assert "ds2 decides" in server.done("set-policy", "shop", "ds2")
        led = "policy ds2 leads in place of static, as asked by thalweg server set-policy"
        assert led in server.done("logs", "shop")
        one = "topologies/shop/api/"
        until(lambda: led in {each.get("text") for each in pages.get(f"{one}records")})
        before = pages.get(f"{one}state")["run"]
        died = server.client.view("shop").pid
        assert died is not None
        os.kill(died, signal.SIGKILL)
        server.until("shop", lambda v: v.pid != died and v.status and v.status.policy == "ds2")
        # What is shown is the new process, and a stream of the old one ends.
        until(lambda: pages.get(f"{one}state")["run"] != before)
        assert pages.get(f"{one}stream?after=0&run={before}") == OTHER.decode()
        server.until("shop", tuples_in)
        until(lambda: len(pages.get(f"{one}records")) > 2)
        assert len(Home(server.root / "topologies/shop").recordings()) == 2


REFUSING = """
import thalweg as tw


def checked(n):
    if n % 100 == 0:
        raise ValueError(f"{n} is none of ours")
    return n


fields = {"n": int}
flow = tw.Flow("refusing")
stream = flow.source("numbers", tw.rate(tw.constant(2000), lambda n: n), fields=fields)
checking = stream.map(checked, name="check", fields=fields, on_error="skip")
checking.sink("out", tw.call(lambda t: None))
"""


def test_where_tuples_are_refused_the_last_of_them_is_shown(tmp_path: Path) -> None:
    with served(tmp_path) as server, pages_of(server.root) as pages:
        server.done("submit", str(server.program("shop", REFUSING)))
        server.until("shop", lambda v: v.status and v.status.refused)
        until(lambda: pages.newest().get("shop", {}).get("error"))
        found = pages.newest()["shop"]["error"]
        assert found.startswith("refused by 'check': ")
        assert "is none of ours" in found
        assert "last error: refused by 'check'" in server.done("show", "shop")
        assert "refused by 'check'" in server.done("list")


def test_recordings_of_the_last_two_processes_stay(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (tmp_path / "run-other.sqlite").touch()
    for number in range(1, 13):
        path = home.next_recording()
        assert path.name == f"run-{number}.sqlite"
        assert len(home.recordings()) <= 1
        for name in (path.name, f"{path.name}-wal"):
            (tmp_path / name).touch()
    assert [path.name for path in home.recordings()] == ["run-11.sqlite", "run-12.sqlite"]
    assert len(list(tmp_path.iterdir())) == 5


def test_what_to_show_has_to_be_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THALWEG_ROOT", raising=False)
    nothing = CliRunner().invoke(app, ["ui"])
    assert nothing.exit_code == 2
    assert "FILE.sqlite" in nothing.output
    nobody = CliRunner().invoke(app, ["ui", "--root", str(tmp_path)])
    assert nobody.exit_code == 1
    assert "thalweg server start --root" in nobody.output


# --- in a browser ---------------------------------------------------------------------------------


@contextmanager
def visitor() -> Iterator[Any]:
    """Open a browser whose errors fail the test."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium: scripts/setup installs it")
    wrong: list[str] = []
    with playwright.sync_playwright() as started:
        # In a container there is no sandbox; the page is our own.
        made = started.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"], timeout=LIMIT
        )
        page = made.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(LIMIT)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        yield page
        assert wrong == []
        made.close()


def shot(page: Any, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


def test_a_visitor_goes_from_all_topologies_to_one_and_sets_its_policy(
    shop: tuple[Served, Pages],
) -> None:
    server, pages = shop
    with visitor() as page:
        page.goto(pages.address)
        page.wait_for_function("() => document.querySelector('#state')?.textContent === 'running'")
        page.wait_for_selector("figure canvas")
        shot(page, "server")
        page.locator("tbody a", has_text="shop").click()
        page.wait_for_function("() => document.querySelector('#state')?.textContent === 'running'")
        assert page.locator("#name").inner_text() == "shop"
        assert page.locator("#runtime").inner_text() == "counting on local"
        page.locator("nav a[data-view='scaling']").click()
        page.locator("#policy").select_option("thalweg:economy")
        page.locator("button[data-action='set-policy']").click()
        assert "thalweg:economy" in page.locator("#dialog-title").inner_text()
        page.locator("#dialog-yes").click()
        decides = (
            "() => document.querySelector('#leading')?.textContent.startsWith('thalweg:economy')"
        )
        page.wait_for_function(decides)
        # The page reads what is recorded; the runner says so itself a moment later.
        server.until("shop", lambda v: v.status and v.status.policy == "thalweg:economy")
        decisions = page.locator("[aria-label='Decisions']").inner_text()
        assert "as asked by a visitor of the page" in decisions
        shot(page, "server-scaling")
        page.reload()
        page.wait_for_function(decides)
        assert page.url.endswith("/topologies/shop/#/scaling")
        page.locator("#all").click()
        page.wait_for_selector("[data-view='topologies']")


def test_the_page_of_one_that_dies_goes_on_with_the_process_that_is_started_again(
    shop: tuple[Served, Pages],
) -> None:
    server, pages = shop
    state = "topologies/shop/api/state"
    before, died = pages.get(state)["run"], server.client.view("shop").pid
    assert died is not None
    with visitor() as page:
        page.goto(f"{pages.plain}topologies/shop/#/graph")
        page.wait_for_function("(run) => document.body.dataset.run === run", arg=before)
        os.kill(died, signal.SIGKILL)
        page.wait_for_function("(run) => document.body.dataset.run !== run", arg=before)
        page.wait_for_function("() => document.querySelector('#state')?.textContent === 'running'")
        page.wait_for_selector("svg.graph a")
        assert page.url.endswith("/topologies/shop/#/graph")
