"""The files of the page, read once: what is not among them is not served."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("static")
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """A file as it is served."""

    data: bytes
    kind: str


@cache
def assets(folder: Path = FOLDER) -> dict[str, Asset]:
    """Read all files below a folder that belong to the page, by their path.

    >>> assets()["index.html"].kind
    'text/html; charset=utf-8'
    """
    files = (path for path in sorted(folder.rglob("*")) if path.suffix in _KINDS)
    return {
        path.relative_to(folder).as_posix(): Asset(path.read_bytes(), _KINDS[path.suffix])
        for path in files
    }
