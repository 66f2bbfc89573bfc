"""What a run begins with: the last committed version, or none; hosts that can take part."""

from __future__ import annotations

import msgspec

from thalweg.runtimes.spark.marks import changes, marks_of
from thalweg.runtimes.spark.planning import Plan
from thalweg.statelog.manifests import Manifest, Manifests
from thalweg.statelog.runs import RunRef


def begin_with(manifests: Manifests, plan: Plan, seed: int) -> Manifest:
    """Find the version to go on from; raises when its topology is another one."""
    last = manifests.latest()
    marks = marks_of(plan.topology)
    if last is None:
        return Manifest(
            version=0,
            epoch=0,
            clock=0.0,
            seed=seed,
            watermark=None,
            places=plan.places,
            runs=[[] for _ in range(plan.places)],
            topology=marks,
        )
    changes(last.topology, marks)
    moved = last.places != plan.places or any(
        last.topology[name].degree != mark.degree
        for name, mark in marks.items()
        if name in last.topology
    )
    if not moved:
        return last
    shared = _shared(last.runs)
    return msgspec.structs.replace(last, places=plan.places, runs=[shared] * plan.places)


def _shared(runs: list[list[RunRef]]) -> list[RunRef]:
    """Give all runs to every place: each then reads its own keys; merging sorts them out."""
    by_name = {ref.name: ref for refs in runs for ref in refs}
    in_turn = sorted(by_name.values(), key=lambda ref: (ref.last, ref.first))
    return [msgspec.structs.replace(ref, shared=True) for ref in in_turn]
