"""What a reconfiguration has come to: the tables in force, measured on what was seen since.

Few tuples say little, all the less as neighbours that are chosen at once may be alike. So enough of
them are waited for, though not for ever, and how far off the share may be is told with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thalweg.control.keyview import ENOUGH, share_error
from thalweg.control.links import Link, Tables
from thalweg.control.measures import Outlook, outlook
from thalweg.control.rerouting import Ends, Seen
from thalweg.migration.report import Score
from thalweg.sketches.pairs import PairCounts, merged

#: Seconds for which enough tuples are waited for.
PATIENCE = 10.0
# Tuples without which nothing is said, and how far off a share may be that is waited for, and told.
_EVIDENCE, _NEAR, _FAR = 100.0, 0.05, 0.3
# Pairs that are kept of each link.
_KEPT = 100_000


class Achieved:
    """Gathers the pairs that come after a reconfiguration."""

    def __init__(self, clock: float) -> None:
        #: When it was over.
        self.over = clock
        self._pairs: dict[Ends, PairCounts] = {}
        self._draws = 0.0

    def note(self, seen: Seen) -> None:
        """Take in what was seen since the last call."""
        for ends, found in seen.pairs.items():
            before = [self._pairs[ends]] if ends in self._pairs else []
            self._pairs[ends] = merged([*before, found], _KEPT)
        self._draws += counted(seen.pairs) / seen.burst

    def is_known(self, clock: float) -> bool:
        """Say whether enough was seen, or was waited for long enough."""
        enough = counted(self._pairs) >= ENOUGH and share_error(self._draws) <= _NEAR
        return enough or clock - self.over >= PATIENCE

    def score(self, tables: Tables) -> Score | None:
        """Measure the tables that are in force since; None where too little was seen."""
        error = share_error(self._draws)
        pairs = {
            Link(*ends): found
            for ends, found in self._pairs.items()
            if Link(*ends).reader in tables and (Link(*ends).from_source or ends[0] in tables)
        }
        if counted(pairs) < _EVIDENCE or error > _FAR:
            return None
        return score(outlook(pairs, tables), error)


def counted(pairs: Mapping[Any, PairCounts]) -> float:
    """Give the number of tuples that pairs were counted on."""
    return sum(counts.total for counts in pairs.values())


def score(outlook: Outlook, error: float) -> Score:
    """Give the numbers that matter of tables that were measured on pairs."""
    return Score(outlook.locality.overall, outlook.worst, error)
