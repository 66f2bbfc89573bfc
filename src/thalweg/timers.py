"""Timers of keys: they lie in the state beside the value of their key, and go where it goes.

>>> from thalweg.clock import ManualClock
>>> from thalweg.state import MemoryState
>>> kept = MemoryState(TimersCodec())
>>> state, timers = TimedState(kept), KeyTimers(kept, ManualClock())
>>> state.put("ann", 3); timers.at("ann", 70, "leave"); timers.at("bob", 50)
>>> timers.advance(60, lambda key, at, _name: print(key, at))
bob 50
>>> dict(state.items()), len(kept)
({'ann': 3}, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from operator import index
from typing import Any

import msgspec

from thalweg.clock import Clock, seconds
from thalweg.codecs import Codec, MsgpackCodec
from thalweg.contexts import KeyedState
from thalweg.errors import StateError, explain, shorten
from thalweg.eventtime import ALWAYS, NEVER, SECOND
from thalweg.keys import UNREADABLE, Change, Key, decode_key, encode_key
from thalweg.state import MemoryState

#: What a key has that has only timers.
NOTHING: Any = object()
#: Called with key, time and name of a timer.
Call = Callable[[Key, int, str], None]
#: When a timer is due, and whether that is a time of the clock.
Due = tuple[int, bool]
#: A timer in the order of time: when, its key as bytes, its name.
_Entry = tuple[int, bytes, str]

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_STORED = msgspec.msgpack.Decoder(tuple[bytes | None, dict[str, Due]])
# Entries that were replaced or cancelled are left behind; beyond so many they are cleared away.
_FEW = 1024


class Timed:
    """The value of a key, if it has one, and its timers by name."""

    __slots__ = ("timers", "value")

    def __init__(self, value: Any = NOTHING, timers: dict[str, Due] | None = None) -> None:
        self.value = value
        self.timers = {} if timers is None else timers


class TimersCodec:
    """Bytes of values with their timers; values themselves as another codec has them."""

    def __init__(self, values: Codec | None = None) -> None:
        self._values = values or MsgpackCodec()

    def encode(self, value: Timed) -> bytes:
        """Write a value with its timers."""
        data = None if value.value is NOTHING else self._values.encode(value.value)
        return msgspec.msgpack.encode((data, value.timers))

    def decode(self, data: bytes) -> Timed:
        """Read what ``encode`` wrote."""
        try:
            stored, timers = _STORED.decode(data)
        except UNREADABLE as error:
            text = explain("stored value with timers", got=f"{shorten(data)}: {error}")
            raise StateError(text) from error
        return Timed(NOTHING if stored is None else self._values.decode(stored), timers)


def plain_items(pairs: Iterable[tuple[Key, Any]]) -> Iterator[tuple[Key, Any]]:
    """Give keys and values without timers; keys that have nothing else are left out."""
    for key, value in pairs:
        if not isinstance(value, Timed):
            yield key, value
        elif value.value is not NOTHING:
            yield key, value.value


class TimedState:
    """What a bolt with timers sees as its state: values alone."""

    def __init__(self, kept: KeyedState) -> None:
        self._kept = kept

    def get(self, key: Key, default: Any = None) -> Any:
        """Give the value of a key."""
        found = self._kept.get(key)
        return default if found is None or found.value is NOTHING else found.value

    def put(self, key: Key, value: Any) -> None:
        """Set the value of a key."""
        found = self._kept.get(key) or Timed()
        found.value = value
        self._kept.put(key, found)

    def delete(self, key: Key) -> None:
        """Forget the value of a key; its timers stay."""
        found = self._kept.get(key)
        if found is not None:
            found.value = NOTHING
            _keep(self._kept, key, found)

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """Give the values of those keys that have one."""
        return dict(plain_items(self._kept.get_many(keys).items()))

    def put_many(self, values: Mapping[Key, Any]) -> None:
        """Set many values."""
        found = self._kept.get_many(values)
        timers = {key: found[key].timers if key in found else {} for key in values}
        self._kept.put_many({key: Timed(value, timers[key]) for key, value in values.items()})

    def update(self, keys: Sequence[Key], change: Change) -> None:
        """Change the values of keys, each given once, all together."""
        known = self.get_many(keys)
        self.put_many(dict(zip(keys, change([known.get(key) for key in keys]), strict=True)))

    @contextmanager
    def working(self, keys: Sequence[Key]) -> Iterator[dict[Key, Any]]:
        """Give a dictionary to work on; what is in it at the end is written."""
        values = self.get_many(keys)
        yield values
        self.put_many({key: values[key] for key in keys if key in values})
        for key in keys:
            if key not in values:
                self.delete(key)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """Go through all keys and values."""
        return plain_items(self._kept.items())

    def __len__(self) -> int:
        return sum(1 for _ in self.items())


def _keep(kept: KeyedState, key: Key, found: Timed) -> None:
    """Write down what a key has, if it has anything."""
    if found.timers or found.value is not NOTHING:
        kept.put(key, found)
    else:
        kept.delete(key)


class KeyTimers:
    """The timers of one task, in the order of time.

    A state in memory tells of keys that come, so that all timers are listed here. Another one is
    gone through when something may be due: not before ``due``, the earliest time of the events and
    of the clock, as far as it is known from outside.
    """

    def __init__(
        self,
        kept: KeyedState,
        clock: Clock,
        now: int = NEVER,
        due: tuple[int, int] = (ALWAYS, ALWAYS),
    ) -> None:
        self._kept, self._clock, self._now = kept, clock, now
        #: Those of events, and those of the clock; None while nobody has gone through the state.
        self._lists: tuple[list[_Entry], list[_Entry]] | None = None
        self._few = _FEW
        #: The earliest of those that are not listed: of others, and of those that were set here.
        self._others, self._new = due, [ALWAYS, ALWAYS]
        #: When the task wants to be woken, in microseconds of the clock.
        self.alarm = ALWAYS
        watch = getattr(kept, "watch", None)
        if watch is not None:
            self._lists = [], []
            watch(self._arrived)

    # --- what bolts call ---------------------------------------------------------------------

    def at(self, key: Key, time: int | datetime, name: str = "") -> None:
        """Set a timer of event time."""
        self._set(key, name, _micros(time), False)

    def after(self, key: Key, wait: float | str, name: str = "") -> None:
        """Set a timer by the clock of the run."""
        self._set(key, name, round((self._clock.now() + seconds(wait)) * SECOND), True)

    def cancel(self, key: Key, name: str = "") -> None:
        """Take a timer back; one that is not there is no error."""
        found = self._kept.get(key)
        if found is not None and found.timers.pop(name, None) is not None:
            _keep(self._kept, key, found)

    def _set(self, key: Key, name: str, at: int, by_clock: bool) -> None:
        found = self._kept.get(key) or Timed()
        found.timers[name] = at, by_clock
        self._kept.put(key, found)
        self._note(encode_key(key), name, at, by_clock)
        self._look_at_alarm()

    # --- what tasks call ---------------------------------------------------------------------

    def advance(self, now: int, call: Call) -> None:
        """Let event time go on: call with each timer that is due, in the order of time."""
        self._now = max(self._now, now)
        self.fire(call)

    def fire(self, call: Call) -> None:
        """Call with each timer that is due by now, in the order of time."""
        for by_clock, now in enumerate((self._now, round(self._clock.now() * SECOND))):
            entries = self._listed(by_clock, now)
            while entries and entries[0][0] <= now:
                self._call(call, heappop(entries), bool(by_clock))
        self._look_at_alarm()

    def end(self, call: Call) -> None:
        """Let all event time pass; timers that are set meanwhile are not called any more."""
        entries = self._listed(0, ALWAYS - 1)
        waiting = sorted(entries)
        entries.clear()
        for entry in waiting:
            self._call(call, entry, False)

    def soonest(self) -> tuple[int, int]:
        """Give the earliest times, of events and of the clock, of all timers that are known here.

        Before anybody has gone through the state these are those that were set here.
        """
        if self._lists is None:
            return self._new[0], self._new[1]
        events, clock = (entries[0][0] if entries else ALWAYS for entries in self._lists)
        return events, clock

    # --- the order of time -------------------------------------------------------------------

    def _call(self, call: Call, entry: _Entry, by_clock: bool) -> None:
        at, data, name = entry
        key = decode_key(data)
        found = self._kept.get(key)
        if found is None or found.timers.get(name) != (at, by_clock):
            return  # moved away, replaced or cancelled since
        del found.timers[name]
        _keep(self._kept, key, found)
        call(key, at, name)

    def _listed(self, by_clock: int, now: int) -> list[_Entry]:
        """Give the timers of events, or of the clock; nothing where none can be due."""
        if self._lists is None and min(self._others[by_clock], self._new[by_clock]) > now:
            return []
        return (self._lists or self._list())[by_clock]

    def _list(self) -> tuple[list[_Entry], list[_Entry]]:
        """Go through the state."""
        found: tuple[list[_Entry], list[_Entry]] = [], []
        for key, timed in self._kept.items():
            for name, (at, by_clock) in timed.timers.items():
                found[by_clock].append((at, encode_key(key), name))
        for entries in found:
            heapify(entries)
        self._lists = found
        return found

    def _arrived(self, pairs: Iterable[tuple[Key, Timed]]) -> None:
        """List the timers of keys that have come from elsewhere."""
        for key, timed in pairs:
            for name, (at, by_clock) in timed.timers.items():
                self._note(encode_key(key), name, at, by_clock)
        self._look_at_alarm()

    def _note(self, data: bytes, name: str, at: int, by_clock: bool) -> None:
        if self._lists is None:
            self._new[by_clock] = min(self._new[by_clock], at)
            return
        entries = self._lists[by_clock]
        heappush(entries, (at, data, name))
        if len(entries) > self._few:
            self._clear_away(entries, by_clock)

    def _clear_away(self, entries: list[_Entry], by_clock: bool) -> None:
        """Leave out what was replaced or cancelled."""
        known = _peek(self._kept, {decode_key(data) for _, data, _ in entries})
        left = {
            (at, data, name)
            for at, data, name in entries
            if (found := known.get(decode_key(data))) is not None
            and found.timers.get(name) == (at, by_clock)
        }
        entries[:] = sorted(left)
        self._few = max(_FEW, 2 * len(left))

    def _look_at_alarm(self) -> None:
        events, clock = self.soonest()
        self.alarm = NEVER if events <= self._now else clock


def _peek(kept: KeyedState, keys: Iterable[Key]) -> dict[Key, Any]:
    """Look at values without counting as somebody who may change them."""
    return (
        MemoryState.get_many(kept, keys) if isinstance(kept, MemoryState) else kept.get_many(keys)
    )


def _micros(time: int | datetime) -> int:
    """Give microseconds since 1970; a datetime without a zone is UTC."""
    if not isinstance(time, datetime):
        return index(time)
    zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // _MICROSECOND
