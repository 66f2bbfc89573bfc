"""Where things are, and which files belong to the project."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "thalweg"


def project_files(folder: Path = ROOT) -> Iterator[Path]:
    """Go through all files but those that .gitignore names."""
    ignored = [*(ROOT / ".gitignore").read_text(encoding="utf-8").split(), ".git"]
    patterns = [pattern.rstrip("/") for pattern in ignored]
    for path in sorted(folder.iterdir()):
        if any(fnmatch(path.name, pattern) for pattern in patterns):
            continue
        if path.is_dir():
            yield from project_files(path)
        else:
            yield path
