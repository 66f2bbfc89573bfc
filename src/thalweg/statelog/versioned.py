"""Keyed state of one task in one batch, read from parts and written down as a delta.

>>> settings = StateSettings("count", now=10.0)
>>> state = VersionedState([], settings)
>>> state.put("eu", 3)
>>> later = VersionedState([state.delta()], settings)
>>> later.get("eu"), later.get("us"), len(later), later.delta()
(3, None, 1, None)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.codecs import Codec, MsgpackCodec
from thalweg.hashing import Hashes, hash_columns, hash_key
from thalweg.keys import Change, Key, decode_key, encode_key, key_values
from thalweg.statelog.keying import SIMPLE, decode_keys, encode_keys, hash_keys
from thalweg.statelog.parts import (
    SCHEMA,
    Indices,
    Owns,
    as_part,
    find,
    find_one,
    merge,
    milliseconds,
)
from thalweg.statelog.values import SCALARS, Converter

_MISSING: Any = object()


@dataclass(frozen=True)
class StateSettings:
    """What a state needs to know besides its rows."""

    #: Name of the component, for messages.
    component: str
    #: Seconds of the batch clock; the same for a whole batch.
    now: float
    codec: Codec = field(default_factory=MsgpackCodec)
    #: Seconds after its last write at which a key expires; None for never.
    ttl: float | None = None
    #: Says which hashes belong to this task, for ``items`` and ``len``; None for all.
    owns: Owns | None = None

    @property
    def expired_before(self) -> int | None:
        """The time in milliseconds before which rows have expired."""
        return None if self.ttl is None else milliseconds(self.now) - milliseconds(self.ttl)


class VersionedState:
    """The state of a component as ``parts`` (oldest first) say, and what this batch makes of it.

    A key is looked up once and then lies in a dictionary, so ``get`` and ``put`` cost little more
    than that; ``prefetch`` looks up the keys of a whole block at once. ``delta`` finds what has
    changed, also values that were changed in place. With a ``ttl`` each ``put``, and each key
    given to ``working``, counts as a write even when the value stays the same.
    """

    __slots__ = (
        "_base",
        "_complete",
        "_convert",
        "_originals",
        "_own",
        "_parts",
        "_settings",
        "_stored",
        "_values",
        "_written",
    )

    def __init__(self, parts: Sequence[pa.RecordBatch], settings: StateSettings) -> None:
        self._parts = [as_part(part) for part in parts]
        #: Those of them that this batch has made.
        self._own: list[pa.RecordBatch] = []
        self._settings = settings
        self._convert = Converter(settings.component, settings.codec)
        #: What the keys that were looked up or put are now.
        self._values: dict[Key, Any] = {}
        #: What the parts say of the keys that were looked up: bytes, or None for nothing.
        self._stored: dict[Key, bytes | None] = {}
        #: The objects that those bytes became when they were read.
        self._originals: dict[Key, Any] = {}
        #: Keys that were written, where it matters.
        self._written: set[Key] | None = None if settings.ttl is None else set()
        #: All parts merged, once somebody asked for everything; and whether all of it was read.
        self._base: pa.RecordBatch | None = None
        self._complete = False

    # --- KeyedState ----------------------------------------------------------------------------

    def get(self, key: Key, default: Any = None) -> Any:
        """Give the value of a key."""
        try:
            value = self._values.get(key, _MISSING)
        except TypeError:
            value = _MISSING  # a list or the like, which _find refuses
        return self._find(key, default) if value is _MISSING else value

    def put(self, key: Key, value: Any) -> None:
        """Set the value of a key."""
        if type(key) not in SIMPLE:
            key = self._known(key)
        self._values[key] = value
        if self._written is not None:
            self._written.add(key)

    def delete(self, key: Key) -> None:
        """Forget a key; one that is not there is no error."""
        key = self._known(key)
        if key not in self._stored:
            self._load([key])
        self._values.pop(key, None)

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Give the values of those keys that have one."""
        keys = list(keys)
        self._load_new(keys)
        values = self._values
        return {key: values[key] for key in keys if key in values}

    def put_many(self, values: Mapping[Key, Any]) -> None:
        """Set many values."""
        self._values.update(values)
        if self._written is not None:
            self._written.update(values)

    def update(self, keys: Sequence[Key], change: Change) -> None:
        """Change the values of keys, each given once, all together."""
        if not keys:
            return
        if self._stored or self._values:  # some of them may have values that no part has
            known = self.get_many(keys)
            self.put_many(dict(zip(keys, change([known.get(k) for k in keys]), strict=True)))
            return
        hashes = hash_keys(keys)
        order = np.argsort(hashes)
        hashes, rows = hashes[order], pa.array(order)
        ordered = pa.array(encode_keys(keys), pa.large_binary()).take(rows)
        stored: list[bytes | None] = [None] * len(keys)
        self._look_up(order, hashes, ordered, stored)
        values = pa.array(self._changed_by(change, keys, stored), pa.large_binary()).take(rows)
        self._own.append(self._part(hashes, ordered, values))
        self._parts.append(self._own[-1])
        self._base, self._complete = None, False

    def _changed_by(
        self, change: Change, keys: Sequence[Key], stored: list[bytes | None]
    ) -> list[bytes]:
        """Call ``change`` with the values that these bytes are; give the bytes of its values."""
        before: list[Any] = list(stored)
        there = [row for row, data in enumerate(stored) if data is not None]
        data = [data for data in stored if data is not None]
        decoded = self._convert.decode([keys[row] for row in there], data)
        for row, value in zip(there, decoded, strict=True):
            before[row] = value
        return self._convert.encode(keys, change(before))

    def working(self, keys: Sequence[Key]) -> AbstractContextManager[dict[Key, Any]]:
        """Give a dictionary to work on; it holds other keys of this batch too."""
        self._load_new(keys)
        if self._written is not None:
            self._written.update(keys)
        return nullcontext(self._values)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """Go through all keys and values; what is not there yet is read first."""
        if not self._complete:
            _, keys, stored, _ = self._whole().columns
            there = zip(decode_keys(keys), stored.to_pylist(), strict=True)
            new = {key: data for key, data in there if key not in self._stored}
            self._take_in(list(new), list(new.values()))
            self._complete = True
        return iter(self._values.items())

    def __len__(self) -> int:
        self._load_new(self._values)
        looked_up = sum(data is not None for data in self._stored.values())
        return self._whole().num_rows - looked_up + len(self._values)

    # --- reading -------------------------------------------------------------------------------

    def prefetch(self, columns: Sequence[pa.Array]) -> None:
        """Look up the keys of a block, given as its key columns, all at once."""
        hashes = hash_columns(columns)
        order = np.argsort(hashes)
        ascending = hashes[order]
        rows = order[np.append(True, ascending[1:] != ascending[:-1])] if len(order) else order
        keys = key_values([column.take(pa.array(rows)) for column in columns])
        stored = self._stored
        new = [i for i, key in enumerate(keys) if key not in stored]
        self._load([keys[i] for i in new], hashes[rows[new]])

    def _find(self, key: Key, default: Any) -> Any:
        """Look up a key that is not in the dictionary, at least not in this form."""
        key = self._known(key)
        if key not in self._stored:
            self._load([key])
        return self._values.get(key, default)

    def _known(self, key: Key) -> Key:
        """Give the form of a key under which it may be in the dictionaries."""
        try:
            if type(key) in SIMPLE or key in self._values:
                return key
        except TypeError:
            pass  # encode_key says which types a key may have
        return decode_key(encode_key(key))

    def _load_new(self, keys: Iterable[Key]) -> None:
        new = list(dict.fromkeys(keys).keys() - self._stored.keys())
        if new:
            self._load(new)

    def _load(self, keys: list[Key], hashes: Hashes | None = None) -> None:
        """Look up keys in the parts, the newest first."""
        stored: list[bytes | None] = [None] * len(keys)
        if len(keys) == 1:
            stored = [self._look_up_one(keys[0])]
        elif self._parts and keys:
            hashes = hash_keys(keys) if hashes is None else hashes
            order = np.argsort(hashes)
            encoded = pa.array(encode_keys(keys), pa.large_binary())
            self._look_up(order, hashes[order], encoded.take(pa.array(order)), stored)
        self._take_in(keys, stored)

    def _look_up(
        self, order: Indices, hashes: Hashes, keys: pa.Array, stored: list[bytes | None]
    ) -> None:
        """Fill in what the parts say; ``order`` has the index of each of the ascending hashes."""
        expired = self._settings.expired_before
        for part in reversed(self._parts):
            rows = find(part, hashes, keys)
            hits = np.flatnonzero(rows >= 0)
            if not len(hits):
                continue
            found = part.column(2).take(pa.array(rows[hits])).to_pylist()
            if expired is not None:
                times = part.column(3).to_numpy()[rows[hits]]
                found = [d if t >= expired else None for d, t in zip(found, times, strict=True)]
            for index, data in zip(order[hits].tolist(), found, strict=True):
                stored[index] = data
            left = np.flatnonzero(rows < 0)
            if not len(left):
                return
            order, hashes, keys = order[left], hashes[left], keys.take(pa.array(left))

    def _look_up_one(self, key: Key) -> bytes | None:
        hash_, data = np.uint64(hash_key(key)), encode_key(key)
        expired = self._settings.expired_before
        for part in reversed(self._parts):
            row = find_one(part, hash_, data)
            if row >= 0:
                gone = expired is not None and part.column(3)[row].as_py() < expired
                return None if gone else part.column(2)[row].as_py()
        return None

    def _take_in(self, keys: list[Key], stored: list[bytes | None]) -> None:
        """Note what the parts say of keys that are looked up for the first time."""
        self._stored.update(zip(keys, stored, strict=True))
        there = keys
        if None in stored:
            there = [key for key, data in zip(keys, stored, strict=True) if data is not None]
        values = self._convert.decode(there, [data for data in stored if data is not None])
        self._originals.update(zip(there, values, strict=True))
        put = self._values
        if put.keys().isdisjoint(there):
            put.update(zip(there, values, strict=True))
            return
        for key, value in zip(there, values, strict=True):
            if key not in put:
                put[key] = value

    def _whole(self) -> pa.RecordBatch:
        if self._base is None:
            settings = self._settings
            self._base = merge(
                self._parts, oldest=True, expired_before=settings.expired_before, keep=settings.owns
            )
        return self._base

    # --- writing -------------------------------------------------------------------------------

    def delta(self) -> pa.RecordBatch | None:
        """Give what differs from the parts as a part of its own, or None when nothing does."""
        self._load_new(self._values)
        changed = self._changed()
        missing = self._stored.keys() - self._values.keys()
        gone = [key for key in missing if self._stored[key] is not None]
        keys = [*changed, *gone]
        made = list(self._own)
        if keys:
            values = pa.array([*changed.values(), *[None] * len(gone)], pa.large_binary())
            encoded = pa.array(encode_keys(keys), pa.large_binary())
            made.append(self._part(hash_keys(keys), encoded, values))
        return merge(made, oldest=False) if made else None

    def _part(self, hashes: Hashes, keys: pa.Array, values: pa.Array) -> pa.RecordBatch:
        times = np.full(len(keys), milliseconds(self._settings.now))
        columns = [pa.array(hashes), keys, values, pa.array(times)]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def _changed(self) -> dict[Key, bytes]:
        """Find the keys whose value is not what the parts say, with its bytes."""
        originals, stored, written = self._originals, self._stored, self._written or ()
        suspects = [
            key
            for key, value in self._values.items()
            if originals.get(key, _MISSING) is not value
            or type(value) not in SCALARS
            or key in written
        ]
        encoded = self._convert.encode(suspects, [self._values[key] for key in suspects])
        changed = {
            key: data
            for key, data in zip(suspects, encoded, strict=True)
            if data != stored[key] or key in written
        }
        # One that was only read has not changed, though its codec may write it another way.
        same = [key for key in changed if originals.get(key, _MISSING) is self._values[key]]
        for key in same:
            if key not in written and changed[key] == self._rewritten(key, stored[key]):
                del changed[key]
        return changed

    def _rewritten(self, key: Key, data: bytes | None) -> bytes | None:
        if data is None:
            return None
        return self._convert.encode([key], self._convert.decode([key], [data]))[0]
