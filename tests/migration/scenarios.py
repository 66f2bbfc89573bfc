"""Random topologies, tables and streams for the simulated world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import numpy as np

from thalweg.migration.protocol import Configuration, TaskId, Wiring
from thalweg.routing.table import RoutingTable

SOURCE = "source"
#: Few, so that groups hold several keys and a rescale moves some of them.
GROUPS = 6


@dataclass(frozen=True)
class Scenario:
    """A topology, its tables in every epoch, and the tuples that enter it."""

    wiring: Wiring
    #: Tables of the keyed components, the first ones in force at the start.
    tables: tuple[Mapping[str, RoutingTable], ...]
    #: The source task of each tuple, and its key for each component.
    stream: tuple[tuple[TaskId, Mapping[str, int]], ...]

    def configuration(self, epoch: int) -> Configuration:
        return Configuration(epoch, self.tables[epoch - 1], self.tables[epoch])


def make_scenario(random: Random, epochs: int = 2, tuples: int = 25) -> Scenario:
    keyed = [f"c{number}" for number in range(random.randint(1, 3))]
    degrees = {SOURCE: random.randint(1, 2)} | {name: random.randint(2, 3) for name in keyed}
    streams: dict[str, tuple[str, ...]] = {}
    for at, name in enumerate(keyed):
        # Every component has at least one before it.
        before = [SOURCE, *keyed[:at]]
        for sender in random.sample(before, random.randint(1, len(before))):
            streams[sender] = (*streams.get(sender, ()), name)
    keys = random.randint(2, 10)
    tables = [
        {name: _table(random, epoch, degrees[name], keys) for name in keyed}
        for epoch in range(epochs + 1)
    ]
    stream = tuple(
        (
            TaskId(SOURCE, random.randrange(degrees[SOURCE])),
            {name: random.randrange(keys) for name in keyed},
        )
        for _ in range(tuples)
    )
    return Scenario(Wiring(degrees, streams), tuple(tables), stream)


def _table(random: Random, epoch: int, degree: int, keys: int) -> RoutingTable:
    """Make a table in which some keys have a place of their own; in some it rescales."""
    places = random.randint(1, degree)
    own = [key for key in range(keys) if random.random() < 0.4]
    return RoutingTable(
        epoch,
        places,
        np.array([random.randrange(places) for _ in range(GROUPS)]),
        np.array(own, dtype=np.uint64),
        np.array([random.randrange(places) for _ in own], dtype=np.int64),
    )
