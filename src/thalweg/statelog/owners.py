"""Whose a row is: which place holds it, and which of a component's tasks reads it.

The state of a component has one name, which is the component's, or, where partial keys split it,
one for each task: ``"count#0"``, ``"count#1"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from thalweg.hashing import KEY_GROUPS, Hashes
from thalweg.routing.table import RoutingTable
from thalweg.statelog.manifests import ComponentMark
from thalweg.statelog.parts import Mask, Owns


@dataclass(frozen=True)
class Owners:
    """The owners of all state of a version.

    >>> marks = {"top": ComponentMark("global", (), (), "", 1)}
    >>> owners = Owners(marks, places=2)
    >>> some = np.array([1, 2], dtype=np.uint64)
    >>> owners.at_place("top", 0)(some).tolist(), owners.at_place("top", 1)(some).tolist()
    ([True, True], [False, False])
    """

    #: The components that the version knows, also those that are gone.
    marks: Mapping[str, ComponentMark]
    places: int
    key_groups: int = KEY_GROUPS
    #: Tables in which keys have places of their own; other components go by key group.
    tables: Mapping[str, RoutingTable] = field(default_factory=dict)

    def split(self, name: str) -> tuple[str, int | None]:
        """Tell the component of a state's name, and the task where it is one task's alone."""
        component, mark, task = name.rpartition("#")
        if mark and task.isdigit() and name not in self.marks:
            return component, int(task)
        return name, None

    def home(self, name: str) -> int | None:
        """Give the one place of a state, or None where its keys are spread."""
        component, task = self.split(name)
        if task is not None:
            return task % self.places
        return 0 if self.marks[component].kind == "global" else None

    def at_place(self, name: str, place: int) -> Owns:
        """Tell the rows that a place holds."""
        home = self.home(name)
        if home is not None:
            return _all_or_none(home == place)
        table = self._table(name)
        return lambda hashes: table.places_of(hashes) % self.places == place

    def of_task(self, name: str, task: int) -> Owns:
        """Tell the rows that a task reads."""
        if self.home(name) is not None:
            return _all_or_none(True)
        table = self._table(name)
        return lambda hashes: table.places_of(hashes) == task

    def _table(self, name: str) -> RoutingTable:
        found = self.tables.get(name)
        return found or RoutingTable.even(self.marks[name].degree, self.key_groups)


def _all_or_none(owned: bool) -> Owns:
    def owns(hashes: Hashes) -> Mask:
        return np.full(len(hashes), owned)

    return owns
