"""A real browser for tests of the page.

Nothing here judges how fast a machine is: the limit tells a page that will never be as expected
from one that is slow, so that the first fails with a message.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
#: Milliseconds after which what a test waits for is taken to be wrong.
LIMIT = 120_000
VIEWS = ["overview", "graph", "keys", "reconfigurations", "scaling", "order", "logs"]
#: Where screenshots go; none are taken without it.
SHOTS = os.environ.get("THALWEG_SCREENSHOTS")
#: Lets a test say whether somebody sees a tab; without a screen, browsers say so of all of them.
SEEN = """
let seen = true;
Object.defineProperty(document, "visibilityState", { get: () => (seen ? "visible" : "hidden") });
window.see = (now) => { seen = now; document.dispatchEvent(new Event("visibilitychange")); };
"""


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (not everybody has it)

    with sync_playwright() as started:
        # In a container there is no sandbox; the page is our own.
        made = started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=LIMIT
        )
        yield made
        made.close()


@contextmanager
def page_of(browser: Any, **options: Any) -> Iterator[Any]:
    """Open a page whose errors fail the test."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options)
    page = context.new_page()
    page.set_default_timeout(LIMIT)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    try:
        yield page
        assert wrong == []
    finally:
        context.close()


def until(page: Any, script: str, argument: Any = None) -> None:
    """Wait until the page says so; an address with a token leads to it by a page of one link."""
    page.wait_for_selector("#main", state="attached")
    page.wait_for_function(script, arg=argument)


def drawn(page: Any) -> None:
    """Wait until the page has shown some records."""
    until(page, "() => Number(document.body.dataset.drawn) > 10")


def visit(page: Any, view: str) -> None:
    """Choose a view as people do."""
    page.locator(f"nav a[data-view='{view}']").click()
    page.wait_for_selector(f"[data-view='{view}'].view")


def shot(page: Any, name: str) -> None:
    """Take a picture of the whole page, if somebody wants one."""
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


def same(told: Any, shown: Any) -> None:
    """Wait until two functions give the same; both say in the end what they have."""
    end = time.monotonic() + LIMIT / 1000
    while (one := told()) != (other := shown()) and time.monotonic() < end:
        pass
    assert one == other
