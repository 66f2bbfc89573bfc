"""Which degrees and tables were changed while a topology ran, now or in earlier runs.

They are kept with snapshots, and the next run begins with them, as long as the topology and the
settings ask for the same. What the runtime decides by itself (to split a component that waits, to
move one into processes) it decides anew in each run. A policy that takes over takes over what was
split as well: nobody splits any more then, so the next run begins with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from thalweg.routing.table import RoutingTable
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.pairing import has_movable_keys
from thalweg.statelog.arrangements import Arrangement, Asked
from thalweg.statelog.objects import checksum_of
from thalweg.topology import Topology


class Arranging:
    """Counts epochs, and knows what was changed."""

    def __init__(
        self,
        asked: Mapping[str, Asked] | None = None,
        begun: Mapping[str, Arrangement] | None = None,
        epoch: int = 0,
    ) -> None:
        #: What to begin with, by component, and the reconfigurations since the first run.
        self.begun, self.epoch = begun or {}, epoch
        self._asked = asked or {}
        self._changed = set(self.begun)
        #: What was changed for this run alone.
        self._passing: set[str] = set()

    def next_epoch(self, components: Iterable[str], lasting: bool = True) -> int:
        """Note that components were changed; not those that the next run need not know of."""
        self.epoch += 1
        (self._changed if lasting else self._passing).update(components)
        return self.epoch

    def keep(self) -> None:
        """Let the next run also begin with what was changed for this one alone."""
        self._changed |= self._passing

    def now(
        self, operators: Iterable[Operator], tables: Mapping[str, RoutingTable]
    ) -> dict[str, Arrangement]:
        """Give what changed components have come to."""
        names = ((operator.component.name, operator) for operator in operators)
        return {
            name: Arrangement.of(self._asked[name], _degree(operator), tables.get(name))
            for name, operator in names
            if name in self._changed
        }


def _degree(operator: Operator) -> int:
    return operator.limit if operator.pooled else operator.degree


def asked_by(settings: Settings, topology: Topology) -> dict[str, Asked]:
    """Say what each component would be without any change; the topology is resolved."""
    file = "" if settings.table is None else checksum_of(Path(settings.table).read_bytes())
    return {
        component.name: Asked(
            component.options.degree,
            settings.key_groups,
            file if has_movable_keys(component) else "",
        )
        for component in topology
        if not component.is_spout
    }
