"""From what a Storm topology says to a topology of ours."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from thalweg import groupings
from thalweg.builder import TopologyBuilder
from thalweg.errors import TopologyError, UsageError, explain
from thalweg.multilang import ShellBolt, ShellSpout
from thalweg.multilang.hosted import any_fields
from thalweg.multilang.wire import make_wire
from thalweg.storm.hosted_bolts import HostedBolt
from thalweg.storm.hosted_spouts import HostedSpout
from thalweg.storm.hosting import gathers, is_own
from thalweg.storm.plans import JAVA, SERIALIZER, Part, Plan, Reading, needs_jvm, plan_of
from thalweg.storm.settings import check, child_settings, settings_of
from thalweg.storm.streams import DEFAULT
from thalweg.storm_config.config import StormConfig
from thalweg.topology import Topology

#: The program that runs a Python class in a process of its own.
_LIGHT = Path(__file__).with_name("light.py")
Isolation = Literal["auto", "process"]
ISOLATIONS: tuple[Isolation, ...] = ("auto", "process")

_GROUPINGS: dict[str, Any] = {
    "SHUFFLE": groupings.Shuffle,
    "LOCAL_OR_SHUFFLE": groupings.LocalOrShuffle,
    "ALL": groupings.All,
    "GLOBAL": groupings.Global,
    "DIRECT": groupings.Direct,
    "NONE": groupings.NoGrouping,
}


@dataclass(frozen=True)
class Hosting:
    """How components are run."""

    #: How programs, and Python classes in processes of their own, are spoken with; None for what
    #: the configuration says, or else JSON.
    serializer: str | None = None
    #: "auto": Python classes inside the run, where that is safe; "process": never.
    isolation: Isolation = "auto"
    #: Degrees by component, which count more than what the topology says.
    degrees: Mapping[str, int] = field(default_factory=dict)
    #: Which of a component's degrees, where it has several.
    environment: str | None = None
    #: Whether somebody named it: degrees need not know the only one of a project.
    named: bool = True
    #: Folder in which programs run.
    folder: str | None = None
    #: Configuration that counts more than that of the topology, and less than a component's own.
    config: Mapping[str, Any] = field(default_factory=dict)


def topology_of(topology: Any, name: str | None = None, hosting: Hosting | None = None) -> Topology:
    """Make a topology of a class of streamparse's, or of ours."""
    return build(plan_of(topology, name or topology.__name__), hosting)


def build(plan: Plan, hosting: Hosting | None = None) -> Topology:
    """Make a topology of what was read."""
    hosting = hosting or Hosting()
    _check(plan, hosting)
    builder = TopologyBuilder(plan.name)
    for part in (_complete(part, plan, hosting) for part in plan.parts):
        body, told = body_of(part, hosting), settings_of(part)
        degree = min(_degree(part, hosting), told.max_task_parallelism or sys.maxsize)
        if part.kind == "spout":
            pending = told.max_spout_pending
            builder.add_spout(part.name, body, degree=degree, max_pending=pending)
            continue
        reads = builder.add_bolt(part.name, body, tick=_tick(body, told.tick), degree=degree)
        for reading in part.reads:
            reads.grouping(reading.component, _grouping(part, reading), reading.stream)
    return builder.build()


def _complete(part: Part, plan: Plan, hosting: Hosting) -> Part:
    """Give a component what the whole topology says about it."""
    chosen = {} if hosting.serializer is None else {SERIALIZER: hosting.serializer}
    config = {**plan.config, **hosting.config, **chosen, **part.config}
    return replace(part, config=config, direct=part.direct | _direct_streams(plan, part))


def body_of(part: Part, hosting: Hosting) -> Any:
    """Make the body of a component: inside the run, or in a child process."""
    streams = {name: any_fields(fields) for name, fields in part.outputs.items()}
    told: dict[str, Any]
    said = settings_of(part)
    told = {"outputs": streams.pop(DEFAULT, ()), "streams": streams, "direct_streams": part.direct}
    if part.cls:
        cls = load_class(part.cls, part.name)
        # Variables of its own need a process of its own.
        apart = part.env or said.isolation == "process"
        if hosting.isolation == "auto" and not apart and safe(cls):
            hosted = HostedSpout if part.kind == "spout" else HostedBolt
            return hosted(cls, **told, config=part.config)
    folder = hosting.folder if part.moves else None
    shell = {"config": part.config, "cwd": folder, **child_settings(part)}
    command = part.command
    if part.cls:  # it speaks as it is told here, whatever anybody says later
        shell["serializer"] = shell.get("serializer") or hosting.serializer or "json"
        modules = [shell["env"].get("PYTHONPATH"), *sys.path]
        shell["env"]["PYTHONPATH"] = os.pathsep.join(filter(None, modules))
        command = _python(part.cls, shell["serializer"])
    if part.kind == "spout":
        return ShellSpout(command, **told, **shell)
    stateless = said.stateless
    if stateless is None:
        stateless = bool(part.cls and getattr(cls, "stateless", False))
    made = ShellBolt(command, **told, **shell, stateless=stateless)
    made.as_in_storm, made.remedy = True, HostedBolt.remedy
    made.gathers = bool(part.cls) and not stateless and gathers(cls)
    return made


