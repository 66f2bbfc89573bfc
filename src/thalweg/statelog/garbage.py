"""Names of objects, and which of them nobody needs any more.

>>> run_name(12, 3, "a7f0"), version_of("runs/000000000012-0003-a7f0.arrow")
('runs/000000000012-0003-a7f0.arrow', 12)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from thalweg.statelog.manifests import Manifest

#: Folder of the runs of a location.
RUNS = "runs"
_VERSION = re.compile(r"(?:.*/)?(\d{12})-")


def run_name(version: int, place: int, attempt: str) -> str:
    """Name the run that an attempt writes for a place; ``attempt`` makes it unique."""
    return f"{RUNS}/{version:012}-{place:04}-{attempt}.arrow"


def version_of(name: str) -> int | None:
    """Give the version for which an object was written, if its name says so."""
    match = _VERSION.match(name)
    return int(match[1]) if match else None


def needed(retained: Iterable[Manifest]) -> set[str]:
    """Give the names of all objects that these manifests name."""
    names: set[str] = set()
    for manifest in retained:
        runs = [ref for refs in manifest.runs for ref in refs]
        names.update(ref.name for ref in runs)
        names.update(ref.only.tables.name for ref in runs if ref.only)
        names.update(ref.name for ref in manifest.staged)
        own = (manifest.tables, manifest.arrangements)
        names.update(ref.name for ref in own if ref is not None)
    return names


def garbage(names: Iterable[str], retained: Collection[Manifest]) -> list[str]:
    """Say which of these objects may be deleted, sorted.

    Those may that no retained manifest names and that are of a committed version: what is newer
    may belong to the batch at hand. Without retained manifests nothing is garbage. To be asked
    before a run begins: a merged run has an old version and is named by no manifest at first.
    """
    if not retained:
        return []
    committed = max(manifest.version for manifest in retained)
    kept = needed(retained)
    return sorted(
        name
        for name in names
        if name not in kept and (version := version_of(name)) is not None and version <= committed
    )
