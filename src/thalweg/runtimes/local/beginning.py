"""What a run with a checkpoint begins with: the last snapshot, if it is one of this topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.components import Kind
from thalweg.errors import StateError, explain
from thalweg.events import Noticed
from thalweg.execution import Run
from thalweg.groupings import Fields
from thalweg.runtimes.local.arranging import Arranging, asked_by
from thalweg.runtimes.local.planning import resolved
from thalweg.runtimes.local.rescaling import fixed
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.marks import changes, marks_of
from thalweg.runtimes.outside import forgotten
from thalweg.runtimes.segments import Entry, SegmentLog
from thalweg.statelog.arrangements import Arrangement, Asked, load_arrangements
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import LOG, RUNTIME, ComponentMark, Manifest, Manifests
from thalweg.topology import Component, Topology

#: What manifests of this runtime say of themselves.
LOCAL = "local"
#: Folder of a checkpoint that holds the state, as on Spark.
STATE = "state"


@dataclass(frozen=True)
class Begun:
    """What an earlier run has left, or a first one begins with."""

    location: Location
    manifest: Manifest
    log: SegmentLog
    #: Entries of the log that no snapshot holds.
    entries: list[Entry]
    #: Degrees and tables that the snapshot has, and those that the run begins with.
    arranged: Mapping[str, Arrangement]
    arranging: Arranging


def state_at(settings: Settings) -> Location:
    """Say where snapshots are."""
    return Location.of(settings.checkpoint or "").child(STATE)


def begin(settings: Settings, topology: Topology, run: Run) -> Begun:
    """Find the snapshot to go on from; raises when it is of another topology."""
    location = state_at(settings)
    location.probe()
    topology = resolved(settings, topology)
    for text in forgotten(topology):
        run.listen(Noticed(text))
    last = Manifests(location).latest()
    if last is None:
        last = _first(settings, topology)
    else:
        _check(location, last, topology, run)
    log = SegmentLog(location)
    entries = log.after(last.inputs.get(LOG, 0))
    arranged, asked = load_arrangements(location, last.arrangements), asked_by(settings, topology)
    kept = _kept(arranged, asked, topology, run)
    arranging = Arranging(asked, kept, last.epoch)
    return Begun(location, last, log, entries, arranged, arranging)


def _kept(
    arranged: Mapping[str, Arrangement], asked: Mapping[str, Asked], topology: Topology, run: Run
) -> dict[str, Arrangement]:
    """Choose what to begin with; where something else is asked for than before, that counts."""
    kept = {}
    for component in topology:
        found = arranged.get(component.name)
        if found is None:
            continue
        if found.asked == asked.get(component.name) and not fixed(component):
            kept[component.name] = found
            text = f"{component.name!r} begins with degree {found.degree}, as it had come to"
        else:
            text = f"{component.name!r} begins as it is asked for; it had come to {found.degree}"
        run.listen(Noticed(text))
    return kept


def _first(settings: Settings, topology: Topology) -> Manifest:
    return Manifest(
        version=0,
        epoch=0,
        clock=settings.clock.now(),
        seed=settings.seed,
        watermark=None,
        places=1,
        key_groups=settings.key_groups,
        runs=[[]],
        topology=marks_of(topology),
        notes={RUNTIME: LOCAL},
    )


def _check(location: Location, last: Manifest, topology: Topology, run: Run) -> None:
    """Refuse a snapshot that this topology cannot go on from; say what has changed."""
    if last.notes.get(RUNTIME) != LOCAL:
        hint = "sources go on in another way there: give each runtime its own checkpoint"
        expected, got = "one of the local runtime", "one of the Spark runtime"
        raise StateError(explain(f"checkpoint {location}", "", expected, got, hint))
    run.listen(Noticed(f"going on from version {last.version}"))
    for line in changes(last.topology, marks_of(topology)):
        run.listen(Noticed(line))
    for component in topology:
        if component.name in last.topology:
            _check_degree(component, last.topology[component.name])


def moves_by_hash(component: Component) -> bool:
    """Say whether the hash of a key tells its owner, so that the number of tasks may change."""
    groupings = [input_.grouping for input_ in component.inputs]
    return all(isinstance(grouping, Fields) and not grouping.bounds for grouping in groupings)


def state_name(component: Component, task: int) -> str:
    """Name the state of a task; tasks share a name where the key alone tells whose a row is."""
    shared = component.kind is Kind.GLOBAL or moves_by_hash(component)
    return component.name if shared else f"{component.name}#{task}"


def _check_degree(component: Component, before: ComponentMark) -> None:
    """Refuse another number of tasks where nothing tells what belongs to which of them."""
    stateless = component.kind is Kind.STATELESS and not component.is_spout
    by_key = not component.is_spout and moves_by_hash(component)
    if stateless or by_key or component.degree == before.degree:
        return
    raise StateError(
        explain(
            f"component {component.name!r}",
            expected=f"{before.degree} tasks, as in the checkpoint",
            got=f"{component.degree}",
            hint="what they have cannot be spread anew; only keys of fields(...) can",
        )
    )
