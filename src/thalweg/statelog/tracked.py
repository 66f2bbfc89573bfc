"""Keyed state in memory that knows what has changed since it was written down last.

>>> state = TrackedState()
>>> state.put("eu", 3); state.put("us", [5])
>>> first = state.delta("count", now=1.0)
>>> first.num_rows, state.delta("count", now=2.0)
(2, None)
>>> state.get("us").append(6)  # a value that was changed in place counts as well
>>> later = TrackedState()
>>> later.take_back(merge([first, state.delta("count", now=3.0)], oldest=True), "count")
>>> sorted(later.items())
[('eu', 3), ('us', [5, 6])]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.clock import Clock
from thalweg.codecs import Codec
from thalweg.hashing import KEY_GROUPS
from thalweg.keys import Key, canonical, decode_key
from thalweg.state import Entry, ExpiringState, Kept, MemoryState
from thalweg.statelog.keying import SIMPLE, decode_keys, encode_keys, hash_keys
from thalweg.statelog.parts import SCHEMA, merge
from thalweg.statelog.values import SCALARS, Converter


@dataclass(frozen=True)
class Changes:
    """What has changed in a state, to be written down when there is time."""

    keys: list[Key]
    deleted: list[Key]
    #: The values of the keys; their bytes where there is nothing left to convert.
    values: list[Any]
    #: Seconds at which all keys were written, also those that were deleted.
    times: Any
    convert: Converter | None

    def part(self) -> pa.RecordBatch:
        """Make a part of it."""
        keys, stored = [*self.keys, *self.deleted], self.values
        if self.convert is not None:
            stored = self.convert.encode(self.keys, stored)
        columns = [
            pa.array(hash_keys(keys)),
            pa.array(encode_keys(keys), pa.large_binary()),
            pa.array([*stored, *[None] * len(self.deleted)], pa.large_binary()),
            pa.array(np.rint(np.asarray(self.times) * 1000).astype(np.int64)),
        ]
        return merge([pa.RecordBatch.from_arrays(columns, schema=SCHEMA)], oldest=False)


def together(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Put the changes of several tasks together: a key that is at another task is not deleted."""
    if len(parts) == 1:
        return parts[0]
    gone = [part.filter(pc.is_null(part.column("value"))) for part in parts]
    there = [part.filter(pc.is_valid(part.column("value"))) for part in parts]
    return merge([*gone, *there], oldest=False)


