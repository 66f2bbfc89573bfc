"""Snapshots of a run whose keys move and whose degrees change; another run goes on from there."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from keyed_counting import WAYS, Counting, running

import thalweg as tw
from conformance.moving import Anywhere, Restless
from thalweg.runtimes.local.runtime import Local

KEYS = [i * i % 37 for i in range(3000)]


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize(
    ("way", "isolation"),
    [*((way, "thread") for way in WAYS.values()), ({}, "process")],
    ids=[*WAYS, "process"],
)
def test_a_stopped_run_goes_on_with_all_that_was_counted(
    tmp_path: Path, way: dict[str, Any], isolation: str
) -> None:
    seen: list[Any] = []

    def run(seed: int, rows: int) -> Any:
        stop = threading.Event()

        def look(t: Any) -> None:
            seen.append((t.key, t.count))
            if len(seen) == rows:
                stop.set()

        builder = tw.TopologyBuilder("kept")
        builder.add_spout("keys", tw.items(KEYS), fields={"key": int})
        bolt = builder.add_bolt("count", Counting(), degree=2, isolation=isolation)
        bolt.fields("keys", "key")
        builder.add_bolt("out", tw.call(look), order="total").global_("count")
        topology = builder.build()
        small: dict[str, Any] = {"block_rows": 20, "most_block_rows": 20, "window": 8, "workers": 2}
        local = Local(
            checkpoint=tmp_path / "checkpoint",
            snapshot_every=0.01,
            rerouter=Anywhere({"keys": KEYS}, seed, budget=300),
            **(small | way),
        )
        times = 2 if isolation == "process" else 20
        return topology.run(on=local, stop=stop, steering=Restless(topology, seed, times))

    for number, rows in enumerate((500, 1500, 10**9)):
        result = run(number, rows)
    assert result.table("counts") == Counter(KEYS)
    assert seen == running(KEYS)
