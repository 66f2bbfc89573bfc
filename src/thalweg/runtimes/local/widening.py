"""When a keyed component without a degree is split, so that many workers can wait in it at once.

A component that is busy in Python gains nothing by it, and every block that is cut into parts
costs; so this is done only for one that is seen to wait, for a service, say, and has a queue.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.components import Kind
from thalweg.runtimes.local.isolating import speaks_last
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.separable import remembers
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.pairing import has_movable_keys

#: Seconds between two looks, and looks in a row at which a component has to wait.
LOOK_EVERY, LOOKS = 0.1, 3


@dataclass(frozen=True)
class Widen:
    """A component is to have more tasks, and why."""

    component: str
    degree: int
    reason: str


class Widening:
    """Looks for components that wait."""

    def __init__(self, operators: list[Operator], settings: Settings) -> None:
        plain = settings.assigning == "workers" and settings.queue == "hybrid"
        plain = plain and settings.scaling is None  # then a policy decides about degrees
        self._waited = {o: 0 for o in operators if plain and _can_be_split(o)}
        self._degree = settings.most_workers
        self._next = 0.0

    def look(self, now: float) -> Widen | None:
        """Give a component that is to be split now; each of them is once."""
        if not self._waited or now < self._next:
            return None
        self._next = now + LOOK_EVERY
        for operator, times in list(self._waited.items()):
            waits = operator.waits and operator.worklist.rows > 0
            self._waited[operator] = times + 1 if waits else 0
            if self._waited[operator] >= LOOKS:
                del self._waited[operator]
                return self._decided(operator)
        return None

    def _decided(self, operator: Operator) -> Widen | None:
        component = operator.component
        bodies = [task.body for task in operator.tasks if hasattr(task, "body")]
        if operator.degree > 1 or any(remembers(component.body, body) for body in bodies):
            return None
        rows = operator.worklist.rows
        reason = f"{component.name!r} waits, and {rows:,} tuples wait for it"
        return Widen(component.name, self._degree, f"{reason}: {self._degree} tasks in place of 1")


def _can_be_split(operator: Operator) -> bool:
    component = operator.component
    free = component.options.degree is None and component.tick is None
    keyed = component.kind is Kind.KEYED and has_movable_keys(component)
    here = component.options.isolation != "process"
    return free and keyed and here and not speaks_last(component)
