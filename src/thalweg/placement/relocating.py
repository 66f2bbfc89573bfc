"""Other units for tasks that have one: where a link is full, a core overloaded, a machine idle.

Each function gives the placement as it is where none is better. As few tasks move as do with it:
those of one component are alike, so whoever has a unit that is still wanted stays there.

>>> far = Placement({Task("a", 0): Unit(0, 0), Task("b", 0): Unit(1, 0)})
>>> narrow = [Machine("m0", bandwidth=1000.0), Machine("m1", bandwidth=1000.0)]
>>> traffic = (Traffic("a", "b", 900.0),)
>>> demand = Demand({"a": 1, "b": 1}, {"a": Need(), "b": Need()}, traffic)
>>> fullest_link(far, traffic, narrow)
0.9
>>> near = nearer(far, demand, narrow, {"a", "b"})
>>> fullest_link(near, traffic, narrow), moved(far, near)
(0.0, {Task(component='b', index=0): Unit(machine=0, core=1)})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from thalweg.placement.greedy import Strategy, place
from thalweg.placement.values import Demand, Machine, Need, Placement, Task, Traffic, Unit

#: What the fullest link may be filled with after a move, by what it is filled with now.
_WORTH = 0.9
#: CPU below this is a rounding error.
_NONE = 1e-9


def fullest_link(
    placed: Placement, traffic: Iterable[Traffic], machines: Sequence[Machine]
) -> float:
    """Give the part of its bandwidth that leaves the machine whose link is the fullest.

    Each stream is taken to be spread evenly among tasks.
    """
    tasks: dict[str, Counter[int]] = {}
    for task, unit in placed.units.items():
        tasks.setdefault(task.component, Counter())[unit.machine] += 1
    leaves = [0.0] * len(machines)
    for stream in traffic:
        senders, readers = tasks[stream.sender], tasks[stream.receiver]
        for machine, count in senders.items():
            away = 1 - readers[machine] / readers.total()
            leaves[machine] += stream.rate * count / senders.total() * away
    pairs = zip(leaves, machines, strict=True)
    return max((sent / m.bandwidth for sent, m in pairs if m.bandwidth is not None), default=0.0)


def overload(placed: Placement, needs: Mapping[str, Need]) -> float:
    """Give the cores that tasks need beyond those that they are on."""
    return sum(max(0.0, cpu - 1) for cpu in _needed(placed.units, needs).values())


def nearer(
    now: Placement, demand: Demand, machines: Sequence[Machine], talking: Collection[str]
) -> Placement:
    """Bring tasks together by traffic: those of some components, or all where that is better."""
    others = {task: unit for task, unit in now.units.items() if task.component not in talking}
    best, least = now, _WORTH * fullest_link(now, demand.traffic, machines)
    for kept in (others, {}):
        found = place(demand, machines, "traffic", kept)
        filled = fullest_link(found, demand.traffic, machines) if not found.refused else least
        if filled < least - _NONE and overload(found, demand.needs) <= overload(now, demand.needs):
            best, least = found, _WORTH * filled
    return _alike(now, best)


def relieved(
    now: Placement, demand: Demand, machines: Sequence[Machine], strategy: Strategy
) -> Placement:
    """Take tasks off cores that have not enough for all of theirs, where others have."""
    kept: dict[Task, Unit] = {}
    needed: dict[Unit, float] = {}
    for task, unit in now.units.items():
        cpu = needed.get(unit, 0.0) + demand.needs[task.component].cpu
        if cpu <= 1 + _NONE:
            kept[task], needed[unit] = unit, cpu
    found = place(demand, machines, strategy, kept)
    better = overload(found, demand.needs) < overload(now, demand.needs) - _NONE
    return found if better and not found.refused else now


def emptied(
    now: Placement,
    demand: Demand,
    machines: Sequence[Machine],
    strategy: Strategy,
    idle: Sequence[int],
) -> Placement:
    """Empty the first of some machines whose tasks find room on others that have tasks."""
    used = {unit.machine for unit in now.units.values()}
    for machine in (each for each in idle if each in used):
        kept = {task: unit for task, unit in now.units.items() if unit.machine != machine}
        closed = frozenset(range(len(machines))) - (used - {machine})
        found = place(demand, machines, strategy, kept, closed) if kept else now
        if not found.refused and overload(found, demand.needs) <= overload(now, demand.needs):
            return found
    return now


def moved(before: Placement, after: Placement) -> dict[Task, Unit]:
    """Give the new units of those tasks that have another one."""
    return {task: unit for task, unit in after.units.items() if before.units.get(task) != unit}


def _alike(now: Placement, wanted: Placement) -> Placement:
    """Let tasks of one component take each other's units, so that as few as possible move."""
    units: dict[Task, Unit] = {}
    for component in dict.fromkeys(task.component for task in wanted.units):
        tasks = [task for task in wanted.units if task.component == component]
        free = {wanted.units[task]: None for task in tasks}
        stays = {task: now.units[task] for task in tasks if now.units.get(task) in free}
        for unit in stays.values():
            del free[unit]
        goes = [task for task in tasks if task not in stays]
        units |= stays | dict(zip(goes, free, strict=True))
    return Placement(units, wanted.refused)


def _needed(units: Mapping[Task, Unit], needs: Mapping[str, Need]) -> dict[Unit, float]:
    found: dict[Unit, float] = {}
    for task, unit in units.items():
        found[unit] = found.get(unit, 0.0) + needs[task.component].cpu
    return found
