"""Which host each place is on: decided by the driver, with as few moves as can be.

>>> share_out(4, {"a": 1, "b": 1})
('a', 'a', 'b', 'b')
>>> share_out(4, {"a": 1, "b": 1, "c": 2}, before=("a", "a", "b", "b"))
('a', 'c', 'b', 'c')
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Literal

from thalweg.errors import UsageError, explain

#: Hosts get shares by their cores, equal shares, or the places that were given to them by name.
Placing = Literal["cores", "equal"] | tuple[str, ...]


@dataclass(frozen=True)
class Executor:
    """A process of Spark that runs tasks."""

    id: str
    host: str
    #: Tasks that it runs at once: its cores, unless ``spark.task.cpus`` gives a task several.
    slots: int


def typical(slots: Iterable[int]) -> int:
    """Say how many slots an executor has of which nothing is known, by those of the others.

    >>> typical([4, 4, 1]), typical([])
    (4, 1)
    """
    return max(1, median_low([*slots] or [1]))


def slots_on_hosts(executors: Iterable[Executor]) -> dict[str, int]:
    """Add up the slots of each host.

    >>> slots_on_hosts([Executor("0", "a", 2), Executor("1", "b", 1), Executor("2", "a", 2)])
    {'a': 4, 'b': 1}
    """
    found: Counter[str] = Counter()
    for executor in executors:
        found[executor.host] += executor.slots
    return dict(found)


def place_on_hosts(
    placing: Placing, places: int, slots: Mapping[str, int], before: Sequence[str] = ()
) -> tuple[str, ...]:
    """Decide the host of each place, by the slots of each host and the last choice.

    A place whose given host is not there goes where there is most room.
    """
    if not slots:
        return ()
    if isinstance(placing, tuple):
        if len(placing) != places:
            text = explain("placement", expected=f"{places} hosts", got=f"{len(placing)}")
            raise UsageError(text)
        return _filled_up(placing, slots)
    shares = slots if placing == "cores" else dict.fromkeys(slots, 1)
    return share_out(places, shares, before)


def share_out(
    places: int, shares: Mapping[str, int], before: Sequence[str] = ()
) -> tuple[str, ...]:
    """Give each host its share of places; a place stays where it was if that fits."""
    free = _quotas(places, shares, before)
    chosen: list[str | None] = []
    for place in range(places):
        host = before[place] if place < len(before) else None
        stays = host is not None and free.get(host, 0) > 0
        chosen.append(host if stays else None)
        if stays and host is not None:
            free[host] -= 1
    waiting = [host for host in sorted(free) for _ in range(free[host])]
    return tuple(waiting.pop(0) if host is None else host for host in chosen)


def _filled_up(given: tuple[str, ...], slots: Mapping[str, int]) -> tuple[str, ...]:
    held = Counter(host for host in given if host in slots)
    chosen = []
    for wanted in given:
        host = wanted
        if wanted not in slots:
            host = min(slots, key=lambda h: ((held[h] + 1) / max(1, slots[h]), h))
            held[host] += 1
        chosen.append(host)
    return tuple(chosen)


def _quotas(places: int, shares: Mapping[str, int], before: Sequence[str]) -> dict[str, int]:
    """Cut places by shares; what is left over goes to the largest remainders, or stays put."""
    total = sum(max(1, share) for share in shares.values())
    held = Counter(before)
    exact = {host: places * max(1, share) / total for host, share in shares.items()}
    quotas = {host: int(part) for host, part in exact.items()}
    by_need = sorted(exact, key=lambda h: (quotas[h] - exact[h], quotas[h] - held[h], h))
    for host in by_need[: places - sum(quotas.values())]:
        quotas[host] += 1
    return quotas
