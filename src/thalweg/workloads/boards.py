"""Boards for the terminal: what examples print in the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_WIDTH, _LONGEST = 66, 32


def drawn(text: str, plain: str) -> str:
    """Give the text, or the plain one where standard output does not know its letters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return plain
    return text


def board(title: str, rows: Sequence[tuple[str, int]], width: int = 18) -> str:
    """Write a title and one bar per row; names take ``width`` letters.

    >>> print(board("Fruit", [("apples", 4), ("pears", 2)], width=6).lstrip().splitlines()[-1])
      pears            2  ████████████████
    """
    block = drawn("█", "#")
    most = max((count for _, count in rows), default=0) or 1
    lines = [
        f"  {name:<{width}} {count:>11,}  {block * round(_LONGEST * count / most)}".rstrip()
        for name, count in rows
    ]
    return "\n".join([headed(title), *lines])


def headed(title: str) -> str:
    """Write a title with a line below."""
    return f"\n{title}\n{drawn('─', '-') * _WIDTH}"


def curve(counts: Sequence[int]) -> str:
    """Draw numbers as one letter each, the greatest one as the highest.

    >>> curve([0, 1, 4, 8])
    ' ▁▄█'
    """
    steps = drawn(" ▁▂▃▄▅▆▇█", " .:-=+*%#")
    most = max(counts, default=0) or 1
    # What is there at all is seen.
    return "".join(steps[-(-count * (len(steps) - 1) // most)] for count in counts)
