"""From one set of routing tables to the next, in steps: which key goes where, and when.

Between two batches one step is made. A key whose step has not come routes to where it was.

>>> old = {"count": RoutingTable.even(2).with_keys({"eu": 0, "us": 0})}
>>> new = {"count": old["count"].with_keys({"eu": 1})}
>>> both = Transition.between(old, new, [{"count": old["count"].hashes}])
>>> both.steps, both.tables(0)["count"].hashes.size, both.tables(1)["count"].hashes.size
(1, 2, 1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from thalweg.errors import StateError, UsageError, explain
from thalweg.hashing import Hashes, key_groups
from thalweg.routing.table import Places, RoutingTable, united

#: In place of a place: that of the key's group.
BY_GROUP = -1

_SCHEMA = pa.schema(
    [("hash", pa.uint64()), ("before", pa.int32()), ("after", pa.int32()), ("step", pa.int32())]
)
_HEAD = b"thalweg.transition"


class Moving(NamedTuple):
    """Keys of a component that change places, by their hashes."""

    hashes: Hashes
    sources: Places
    targets: Places


@dataclass(frozen=True, eq=False)
class Changes:
    """The keys of one component that have a place of their own before or after, ascending."""

    hashes: Hashes
    #: Places, or BY_GROUP.
    before: Places
    after: Places
    #: The step in which a key changes; 0 for before all steps, or not at all.
    step: Places


class _Head(msgspec.Struct, frozen=True):
    epoch: int
    places: int
    groups: int
    steps: int
    components: list[str]


@dataclass(frozen=True, eq=False)
class Transition:
    """Two sets of tables, and the steps between them; without steps, one set."""

    #: The epoch of the tables before the first step.
    epoch: int
    places: int
    groups: int
    steps: int
    components: Mapping[str, Changes]

    @classmethod
    def between(
        cls,
        old: Mapping[str, RoutingTable],
        new: Mapping[str, RoutingTable],
        steps: Sequence[Mapping[str, Hashes]] = (),
    ) -> Transition:
        """Say which keys change in which step; what no step names changes before the first.

        Both sets have the same components and the same even key groups.
        """
        if not new:
            hint = "only components with keyed state and fields(...) have routing tables"
            raise UsageError(explain("routing tables", "", "some component's", "none", hint))
        components = {}
        for name in new:
            hashes = united(old[name].hashes, new[name].hashes)
            when = np.zeros(len(hashes), dtype=np.int64)
            for number, moved in enumerate(steps, start=1):
                when[np.searchsorted(hashes, moved.get(name, hashes[:0]))] = number
            before, after = _own(old[name], hashes), _own(new[name], hashes)
            components[name] = Changes(hashes, before, after, when)
        first, epoch = next(iter(new.values())), max(table.epoch for table in old.values())
        return cls(epoch, first.places, len(first.groups), len(steps), components)

    def tables(self, step: int) -> dict[str, RoutingTable]:
        """Give the tables after so many steps."""
        even, epoch = RoutingTable.even(self.places, self.groups), self.epoch + step
        made = {}
        for name, found in self.components.items():
            places = np.where(found.step <= step, found.after, found.before)
            own = places != BY_GROUP
            made[name] = RoutingTable(
                epoch, self.places, even.groups, found.hashes[own], places[own]
            )
        return made

    def moving(self, step: int, source: int | None = None) -> dict[str, Moving]:
        """Give the keys that one step moves, of all places or of one."""
        even = RoutingTable.even(self.places, self.groups)
        made = {}
        for name, found in self.components.items():
            rows = np.flatnonzero(found.step == step) if step else np.empty(0, dtype=np.int64)
            hashes = found.hashes[rows]
            sources = _resolved(found.before[rows], hashes, even)
            targets = _resolved(found.after[rows], hashes, even)
            here = sources != targets
            if source is not None:
                here &= sources == source
            if here.any():
                made[name] = Moving(hashes[here], sources[here], targets[here])
        return made

    def to_bytes(self) -> bytes:
        """Write everything down."""
        names = list(self.components)
        head = _Head(self.epoch, self.places, self.groups, self.steps, names)
        sink = pa.BufferOutputStream()
        schema = _SCHEMA.with_metadata({_HEAD: msgspec.json.encode(head)})
        with pa.ipc.new_file(sink, schema) as writer:
            for found in self.components.values():
                columns = [found.hashes, found.before, found.after, found.step]
                arrays = [pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
        return sink.getvalue().to_pybytes()

    @classmethod
    def from_bytes(cls, data: bytes | pa.Buffer) -> Transition:
        """Read it again; raises when it is something else."""
        try:
            reader = pa.ipc.open_file(data)
            head = msgspec.json.decode(reader.schema.metadata[_HEAD], type=_Head)
            batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
            components = {
                name: Changes(*(column.to_numpy() for column in batch.columns))
                for name, batch in zip(head.components, batches, strict=True)
            }
        except (pa.ArrowException, msgspec.MsgspecError, LookupError, TypeError) as error:
            raise StateError(explain("routing tables", got=f"damaged ones: {error}")) from error
        return cls(head.epoch, head.places, head.groups, head.steps, components)


def _own(table: RoutingTable, hashes: Hashes) -> Places:
    """Give the place that a table singles a key out for, or BY_GROUP."""
    found = np.full(len(hashes), BY_GROUP, dtype=np.int64)
    found[np.searchsorted(hashes, table.hashes)] = table.key_places
    return found


def _resolved(places: Places, hashes: Hashes, even: RoutingTable) -> Places:
    by_group = even.groups[key_groups(hashes, len(even.groups))]
    return np.where(places == BY_GROUP, by_group, places)
