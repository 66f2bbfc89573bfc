"""What entries of a Flux file may say: slips are refused, and what does nothing here is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from thalweg.errors import TopologyError, explain, meant, shorten
from thalweg.storm_config.keys import MEANINGLESS

_OBJECT = (
    "className", "constructorArgs", "factory", "factoryArgs", "properties", "configMethods",
)  # fmt: skip
_RESOURCES = "topology.component.resources"
#: Keys of spouts and bolts that change nothing here, and why.
_IDLE = {
    "numTasks": MEANINGLESS["topology.tasks"],
    "onHeapMemoryLoad": MEANINGLESS[f"{_RESOURCES}.onheap.memory.mb"],
    "offHeapMemoryLoad": MEANINGLESS[f"{_RESOURCES}.offheap.memory.mb"],
    "cpuLoad": MEANINGLESS["topology.component.cpu.pcore.percent"],
}
TOPOLOGY = ("name", "config", "components", "spouts", "bolts", "streams", "includes")
COMPONENT = ("id", *_OBJECT)
SPOUT_OR_BOLT = (*COMPONENT, "parallelism", "config", *_IDLE)
METHOD = ("name", "args")
STREAM = ("name", "from", "to", "grouping")
GROUPING = ("type", "streamId", "args", "customClass")
CLASS = _OBJECT
INCLUDE = ("file", "resource", "override")
#: Keys of a topology that only Java can do something with, and why.
OF_JAVA = {
    "topologySource": "a class of Java's makes such a topology",
    "workerHooks": "these are objects of Java's, and there is no JVM here; leave them out",
}
#: Keys of objects that only Java's have.
JAVAS = ("factory", "factoryArgs", "properties")
#: Groupings that have fields.
KEYED = ("FIELDS", "PARTIAL_KEY")


def check_keys(entry: Mapping[Any, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse keys that no such entry has."""
    for key in entry:
        if key not in known:
            subject, hint = f"key {shorten(key, 80)}", meant(str(key), known)
            raise TopologyError(explain(subject, where, f"one of {known}", hint=hint))


def check_empty(entry: Mapping[Any, Any], keys: Iterable[str], where: str, hint: str) -> None:
    """Refuse keys that would have to do something, and cannot here."""
    for key in keys:
        if entry.get(key):
            got = shorten(entry[key], 80)
            raise TopologyError(explain(f"{key!r} of {where}", "", "none", got, hint))


def notes_of_component(entry: Mapping[Any, Any], where: str) -> Iterator[str]:
    """Name the keys of a spout or bolt that change nothing, and why."""
    return (f"{key} of {where}: {reason}" for key, reason in _IDLE.items() if key in entry)


def notes_of_grouping(entry: Mapping[Any, Any], kind: str, where: str) -> Iterator[str]:
    """Name what a grouping of another kind would read."""
    for key, kinds in (("args", KEYED), ("customClass", ("CUSTOM",))):
        if entry.get(key) and kind not in kinds:
            yield f"{key} of {where}: {kind} has none"
