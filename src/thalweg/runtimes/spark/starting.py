"""What a run begins with: the last committed version, or none; hosts that can take part."""

from __future__ import annotations

import platform
import re
import socket
import uuid
from collections.abc import Callable, Iterator
from functools import partial

import msgspec
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from thalweg.errors import StateError, ThalwegError, UsageError, explain
from thalweg.runtimes.marks import changes, marks_of
from thalweg.runtimes.spark.delivery import Replay
from thalweg.runtimes.spark.exchange import collect, descriptors, exhaust, host_of_failure, run_at
from thalweg.runtimes.spark.planning import Plan, check_movable
from thalweg.runtimes.spark.settings import SparkSettings
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import LOG, RUNTIME, ComponentMark, Manifest, Manifests
from thalweg.statelog.objects import CorruptRun
from thalweg.statelog.runs import Only, RunRef, Runs
from thalweg.statelog.tables import load_tables
from thalweg.version import __version__


def begin_with(
    manifests: Manifests, plan: Plan, settings: SparkSettings, notice: Callable[[str], None]
) -> Manifest:
    """Find the version to go on from; raises when its topology is another one."""
    last = manifests.latest()
    marks = marks_of(plan.topology)
    if last is None:
        return Manifest(
            version=0,
            epoch=0,
            clock=0.0,
            seed=settings.seed,
            watermark=None,
            places=plan.places,
            key_groups=settings.key_groups,
            runs=[[] for _ in range(plan.places)],
            topology=marks,
        )
    if RUNTIME in last.notes:
        expected, got = "one of the Spark runtime", f"one of {last.notes[RUNTIME]!r}"
        hint = "sources go on in another way there: give each runtime its own checkpoint"
        raise StateError(explain("checkpoint", "", expected, got, hint))
    if last.key_groups != settings.key_groups:
        raise StateError(
            explain("key_groups", "checkpoint", f"{last.key_groups}", f"{settings.key_groups}")
        )
    notice(f"going on from version {last.version}")
    for line in changes(last.topology, marks):
        notice(line)
    moved = last.places != plan.places or any(
        last.topology[name].degree != mark.degree
        for name, mark in marks.items()
        if name in last.topology
    )
    return spread(last, plan, notice) if moved else last


def spread(last: Manifest, plan: Plan, notice: Callable[[str], None]) -> Manifest:
    """Give the state to the places of another plan; raises when it cannot move.

    Nothing is copied: every place gets all runs, reads its own keys, and takes them out of the
    shared runs beside the batches that follow.
    """
    for component in plan.topology:
        check_movable(component)
    for name, mark in last.topology.items():
        _check_ranges(name, mark)
    notice(f"spreading state over {plan.places} places; there were {last.places}")
    shared = _shared(last)
    runs = [list(shared) for _ in range(plan.places)]
    epoch = last.epoch + 1
    return msgspec.structs.replace(last, places=plan.places, runs=runs, epoch=epoch)


def _check_ranges(name: str, mark: ComponentMark) -> None:
    """Refuse to move state by range, also that of a component that is gone for a while."""
    if " by range)" in mark.grouping:
        raise StateError(
            explain(
                f"component {name!r}",
                expected="as many places and tasks as before",
                got=f"others, and its state was kept with the grouping {mark.grouping}",
                hint="state moves by key only with fields(...) without bounds",
            )
        )


def parted(component: str, number: int, committed: int) -> StateError:
    """Make the error for offsets and state that do not belong together."""
    return StateError(
        explain(
            f"source {component!r}",
            expected=f"batch {committed + 1}, the next one for this state",
            got=f"batch {number} from the checkpoint",
            hint="checkpoint and state belong together: give both as they were, or begin anew",
        )
    )


def check_settings(context: SparkContext, notice: Callable[[str], None]) -> None:
    """Say what a session of the user should have been told."""
    name = "spark.stage.maxConsecutiveAttempts"
    if context.getConf().get(name) != "1":
        notice(
            f"this Spark session lacks {name}=1: when an executor is lost, Spark may run parts of "
            "a batch twice, and order and results may differ; set it when making the session"
        )


def _shared(last: Manifest) -> list[RunRef]:
    """Give all runs to every place: each then reads its own keys; merging sorts them out.

    A key that has moved may still be in a run of the place that it left.
    """
    by_name = {}
    for place, refs in enumerate(last.runs):
        only = None if last.tables is None else Only(place, last.tables)
        for ref in refs:
            known = ref if ref.shared else msgspec.structs.replace(ref, shared=True, only=only)
            by_name[ref.name] = known
    return sorted(by_name.values(), key=lambda ref: (ref.last, ref.first))


