"""Which host each place is on: decided by the driver, with as few moves as can be.

>>> share_out(4, {"a": 1, "b": 1})
('a', 'a', 'b', 'b')
>>> share_out(4, {"a": 1, "b": 1, "c": 2}, before=("a", "a", "b", "b"))
('a', 'c', 'b', 'c')
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from thalweg.errors import UsageError, explain

#: Hosts get equal shares, shares by their executors, or the places that were given to them by name.
Placing = Literal["equal", "executors"] | tuple[str, ...]


def place_on_hosts(
    placing: Placing, places: int, executors: Mapping[str, int], before: Sequence[str] = ()
) -> tuple[str, ...]:
    """Decide the host of each place, by the executors of each host and the last choice.

    A place whose given host is not there goes where there is most room.
    """
    if not executors:
        return ()
    if isinstance(placing, tuple):
        if len(placing) != places:
            text = explain("placement", expected=f"{places} hosts", got=f"{len(placing)}")
            raise UsageError(text)
        return _filled_up(placing, executors)
    shares = executors if placing == "executors" else dict.fromkeys(executors, 1)
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


def _filled_up(given: tuple[str, ...], executors: Mapping[str, int]) -> tuple[str, ...]:
    held = Counter(host for host in given if host in executors)
    chosen = []
    for wanted in given:
        host = wanted
        if wanted not in executors:
            host = min(executors, key=lambda h: ((held[h] + 1) / max(1, executors[h]), h))
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
