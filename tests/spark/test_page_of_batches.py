"""The page of a real run on Spark, in a real browser: it says of batches what metrics say."""

from __future__ import annotations

import re
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_streams import _callbacks, _no_calls_are_left  # noqa: F401 (fixtures for every stream)

import thalweg as tw
from browsing import CHROMIUM, VIEWS, chromium, page_of, shot, until, visit
from sparksession import spark_session
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.serving import Dashboard
from thalweg.dashboard.telling import Telling
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import source

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
if CHROMIUM is None:
    pytest.skip("no Chromium: scripts/setup installs it", allow_module_level=True)

ROWS = [(f"c{n % 5}", f"i{n % 7}") for n in range(600)]


def ran(folder: Path) -> Hub:
    """Run a small flow on Spark, in some batches; gives what was told of it."""
    flow = tw.Flow("shop")
    sales = flow.source("sales", source(ROWS), fields={"customer": str, "item": str})
    sales.tally("by_customer", key="customer").tally("by_item", key="item")
    hub, topology = Hub(), flow.build()
    pump = PumpSettings(rows=200, block_rows=200)
    learning = tw.Locality(every=None, sampling=1.0, cost=1.0)
    given: dict[str, Any] = {"places": 2, "pump": pump, "shorten": False, "locality": learning}
    with Telling(hub, topology, "spark") as telling:
        topology.run(
            on=tw.Spark(spark_session(), state=str(folder), **given), listen=telling.listen
        )
    return hub


def summed(text: str) -> dict[str, float]:
    """Add up over components what Prometheus is told."""
    found: Counter[str] = Counter()
    for name, value in re.findall(r"^thalweg_(\w+)\{[^}]*\} (\S+)$", text, re.MULTILINE):
        found[name] += float(value)
    return found


def test_the_page_of_a_run_has_its_batches_and_the_figures_of_its_metrics(tmp_path: Path) -> None:
    hub = ran(tmp_path)
    batches, last = hub.recent(("batch_done",), 1000), hub.last("run_finished")
    assert last is not None
    with Dashboard(hub) as dashboard, chromium() as browser, page_of(browser) as page:
        plain = dashboard.address.partition("?")[0]
        with urllib.request.urlopen(f"{plain}metrics") as answer:  # noqa: S310 (our own server)
            told = summed(answer.read().decode())
        page.goto(plain)
        # Records come in pieces, and each piece is drawn.
        until(page, "(last) => Number(document.body.dataset.drawn) >= last", last["n"])
        for view in VIEWS:
            visit(page, view)
            shot(page, f"real-spark-{view}")

        visit(page, "order")
        names = {
            "batches": "batches_total",
            "shuffled": "component_shuffled_total",
            "local": "component_local_total",
            "state_keys": "component_state_keys",
        }
        tile = "[data-figure='{}']"
        shown = {n: page.locator(tile.format(n)).get_attribute("data-value") for n in names}
        assert shown == {name: f"{told[of]:.0f}" for name, of in names.items()}
        assert told["batches_total"] == len(batches) > 0
        assert told["component_state_keys"] >= 5 + 7  # once per run that holds a key
        lines = page.locator("[aria-label='Batches'] tbody tr").all_inner_texts()
        rows = [line.replace(",", "").split("\t") for line in lines]
        assert [row[1] for row in rows] == [str(each["version"]) for each in batches[::-1]]
        assert sum(int(row[9]) for row in rows) == told["component_shuffled_total"]
        assert sum(int(row[3]) for row in rows) == told["tuples_in_total"] == len(ROWS)
        assert all(
            " s" in cell or " ms" in cell or " µs" in cell for row in rows for cell in row[4:8]
        )

        visit(page, "graph")
        boxes = page.locator("svg a.box").all_text_contents()
        assert len(boxes) == 3
        assert not any("back-pressured" in text for text in boxes)  # nothing waits for room here
        assert "nothing is back-pressured" in page.locator("main").inner_text()
