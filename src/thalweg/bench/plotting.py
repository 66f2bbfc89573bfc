"""Writing the pictures of a benchmark into a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from thalweg.errors import UsageError, explain


def write_pictures(folder: Path, pictures: Iterable[tuple[str, str]]) -> None:
    """Write names and pictures as SVG files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, picture in pictures:
            (folder / f"{name}.svg").write_text(picture, encoding="utf-8")
    except OSError as error:
        text = explain(f"--plots {str(folder)!r}", "", "a folder to write", str(error))
        raise UsageError(text) from error
