"""Which files may have a say in what is run: not those that strangers can put in the way."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Bounds:
    """Files that are trusted."""

    #: Users to whom they have to belong.
    owners: frozenset[int]
    #: Folders below which they have to be, after all links; None for anywhere.
    within: tuple[Path, ...] | None = None

    @classmethod
    def around(cls, file: Path, within: Iterable[Path] | None = None) -> Bounds:
        """Trust ourselves, who wrote the file, and the system; and only what is within folders."""
        written = {file.stat().st_uid} if file.exists() else set()
        folders = None if within is None else tuple(folder.resolve() for folder in within)
        return cls(frozenset({0, os.getuid(), *written}), folders)

    def hold(self, path: Path) -> bool:
        """Say whether a file or folder is trusted."""
        try:
            return path.stat().st_uid in self.owners and self.reach(path)
        except OSError:
            return False

    def reach(self, path: Path) -> bool:
        """Say whether a file is below one of the folders, whoever owns it."""
        found = path.resolve()
        return self.within is None or any(found.is_relative_to(each) for each in self.within)
