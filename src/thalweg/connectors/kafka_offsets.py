"""Partitions and offsets: whose they are, and where reading begins. Nothing here connects.

Where a reader is, is said as ``{"topic/partition": offset of the next message}``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from thalweg.errors import StateError, UsageError, explain

Start = Literal["earliest", "latest"] | Mapping[str, int]
Position = dict[str, int]


def name_of(topic: str, partition: int) -> str:
    """Name a partition.

    >>> name_of("orders", 3)
    'orders/3'
    """
    return f"{topic}/{partition}"


def split(name: str) -> tuple[str, int]:
    """Give topic and partition."""
    topic, _, partition = name.rpartition("/")
    return topic, int(partition)


def owned(partitions: Mapping[str, int], task: int, degree: int) -> list[str]:
    """Name the partitions that a task reads; which they are stays so when there are more.

    >>> owned({"orders": 4}, 0, 2), owned({"orders": 4}, 1, 2)
    (['orders/0', 'orders/2'], ['orders/1', 'orders/3'])
    """
    return [
        name_of(topic, partition)
        for topic in sorted(partitions)
        for partition in range(partitions[topic])
        if (zlib.crc32(topic.encode()) + partition) % degree == task
    ]


@dataclass(frozen=True)
class Bounds:
    """The offsets that a partition has now: of the first message, and behind the last one."""

    low: int
    high: int


def first_offsets(bounds: Mapping[str, Bounds], start: Start, kept: Mapping[str, int]) -> Position:
    """Say where to begin: where a group was, or else where ``start`` says.

    >>> first_offsets({"a/0": Bounds(2, 9), "a/1": Bounds(0, 5)}, "latest", {"a/1": 3})
    {'a/0': 9, 'a/1': 3}
    """
    found = {}
    for name, each in bounds.items():
        if name in kept:
            found[name] = kept[name]
        elif isinstance(start, str):
            found[name] = each.low if start == "earliest" else each.high
        else:
            found[name] = start.get(name, each.low)
    return found


def settled(
    wanted: Mapping[str, int], bounds: Mapping[str, Bounds], skip: bool
) -> tuple[Position, list[str]]:
    """Check where to go on; partitions that are not named are new, and read from their beginning.

    Messages that are gone are passed over with ``skip``, and named; otherwise that is an error.
    """
    found, lost = {}, []
    for name, each in bounds.items():
        at = wanted.get(name, each.low)
        if at < each.low and skip:
            lost.append(f"{name}: messages {at} to {each.low - 1} are gone")
            at = each.low
        if not each.low <= at <= each.high:
            raise _elsewhere(name, at, each)
        found[name] = at
    return found, lost


def _elsewhere(name: str, at: int, bounds: Bounds) -> StateError:
    hint = "the topic was made anew; begin with another checkpoint or group"
    if at < bounds.low:
        hint = "they were deleted before they were read; lost='skip' goes on behind them"
    expected, got = f"message {at} of partition {name}", f"{bounds.low} to {bounds.high - 1}"
    return StateError(explain("Kafka", "", expected, got, hint))


def checked_start(start: Any, topics: Iterable[str]) -> Start:
    """Read where to begin: a word, or offsets by partition, named ``(topic, n)`` or ``topic/n``.

    >>> checked_start({("orders", 0): 12}, ["orders"])
    {'orders/0': 12}
    """
    if isinstance(start, str) and start in ("earliest", "latest"):
        return start  # type: ignore[return-value] # one of the two
    if not isinstance(start, Mapping):
        expected = "'earliest', 'latest' or {(topic, partition): offset}"
        raise UsageError(explain("start", expected=expected, got=repr(start)))
    found = {n if isinstance(n, str) else name_of(*n): int(at) for n, at in start.items()}
    for name in found:
        if name.rpartition("/")[0] not in topics or not name.rpartition("/")[2].isdigit():
            expected = f"partitions of {', '.join(topics)}"
            raise UsageError(explain("start", expected=expected, got=name))
    return found
