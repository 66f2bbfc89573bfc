"""What a configuration means for each task: router, send list and receive list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from thalweg.errors import UsageError, explain
from thalweg.migration.messages import Configuration, Lists, SendReconf
from thalweg.migration.units import Units
from thalweg.migration.wiring import TaskId, Wiring
from thalweg.routing.table import RoutingTable

_NO_STATE = RoutingTable.even(1, groups=1)


def reconfigurations(configuration: Configuration, wiring: Wiring) -> Mapping[TaskId, SendReconf]:
    """Make the message that each task gets.

    All units are listed that the tables place differently, with state or without: a key may get
    its first state while the reconfiguration is under way.

    >>> old = RoutingTable.even(places=2, groups=2)
    >>> new = RoutingTable.even(places=1, groups=2)
    >>> wiring = Wiring({"posts": 1, "count": 2}, {"posts": ("count",)})
    >>> made = reconfigurations(Configuration(1, {"count": old}, {"count": new}), wiring)
    >>> made[TaskId("count", 1)].send
    {TaskId(component='count', index=0): frozenset({1})}
    """
    _check(configuration, wiring)
    made = {}
    for component in wiring.degrees:
        old = configuration.old.get(component, _NO_STATE)
        units = Units.between(old, configuration.new.get(component, _NO_STATE))
        send, receive = _lists(component, units)
        receivers = wiring.streams.get(component, ())
        router = {name: configuration.new[name] for name in receivers if name in configuration.new}
        for index in range(wiring.degrees[component]):
            task = TaskId(component, index)
            made[task] = SendReconf(
                configuration.epoch, router, units, send.get(task, {}), receive.get(task, {})
            )
    return made


def _lists(component: str, units: Units) -> tuple[dict[TaskId, Lists], dict[TaskId, Lists]]:
    between: dict[tuple[int, int], list[int]] = defaultdict(list)
    for unit in units.moved().tolist():
        between[int(units.sources[unit]), int(units.targets[unit])].append(unit)
    send: dict[TaskId, dict[TaskId, frozenset[int]]] = defaultdict(dict)
    receive: dict[TaskId, dict[TaskId, frozenset[int]]] = defaultdict(dict)
    for (source, target), moved in sorted(between.items()):
        giver, taker = TaskId(component, source), TaskId(component, target)
        send[giver][taker] = receive[taker][giver] = frozenset(moved)
    return dict(send), dict(receive)


def _check(configuration: Configuration, wiring: Wiring) -> None:
    for tables in (configuration.old, configuration.new):
        for name, table in tables.items():
            degree = wiring.degrees.get(name, 0)
            if table.places > degree:
                expected = f"at most {degree} places, its tasks"
                text = explain(f"routing table of {name!r}", "", expected, str(table.places))
                raise UsageError(text)
