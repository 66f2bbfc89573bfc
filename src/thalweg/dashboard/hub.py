"""Keeps the records of a run within bounds, for those who ask, and wakes those who wait.

Nobody has a queue: who waits remembers the number of the last record it was given, and reads on
from there. So memory does not grow with the number of visitors, nor when they are slow.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sized
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec

from thalweg.recording.records import DECISIONS, FEW, LASTING, LOOKS, TOPOLOGY, shelf

#: Kinds with which a run is over.
_ENDS = frozenset({"run_finished", "run_failed"})
_MOST_LASTING = 64
#: Among so many decisions there is one of each policy.
_LOOKS_OF_ALL = 100


@dataclass(frozen=True)
class Limits:
    """How much a hub keeps."""

    #: Looks of each kind: beyond that every second one goes; the whole run stays visible.
    looks: int = 1200
    #: Other records, and those of each kind that say how things are: beyond that the oldest go.
    others: int = 5000
    #: Bytes of each of these.
    bytes: int = 16 << 20


class Kept(NamedTuple):
    """A record as it is sent."""

    n: int
    data: bytes


class _Lines:
    """Records of which the last ones count, oldest first."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: deque[Kept] = deque()
        self._bytes = 0
        #: How many have gone.
        self.gone = 0

    def add(self, record: Kept) -> None:
        self._kept.append(record)
        self._bytes += len(record.data)
        while len(self._kept) > 1 and _over(self._kept, self._bytes, self._most, self._most_bytes):
            self._bytes -= len(self._kept.popleft().data)
            self.gone += 1

    def newest(self) -> Iterator[Kept]:
        return reversed(self._kept)


class _Looks:
    """Looks at the same things: the newest, and of all others every so many-th, oldest first."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: list[tuple[int, Kept]] = []
        self._bytes = self._added = self.gone = 0
        self._stride = 1

    def add(self, record: Kept) -> None:
        if self._kept and self._kept[-1][0] % self._stride:
            self._bytes -= len(self._kept.pop()[1].data)
            self.gone += 1
        self._kept.append((self._added, record))
        self._added += 1
        self._bytes += len(record.data)
        while len(self._kept) > 1 and _over(self._kept, self._bytes, self._most, self._most_bytes):
            self._widen()

    def _widen(self) -> None:
        """Keep half of them; of two the newer one."""
        self._stride *= 2
        few, before = len(self._kept) == 2, len(self._kept)
        rest = [each for each in self._kept[:-1] if each[0] % self._stride == 0 and not few]
        self._kept = [*rest, self._kept[-1]]
        self._bytes = sum(len(record.data) for _, record in self._kept)
        self.gone += before - len(self._kept)

    def newest(self) -> Iterator[Kept]:
        return (record for _, record in reversed(self._kept))


def _over(kept: Sized, size: int, most: int, most_bytes: int) -> bool:
    return len(kept) > most or size > most_bytes


def _behind(records: _Lines | _Looks, n: int) -> Iterator[Kept]:
    return takewhile(lambda record: record.n > n, records.newest())


def _shelves(kinds: Collection[str]) -> set[str]:
    """Name the shelves where records of some kinds can be."""
    found = {shelf({"kind": kind}) for kind in kinds}
    return found | {*DECISIONS} if "decided" in kinds else found


class Hub:
    """The records of one run; any thread may add, ask and wait.

    >>> hub = Hub()
    >>> hub.add({"n": 1, "kind": "noticed", "text": "hello"})
    >>> hub.after(0)
    [Kept(n=1, data=b'{"n":1,"kind":"noticed","text":"hello","shelf":"others"}')]
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._lock = threading.Lock()
        self._shelves: dict[str, _Lines | _Looks] = {}
        self._waiting: set[Callable[[], None]] = set()
        self.closed = False

    def add(self, record: Mapping[str, Any]) -> None:
        """Keep a record; its number is higher than all before. Who gets it is told its shelf."""
        name = shelf(record)
        kept = Kept(record["n"], msgspec.json.encode({**record, "shelf": name}))
        with self._lock:
            self._shelf(name).add(kept)
        self._wake()

    def _shelf(self, name: str) -> _Lines | _Looks:
        limits = self._limits
        if name in LOOKS and name not in self._shelves:
            self._shelves[name] = _Looks(limits.looks, limits.bytes)
        elif name not in self._shelves:
            most = _MOST_LASTING if name == FEW else limits.others
            self._shelves[name] = _Lines(most, limits.bytes)
        return self._shelves[name]

    def after(self, n: int, most_bytes: int = 4 << 20) -> list[Kept]:
        """Give the records behind a number, the first ones up to about so many bytes."""
        with self._lock:
            found = [record for each in self._shelves.values() for record in _behind(each, n)]
        found.sort()
        size = 0
        for count, record in enumerate(found, 1):
            size += len(record.data)
            if size >= most_bytes:
                return found[:count]
        return found

    @property
    def newest(self) -> int:
        """Number of the newest record; 0 before the first."""
        with self._lock:
            ends = (next(each.newest(), None) for each in self._shelves.values())
            return max((record.n for record in ends if record is not None), default=0)

    def last(self, kind: str) -> dict[str, Any] | None:
        """Give the last record of a kind; None before the first."""
        return next(iter(self.recent((kind,), 1)), None)

    def recent(self, kinds: Collection[str], most: int) -> list[dict[str, Any]]:
        """Give the last records of some kinds, the oldest first."""
        with self._lock:
            shelves = _shelves(kinds) & self._shelves.keys()
            kept = sorted(record for name in shelves for record in self._shelves[name].newest())
        found: list[dict[str, Any]] = []
        for record in reversed(kept):
            made = msgspec.json.decode(record.data)
            del made["shelf"]
            if made["kind"] in kinds:
                found.append(made)
            if len(found) == most:
                break
        return found[::-1]

    @property
    def gone(self) -> int:
        """How many records are kept no more."""
        with self._lock:
            return sum(each.gone for each in self._shelves.values())

    @property
    def followed(self) -> bool:
        """Whether somebody waits for what comes."""
        with self._lock:
            return bool(self._waiting)

    def wake_with(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have a function called when there is something new; gives what ends that."""
        with self._lock:
            self._waiting.add(wake)

        def leave() -> None:
            with self._lock:
                self._waiting.discard(wake)

        return leave

    def close(self) -> None:
        """Let nobody wait any longer."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            waiting = tuple(self._waiting)
        for wake in waiting:
            wake()


def is_over(hub: Hub) -> bool:
    """Say whether the last run that has begun is over.

    >>> hub = Hub()
    >>> hub.add({"n": 1, "kind": "run_failed"})
    >>> is_over(hub)
    True
    >>> hub.add({"n": 2, "kind": "topology"})
    >>> is_over(hub)
    False
    """
    last = hub.recent(LASTING, 1)
    return bool(last) and last[0]["kind"] in _ENDS


def leading(hub: Hub) -> str:
    """Name the policy whose decisions about degrees are carried out; empty where there is none.

    >>> hub = Hub()
    >>> hub.add({"n": 1, "kind": "topology", "policy": "ds2"})
    >>> hub.add({"n": 2, "kind": "decided", "policy": "static", "carried_out": True})
    >>> leading(hub)
    'static'
    """
    # Before the first look, it is who was to lead.
    looks = hub.recent(("decided",), _LOOKS_OF_ALL) or hub.recent((TOPOLOGY,), 1)
    led = (each["policy"] for each in reversed(looks) if each.get("carried_out", True))
    return next(led, "")
