"""State cut into pieces for its way to another task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from thalweg.errors import UsageError, explain
from thalweg.migration.messages import Piece
from thalweg.migration.units import Units


def cut(states: Mapping[int, Any], units: Units, wanted: Iterable[int], keys: int) -> list[Piece]:
    """Cut the state of the wanted units into pieces of so many keys, unit by unit.

    A unit ends with the piece that holds its last key; those without state end with the first.

    >>> from thalweg.routing.table import RoutingTable
    >>> units = Units.between(RoutingTable.even(1, 2), RoutingTable.even(2, 2))
    >>> pieces = cut({1: "a", 2: "b", 3: "c", 5: "d"}, units, wanted=[1], keys=2)
    >>> [(list(piece.states), sorted(piece.ended)) for piece in pieces]
    [([1, 3], []), ([5], [1])]
    """
    if keys < 1:
        raise UsageError(explain("keys in a piece", expected="at least 1", got=str(keys)))
    hashes = np.fromiter(states, dtype=np.uint64, count=len(states))
    of = units.of(hashes)
    empty = np.fromiter(wanted, dtype=np.int64)
    mine = np.flatnonzero(np.isin(of, empty))
    mine = mine[np.argsort(of[mine], kind="stable")]
    ends: dict[int, int] = {int(unit): 0 for unit in empty}
    ends.update((int(of[at]), place // keys) for place, at in enumerate(mine))
    pieces = [
        {int(hashes[at]): states[int(hashes[at])] for at in mine[first : first + keys]}
        for first in range(0, max(len(mine), 1), keys)
    ]
    ended: list[set[int]] = [set() for _ in pieces]
    for unit, piece in ends.items():
        ended[piece].add(unit)
    return [Piece(held, frozenset(some)) for held, some in zip(pieces, ended, strict=True)]
