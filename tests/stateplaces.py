"""Says of committed state whether every key is where the tables of its version say."""

from __future__ import annotations

from pathlib import Path

from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifest, Manifests
from thalweg.statelog.parts import hashes_of, merge
from thalweg.statelog.reading import Version


def check_owners(state: Path) -> Manifest:
    """Every key has its state at the place that the tables say, and nowhere else."""
    location = Location.of(state)
    manifest = Manifests(location).latest()
    assert manifest is not None
    version = Version(location, manifest)
    for name in (name for names in version.components().values() for name in names):
        for place, refs in enumerate(manifest.runs):
            if not any(ref.shared for ref in refs):
                held = merge(version._parts(name, refs), oldest=True)
                assert version.owners.at_place(name, place)(hashes_of(held)).all()
    return manifest
