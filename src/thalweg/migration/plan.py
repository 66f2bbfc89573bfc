"""The way from one set of routing tables to another, in steps of bounded size.

Hot state moves first, at most ``budget`` bytes in a step. What has no state needs no move: its
route changes with the first tables. Each step has tables of its own, with an epoch of their own,
in which all that has not moved yet is still at its old place.

>>> start = RoutingTable.even(places=2)
>>> old = {"count": start.with_keys({"a": 0, "b": 0, "c": 0})}
>>> new = {"count": start.with_keys({"a": 1, "b": 1, "c": 1})}
>>> hashes = new["count"].hashes
>>> held = {"count": Held(hashes, np.array([60, 60, 60]), np.array([1.0, 9.0, 2.0]))}
>>> plan = plan_moves(old, new, held, budget=120)
>>> plan.steps, plan.keys, plan.bytes
(2, 3, 180)
>>> plan.step(0)["count"].sizes.tolist()
[60, 60]
>>> plan.tables_after(1)["count"].places_of(hashes).tolist()
[0, 1, 1]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from thalweg.errors import UsageError, explain
from thalweg.hashing import Hashes
from thalweg.migration.units import Numbers, Units
from thalweg.routing.table import Places, RoutingTable

Tables = Mapping[str, RoutingTable]

#: In place of a step: the route changes at once, because there is no state to move.
_AT_ONCE = -1


@dataclass(frozen=True, eq=False)
class Held:
    """The keys of a component that have state."""

    hashes: Hashes
    #: Bytes of state of each key.
    sizes: Numbers
    #: How often each key is used, in any measure that is the same for all components.
    heat: npt.NDArray[np.float64]

    @classmethod
    def nothing(cls) -> Held:
        """Make the value for a component without state."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0))


@dataclass(frozen=True, eq=False)
class Moves:
    """State of one component that changes place together, hottest first."""

    #: Hashes of single keys, their places before and after, the bytes of each.
    hashes: Hashes
    sources: Places
    targets: Places
    sizes: Numbers
    #: The same for key groups: all their keys but those with a place of their own.
    groups: Numbers
    group_sources: Places
    group_targets: Places
    group_sizes: Numbers

    @property
    def bytes(self) -> int:
        """Bytes of state that move."""
        return int(self.sizes.sum() + self.group_sizes.sum())


@dataclass(frozen=True, eq=False)
class _Course:
    """What happens to the units of one component."""

    new: RoutingTable
    units: Units
    #: Bytes of each unit, and the step in which it moves.
    sizes: Numbers
    steps: Numbers
    #: The units that move, in the order in which they do.
    order: Numbers

    def moves(self, step: int) -> Moves:
        first, end = np.searchsorted(self.steps[self.order], [step, step + 1])
        units, keys = self.order[first:end], len(self.units.hashes)
        single, group = units[units < keys], units[units >= keys]
        sources, targets = self.units.sources, self.units.targets
        return Moves(
            self.units.hashes[single],
            sources[single],
            targets[single],
            self.sizes[single],
            group - keys,
            sources[group],
            targets[group],
            self.sizes[group],
        )

    def table_after(self, steps: int) -> RoutingTable:
        epoch, waits = self.new.epoch + steps, self.steps >= steps
        if not waits.any():
            return replace(self.new, epoch=epoch)
        owners = np.where(waits, self.units.sources, self.units.targets)
        return self.units.table(epoch, max(self.new.places, int(owners.max()) + 1), owners)


@dataclass(frozen=True, eq=False)
class Plan:
    """The steps from the old tables to the new ones."""

    steps: int
    #: Keys and bytes of state that move in all steps.
    keys: int
    bytes: int
    _courses: Mapping[str, _Course]

    def step(self, number: int) -> Mapping[str, Moves]:
        """Give what moves in a step, counted from 0; only the components that take part."""
        if not 0 <= number < self.steps:
            raise UsageError(explain("step", expected=f"below {self.steps}", got=str(number)))
        found = {name: course.moves(number) for name, course in self._courses.items()}
        return {name: it for name, it in found.items() if len(it.hashes) + len(it.groups)}

    def tables_after(self, steps: int) -> Tables:
        """Give the tables in force when so many steps are done; the last ones are the new ones.

        Each set has an epoch of its own: that of the new tables, and one more for every step.
        """
        if not 0 <= steps <= self.steps:
            raise UsageError(explain("steps", expected=f"0 to {self.steps}", got=str(steps)))
        return {name: course.table_after(steps) for name, course in self._courses.items()}