class Tracked(MemoryState):
    """Notes the keys that were written, and those whose values somebody may have changed."""

    __slots__ = ()

    _touched: set[Key]

    # --- KeyedState --------------------------------------------------------------------------

    def get(self, key: Key, default: Any = None) -> Any:
        """Give the value of a key."""
        value = super().get(key, default)
        if type(value) not in SCALARS and value is not default:
            self._touched.add(key if type(key) in SIMPLE else canonical(key))
        return value

    def put(self, key: Key, value: Any) -> None:
        """Set the value of a key."""
        super().put(key, value)
        self._touched.add(key if type(key) in SIMPLE else canonical(key))

    def delete(self, key: Key) -> None:
        """Forget a key; one that is not there is no error."""
        known = canonical(key)
        if known in self._values:
            self._touched.add(known)
        super().delete(key)

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Give the values of those keys that have one."""
        found = super().get_many(keys)
        if not SCALARS.issuperset(map(type, found.values())):
            self._touched.update(key for key, value in found.items() if type(value) not in SCALARS)
        return found

    def put_many(self, values: Mapping[Key, Any]) -> None:
        """Set many values."""
        super().put_many(values)
        self._touched.update(values)

    def working(self, keys: Sequence[Key]) -> AbstractContextManager[dict[Key, Any]]:
        """Give a dictionary to work on; these keys count as changed."""
        self._touched.update(keys)
        return super().working(keys)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """Go through all keys and values."""
        found = super().items()
        self._touched.update(key for key, value in self._values.items() if _may_change(value))
        return found

    # --- from task to task -------------------------------------------------------------------

    def load(self, entries: Iterable[Entry]) -> None:
        """Take in entries of another state; they count as changed."""
        taken = list(entries)
        super().load(taken)
        self._touched.update(decode_key(key) for key, _ in taken)

    def give_away(self, keys: Iterable[Key]) -> list[Kept]:
        """Give up keys to another state of the same component, which writes them down."""
        kept = super().give_away(keys)
        self._touched.difference_update(key for key, _, _ in kept)
        return kept

    def take_over(self, kept: Sequence[Kept]) -> None:
        """Take in what another state gave away; it counts as changed."""
        super().take_over(kept)
        self._touched.update(key for key, _, _ in kept)

    # --- to disk and back --------------------------------------------------------------------

    def changes(self, component: str, now: float) -> Changes | None:
        """Give what has changed since the last call; None when nothing has."""
        touched, values = self._touched, self._values
        if not touched:
            return None
        gone = touched.difference(values)
        there = list(touched - gone if gone else touched)
        stored = list(map(values.__getitem__, there))
        convert = Converter(component, self._codec)
        later = SCALARS.issuperset(map(type, stored))
        if not later:  # they may be changed before somebody has time to write them down
            stored = convert.encode(there, stored)
        touched.clear()
        times = self._times([*there, *gone], now)
        return Changes(there, list(gone), stored, times, convert if later else None)

    def delta(self, component: str, now: float) -> pa.RecordBatch | None:
        """Give what has changed since the last call as a part; None when nothing has."""
        found = self.changes(component, now)
        return None if found is None else found.part()

    def take_back(self, part: pa.RecordBatch, component: str) -> None:
        """Take in the rows of a part without deleted keys; they do not count as changed."""
        _, stored, values, times = part.columns
        keys = decode_keys(stored)
        found = Converter(component, self._codec).decode(keys, values.to_pylist())
        seconds = (times.to_numpy() / 1000).tolist()
        super().take_over(list(zip(keys, found, seconds, strict=True)))

    def touched(self) -> list[bytes]:
        """Name the keys that count as changed."""
        return encode_keys(list(self._touched))

    def touch(self, keys: Sequence[bytes]) -> None:
        """Let these keys, and no others, count as changed."""
        self._touched.clear()
        self._touched.update(map(decode_key, keys))

    def _times(self, keys: Sequence[Key], now: float) -> Any:
        return np.full(len(keys), now)


class TrackedState(Tracked):
    """What :class:`thalweg.state.MemoryState` is, and tracked."""

    __slots__ = ("_touched",)

    def __init__(self, codec: Codec | None = None, groups: int = KEY_GROUPS) -> None:
        super().__init__(codec, groups)
        self._touched = set()

    # Called for every tuple, so without a detour.

    def get(self, key: Key, default: Any = None) -> Any:
        """Give the value of a key."""
        if key.__class__ is not str and type(key) not in SIMPLE:
            key = canonical(key)
        value = self._values.get(key, default)
        if value.__class__ not in SCALARS and value is not default:
            self._touched.add(key)
        return value

    def put(self, key: Key, value: Any) -> None:
        """Set the value of a key."""
        if key.__class__ is not str and type(key) not in SIMPLE:
            key = canonical(key)
        self._values[key] = value
        self._touched.add(key)


class TrackedExpiringState(Tracked, ExpiringState):
    """What :class:`thalweg.state.ExpiringState` is, and tracked.

    Keys that have expired are not noted as deleted: who reads parts looks at their times.
    """

    __slots__ = ("_touched",)

    def __init__(
        self, clock: Clock, ttl: float, codec: Codec | None = None, groups: int = KEY_GROUPS
    ) -> None:
        ExpiringState.__init__(self, clock, ttl, codec, groups)
        self._touched = set()

    def _times(self, keys: Sequence[Key], now: float) -> Any:
        return list(map(self._written.get, keys, repeat(now)))


def _may_change(value: Any) -> bool:
    """Say whether a value can be changed in place, as far as that is seen at a glance."""
    if type(value) is tuple:
        return not SCALARS.issuperset(map(type, value))
    return type(value) not in SCALARS
