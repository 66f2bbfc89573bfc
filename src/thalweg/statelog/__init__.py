"""Durable, versioned state: immutable runs, named by manifests, merged by compaction.

The state of a place at a version is a short list of *runs*, oldest first; each holds what a batch
(or several, merged) changed. Runs never change, and a manifest alone says which of them count.
"""

from thalweg.statelog.compaction import (
    CompactionLimits,
    Merge,
    Trim,
    compact,
    plan,
    plan_all,
    replaced,
)
from thalweg.statelog.garbage import garbage, needed, run_name, version_of
from thalweg.statelog.location import Location, MissingObject
from thalweg.statelog.manifests import ComponentMark, Manifest, Manifests, StagedRef
from thalweg.statelog.objects import CorruptRun
from thalweg.statelog.owners import Owners
from thalweg.statelog.parts import SCHEMA, Owns, merge
from thalweg.statelog.runs import Run, RunRef, Runs, write_run
from thalweg.statelog.versioned import StateSettings, VersionedState

__all__ = [
    "SCHEMA",
    "CompactionLimits",
    "ComponentMark",
    "CorruptRun",
    "Location",
    "Manifest",
    "Manifests",
    "Merge",
    "MissingObject",
    "Owners",
    "Owns",
    "Run",
    "RunRef",
    "Runs",
    "StagedRef",
    "StateSettings",
    "Trim",
    "VersionedState",
    "compact",
    "garbage",
    "merge",
    "needed",
    "plan",
    "plan_all",
    "replaced",
    "run_name",
    "version_of",
    "write_run",
]
