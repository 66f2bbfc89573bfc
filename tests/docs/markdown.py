"""Reads Markdown as far as the tests need it: fenced blocks, commands, links, headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "bench").rglob("*.md")),
    ]
}

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\s*$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<text>.+)$")


@dataclass(frozen=True)
class Fenced:
    """A fenced block; ``line`` is that of its first line of content, from 1."""

    language: str
    line: int
    text: str


@dataclass(frozen=True)
class Command:
    """A command of a console block, with the output that the page shows (None for none)."""

    line: int
    text: str
    shown: list[str] | None


def fenced_blocks(text: str) -> list[Fenced]:
    """Find the fenced blocks of a page."""
    found: list[Fenced] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        at += 1
        if not fence:
            continue
        start, closing = at, f"{fence['indent']}```"
        while lines[at] != closing:  # an unclosed fence is an IndexError, which is a failed test
            at += 1
        indent = len(fence["indent"])
        content = "".join(line[indent:] + "\n" for line in lines[start:at])
        found.append(Fenced(fence["language"], start + 1, content))
        at += 1
    return found


def commands(block: Fenced) -> Iterator[Command]:
    """Find the commands of a console block: lines that begin with a dollar sign."""
    lines = block.text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        shown = lines[start + 1 : stop]
        yield Command(block.line + start, lines[start][2:], shown or None)


def prose(text: str) -> str:
    """Leave out the fenced blocks."""
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)


def links(text: str) -> list[str]:
    """Find the targets of links, outside of fenced blocks."""
    return [match["target"] for match in _LINK.finditer(prose(text))]


def anchors(text: str) -> set[str]:
    """Make the anchors of headings as GitHub does."""
    headings = (_HEADING.match(line) for line in prose(text).splitlines())
    return {slug(match["text"]) for match in headings if match}


def slug(heading: str) -> str:
    """Turn a heading into its anchor.

    >>> slug("Keys: `1`, `1.0` and `True`")
    'keys-1-10-and-true'
    """
    plain = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return plain.replace(" ", "-")


def matches(shown: list[str], got: list[str]) -> bool:
    """Compare output with what a page shows: ``...`` is any lines, or any part of a line.

    >>> matches(["a", "...", "took ... s"], ["a", "b", "c", "took 1.5 s"])
    True
    >>> matches(["a"], ["a", "b"])
    False
    """
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else _line_pattern(line) for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in got)) is not None


def _line_pattern(line: str) -> str:
    return ".*?".join(re.escape(part) for part in line.rstrip().split("...")) + r"\n"
