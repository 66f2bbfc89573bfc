"""What runtimes that follow blocks through a topology, in one process, have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from thalweg.acking import Roots
from thalweg.blocks import Block, Origin, Rows, merge, same
from thalweg.components import has_timers
from thalweg.contexts import TaskContext
from thalweg.groupings import LocalOrShuffle
from thalweg.ordering import rejoin
from thalweg.runtimes.outputs import Emission
from thalweg.timers import plain_items
from thalweg.topology import Component, Input, Topology


class Closes(Protocol):
    """Something that is open."""

    def close(self) -> None:
        """Let go."""


class Knows(Protocol):
    """A task, as far as it knows itself."""

    @property
    def context(self) -> TaskContext:
        """What it knows."""


def output_block(
    component: Component, task: int, part: Block, emission: Emission, trail: Sequence[Rows] = ()
) -> Block:
    """Make the block of an emission; its rows stem from rows of the part that was processed."""
    origin, parents = Origin(component.name, emission.stream, task), emission.parents
    if parents is None:  # nobody needs to know: let all stem from the last row
        rows = emission.batch.num_rows
        serials = same(part.serials[-1:], rows)
        last = same(np.array([len(part) - 1], dtype=np.int64), rows)
        made = (emission.batch, origin, serials, last, emission.roots, emission.targets)
        return Block(*made, emission.lists)
    positions = parents if part.positions is None else part.positions[parents]
    return Block(
        batch=emission.batch,
        origin=origin,
        serials=part.serials[parents],
        positions=positions,
        roots=_roots(part, parents, emission.whole) if emission.roots is None else emission.roots,
        targets=emission.targets,
        lists=emission.lists,
        path=() if emission.whole else tuple(level[positions] for level in trail),
    )


def _roots(part: Block, parents: Rows, whole: bool) -> list[Roots] | None:
    """Give the roots of output rows: those of the parent row, or of the whole part."""
    if part.roots is None:
        return None
    if whole:
        return [tuple(sorted({root for roots in part.roots for root in roots}))] * len(parents)
    return [part.roots[row] for row in parents]


def close_all(tasks: Sequence[Closes]) -> list[Exception]:
    """Close every task, also when one of them raises; give what they raised."""
    errors: list[Exception] = []
    for task in reversed(tasks):
        try:
            task.close()
        except Exception as error:
            errors.append(error)
    return errors


def joined(input_: Input, blocks: list[Block]) -> list[Block]:
    """Put the parts of one output together, for a reader to whom their order matters."""
    if isinstance(input_.grouping, LocalOrShuffle):  # who sent a row decides its way
        return rejoin(blocks)
    return [merge(blocks)]


def read_tables(
    topology: Topology, bolts: Mapping[str, Iterable[Knows]]
) -> dict[str, dict[Any, Any]]:
    """Read the tables of a topology from the states of its tasks."""
    tables: dict[str, dict[Any, Any]] = {}
    for name, component in topology.tables.items():
        states = [task.context.state for task in bolts[component.name]]
        combine = getattr(component.body, "merge", None)
        table = tables[name] = {}
        pairs = (pair for state in states if state for pair in state.items())
        for key, value in plain_items(pairs) if has_timers(type(component.body)) else pairs:
            # Only a partial key is at two tasks; its component has a merge (validation.py).
            table[key] = combine(table[key], value) if combine and key in table else value
    return tables


def last_bolts(topology: Topology) -> list[Component]:
    """Find the bolts that nobody reads from."""
    read = {input_.component for component in topology for input_ in component.inputs}
    return [c for c in topology if not c.is_spout and c.name not in read]
