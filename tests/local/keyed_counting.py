"""A keyed bolt that counts, and what comes out of it in a serial execution."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from thalweg.components import Bolt, Kind

#: All ways to share out work.
WAYS: dict[str, dict[str, Any]] = {
    "hybrid": {"queue": "hybrid"},
    "partitioned": {"queue": "partitioned"},
    "shared": {"queue": "shared"},
    "executors": {"assigning": "executors"},
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


class Counting(Bolt):
    """Counts in its state, and notes where each key was."""

    kind = Kind.KEYED
    outputs = {"key": int, "count": int, "task": int}
    table = "counts"

    def process(self, t: Any) -> None:
        """Count."""
        count = self.state.get(t.key, 0) + 1
        self.state.put(t.key, count)
        self.emit(t.key, count, self.context.task)


def running(keys: list[int]) -> list[tuple[int, int]]:
    """Give with each key how often it has come."""
    seen: Counter[int] = Counter()
    made = []
    for key in keys:
        seen[key] += 1
        made.append((key, seen[key]))
    return made
