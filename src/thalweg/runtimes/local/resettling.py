"""Moving components into processes of their own while their topology runs.

The processes are started beside the stream. When they are ready, workers rest for a moment: state
goes over, what waits is shared out anew, and the stream goes on with the new tasks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from thalweg.components import Kind
from thalweg.events import Noticed
from thalweg.execution import Run
from thalweg.keys import Key
from thalweg.metrics import Counter
from thalweg.routing.load_router import balanced_router
from thalweg.routing.routers import KeyRouter, Router
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.following import close_all
from thalweg.runtimes.local.building import Built, task_maker
from thalweg.runtimes.local.isolating import (
    LOOK_EVERY,
    Look,
    Verdict,
    Votes,
    candidate,
    crossing_time,
    idle_seconds,
    judge,
)
from thalweg.runtimes.local.isolation import AnyTask, RemoteTask, abandon_all, remote_task
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.planning import anywhere
from thalweg.runtimes.local.separable import why_not
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.making import make_shapes
from thalweg.state import MemoryState
from thalweg.statelog.keying import hash_keys
from thalweg.topology import Component

#: Which columns its readers look at is known for the order that a topology begins with.
_MOVED = "it has changed places with others"


@dataclass(frozen=True)
class _Counts:
    """What was counted of an operator until a moment, and how long cores have been idle."""

    moment: float
    idle: float
    rows: int
    sent: int
    busy: float


@dataclass(eq=False)
class _Move:
    """A component on its way, and the processes that get ready for it."""

    operator: Operator
    component: Component
    reason: str
    tasks: list[RemoteTask]
    counters: list[Counter]
    error: Exception | None = None

    def begin(self) -> None:
        """Let the processes get ready, beside the stream."""
        self._thread = threading.Thread(target=self._prepare, name="thalweg-isolating", daemon=True)
        self._thread.start()

    def _prepare(self) -> None:
        try:
            for task in self.tasks:
                task.prepare()
        except Exception as error:
            self.error = error

    @property
    def ready(self) -> bool:
        """Whether they are."""
        return not self._thread.is_alive()

    def close(self, wait: bool = True) -> None:
        """End processes that nobody needs; without waiting for what may be stuck."""
        if not wait:
            abandon_all(self.tasks)
        self._thread.join()
        close_all(self.tasks)


class Isolating:
    """Looks for components that would gain from processes, one at a time, and moves them."""

    def __init__(self, settings: Settings, built: Built, run: Run) -> None:
        self._settings, self._built, self._run = settings, built, run
        plain = settings.assigning == "workers" and settings.queue == "hybrid"
        # Hooks are objects of this process: those who gave them look at them here.
        allowed = settings.isolate and plain and settings.threads > 1 and not run.hooks
        self._votes = {o: Votes() for o in built.operators if allowed and _candidate(o)}
        self._next = 0.0
        self._before: dict[Operator, _Counts] = {}
        self._move: _Move | None = None

    def ready(self, now: float) -> bool:
        """Look at the components now and then; True when one can be moved."""
        if self._move is not None:
            return self._move.ready
        if self._votes and now >= self._next:
            self._look(now)
        return False

    def close(self, wait: bool = True) -> None:
        """Let go of what was being prepared."""
        move, self._move = self._move, None
        if move is not None:
            move.close(wait)

    # --- looking -----------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        self._next = now + LOOK_EVERY
        idle = idle_seconds() or 0.0
        for operator, votes in list(self._votes.items()):
            counted, before = _counted(operator, now, idle), self._before.get(operator)
            if before is not None and counted.rows == before.rows and operator.workers:
                continue  # a block that takes longer than that says nothing before it is done
            self._before[operator] = counted
            if before is None or operator.waits or operator.last is None:
                continue
            batch = operator.last
            look = _seen(before, counted, batch.num_rows, self._settings.threads)
            verdict = judge(look)
            if verdict.pays:  # worth the effort of looking at what crossing costs
                verdict = judge(replace(look, crossing=crossing_time(batch)))
            if votes.count(verdict):
                self._begin(operator, verdict)
                return

    def _begin(self, operator: Operator, verdict: Verdict) -> None:
        """Start processes, if the component can leave this one."""
        del self._votes[operator]
        found = why_not(operator.component, [t.body for t in operator.tasks if hasattr(t, "body")])
        if operator.moved:
            found = _MOVED
        if found is None:
            try:
                self._move = self._moved(operator, verdict.reason)
                self._move.begin()
            except Exception as error:  # whatever keeps code from being sent
                found = f"its code cannot be sent: {error}"
        if found is not None:
            name = operator.component.name
            self._run.listen(Noticed(f"{name!r} stays in this process, since {found}"))

    def _moved(self, operator: Operator, reason: str) -> _Move:
        settings, component = self._settings, operator.component
        degree = component.options.degree or settings.threads
        options = replace(component.options, isolation="process", degree=degree)
        component = replace(component, options=options)
        others = (component if c.name == component.name else c for c in self._built.topology)
        topology = replace(self._built.topology, components=tuple(others))
        maker = task_maker(settings, topology, self._run, self._built.maker.watermarks)
        shapes, counters = (
            make_shapes(component),
            [Counter(component.name, 1) for _ in range(degree)],
        )
        tasks: list[RemoteTask] = []
        try:
            for number, counter in enumerate(counters):
                context = maker.context(component, number, shapes, maker.memory(component))
                tasks.append(remote_task(maker, context, counter))
        except Exception:
            close_all(tasks)
            raise
        return _Move(operator, component, reason, tasks, counters)

    # --- moving ------------------------------------------------------------------------------

    def make(self, replace_tasks: Callable[[Operator, Sequence[AnyTask]], None]) -> None:
        """Let a component go on in its processes; nobody may be at work."""
        move, self._move = self._move, None
        assert move is not None  # noqa: S101 (it is ready)
        operator, name = move.operator, move.component.name
        if move.error is not None or operator.moved:
            move.close()
            text = f"{name!r} stays in this process: {move.error or _MOVED}"
            self._run.listen(Noticed(text))
            return
        begin = time.perf_counter()
        routers = _hand_over(move, self._settings.key_groups)
        replace_tasks(operator, move.tasks)
        self._built.counters[name].extend(move.counters)
        operator.resettle(move.component, [*move.tasks], move.counters, routers)
        took = 1000 * (time.perf_counter() - begin)
        text = f"{name!r} goes on in {len(move.tasks)} processes ({move.reason}); {took:.0f} ms"
        self._run.listen(Noticed(text))


def _candidate(operator: Operator) -> bool:
    component = operator.component
    if not candidate(component):
        return False
    if component.options.degree is not None:
        return True
    # With more tasks, somebody has to bring tuples back into order, or their keys keep them apart.
    if component.kind is Kind.KEYED:
        return all(isinstance(router, KeyRouter) for router in operator.routers)
    return operator.ordered and anywhere(component)


def _counted(operator: Operator, now: float, idle: float) -> _Counts:
    counters = operator.counters
    rows, sent = sum(c.received for c in counters), sum(c.emitted for c in counters)
    return _Counts(now, idle, rows, sent, sum(counter.busy for counter in counters))


def _seen(before: _Counts, now: _Counts, block_rows: int, cores: int) -> Look:
    """Say what happened between two moments."""
    seconds, rows = max(now.moment - before.moment, 1e-9), now.rows - before.rows
    return Look(
        seconds=seconds,
        rows=rows,
        busy=now.busy - before.busy,
        block_rows=block_rows,
        crossing=0.0,
        cores=cores,
        idle=(now.idle - before.idle) / seconds,
        selectivity=(now.sent - before.sent) / max(rows, 1),
    )


def _hand_over(move: _Move, groups: int) -> list[Router]:
    """Give the state of old tasks to new ones; gives the routers from now on."""
    operator, tasks = move.operator, move.tasks
    if len(operator.tasks) == len(tasks):
        for old, new in zip(operator.tasks, tasks, strict=True):
            if isinstance(state := old.context.state, MemoryState):
                _send(state, [key for key, _ in state.items()], new)
        return operator.routers
    table = RoutingTable.even(len(tasks), groups)
    for old in operator.tasks:
        if isinstance(state := old.context.state, MemoryState):
            keys = state.keys()
            places = table.places_of(hash_keys(keys)).tolist()
            for number, task in enumerate(tasks):
                own = [key for key, place in zip(keys, places, strict=True) if place == number]
                _send(state, own, task)
    groupings = [input_.grouping for input_ in operator.component.inputs]
    return [balanced_router(grouping, table, operator.osg) for grouping in groupings]


def _send(state: MemoryState, keys: list[Key], task: RemoteTask) -> None:
    if keys:
        task.take(state.write_kept(state.give_away(keys)))
