"""Routing tables to begin with: of an earlier run, of a file of ``thalweg analyze``, or by hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from thalweg.errors import UsageError, explain
from thalweg.routing.table import RoutingTable
from thalweg.routing.table_file import TableFile, read_table_file
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.pairing import has_movable_keys
from thalweg.statelog.arrangements import Arrangement
from thalweg.topology import Component, Topology


def with_places(settings: Settings, topology: Topology) -> Topology:
    """Give keyed components as many tasks as their keys are to have places, where nobody said."""
    if settings.table is None and settings.locality is None:
        return topology
    file = None if settings.table is None else read_table_file(settings.table)
    places = settings.threads if file is None else file.places

    def placed(component: Component) -> Component:
        free = component.options.degree is None and has_movable_keys(component)
        if not free or (file is not None and _field(component, file) is None):
            return component
        return replace(component, options=replace(component.options, degree=places))

    return replace(topology, components=tuple(map(placed, topology)))


def first_tables(
    settings: Settings, topology: Topology, arranged: Mapping[str, Arrangement]
) -> dict[str, RoutingTable]:
    """Give the tables of components that were changed before, or that a file has places for."""
    known = ((name, kept.table) for name, kept in arranged.items())
    found = {name: table for name, table in known if table is not None}
    if settings.table is None:
        return found
    file = read_table_file(settings.table)
    subject = f"table file {settings.table!r}"
    for component in filter(has_movable_keys, topology):
        field = _field(component, file)
        if field is None or component.name in found:
            continue
        if component.degree != file.places:
            expected = f"{component.degree} places, the degree of {component.name!r}"
            raise UsageError(explain(subject, "", expected, f"{file.places}"))
        found[component.name] = file.table(field, settings.key_groups)
    if not found:
        expected = f"a field that a keyed component has as its key, of {sorted(file.fields)}"
        raise UsageError(explain(subject, "", expected, "none in the topology"))
    return found


def _field(component: Component, file: TableFile) -> str | None:
    """Find the key of a component in a file."""
    key = component.inputs[0].key
    return key[0] if len(key) == 1 and key[0] in file.fields else None
