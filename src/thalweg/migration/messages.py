"""What the manager and the tasks tell each other in a reconfiguration, as values.

Names in capitals are those of Algorithm 1 (Caneill, El Rheddane, Leroy, De Palma: Locality-aware
routing in stateful streaming applications, Middleware 2016). Every message but a tuple carries
the epoch or the round it belongs to, so that one that comes twice or late is known as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from thalweg.migration.units import Units
from thalweg.migration.wiring import Address, TaskId
from thalweg.routing.table import RoutingTable

#: State of keys, by their hashes; what a state is, is the runtime's matter.
States = Mapping[int, Any]
#: The tables of the components that a task sends to.
Router = Mapping[str, RoutingTable]
#: Units of state, by the task at the other end.
Lists = Mapping[TaskId, frozenset[int]]


@dataclass(frozen=True)
class Tuple:
    """Data: a tuple on its way, with the hash of its key for the component it goes to."""

    hash: int
    value: Any


@dataclass(frozen=True)
class GetMetrics:
    """GET_METRICS, manager to task: send what you have counted."""

    round: int


@dataclass(frozen=True)
class SendMetrics:
    """SEND_METRICS, task to manager."""

    round: int
    metrics: Any


@dataclass(frozen=True, eq=False)
class Configuration:
    """What is saved before anything changes: the tables before and after."""

    epoch: int
    old: Mapping[str, RoutingTable]
    new: Mapping[str, RoutingTable]


@dataclass(frozen=True, eq=False)
class Save:
    """Manager to store: keep this configuration in place of the last one."""

    configuration: Configuration


@dataclass(frozen=True)
class Saved:
    """Store to manager: the configuration is durable."""

    epoch: int


@dataclass(frozen=True, eq=False)
class SendReconf:
    """SEND_RECONF, manager to task: what will change for it."""

    epoch: int
    router: Router
    #: What the numbers in the lists mean.
    units: Units
    send: Lists
    receive: Lists


@dataclass(frozen=True)
class AckReconf:
    """ACK_RECONF, task to manager: from now on it waits for the state of what it will receive."""

    epoch: int


@dataclass(frozen=True)
class Propagate:
    """PROPAGATE, manager or task to task: all that follows is routed by the new tables."""

    epoch: int


@dataclass(frozen=True)
class Piece:
    """Some state that moves, and the end markers of the units that are complete with it."""

    states: States
    ended: frozenset[int]


@dataclass(frozen=True)
class Migrate:
    """MIGRATE, old owner to new owner: one of the pieces between the two, counted from 0."""

    epoch: int
    number: int
    piece: Piece


@dataclass(frozen=True)
class Done:
    """Task to manager: it has switched and has all its state."""

    epoch: int


@dataclass(frozen=True)
class Finish:
    """Manager to task: all tasks are done with this epoch; nobody will ask for it again."""

    epoch: int


@dataclass(frozen=True)
class Restarted:
    """Task to manager: it has restarted, and works only when it knows what is under way."""


@dataclass(frozen=True)
class Resume:
    """Manager to task: nothing is under way; this epoch is in force."""

    epoch: int


@dataclass(frozen=True)
class Again:
    """Restarted task to the tasks before it and the old owners: send again what you have sent."""

    epoch: int


Message = (
    Tuple
    | GetMetrics
    | SendMetrics
    | Save
    | Saved
    | SendReconf
    | AckReconf
    | Propagate
    | Migrate
    | Done
    | Finish
    | Restarted
    | Resume
    | Again
)
#: A message with the address it goes to.
Sent = tuple[Address, Message]
