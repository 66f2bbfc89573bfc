"""Pictures of the page for the docs, from real runs in a real browser; see scripts/screenshots."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from running_page import running

TRENDING = ("examples/trending.py", "--set", "posts=50000000", "--set", "drift_every=1000000000")
#: Posts that come in a wave; each waits some milliseconds for a service, so that tasks matter.
WAVE = """
import time

import numpy as np

import thalweg as tw

REGIONS = np.random.default_rng(1).zipf(1.4, 100_000) % 12


def post(n):
    region = int(REGIONS[n % len(REGIONS)])
    return f"region {region}", f"#tag{5 * region + n % 5}"


def looked_up(region, hashtag):
    time.sleep(0.005)
    return region, hashtag


fields = {"region": str, "hashtag": str}
wave = tw.steps([(40, "20 s"), (130, "30 s"), (400, "40 s"), (130, "30 s"), (40, "60 s")])
flow = tw.Flow("wave")
stream = flow.source("posts", tw.rate(wave, post), fields=fields)
stream = stream.map(looked_up, name="look_up", fields=fields, degree=1)
stream = stream.tally("by_region", key="region", degree=2)
stream.tally("by_tag", key="hashtag", degree=2).sink("out", tw.call(lambda t: None))
"""


@dataclass(frozen=True)
class Run:
    """A run that is shown, until there is something to see."""

    words: tuple[str, ...]
    #: Seconds of the run.
    until: float
    #: Names of pictures, by view.
    views: dict[str, str]
    #: What else has to be there.
    wanted: str = "() => true"
    height: int = 768


def runs(wave: Path) -> Iterator[Run]:
    """Give what is shown."""
    names = ("overview", "graph", "keys", "reconfigurations")
    yield Run((*TRENDING, "--locality", "5 s"), 45, {name: name for name in names})
    words = (str(wave), "--scale", "thalweg", "--locality", "20 s")
    yield Run(words, 150, {"scaling": "scaling"}, height=1080)
    done = "() => document.querySelectorAll('[aria-label=Batches] tbody tr').length > 5"
    yield Run((*TRENDING, "--on", "spark"), 20, {"order": "batches"}, done)


def main(folder: Path) -> None:
    """Take them."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, chromium() as browser:
        wave = Path(made) / "wave.py"
        wave.write_text(WAVE)
        for run in runs(wave):
            _take(browser, run, folder)


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser."""
    with sync_playwright() as started:
        path = shutil.which("chromium")
        browser = started.chromium.launch(
            executable_path=path, args=["--no-sandbox"], timeout=120_000
        )
        yield browser
        browser.close()


def _take(browser: Any, run: Run, folder: Path) -> None:
    with running("run", *run.words, "--ui", "--quiet") as shown:
        page = browser.new_page(viewport={"width": 1366, "height": run.height})
        page.set_default_timeout(600_000)  # longer than that is never
        page.goto(shown.address)
        page.wait_for_function(
            "(end) => Number(document.querySelector('#slider')?.max) > 10 * end", arg=run.until
        )
        for view, name in run.views.items():
            page.locator(f"nav a[data-view='{view}']").click()
            page.wait_for_function(run.wanted)
            drawn = page.evaluate("document.body.dataset.drawn")
            page.wait_for_function("(drawn) => document.body.dataset.drawn !== drawn", arg=drawn)
            page.screenshot(path=folder / f"dashboard-{name}.png")
        page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
