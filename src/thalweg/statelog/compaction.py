"""Compaction: neighbouring runs of a place are merged, so that there are never many.

Nothing happens until a place has more than ``max_runs`` runs. Then the newest ones are merged,
back to the oldest run that is not larger than all that is newer than it. A merge thus at least
doubles what it begins with, so each byte is rewritten about log(n) times over n versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa

from thalweg.errors import StateError, UsageError, explain
from thalweg.statelog.location import Location
from thalweg.statelog.parts import Owns, merge
from thalweg.statelog.runs import RunRef, Runs, write_run


class CompactionLimits(msgspec.Struct, frozen=True):
    """How many runs a place may have."""

    max_runs: int = 12

    def __post_init__(self) -> None:
        if self.max_runs < 1:
            raise UsageError(explain("max_runs", expected="at least 1", got=f"{self.max_runs}"))


class Merge(msgspec.Struct, frozen=True):
    """Neighbouring runs to merge, oldest first."""

    refs: tuple[RunRef, ...]
    #: Whether it begins with the oldest run of the place, so that deleted keys can be dropped.
    oldest: bool


class Trim(msgspec.Struct, frozen=True):
    """What a merge may leave out."""

    #: By component, the time in milliseconds before which rows have expired.
    expired_before: Mapping[str, int] = {}
    #: By component, which hashes belong to the place; a component that is missing keeps all.
    owns: Mapping[str, Owns] = {}


_LIMITS = CompactionLimits()
_NO_TRIM = Trim()


def plan(refs: Sequence[RunRef], limits: CompactionLimits = _LIMITS) -> Merge | None:
    """Say which runs to merge so that at most ``max_runs`` are left, or None.

    >>> refs = [RunRef(f"r{i}", 10, "", {}, i, i) for i in range(4)]
    >>> big = RunRef("big", 1000, "", {}, 0, 0)
    >>> [ref.name for ref in plan([big, *refs[1:]], CompactionLimits(max_runs=3)).refs]
    ['r1', 'r2', 'r3']
    >>> plan(refs, CompactionLimits(max_runs=4)) is None
    True
    """
    excess = len(refs) - limits.max_runs
    if excess <= 0:
        return None
    ratios = []  # of each run's size to the sizes of all newer ones
    newer = 0
    for ref in reversed(refs):
        ratios.append(ref.size / newer if newer else float("inf"))
        newer += ref.size
    ratios = ratios[::-1][: len(refs) - excess]
    limit = max(1.0, min(ratios))
    start = next(i for i, ratio in enumerate(ratios) if ratio <= limit)
    return Merge(tuple(refs[start:]), oldest=start == 0)


def plan_all(
    runs: Sequence[Sequence[RunRef]], limits: CompactionLimits = _LIMITS
) -> list[tuple[int, Merge]]:
    """Say for each place, where there is something to do, what to merge.

    While places share runs, each first takes its own rows out of them. Deleted keys must stay
    noted meanwhile: other places still have runs with their old values.
    """
    if any(ref.shared for refs in runs for ref in refs):
        return [
            (place, Merge(tuple(refs), oldest=False))
            for place, refs in enumerate(runs)
            if any(ref.shared for ref in refs)
        ]
    planned = [(place, plan(refs, limits)) for place, refs in enumerate(runs)]
    return [(place, merge_) for place, merge_ in planned if merge_ is not None]


def compact(
    location: Location, runs: Runs, merge_: Merge, name: str, trim: Trim = _NO_TRIM
) -> RunRef:
    """Write the merged run; the ones it replaces stay until no manifest names them."""
    opened = [runs.open(location, ref) for ref in merge_.refs]
    components = sorted({component for ref in merge_.refs for component in ref.keys})
    parts: dict[str, pa.RecordBatch] = {}
    for component in components:
        merged = merge(
            [part for run in opened if (part := run.part(component)) is not None],
            oldest=merge_.oldest,
            expired_before=trim.expired_before.get(component),
            keep=trim.owns.get(component),
        )
        if merged.num_rows:
            parts[component] = merged
    shared = any(ref.shared for ref in merge_.refs) and not trim.owns.keys() >= parts.keys()
    versions = merge_.refs[0].first, merge_.refs[-1].last
    return write_run(location, name, parts, versions, shared=shared)


def replaced(refs: Sequence[RunRef], merge_: Merge, new: RunRef) -> list[RunRef]:
    """Put the merged run in the place of those it was made of; all others stay as they are."""
    names = [ref.name for ref in refs]
    merged = [ref.name for ref in merge_.refs]
    start = names.index(merged[0]) if merged[0] in names else len(names)
    if names[start : start + len(merged)] != merged or (merge_.oldest and start):
        raise StateError(
            explain(
                "merged runs",
                expected=f"neighbours {merged} among the runs of the place",
                got=f"{names}",
                hint="they were replaced meanwhile: drop this merge and plan a new one",
            )
        )
    return [*refs[:start], new, *refs[start + len(merged) :]]
