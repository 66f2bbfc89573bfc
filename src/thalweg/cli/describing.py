"""``thalweg describe``: which picture is wanted, and where it goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from thalweg import drawing
from thalweg.cli.output import writing
from thalweg.cli.showing import error_console, print_tree
from thalweg.errors import UsageError, explain
from thalweg.topology import Topology

DRAWINGS: dict[str, Callable[[Topology], str]] = {
    "tree": drawing.tree,
    "mermaid": drawing.mermaid,
    "svg": drawing.svg,
}
_BY_SUFFIX = {".svg": "svg", ".mmd": "mermaid", ".md": "mermaid"}
#: Pictures that cannot be drawn; a tree of text in such a file would help nobody.
_PICTURES = frozenset({".gif", ".jpeg", ".jpg", ".pdf", ".png", ".webp"})


def kind_for(output: Path | None) -> str:
    """Choose a kind of picture by the suffix of the file it goes to.

    >>> kind_for(Path("flow.svg")), kind_for(Path("flow.md")), kind_for(Path("flow.txt"))
    ('svg', 'mermaid', 'tree')
    """
    suffix = output.suffix.lower() if output else ""
    if suffix in _PICTURES:
        expected = ".svg for a picture, .mmd or .md for Mermaid, or .txt for the tree"
        raise UsageError(explain(f"output file {str(output)!r}", "", expected, suffix))
    return _BY_SUFFIX.get(suffix, "tree")


def show(topology: Topology, kind: str, output: Path | None) -> None:
    """Draw a topology, to a file or to standard output."""
    picture = DRAWINGS[kind](topology)
    if output is not None:
        _write(output, picture)
        said = f"wrote {output} ({kind})"
        error_console().print(said, markup=False, soft_wrap=True)
    elif kind == "tree":
        print_tree(picture)
    else:
        with writing():
            typer.echo(picture, nl=False)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        subject = f"output file {str(path)!r}"
        raise UsageError(explain(subject, expected="a file to write", got=str(error))) from error
