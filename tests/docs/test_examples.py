"""Every Python block of README and docs runs and prints what the page shows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from docs.markdown import PAGES, fenced_blocks
from docs.running import Wrong, run_page
from sparksession import spark_session
from thalweg.runtimes.spark import running


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """A module for the examples of a page, which run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    made = ModuleType("page")
    # As for a file of the user, so that Spark's workers are sent its code.
    made.__file__ = str(tmp_path / "page.py")
    monkeypatch.setitem(sys.modules, "page", made)
    return made


@pytest.fixture
def _one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all runs on Spark use the session of the test run."""

    @contextmanager
    def session(*_arguments: Any) -> Iterator[Any]:
        yield spark_session()

    monkeypatch.setattr(running, "session_for", session)


def pages(on_spark: bool) -> list[str]:
    """Name the pages that run something on Spark, or the others."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in PAGES.items()}
    return [name for name, text in texts.items() if _runs_on_spark(text) is on_spark]


def _runs_on_spark(text: str) -> bool:
    return any("on=tw.Spark(" in b.text for b in fenced_blocks(text) if b.language == "python")


@pytest.mark.parametrize("name", pages(on_spark=False))
def test_examples_of_the_page(name: str, module: ModuleType) -> None:
    run_page(name, PAGES[name].read_text(encoding="utf-8"), module)


@pytest.mark.spark
@pytest.mark.usefixtures("_one_session")
@pytest.mark.parametrize("name", pages(on_spark=True))
def test_examples_of_the_page_on_spark(name: str, module: ModuleType) -> None:
    run_page(name, PAGES[name].read_text(encoding="utf-8"), module)


# --- the check can fail ---------------------------------------------------------------------------

PRINTS = "```python\nprint(1 + 1)\n```\n"


@pytest.mark.parametrize(
    "page",
    [
        PRINTS + "```text\n3\n```\n",
        PRINTS,
        PRINTS + "```python\n```\n```text\n2\n```\n",
        "```python\n1 / 0\n```\n",
        "```python\n>>> 1 + 1\n3\n```\n",
        "```python\nx = 1\n```\n```python\n>>> x\n2\n```\n",
        "```python\nprint(y)\n```\n```text\n1\n```\n```python\ny = 1\n```\n",
        "  ```python\n  1 / 0\n  ```\n",
        "```python\nx = 1\n",
    ],
)
def test_a_page_that_is_wrong_fails(page: str, module: ModuleType) -> None:
    with pytest.raises((Wrong, ZeroDivisionError, NameError, IndexError)):
        run_page("page.md", page, module)


def test_blocks_share_a_namespace_in_order(module: ModuleType) -> None:
    page = (
        "```python\nx = 1\n```\nand\n```python\n>>> y = x + 1\n>>> y\n2\n```\n"
        "```text\nnot output of doctests\n```\n```python\nprint(y)\n```\nso:\n\n```text\n2\n```\n"
    )
    assert run_page("page.md", page, module) == 3


def test_errors_name_the_line_of_the_page(module: ModuleType) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_page("page.md", "# Title\n\n```python\nx = 1\n1 / 0\n```\n", module)
    assert caught.traceback[-1].frame.code.raw.co_filename == "page.md"
    assert caught.traceback[-1].lineno + 1 == 5
