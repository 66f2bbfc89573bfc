"""Parts, runs and manifests for tests, made with few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.keys import encode_key
from thalweg.statelog import (
    SCHEMA,
    Location,
    Manifest,
    RunRef,
    StateSettings,
    VersionedState,
    write_run,
)

GONE = object()


def settings(now: float = 0.0, **others: Any) -> StateSettings:
    return StateSettings(component="count", now=now, **others)


def part(values: Mapping[Any, Any], now: float = 0.0) -> pa.RecordBatch:
    """A part that puts these values, and deletes the keys whose value is GONE."""
    there = {key: value for key, value in values.items() if value is not GONE}
    gone = [key for key, value in values.items() if value is GONE]
    before = VersionedState([], settings())
    before.put_many(dict.fromkeys(gone, 0))
    state = VersionedState([] if not gone else [before.delta()], settings(now))
    state.put_many(there)
    for key in gone:
        state.delete(key)
    delta = state.delta()
    assert delta is not None
    return delta


def forged(rows: list[tuple[int, Any, bytes | None]], time: int = 0) -> pa.RecordBatch:
    """A part with hashes of our choice, which must ascend."""
    hashes = [row[0] for row in rows]
    assert hashes == sorted(hashes)
    columns = [
        pa.array(np.array(hashes, dtype=np.uint64)),
        pa.array([encode_key(row[1]) for row in rows], pa.large_binary()),
        pa.array([row[2] for row in rows], pa.large_binary()),
        pa.array([time] * len(rows), pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def run(location: Location, version: int, values: Mapping[Any, Any]) -> RunRef:
    name = f"runs/{version:012}-0000-x.arrow"
    return write_run(location, name, {"count": part(values)}, (version, version))


def manifest(version: int, **others: Any) -> Manifest:
    given = {"epoch": 1, "clock": 1.5, "seed": 7, "watermark": None, "places": 1, "runs": [[]]}
    return Manifest(version=version, **given | others)


def ref(name: str, size: int = 100, version: int = 0) -> RunRef:
    return RunRef(name, size, "", {}, version, version)