def plan_moves(old: Tables, new: Tables, held: Mapping[str, Held], budget: int) -> Plan:
    """Plan the steps from the old tables to the new ones.

    ``held`` has to name every key with state: what it leaves out is taken to have none.
    ``budget`` is the most bytes in one step; more only where a single key or group has more.
    """
    _check(old, new, budget)
    loads = {
        name: _Load.of(Units.between(old[name], new[name]), held.get(name, Held.nothing()))
        for name in sorted(new)
    }
    steps = _number_steps(list(loads.values()), budget)
    return Plan(
        steps=max((int(of.max(initial=_AT_ONCE)) for of in steps), default=_AT_ONCE) + 1,
        keys=sum(int(load.keys[load.order].sum()) for load in loads.values()),
        bytes=sum(int(load.sizes[load.order].sum()) for load in loads.values()),
        _courses={
            name: _Course(new[name], load.units, load.sizes, of, load.order)
            for (name, load), of in zip(loads.items(), steps, strict=True)
        },
    )


def _check(old: Tables, new: Tables, budget: int) -> None:
    if old.keys() != new.keys():
        expected, got = ", ".join(sorted(old)), ", ".join(sorted(new))
        raise UsageError(explain("components of the new tables", "", expected, got))
    if budget < 1:
        raise UsageError(explain("bytes in a step", expected="at least 1", got=str(budget)))


@dataclass(frozen=True, eq=False)
class _Load:
    """What the units of one component hold: keys with state, bytes, heat."""

    units: Units
    keys: Numbers
    sizes: Numbers
    heat: npt.NDArray[np.float64]
    #: The units whose state has to move, hottest first.
    order: Numbers

    @classmethod
    def of(cls, units: Units, held: Held) -> _Load:
        at, count = units.of(held.hashes), len(units)
        keys = np.bincount(at, minlength=count)
        sizes = np.bincount(at, held.sizes, minlength=count).astype(np.int64)
        heat = np.bincount(at, held.heat, minlength=count).astype(np.float64)
        moved = np.flatnonzero((units.sources != units.targets) & (keys > 0))
        order = moved[np.argsort(-heat[moved], kind="stable")]
        return cls(units, keys, sizes, heat, order)


def _number_steps(loads: list[_Load], budget: int) -> list[Numbers]:
    """Give the step of every unit of each component."""
    owner = np.repeat(np.arange(len(loads)), [len(load.order) for load in loads])
    unit = np.concatenate([np.empty(0, np.int64), *(load.order for load in loads)])
    heat = np.concatenate([np.empty(0), *(load.heat[load.order] for load in loads)])
    sizes = np.concatenate([np.empty(0, np.int64), *(load.sizes[load.order] for load in loads)])
    hottest = np.argsort(-heat, kind="stable")
    of = np.empty(len(unit), dtype=np.int64)
    of[hottest] = _fill(sizes[hottest], budget)
    steps = [np.full(len(load.units), _AT_ONCE, dtype=np.int64) for load in loads]
    for number, each in enumerate(steps):
        mine = owner == number
        each[unit[mine]] = of[mine]
    return steps


def _fill(sizes: Numbers, budget: int) -> Numbers:
    """Give each of these units its step; a new one begins where the budget would be exceeded."""
    ends = np.cumsum(sizes)
    steps = np.empty(len(sizes), dtype=np.int64)
    first = step = 0
    while first < len(sizes):
        begun = ends[first] - sizes[first]
        end = max(int(np.searchsorted(ends, begun + budget, side="right")), first + 1)
        steps[first:end] = step
        first, step = end, step + 1
    return steps