def safe(cls: type) -> bool:
    """Say whether a class can run beside others: not if it needs signals, or has its own loop."""
    timed = hasattr(cls, "secs_between_batches")
    if timed and any(base.__module__.startswith("pystorm") for base in cls.__mro__):
        return False  # a signal handler, for which it needs the main thread
    return is_own(cls, "_run") and is_own(cls, "run")


def load_class(path: str, name: str) -> type:
    """Import the class of a component."""
    module, _, cls = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), cls)
    except (ImportError, AttributeError, ValueError) as error:
        if path.startswith(JAVA):
            raise needs_jvm(name, path) from error
        text = explain(f"component {name!r}", expected=f"a class {path}", got=str(error))
        raise TopologyError(text) from error
    if not isinstance(found, type):
        text = explain(f"component {name!r}", expected=f"a class {path}", got=repr(found))
        raise TopologyError(text)
    return found


def _python(cls: str, serializer: str) -> tuple[str, ...]:
    # Without -P its own folder would come first where modules are looked for.
    return (sys.executable, "-P", str(_LIGHT), "-s", serializer, cls)


def _check(plan: Plan, hosting: Hosting) -> None:
    if hosting.serializer is not None:
        make_wire(hosting.serializer)  # says what is wrong with it
    StormConfig.of({**plan.config, **hosting.config}, f"topology {plan.name!r}")
    for part in plan.parts:
        check(part)
    names = [part.name for part in plan.parts]
    for name in hosting.degrees:
        if name not in names:
            raise UsageError(explain(f"degree of {name!r}", "", f"one of {names}"))


def _degree(part: Part, hosting: Hosting) -> int:
    chosen = hosting.degrees.get(part.name)
    if chosen is not None:
        return chosen
    return degree_in(hosting.environment, part.par, part.name, hosting.named)


def degree_in(environment: str | None, par: Any, name: str, named: bool = True) -> int:
    """Give the degree of a component, where it may depend on the environment.

    One that nobody ``named`` counts where the degrees know it.
    """
    if not isinstance(par, Mapping):
        return int(par)
    if environment in par:
        return int(par[environment])
    environment = environment if named else None
    if environment is None and len(set(par.values())) == 1:
        return int(next(iter(par.values())))
    raise UsageError(
        explain(
            f"degree of component {name!r}",
            expected=f"an environment, one of {list(par)}",
            got=repr(environment),
            hint="say --environment NAME, or --par COMPONENT=DEGREE",
        )
    )


def _tick(body: Any, every: float | None) -> float | None:
    """Seconds between ticks; a bolt that gathers by time is asked that often."""
    if isinstance(body, HostedBolt) and hasattr(body.cls, "secs_between_batches"):
        return float(body.cls.secs_between_batches)
    return every


def _direct_streams(plan: Plan, part: Part) -> frozenset[str]:
    """Find the streams whose readers want to be chosen: Flux does not mark them."""
    readings = (reading for other in plan.parts for reading in other.reads)
    return frozenset(r.stream for r in readings if r.component == part.name and r.kind == "DIRECT")


def _grouping(part: Part, reading: Reading) -> groupings.Grouping:
    if reading.kind in _GROUPINGS:
        made: groupings.Grouping = _GROUPINGS[reading.kind]()
        return made
    if reading.kind == "FIELDS":
        return groupings.Fields(reading.fields)
    if reading.kind == "PARTIAL_KEY":
        return groupings.PartialKey(reading.fields)
    if reading.custom is not None:
        path, arguments = reading.custom
        return groupings.Custom(load_class(path, part.name)(*arguments))
    raise needs_jvm(part.name, f"a grouping {reading.kind}")