def fall_back(location: Location, error: CorruptRun) -> Manifest:
    """Go back to the newest version that can be read and replayed from the log; else raise."""
    manifests = Manifests(location)
    last = manifests.latest()
    for older in manifests.older(last.version) if last is not None else ():
        assert last is not None  # noqa: S101 (looked at above)
        others = {name: at for name, at in last.inputs.items() if name != LOG}
        replayable = others == {name: at for name, at in older.inputs.items() if name != LOG}
        if replayable and _is_sound(location, older):
            Replay.begin(location, last)
            manifests.go_back_to(older.version)
            return older
    raise error


def _is_sound(location: Location, manifest: Manifest) -> bool:
    runs = Runs()
    try:
        for ref in (ref for refs in manifest.runs for ref in refs):
            runs.open(location, ref)
        if manifest.tables is not None:
            load_tables(location, manifest.tables)
    except StateError:
        return False
    return True


# --- hosts -------------------------------------------------------------------------------------


class Greeting(msgspec.Struct, frozen=True, array_like=True):
    """What a worker says of itself."""

    host: str
    python: str
    version: str
    #: Whether it sees what the driver wrote to the state location.
    sees: bool


def greet(context: SparkContext, location: Location, places: int) -> None:
    """Make sure that every host has our package, our Python and the same state location."""
    name = f"probes/{uuid.uuid4().hex}"
    location.write(name, b"thalweg")
    try:
        rdd = run_at(descriptors(context, [], places), partial(_answer, location, name))
        found = [msgspec.msgpack.decode(data, type=Greeting) for data in collect(rdd)]
    except (Py4JError, PySparkException) as error:
        raise _no_answer(str(error), host_of_failure(context)) from error
    finally:
        location.delete(name)
    for greeting in found:
        _check(greeting, location)


def _answer(
    location: Location, name: str, _place: int, payloads: Iterator[bytes]
) -> Iterator[bytes]:
    exhaust(payloads)
    try:
        sees = location.exists(name)
    except ThalwegError:
        sees = False
    python = platform.python_version()
    yield msgspec.msgpack.encode(Greeting(socket.gethostname(), python, __version__, sees))


def _check(greeting: Greeting, location: Location) -> None:
    if not greeting.sees:
        raise StateError(
            explain(
                f"state location {location} on host {greeting.host!r}",
                expected="what the driver wrote there",
                got="nothing",
                hint="give a location that the driver and all hosts share",
            )
        )
    if greeting.version != __version__:
        host = f" on host {greeting.host!r}"
        raise _other_version(host, greeting.version)


def _other_version(host: str, got: str) -> UsageError:
    hint = "install the driver's version there, or submit with --pack"
    return UsageError(explain(f"thalweg{host}", "", f"version {__version__}", got, hint))


_WHERE = re.compile(r"\(TID \d+\) \((\S+) executor")
_MISSING = re.compile(r"No module named '([^']+)'")
_OTHER_CODE = re.compile(r"Can't get attribute '[^']+' on <module 'thalweg")
_OTHER_PYTHON = re.compile(r"Python in worker has different version: ([\d.]+)")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')
_PYTHON_HINT = "it is the one that PYSPARK_PYTHON names there; or submit with --archive or --pack"


def _no_answer(text: str, failed_on: str | None) -> ThalwegError:
    """Say why a host could not answer, of what Spark tells of its first job."""
    where = _WHERE.search(text)
    name = where[1] if where else failed_on
    host = f" on host {name!r}" if name else ""
    python, ours = f"Python of the workers{host}", platform.python_version()
    if found := _OTHER_PYTHON.search(text):
        expected = f"{ours.rpartition('.')[0]} as in the driver"
        return UsageError(explain(python, "", expected, found[1], _PYTHON_HINT))
    if found := _NO_PYTHON.search(text):
        return UsageError(explain(python, "", "a program", f"no {found[1]}", _PYTHON_HINT))
    found = _MISSING.search(text)
    if _OTHER_CODE.search(text) or (found and found[1].startswith("thalweg.")):
        return _other_version(host, "another one, whose code differs")
    if found:
        hint = "install thalweg[spark] in the Python that PYSPARK_PYTHON names, on every host"
        got = f"no module {found[1]!r}"
        return UsageError(explain(python, "", "thalweg and what it needs", got, hint))
    line = next((line for line in text.splitlines() if "Error" in line or "Exc" in line), text)
    return UsageError(explain(f"first job{host}", "", "an answer of every place", line[:300]))
