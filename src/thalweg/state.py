"""Keyed state in memory, with snapshots per key and per key group.

>>> state = MemoryState()
>>> state.put("eu", 3); state.put("us", 5)
>>> state.get("eu"), state.get("asia", 0), len(state)
(3, 0, 2)
>>> other = MemoryState()
>>> other.load(state.entries(["eu"]))
>>> dict(other.items())
{'eu': 3}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from typing import Any

import msgspec

from thalweg.clock import Clock
from thalweg.codecs import Codec, MsgpackCodec
from thalweg.errors import StateError, explain
from thalweg.hashing import KEY_GROUPS, hash_key
from thalweg.keys import Change, Key, canonical, decode_key, encode_key

Entry = tuple[bytes, bytes]
#: A key, its value, and when it was written last (0 where nobody has to know).
Kept = tuple[Key, Any, float]
#: Called with keys and values that have come from elsewhere.
Arrived = Callable[[Iterable[tuple[Key, Any]]], None]

# Keys of these types are their own canonical form, and a dictionary takes them as they are.
_SIMPLE = frozenset([str, int, bytes, type(None)])
_ENTRIES = msgspec.msgpack.Decoder(list[tuple[bytes, bytes]])
_KEPT = msgspec.msgpack.Decoder(list[tuple[bytes, bytes, float]])


class MemoryState:
    """A dictionary that knows what a key is, and how to write itself down.

    ``get`` and ``put`` are called for every tuple, so there is next to nothing in them.
    """

    __slots__ = ("_codec", "_groups", "_told", "_values")

    def __init__(self, codec: Codec | None = None, groups: int = KEY_GROUPS) -> None:
        self._codec = codec or MsgpackCodec()
        self._groups = groups
        self._values: dict[Key, Any] = {}
        self._told: Arrived | None = None

    def get(self, key: Key, default: Any = None) -> Any:
        """Give the value of a key."""
        if key.__class__ is str:  # most keys are, and this is the quickest way to know
            return self._values.get(key, default)
        return self._values.get(key if type(key) in _SIMPLE else canonical(key), default)

    def put(self, key: Key, value: Any) -> None:
        """Set the value of a key."""
        if key.__class__ is str:
            self._values[key] = value
        else:
            self._values[key if type(key) in _SIMPLE else canonical(key)] = value

    def delete(self, key: Key) -> None:
        """Forget a key; one that is not there is no error."""
        self._values.pop(canonical(key), None)

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Give the values of those keys that have one."""
        values = self._values
        return {key: values[key] for key in keys if key in values}

    def put_many(self, values: Mapping[Key, Any]) -> None:
        """Set many values."""
        self._values.update(values)

    def update(self, keys: Sequence[Key], change: Change) -> None:
        """Change the values of keys, each given once, all together."""
        values = self._values
        if type(self) is MemoryState:  # others note what is read and written
            values.update(zip(keys, change(list(map(values.get, keys))), strict=True))
            return
        known = self.get_many(keys)
        self.put_many(dict(zip(keys, change(list(map(known.get, keys))), strict=True)))

    def add(self, keys: Sequence[Key], numbers: Sequence[int]) -> None:
        """Add numbers to the values of keys, each given once; a new key begins with 0.

        >>> state = MemoryState()
        >>> state.add(["eu", "us"], [3, 5]); state.add(["us"], [1])
        >>> dict(state.items())
        {'eu': 3, 'us': 6}
        """
        if type(self) is not MemoryState:  # as above
            self.update(keys, lambda old: [(o or 0) + n for o, n in zip(old, numbers, strict=True)])
            return
        values = self._values
        get = values.get
        # One after the other: what was just read is still at hand when it is written.
        for key, number in zip(keys, numbers, strict=True):
            values[key] = get(key, 0) + number

    def working(self, keys: Sequence[Key]) -> AbstractContextManager[dict[Key, Any]]:
        """Give a dictionary to work on; here it is the state itself."""
        return nullcontext(self._values)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """Go through all keys and values."""
        return iter(self._values.items())

    def keys(self) -> list[Key]:
        """Give all keys."""
        return list(self._values)

    def __len__(self) -> int:
        return len(self._values)

    # --- from task to task -------------------------------------------------------------------

    def watch(self, arrived: Arrived) -> None:
        """Tell somebody of the keys that are there, or come from other tasks and snapshots."""
        self._told = arrived
        if self._values:
            arrived(self._values.items())

    def give_away(self, keys: Iterable[Key]) -> list[Kept]:
        """Give up these keys (those that are there) to another state of this process.

        >>> one, other = MemoryState(), MemoryState()
        >>> one.put("eu", 3)
        >>> other.take_over(one.give_away(["eu", "us"]))
        >>> len(one), dict(other.items())
        (0, {'eu': 3})
        """
        return [(key, self._values.pop(key), 0.0) for key in keys if key in self._values]

    def take_over(self, kept: Sequence[Kept]) -> None:
        """Take in what another state gave away."""
        self._values.update((key, value) for key, value, _ in kept)
        if self._told is not None:
            self._told([(key, value) for key, value, _ in kept])

    def write_kept(self, kept: Sequence[Kept]) -> bytes:
        """Write down what was given away, for a state of another process."""
        encode = self._codec.encode
        return msgspec.msgpack.encode([(encode_key(k), encode(v), at) for k, v, at in kept])

    def read_kept(self, data: bytes) -> list[Kept]:
        """Read what :meth:`write_kept` wrote there."""
        decode = self._codec.decode
        return [(decode_key(key), decode(value), at) for key, value, at in _KEPT.decode(data)]

    # --- snapshots ---------------------------------------------------------------------------

    def entries(self, keys: Iterable[Key] | None = None) -> list[Entry]:
        """Write down these keys (those that are there), or all."""
        chosen = self._values if keys is None else map(canonical, keys)
        encode = self._codec.encode
        return [(encode_key(k), encode(self._values[k])) for k in chosen if k in self._values]

    def load(self, entries: Iterable[Entry]) -> None:
        """Take in what :meth:`entries` wrote; keys that are there already are replaced."""
        decode = self._codec.decode
        found = {decode_key(key): decode(value) for key, value in entries}
        self._values.update(found)
        if self._told is not None:
            self._told(found.items())

    def keys_of(self, group: int) -> list[Key]:
        """Give the keys that belong to a key group."""
        return [key for key in self._values if hash_key(key) % self._groups == group]

    def snapshot(self) -> dict[int, bytes]:
        """Write down everything, by key group."""
        by_group: dict[int, list[Entry]] = {}
        for key, value in self._values.items():
            entry = encode_key(key), self._codec.encode(value)
            by_group.setdefault(hash_key(key) % self._groups, []).append(entry)
        return {group: pack(by_group[group]) for group in sorted(by_group)}

    def restore(self, snapshot: Mapping[int, bytes]) -> None:
        """Become what a snapshot says; what was there before is forgotten."""
        self._values.clear()
        for data in snapshot.values():
            self.load(unpack(data))


