"""Links between files lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.markdown import PAGES, ROOT, anchors, links


def broken(page: Path) -> list[str]:
    """Find the relative links of a page whose file or heading does not exist."""
    wrong = []
    for target in links(page.read_text(encoding="utf-8")):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        if not path.exists() or (anchor and anchor not in _anchors_of(path)):
            wrong.append(target)
    return wrong


def _anchors_of(path: Path) -> set[str]:
    return anchors(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PAGES)
def test_links_of_the_page(name: str) -> None:
    assert broken(PAGES[name]) == []


@pytest.mark.parametrize("name", PAGES)
def test_links_stay_inside_the_project(name: str) -> None:
    page = PAGES[name]
    files = [t.partition("#")[0] for t in links(page.read_text(encoding="utf-8")) if "://" not in t]
    assert [f for f in files if not (page.parent / f).resolve().is_relative_to(ROOT)] == []


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title\n[x](page.md) [x](#a-title) [x](page.md#a-title) [x](https://example.org/no)\n"
        "[x](nowhere.md) [x](#no-title) [x](page.md#no-title)\n"
        "```text\n[x](not-a-link.md)\n```\n",
        encoding="utf-8",
    )
    assert broken(page) == ["nowhere.md", "#no-title", "page.md#no-title"]
