"""What happens during a run, as values; listeners decide what to show or keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from thalweg.errors import ComponentError, ThalwegError
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
class KeyMove:
    """A key that has another place."""

    component: str
    #: As text where it is known, else its hash, as ``0x...``.
    key: str
    #: Its place by the table before, and by the one in force.
    before: int
    after: int
    #: Tuples that were counted; 0 where nobody counted.
    count: float


@dataclass(frozen=True)
class Difference:
    """What is other in routing tables, for keys that are known to have state."""

    #: Keys that have another place, and key groups.
    keys: int
    groups: int
    #: The keys that occur most often, up to :data:`thalweg.control.differences.MOST`.
    moves: tuple[KeyMove, ...]


@dataclass(frozen=True)
class Reconfigured:
    """Tables or degrees are other ones now, and all state is where it belongs."""

    text: str
    #: The same for programs (see thalweg.migration.report).
    report: Mapping[str, Any]
    #: Which keys have another place; None where no table has changed.
    difference: Difference | None = None


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
    #: The policy that led until now, where this one leads from now on; None at all other looks.
    replaces: str | None = None


@dataclass(frozen=True)
class ChildSaid:
    """A component in a child process has logged something, or written to its standard error."""

    component: str
    task: int
    #: Storm's levels: 0 trace, 1 debug, 2 info, 3 warning, 4 error.
    level: int
    text: str


@dataclass(frozen=True)
class Activated:
    """Sources are asked for tuples again, or not any more for now."""

    active: bool


@dataclass(frozen=True)
class KeyCount:
    """A key that is seen often."""

    #: As text where it is known, else its hash, as ``0x...``.
    key: str
    #: Tuples that were counted; it may have been up to :attr:`KeyLink.lost` more.
    count: float
    #: Where it is, by the routing table in force.
    place: int


@dataclass(frozen=True)
class KeyPair:
    """Two keys that occur together often."""

    left: str
    right: str
    count: float
    #: Whether both are at one place, so that their tuples need not travel.
    local: bool


@dataclass(frozen=True)
class KeyLink:
    """Keys of two keyed components, where tuples go from one to the other."""

    #: A source is written with ``@`` before its name; its keys are its partitions.
    sender: str
    reader: str
    #: Tuples that were counted, and by how much any count may be too low.
    total: float
    lost: float
    #: Share of the tuples counted whose two keys are at one place.
    locality: float
    #: The most frequent ones, those that are seen most first.
    left: tuple[KeyCount, ...]
    right: tuple[KeyCount, ...]
    pairs: tuple[KeyPair, ...]
    #: How far a share of the tuples counted may be from that of all tuples, 19 times of 20, because
    #: not all are counted; None where that is not known.
    share_error: float | None = None


@dataclass(frozen=True)
class Keys:
    """Which keys occurred together since the last time, and where they are; every few seconds."""

    links: tuple[KeyLink, ...]
    #: Share of the tuples that were counted.
    sampling: float
    #: By component: keys that have a place of their own in its routing table.
    listed: Mapping[str, int]
    #: By component: most loaded place against the mean of its places.
    imbalance: Mapping[str, float]


@dataclass(frozen=True)
class BatchDone:
    """A micro-batch is committed; for runtimes that have them."""

    version: int
    epoch: int
    #: Rows of sources that it took in.
    rows: int
    seconds: float
    #: Attempts until Spark had finished it.
    attempts: int
    #: Seconds by phase: job, commit, deliver, rest.
    phases: Mapping[str, float]
    #: Seconds of the longest task of each stage.
    stages: tuple[float, ...]
    #: Tuples and bytes through the exchange, and tuples that skipped it.
    shuffled: int
    shuffled_bytes: int
    local: int
    #: Bytes that did not fit in memory, and state that moved to other places.
    spilled: int
    moved_keys: int
    moved_bytes: int
    #: Keys and bytes of all state.
    state_keys: int
    state_bytes: int


@dataclass(frozen=True)
class RunFinished:
    """Nothing is under way any more; the last metrics."""

    snapshot: Snapshot
    stopped: bool


@dataclass(frozen=True)
class RunFailed:
    """An error has ended the run; told by whoever started it, since the run itself is over."""

    text: str
    #: Where it happened, and at which tuple, as far as that is known.
    component: str = ""
    task: int | None = None
    tuple_text: str = ""

    @classmethod
    def of(cls, error: BaseException) -> RunFailed:
        """Describe an error.

        >>> from thalweg.errors import ComponentError
        >>> RunFailed.of(ComponentError("count", 2, "no number", "('a',)"))
        RunFailed(text='no number', component='count', task=2, tuple_text="('a',)")
        """
        if isinstance(error, ComponentError):
            return cls(str(error), error.component, error.task, error.tuple_text or "")
        known = isinstance(error, ThalwegError)
        return cls(str(error) if known else f"{type(error).__name__}: {error}")


Event = (
    RunStarted
    | Progress
    | TupleRefused
    | RecordRefused
    | Noticed
    | Reconfigured
    | Decided
    | ChildSaid
    | Activated
    | Keys
    | BatchDone
    | RunFinished
    | RunFailed
)
