"""The keys of a task by when something is due for them, so that time passes the others by.

>>> from thalweg.state import MemoryState
>>> state = MemoryState()
>>> keys = DueKeys(state, due=lambda value: value)
>>> state.put_many({"eu": 7, "us": 90})
>>> keys.note(state.items())
>>> keys.take(10)
{'eu': 7}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any

from thalweg.contexts import KeyedState
from thalweg.eventtime import ALWAYS
from thalweg.keys import Key


class DueKeys:
    """Lists keys; ``due`` says of a value when something is due for its key, ALWAYS for never.

    A state in memory tells of keys that come from elsewhere. Any other one is there for a batch
    only, and is gone through.
    """

    def __init__(self, state: KeyedState, due: Callable[[Any], int]) -> None:
        self._state, self._due = state, due
        #: Times in order, the keys of each, and the earliest time at which a key is listed.
        self._times: list[int] = []
        self._keys: dict[int, list[Key]] = {}
        self._listed: dict[Key, int] = {}
        watch = getattr(state, "watch", None)
        self._lasts = watch is not None
        if watch is not None:
            watch(self.note)

    def note(self, changed: Iterable[tuple[Key, Any]]) -> None:
        """Take in new values of keys."""
        if not self._lasts:
            return
        listed = self._listed
        for key, value in changed:
            at = self._due(value)
            if at >= listed.get(key, ALWAYS):  # looked at again when its time has come
                continue
            listed[key] = at
            if at in self._keys:
                self._keys[at].append(key)
            else:
                self._keys[at] = [key]
                heappush(self._times, at)

    def take(self, now: int) -> dict[Key, Any]:
        """Give the keys for which something is due, with their values; all of them at the end.

        What becomes of them is to be noted again.
        """
        if now == ALWAYS or not self._lasts:
            return {k: v for k, v in self._state.items() if now == ALWAYS or self._due(v) <= now}
        found: list[Key] = []
        while self._times and self._times[0] <= now:
            at = heappop(self._times)
            for key in self._keys.pop(at):
                if self._listed.get(key) == at:  # or else it had an earlier time
                    del self._listed[key]
                    found.append(key)
        values = self._state.get_many(found)  # those that have not moved away
        due = {key: value for key, value in values.items() if self._due(value) <= now}
        self.note((key, value) for key, value in values.items() if key not in due)
        return due
