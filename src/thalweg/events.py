"""What happens during a run, as values; listeners decide what to show or keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from thalweg.metrics import Snapshot


@dataclass(frozen=True)
class RunStarted:
    """All tasks are prepared; tuples begin to flow."""

    topology: str
    runtime: str


@dataclass(frozen=True)
class Progress:
    """A look at the metrics, several times a second at most."""

    snapshot: Snapshot


@dataclass(frozen=True)
class TupleRefused:
    """A component raised on a tuple, and its policy says to go on."""

    component: str
    task: int
    tuple_text: str
    reason: str


@dataclass(frozen=True)
class RecordRefused:
    """A source met input that it cannot read, and its policy says to go on."""

    component: str
    raw: str
    reason: str


@dataclass(frozen=True)
class Noticed:
    """Something that people should know, and that needs no action of the program."""

    text: str


@dataclass(frozen=True)
class Reconfigured:
    """Tables or degrees are other ones now, and all state is where it belongs."""

    text: str
    #: The same for programs (see thalweg.migration.report).
    report: Mapping[str, Any]


@dataclass(frozen=True)
class Decided:
    """A scaling policy has looked at a run."""

    #: What it changes, and why; empty when nothing is to change.
    text: str
    policy: str
    time: float
    #: By component: the degree in force, and the one decided for.
    degrees: Mapping[str, tuple[int, int]]
    #: Whether what it says is done, and not only told.
    carried_out: bool = True


@dataclass(frozen=True)
class RunFinished:
    """Nothing is under way any more; the last metrics."""

    snapshot: Snapshot
    stopped: bool


Event = (
    RunStarted
    | Progress
    | TupleRefused
    | RecordRefused
    | Noticed
    | Reconfigured
    | Decided
    | RunFinished
)
