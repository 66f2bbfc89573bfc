"""Where tuples go on the reference runtime, and how keys change their tasks between two waves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from thalweg.control.links import GUESSED_KEY_BYTES
from thalweg.control.rerouting import Cost, Rerouting, Tables
from thalweg.errors import UsageError, explain
from thalweg.hashing import Hashes, hash_key
from thalweg.keys import Key
from thalweg.migration.plan import Held, Plan, plan_moves
from thalweg.routing.load_router import balanced_router
from thalweg.routing.routers import KeyRouter, Router
from thalweg.routing.table import RoutingTable, check_places
from thalweg.runtimes.block_tasks import AnyBoltTask
from thalweg.runtimes.pairing import has_movable_keys
from thalweg.state import MemoryState
from thalweg.topology import Component, Input, Topology

# Keys of a state that are written down to guess the size of the others.
_LOOK_AT = 16


@dataclass(frozen=True)
class Edge:
    """A stream on its way to one reader."""

    reader: Component
    index: int
    input: Input
    router: Router


Edges = Mapping[tuple[str, str], Sequence[Edge]]


def make_edges(topology: Topology, key_groups: int) -> Edges:
    """Find the readers of each stream; each has a router of its own."""
    return {
        (producer.name, stream): [
            _edge(reader, input_, key_groups)
            for reader, input_ in topology.readers(producer.name, stream)
        ]
        for producer in topology
        for stream in producer.outputs
    }


def _edge(reader: Component, input_: Input, key_groups: int) -> Edge:
    table = RoutingTable.even(reader.degree, key_groups)
    router = balanced_router(input_.grouping, table)
    return Edge(reader, reader.inputs.index(input_), input_, router)


class Owners:
    """Which task has which key: the tables in force, and the state that follows them.

    What a bolt keeps outside of its state does not move.
    """

    def __init__(
        self, topology: Topology, edges: Edges, bolts: Mapping[str, Sequence[AnyBoltTask]]
    ) -> None:
        self._routers: dict[str, list[KeyRouter]] = {
            component.name: [] for component in topology if has_movable_keys(component)
        }
        for edge in (edge for readers in edges.values() for edge in readers):
            if isinstance(edge.router, KeyRouter) and edge.reader.name in self._routers:
                self._routers[edge.reader.name].append(edge.router)
        self._states = {name: _states(tasks) for name, tasks in bolts.items()}
        self._plan: Plan | None = None
        self._step = 0
        #: How many keys a component had when their size was looked at, and their mean bytes.
        self._looked: dict[str, tuple[int, float]] = {}

    @property
    def tables(self) -> dict[str, RoutingTable]:
        """The table of each component whose keys may have tasks of their own."""
        return {name: routers[0].table for name, routers in self._routers.items()}

    @property
    def pending(self) -> bool:
        """Whether keys are still on their way."""
        return self._plan is not None and self._step < self._plan.steps

    def reroute(self, wanted: Rerouting) -> None:
        """Begin to give keys other tasks; keys without state have them at once."""
        self._check(wanted.tables)
        old = {name: self.tables[name] for name in wanted.tables}
        held = {name: self._held(name, wanted.costs.get(name)) for name in old}
        self._plan, self._step = plan_moves(old, wanted.tables, held, wanted.budget), 0
        self._use(self._plan.tables_after(0))

    def advance(self) -> tuple[int, int]:
        """Make the next step, if there is one; give the number of keys moved and their bytes."""
        keys = size = 0
        if self._plan is not None and self.pending:
            moves, tables = self._plan.step(self._step), self._plan.tables_after(self._step + 1)
            for name in moves:
                moved = self._move(name, tables[name])
                keys, size = keys + moved, size + round(moved * self._mean(name))
            self._use(tables)
            self._step += 1
        return keys, size

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Give bytes (guessed from some keys) and keys of each component's state."""
        keys = {name: sum(map(len, states)) for name, states in self._states.items() if states}
        return {name: (round(count * self._mean(name)), count) for name, count in keys.items()}

    def _check(self, tables: Tables) -> None:
        if self.pending:
            hint = "wait until the waves that follow have moved them"
            raise UsageError(explain("reroute", "", "no keys on their way", "some", hint))
        unknown = sorted(set(tables) - set(self._routers))
        if unknown:
            hint = "keyed components with fields(...) and no bounds"
            expected = f"some of {sorted(self._routers)}"
            raise UsageError(explain("reroute", "", expected, str(unknown), hint))
        for name, table in tables.items():
            check_places(name, table, len(self._states[name]))

    def _use(self, tables: Tables) -> None:
        for name, table in tables.items():
            for router in self._routers[name]:
                router.table = table

    def _move(self, name: str, new: RoutingTable) -> int:
        """Let the state of keys follow them from the table in force to a new one."""
        old, states, moved = self.tables[name], self._states[name], 0
        found = [_keys(state) for state in states]  # before any of them arrives elsewhere
        for task, (keys, hashes) in enumerate(found):
            targets = new.places_of(hashes)
            leaving = (old.places_of(hashes) == task) & (targets != task)
            for target in np.unique(targets[leaving]).tolist():
                rows = np.flatnonzero(leaving & (targets == target)).tolist()
                states[target].take_over(states[task].give_away([keys[row] for row in rows]))
                moved += len(rows)
        return moved

    def _held(self, name: str, cost: Cost | None) -> Held:
        """Say what all keys of a component hold."""
        hashes = np.sort(np.concatenate([_keys(state)[1] for state in self._states[name]]))
        heat = np.zeros(len(hashes))
        if cost is not None and len(cost.hashes):
            at = np.minimum(np.searchsorted(cost.hashes, hashes), len(cost.hashes) - 1)
            heat = np.where(cost.hashes[at] == hashes, cost.heat[at], 0.0)
        size = max(1, round(self._mean(name) if cost is None else cost.size))
        return Held(hashes, np.full(len(hashes), size), heat)

    def _mean(self, name: str) -> float:
        """Guess the bytes of a key; look again when there are twice as many."""
        states = self._states[name]
        keys = sum(map(len, states))
        if keys and keys >= 2 * self._looked.get(name, (0, 0.0))[0]:
            self._looked[name] = keys, _mean_bytes(max(states, key=len))
        return self._looked.get(name, (0, GUESSED_KEY_BYTES))[1]


def _states(tasks: Iterable[AnyBoltTask]) -> list[MemoryState]:
    states = (task.context.state for task in tasks)
    return [state for state in states if isinstance(state, MemoryState)]


def _keys(state: MemoryState) -> tuple[list[Key], Hashes]:
    keys = [key for key, _ in state.items()]
    return keys, np.fromiter(map(hash_key, keys), np.uint64, len(keys))


def _mean_bytes(state: MemoryState) -> float:
    keys = [key for key, _ in islice(state.items(), _LOOK_AT)]
    try:
        entries = state.entries(keys)
    except Exception:  # values that cannot be written down may still be kept here
        return GUESSED_KEY_BYTES
    return sum(len(key) + len(value) for key, value in entries) / len(entries)