class ExpiringState(MemoryState):
    """Forgets a key when it has not been written for ``ttl`` seconds.

    >>> from thalweg.clock import ManualClock
    >>> clock = ManualClock()
    >>> state = ExpiringState(clock, ttl=10)
    >>> state.put("eu", 1); clock.advance(10); state.get("eu")
    1
    >>> clock.advance(1); state.get("eu") is None, len(state)
    (True, 0)
    """

    __slots__ = ("_clock", "_ttl", "_written")

    def __init__(
        self, clock: Clock, ttl: float, codec: Codec | None = None, groups: int = KEY_GROUPS
    ) -> None:
        super().__init__(codec, groups)
        self._clock, self._ttl = clock, ttl
        #: When each key was written last, the oldest first.
        self._written: dict[Key, float] = {}

    def get(self, key: Key, default: Any = None) -> Any:
        """Give the value of a key."""
        self._forget()
        return super().get(key, default)

    def put(self, key: Key, value: Any) -> None:
        """Set the value of a key."""
        self._note([canonical(key)])
        super().put(key, value)

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Give the values of those keys that have one."""
        self._forget()
        return super().get_many(keys)

    def put_many(self, values: Mapping[Key, Any]) -> None:
        """Set many values."""
        self._note(values)
        super().put_many(values)

    def working(self, keys: Sequence[Key]) -> AbstractContextManager[dict[Key, Any]]:
        """Give a dictionary to work on; these keys count as written."""
        self._forget()
        self._note(keys)
        return super().working(keys)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """Go through all keys and values."""
        self._forget()
        return super().items()

    def keys(self) -> list[Key]:
        """Give all keys."""
        self._forget()
        return super().keys()

    def __len__(self) -> int:
        self._forget()
        return super().__len__()

    def load(self, entries: Iterable[Entry]) -> None:
        """Take in what :meth:`entries` wrote; it counts as written now."""
        taken = list(entries)
        super().load(taken)
        self._note(decode_key(key) for key, _ in taken)

    def give_away(self, keys: Iterable[Key]) -> list[Kept]:
        """Give up these keys; they do not become younger by that."""
        self._forget()
        kept = super().give_away(keys)
        return [(key, value, self._written.pop(key)) for key, value, _ in kept]

    def take_over(self, kept: Sequence[Kept]) -> None:
        """Take in what another state gave away; a key's time goes on."""
        super().take_over(kept)
        written = self._written | {key: when for key, _, when in kept}
        self._written = dict(sorted(written.items(), key=itemgetter(1)))

    def _note(self, keys: Iterable[Key]) -> None:
        now = self._clock.now()
        for key in keys:
            self._written.pop(key, None)  # so that it stands at the end
            self._written[key] = now

    def _forget(self) -> None:
        limit = self._clock.now() - self._ttl
        while self._written:
            key = next(iter(self._written))
            if self._written[key] >= limit:
                return
            del self._written[key]
            self._values.pop(key, None)


def pack(entries: list[Entry]) -> bytes:
    """Write entries as one piece of bytes."""
    return msgspec.msgpack.encode(entries)


def unpack(data: bytes) -> list[Entry]:
    """Read what :func:`pack` wrote."""
    try:
        return _ENTRIES.decode(data)
    except msgspec.MsgspecError as error:
        raise StateError(explain("snapshot", expected="packed entries", got=str(error))) from error
