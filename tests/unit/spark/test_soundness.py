"""A version that a run falls back on must be whole: its tables too."""

from __future__ import annotations

from pathlib import Path

import msgspec

from thalweg.routing.table import RoutingTable
from thalweg.routing.transition import Transition
from thalweg.runtimes.spark.starting import _is_sound
from thalweg.statelog import Location, Manifest
from thalweg.statelog.tables import save_tables


def test_a_version_with_damaged_tables_is_not_sound(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    table = RoutingTable.even(2).with_keys({"eu": 1})
    ref = save_tables(location, Transition.between({"count": table}, {"count": table}), 3)
    plain = Manifest(version=3, epoch=1, clock=0.0, seed=0, watermark=None, places=2, runs=[[], []])
    tabled = msgspec.structs.replace(plain, tables=ref)
    assert _is_sound(location, plain)
    assert _is_sound(location, tabled)
    file = tmp_path / ref.name
    file.write_bytes(file.read_bytes()[:-1])
    assert not _is_sound(location, tabled)
    file.unlink()
    assert not _is_sound(location, tabled)
