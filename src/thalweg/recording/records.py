"""Records: what happens during a run, as plain JSON that can be kept, sent and shown.

A record has ``n`` (1, 2, ...), ``at`` (seconds since the run began), ``wall`` (Unix time),
``kind`` (the name of the event) and the fields of the event. The first one is the topology.

>>> from thalweg.events import Noticed
>>> record_of(Noticed("a host has joined"), n=2, at=0.5, wall=1_700_000_000.5)
{'n': 2, 'at': 0.5, 'wall': 1700000000.5, 'kind': 'noticed', 'text': 'a host has joined'}
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from thalweg.errors import UsageError, explain
from thalweg.events import Event, Progress, RunFinished
from thalweg.groupings import describe
from thalweg.metrics import Snapshot
from thalweg.topology import Component, Topology

Record = dict[str, Any]

#: Characters of a text that are kept: keys, tuples, errors.
LONGEST = 2000
#: Kind of the first record, and of the one that says how many were left out.
TOPOLOGY, LOST = "topology", "lost"
#: A decision with which another policy takes over, one that was carried out, and a look of a
#: policy that changed nothing or only wished to: what comes often drives out none of the others.
LEADING, DONE, LOOKED = DECISIONS = ("leading", "done", "looked")
#: Other kinds that say how things are from then on.
_STANDING = frozenset({"activated", "reconfigured"})


def standing(record: Mapping[str, Any]) -> str | None:
    """Name what a record says that stays so until it is said anew; None where it only happened.

    >>> standing({"kind": "activated", "active": False})
    'activated'
    >>> standing({"kind": "decided", "policy": "ds2", "replaces": "static"})
    'leading'
    >>> standing({"kind": "decided", "policy": "ds2", "carried_out": False, "text": "2 -> 3"})
    'looked'
    >>> standing({"kind": "noticed", "text": "a host has joined"})
    """
    kind = str(record["kind"])
    if kind != "decided":
        return kind if kind in _STANDING else None
    if record.get("replaces") is not None:
        return LEADING
    return DONE if record.get("carried_out") and record.get("text") else LOOKED


def kind_of(event: Event) -> str:
    """Name the kind of an event.

    >>> from thalweg.events import Activated, TupleRefused
    >>> kind_of(Activated(True)), kind_of(TupleRefused("count", 0, "('a',)", "no"))
    ('activated', 'tuple_refused')
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()


def record_of(event: Event, n: int, at: float, wall: float) -> Record:
    """Make the record of an event; numbers that JSON does not have become None."""
    # Snapshots have no texts of users, and are many.
    longest = None if isinstance(event, Progress | RunFinished) else LONGEST
    return _head(n, at, wall, kind_of(event)) | plain(event, longest)


def topology_record(
    topology: Topology, runtime: str, policy: str = "", at: float = 0.0, wall: float = 0.0
) -> Record:
    """Make the first record of a run: its components and streams, and what they run on."""
    components = [_component(component) for component in topology]
    streams = [
        {
            "from": input_.component,
            "to": component.name,
            "stream": input_.stream,
            "grouping": describe(input_.grouping),
            "order": input_.order,
        }
        for component in topology
        for input_ in component.inputs
    ]
    told: Record = {"name": topology.name, "runtime": runtime, "policy": policy}
    told |= {"components": components, "streams": streams}
    return _head(1, at, wall, TOPOLOGY) | plain(told)


def _component(component: Component) -> Record:
    return {
        "name": component.name,
        "kind": component.role,
        "degree": component.degree,
        "isolation": component.options.isolation,
        "tick": component.needed_tick,
        "table": component.table,
        "fields": {name: list(fields.names) for name, fields in component.outputs.items()},
    }


def _head(n: int, at: float, wall: float, kind: str) -> Record:
    return {"n": n, "at": at, "wall": wall, "kind": kind}


def plain(value: Any, longest: int | None = LONGEST) -> Any:
    """Give a value as JSON has it, with texts cut; ``longest=None`` leaves them as they are.

    >>> plain({"share": float("nan"), "keys": ("a" * 9, b"b")}, longest=5)
    {'share': None, 'keys': ['aaaa…', 'Yg==']}
    """
    try:
        made = msgspec.json.decode(msgspec.json.encode(value, enc_hook=_other))
    except UnicodeEncodeError:  # half a character, as some inputs have it
        made = msgspec.json.decode(msgspec.json.encode(_whole(value), enc_hook=_other))
    return made if longest is None else _cut(made, longest)


def _other(value: Any) -> Any:
    """Write what JSON has no word for."""
    if isinstance(value, Mapping):
        return dict(value)
    return sorted(map(str, value)) if isinstance(value, AbstractSet) else str(value)


def _whole(value: Any) -> Any:
    """Replace halves of characters."""
    return _mapped(msgspec.to_builtins(value, enc_hook=_other), _encodable)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _cut(value: Any, longest: int) -> Any:
    def cut(text: str) -> str:
        return text if len(text) <= longest else text[: longest - 1] + "…"

    return _mapped(value, cut)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Change all texts of a plain value, also those that are names."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_mapped(name, change): _mapped(each, change) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(each, change) for each in value]
    return value


class Numbering:
    """Gives records their numbers and times; one per run.

    >>> from thalweg.events import Noticed
    >>> numbering = Numbering(steady=iter([10.0, 12.5]).__next__, wall=lambda: 1000.0)
    >>> numbering.record(Noticed("begun"))
    {'n': 1, 'at': 2.5, 'wall': 1000.0, 'kind': 'noticed', 'text': 'begun'}
    """

    def __init__(
        self,
        steady: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._steady, self._wall = steady, wall
        self._began, self._n = steady(), 0

    def record(self, event: Event) -> Record:
        """Make the next record."""
        self._n += 1
        return record_of(event, self._n, self._steady() - self._began, self._wall())

    def topology(self, topology: Topology, runtime: str, policy: str = "") -> Record:
        """Make the first record."""
        self._n = 1
        return topology_record(topology, runtime, policy, wall=self._wall())


def snapshot_of(record: Record) -> Snapshot:
    """Give the metrics of a record as the value that they were.

    >>> from thalweg.events import Progress
    >>> snapshot = Snapshot(1.0, (), 5, 5, 0, latency=None)
    >>> snapshot_of(record_of(Progress(snapshot), n=2, at=1.0, wall=0.0)) == snapshot
    True
    """
    try:
        return msgspec.convert(record["snapshot"], Snapshot)
    except (KeyError, msgspec.ValidationError) as error:
        subject = f"record {record.get('n')}"
        raise UsageError(explain(subject, "", "a snapshot of all metrics", str(error))) from error
