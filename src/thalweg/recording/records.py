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
from thalweg.recording.floods import MANY, Floods
from thalweg.topology import Component, Topology

Record = dict[str, Any]

#: Characters of a text that are kept: keys, tuples, errors.
LONGEST = 2000
#: Kind of the first record, and of the one that says how many were left out.
TOPOLOGY, LOST = "topology", "lost"
#: Kinds of which there are many, each a look at the same things.
LOOKS = frozenset({"progress", "keys", "batch_done"})
#: Kinds that are few, and without which the others cannot be understood.
LASTING = frozenset({TOPOLOGY, "run_started", "run_finished", "run_failed"})
#: Shelves of decisions: one with which another policy takes over, one that was carried out, and a
#: look of a policy that changed nothing or only wished to.
LEADING, DONE, LOOKED = DECISIONS = ("leading", "done", "looked")
#: Shelf of kinds that are few, and by kind those of others that have one.
FEW = "lasting"
#: Shelves of what may come with every tuple.
REFUSED, SAID = FLOODING = ("refused", "said")
_SHELVES = {
    **{kind: kind for kind in (*LOOKS, "activated", "reconfigured")},
    **dict.fromkeys(LASTING, FEW),
    "tuple_refused": REFUSED,
    "record_refused": REFUSED,
    "child_said": SAID,
}


def shelf(record: Mapping[str, Any]) -> str:
    """Name the shelf of a record: where there is no room for all, only its like drives it out.

    Whatever else is told, it stays known whether sources pause and who decides; what comes with
    every tuple drives out nothing but itself.

    >>> shelf({"kind": "activated", "active": False}), shelf({"kind": "tuple_refused"})
    ('activated', 'refused')
    >>> shelf({"kind": "decided", "policy": "ds2", "replaces": "static"})
    'leading'
    >>> shelf({"kind": "decided", "policy": "ds2", "carried_out": False, "text": "2 -> 3"})
    'looked'
    >>> shelf({"kind": "noticed", "text": "a host has joined"})
    'others'
    """
    kind = str(record["kind"])
    if kind != "decided":
        return _SHELVES.get(kind, "others")
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


def record_of(event: Event, n: int, at: float, wall: float, left_out: int = 0) -> Record:
    """Make the record of an event; numbers that JSON does not have become None.

    Where it may come with every tuple it says how many were left out before it.
    """
    # Snapshots have no texts of users, and are many.
    longest = None if isinstance(event, Progress | RunFinished) else LONGEST
    made = _head(n, at, wall, kind_of(event)) | plain(event, longest)
    return made | {"left_out": left_out} if left_out and isinstance(event, MANY) else made


def lost_record(n: int, at: float, wall: float, progress: int = 0, others: int = 0) -> Record:
    """Make the record that says how many looks, and how many others, were left out."""
    return _head(n, at, wall, LOST) | {"progress": progress, "others": others}


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
    """Gives records their numbers and times, as far as they are kept; one per run.

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
        self._floods = Floods()

    def record(self, event: Event) -> Record | None:
        """Make the next record; None of an event that is one too many."""
        at = self._steady() - self._began
        if not self._floods.keeps(event, at):
            return None
        self._n += 1
        return record_of(event, self._n, at, self._wall(), self._floods.left_out)

    def lost(self) -> Record | None:
        """Make the record that says how many were left out; None where all were kept."""
        if not self._floods.left_out:
            return None
        self._n += 1
        at, others = self._steady() - self._began, self._floods.left_out
        return lost_record(self._n, at, self._wall(), others=others)

    def topology(self, topology: Topology, runtime: str, policy: str = "") -> Record:
        """Make the first record."""
        self._n, self._floods = 1, Floods()
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
