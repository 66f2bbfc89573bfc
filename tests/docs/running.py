"""Runs the Python blocks of a page, one after the other in one namespace."""

from __future__ import annotations

import contextlib
import doctest
import io
from types import ModuleType

from docs.markdown import Fenced, fenced_blocks


class Wrong(AssertionError):
    """An example that does not do what the page says."""


def run_page(name: str, text: str, module: ModuleType) -> int:
    """Run all Python blocks of a page; gives how many there are.

    What a block prints must stand in a ``text`` block right behind it. Blocks with ``>>>`` are
    doctests.
    """
    blocks = fenced_blocks(text)
    count = 0
    for number, block in enumerate(blocks, 1):
        if block.language != "python":
            continue
        count += 1
        following = blocks[number] if number < len(blocks) else None
        if block.text.lstrip().startswith(">>>"):
            _run_doctest(name, block, module)
        else:
            shown = following.text if following and following.language == "text" else ""
            _run_block(name, block, shown, module)
    return count


def _run_block(name: str, block: Fenced, shown: str, module: ModuleType) -> None:
    # Empty lines in front, so that errors name the line of the page.
    code = compile("\n" * (block.line - 1) + block.text, name, "exec", dont_inherit=True)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, vars(module))  # noqa: S102 (that is what this is for)
    if _plain(printed.getvalue()) != _plain(shown):
        text = f"{name}:{block.line} prints\n{printed.getvalue()}\nand the page shows\n{shown}"
        raise Wrong(text)


def _plain(text: str) -> list[str]:
    """Leave out spaces at the ends of lines, which nobody sees on a page."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


def _run_doctest(name: str, block: Fenced, module: ModuleType) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, vars(module), name, name, block.line - 1)
    # The parser copies the namespace; the next block needs what this one defines.
    test.globs = vars(module)
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    told = io.StringIO()
    if runner.run(test, out=told.write, clear_globs=False).failed:
        raise Wrong(told.getvalue())
