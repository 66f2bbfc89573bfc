"""Which operator a worker works on next.

A scheduler is a pure function from views of the operators to a choice. It considers those that
are *schedulable*: something waits, there is room for one more worker, and the readers are below
their bound. The four heuristics are those of the ordered multi-core document. In its terms, for
operator i: I_i rows wait, w_i workers are on it, c_i is the cost of a row in seconds, T_i^w the
work spent on it in the present window, s the time slice, and cs_i the rows that leave it per row
of the sources (*cumulative selectivity*), so that cs_{i-1} rows reach it. The document multiplies
selectivities along a chain; in a graph with branches that needs a path, so here cs_{i-1} is
measured: rows seen at the operator for each row of the sources (``flow``).

An operator that was never measured has no cost to reckon with. CT and ET try it first, with one
worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Protocol

import msgspec

from thalweg.clock import Clock
from thalweg.errors import UsageError, explain

#: Share of what was measured that still counts one window later: costs are means over about ten
#: windows, a second, so that a change shows soon and a single slow block does not matter.
_KEPT = 0.9


# A struct, because a frozen dataclass takes ten times as long to make, for every block.
class OperatorView(msgspec.Struct, frozen=True, gc=False):
    """An operator as a worker sees it when it looks for work."""

    #: Position in topological order.
    index: int
    #: Rows in its worklist; 0 if this worker could take none of them.
    waiting: int
    #: Workers on it now, and the most that may be.
    workers: int
    limit: int
    #: Rows that wait at its readers, and the most that may wait there; None if it has no readers.
    output: int
    bound: int | None
    #: Seconds per row; 0 when unknown.
    cost: float
    #: Rows that leave it for each row that reaches it.
    selectivity: float
    #: Seconds of work on it in the present window.
    spent: float
    #: Rows that reach it for each row of the sources.
    flow: float


class Measures(NamedTuple):
    """What a meter knows of an operator: the last four fields of its view."""

    cost: float
    selectivity: float
    spent: float
    flow: float


class Choice(msgspec.Struct, frozen=True, gc=False):
    """The operator to work on, and why."""

    index: int
    reason: str


@dataclass(frozen=True)
class Scheduling:
    """Settings of a scheduler.

    Attributes: ``policy`` (``ct``, ``lp``, ``et`` or ``qst``), ``slice`` (seconds that a worker
    stays on an operator), ``window`` (seconds over which CT compares), ``capacity`` (rows that QST
    lets wait in all queues together), ``alone`` (seconds: what takes less altogether is left to one
    worker, because two that want Python's lock slow each other down; no matter without that lock).
    """

    policy: str = "ct"
    slice: float = 0.005
    window: float = 0.1
    capacity: int = 10_000
    alone: float = 0.005

    def __post_init__(self) -> None:
        if self.policy not in _POLICIES:
            wanted = "one of " + ", ".join(sorted(_POLICIES))
            raise UsageError(explain("scheduling policy", expected=wanted, got=repr(self.policy)))
        for name in ("slice", "window", "capacity"):
            value = getattr(self, name)
            if not 0 < value < inf:
                wanted = "a number above 0"
                raise UsageError(explain(f"scheduling {name}", expected=wanted, got=repr(value)))
        if not 0 <= self.alone < inf:
            wanted, got = "a number of seconds, 0 to share all work", repr(self.alone)
            raise UsageError(explain("scheduling alone", expected=wanted, got=got))


class Scheduler(Protocol):
    """Chooses among operators, which are given in topological order. Ties go to the earlier."""

    @property
    def name(self) -> str:
        """Name of the policy."""

    def choose(self, operators: Sequence[OperatorView]) -> Choice | None:
        """Choose a schedulable operator; None if there is none that suits."""


def schedulable(view: OperatorView) -> bool:
    """Tell whether one more worker can work on an operator now."""
    if view.waiting <= 0 or view.workers >= view.limit:
        return False
    return view.bound is None or view.output < view.bound


@dataclass(frozen=True)
class CurrentThroughput:
    """CT: the smallest (T_i^w + w_i s) / (c_i cs_{i-1}), the probable bottleneck.

    That is the number of source rows which the operator will have coped with in this window. The
    document divides by cs_i, which is zero at a sink.
    """

    settings: Scheduling
    name: str = "ct"

    def choose(self, operators: Sequence[OperatorView]) -> Choice | None:
        """Choose the operator that has done the least for the flow in this window."""
        best, least, slice_ = None, inf, self.settings.slice
        for view in operators:
            if not schedulable(view):
                continue
            effort = view.cost * view.flow
            if effort > 0:
                done = (view.spent + view.workers * slice_) / effort
            else:
                done = inf if view.workers else -1.0
            if best is None or done < least:
                best, least = view, done
        return None if best is None else Choice(best.index, _why(best, "least throughput"))


@dataclass(frozen=True)
class LastInPipeline:
    """LP: the last operator that has input, so that tuples leave as soon as they can."""

    settings: Scheduling
    name: str = "lp"

    def choose(self, operators: Sequence[OperatorView]) -> Choice | None:
        """Choose the last schedulable operator."""
        for view in reversed(operators):
            if schedulable(view):
                return Choice(view.index, "last with input")
        return None


@dataclass(frozen=True)
class EstimatedTime:
    """ET: the largest I_i c_i / (w_i + 1), whose queue would take longest with one more worker."""

    settings: Scheduling
    name: str = "et"

    def choose(self, operators: Sequence[OperatorView]) -> Choice | None:
        """Choose the operator whose waiting rows take longest."""
        best, longest = None, -1.0
        for view in operators:
            if not schedulable(view):
                continue
            if view.cost > 0 or view.workers:
                time = view.waiting * view.cost / (view.workers + 1)
            else:
                time = inf
            if time > longest:
                best, longest = view, time
        return None if best is None else Choice(best.index, _why(best, "longest queue in time"))


@dataclass(frozen=True)
class QueueSizeThrottling:
    """QST: the first operator with fewer than T_i = C cs_i / sum of all cs rows at its readers.

    The last operator has no such threshold. One of less than a row counts as one row; otherwise an
    operator that has let nothing through so far would never be chosen again.
    """

    settings: Scheduling
    name: str = "qst"

    def choose(self, operators: Sequence[OperatorView]) -> Choice | None:
        """Choose the first operator whose readers need more."""
        total = sum(view.flow * view.selectivity for view in operators)
        per_flow = self.settings.capacity / total if total > 0 else 0.0
        for view in operators:
            if not schedulable(view):
                continue
            threshold = max(1.0, per_flow * view.flow * view.selectivity)
            if view.bound is None or view.output < threshold:
                return Choice(view.index, "first below its threshold")
        return None


def _why(view: OperatorView, measured: str) -> str:
    return measured if view.cost > 0 else "not measured yet"


_POLICIES: dict[str, Callable[[Scheduling], Scheduler]] = {
    "ct": CurrentThroughput,
    "lp": LastInPipeline,
    "et": EstimatedTime,
    "qst": QueueSizeThrottling,
}


def make_scheduler(settings: Scheduling) -> Scheduler:
    """Make the scheduler that the settings name.

    >>> views = [
    ...     OperatorView(0, 50, 1, 2, 9, 100, cost=1e-6, selectivity=1.0, spent=0.02, flow=1.0),
    ...     OperatorView(1, 9, 0, 2, 0, None, cost=4e-6, selectivity=0.0, spent=0.01, flow=1.0),
    ... ]
    >>> make_scheduler(Scheduling()).choose(views)
    Choice(index=1, reason='least throughput')
    """
    return _POLICIES[settings.policy](settings)


class Meter:
    """Measures cost, selectivity and flow of each operator, and what is spent on it per window.

    What was measured weighs less with every window in which something is measured. Memory is
    constant. Callers hold the runtime's lock. Work counts in the window in which it ends.

    >>> from thalweg.clock import ManualClock
    >>> meter = Meter(1, Scheduling(), ManualClock())
    >>> meter.enter(1000)
    >>> meter.record(0, rows=500, sent=50, seconds=0.001)
    >>> meter.read(0)
    Measures(cost=2e-06, selectivity=0.1, spent=0.001, flow=0.5)
    """

    def __init__(self, operators: int, settings: Scheduling, clock: Clock) -> None:
        self._clock = clock
        self._window = settings.window
        self._end = clock.now() + settings.window
        self._entered = 0.0
        self._rows = [0.0] * operators
        self._sent = [0.0] * operators
        self._seconds = [0.0] * operators
        self._spent = [0.0] * operators

    def enter(self, rows: int) -> None:
        """Count rows that sources have given."""
        self._turn()
        self._entered += rows

    def record(self, index: int, rows: int, sent: int, seconds: float) -> None:
        """Count work on an operator: rows done, rows sent, and the time it took."""
        self._turn()
        self._rows[index] += rows
        self._sent[index] += sent
        self._seconds[index] += seconds
        self._spent[index] += seconds

    def read(self, index: int) -> Measures:
        """Give what is known of an operator; before its first row that is cost 0, selectivity 1."""
        spent = self._spent[index] if self._clock.now() < self._end else 0.0
        rows = self._rows[index]
        if not rows:
            return Measures(0.0, 1.0, spent, 0.0)
        flow = rows / self._entered if self._entered else 0.0
        return Measures(self._seconds[index] / rows, self._sent[index] / rows, spent, flow)

    def rows_within(self, index: int, seconds: float, most: int) -> int:
        """Give how many rows an operator does in such a time: at least one, and at most so many.

        >>> from thalweg.clock import ManualClock
        >>> meter = Meter(1, Scheduling(), ManualClock())
        >>> meter.record(0, rows=10, sent=0, seconds=0.1)
        >>> meter.rows_within(0, seconds=0.5, most=1024)
        50
        """
        cost = self.read(index).cost if seconds < inf else 0.0
        return most if not cost else max(1, min(most, int(seconds / cost)))

    def _turn(self) -> None:
        """Begin a new window if the last one is over."""
        now = self._clock.now()
        if now < self._end:
            return
        self._end = now + self._window
        self._entered *= _KEPT
        for counts in (self._rows, self._sent, self._seconds):
            counts[:] = [_KEPT * count for count in counts]
        self._spent[:] = [0.0] * len(self._spent)
