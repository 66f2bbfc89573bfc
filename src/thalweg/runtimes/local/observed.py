"""What others see of an operator: whether it has room, waits, or needs Python's lock."""

from __future__ import annotations

from thalweg.metrics import Counter
from thalweg.routing.load_aware import OsgSettings
from thalweg.runtimes.local.isolation import AnyTask
from thalweg.runtimes.local.links import Link, Streams, Wiring
from thalweg.runtimes.local.planning import Facts
from thalweg.runtimes.local.ring import AnyReorderBuffer, Waited
from thalweg.runtimes.local.units import Item
from thalweg.runtimes.local.worklists import Worklist
from thalweg.topology import Component

# Below this share of its time at work an operator waits; it is judged when it has taken so long;
# weight of the last time.
_WAITS, _SHORT, _RECENT = 0.5, 0.0005, 0.2


class Observed:
    """The part of an operator that others look at; the rest sets these attributes."""

    component: Component
    tasks: list[AnyTask]
    streams: Streams
    inputs: list[Link]
    worklist: Worklist[Item]
    counters: list[Counter]
    #: Position in topological order.
    index: int
    degree: int
    workers: int
    limit: int
    _wiring: Wiring
    _facts: Facts
    _out: AnyReorderBuffer | None
    #: How load-aware grouping learns; None where no input has it.
    osg: OsgSettings | None = None
    #: Share of its time that it was at work rather than waiting, of late.
    _busy = 1.0
    #: Seconds, and those at work, since it was judged last.
    _took = _cpu = 0.0

    @property
    def blocked(self) -> bool:
        """Whether its readers have as much waiting as they may."""
        bound = self._wiring.bound
        for links in self.streams.values():  # asked so often that loops pay
            for link in links:
                if link.waiting >= bound:
                    return True
        return False

    @property
    def output(self) -> int:
        """Rows that wait at its readers."""
        return sum(link.waiting for links in self.streams.values() for link in links)

    @property
    def waiting(self) -> int:
        """Rows that have come and were not done."""
        return sum(link.waiting for link in self.inputs)

    @property
    def arrived(self) -> int:
        """Rows that have come so far."""
        return sum(link.arrived for link in self.inputs)

    @property
    def beside(self) -> float:
        """Tasks that work beside each other: those of Python that do not wait share its lock.

        Where one of them gets more than others, all take as long as that one.
        """
        if self.python:
            return 1.0
        if self.pooled:
            return float(self.limit)
        taken = [counter.per_task[0] for counter in self.counters[: self.degree]]
        return sum(taken) / max(taken) if any(taken) else float(self.degree)

    @property
    def sharing(self) -> float:
        """Those of them among which a block is split; others take whole ones."""
        return 1.0 if self.pooled or self._facts.spread else self.beside

    @property
    def waited(self) -> Waited:
        """How units of its output have waited for earlier ones."""
        return Waited() if self._out is None else self._out.waited

    @property
    def order(self) -> str:
        """The order in which it takes tuples: ``total``, ``key``, or ``none``: as they come."""
        if self._out is None:
            return "none"
        asked = {input_.order for input_ in self.component.inputs}
        return "key" if "key" in asked and "total" not in asked else "total"

    def _able(self) -> int:
        """Count the tasks that could begin something if its readers had room."""
        return min(max(0, self.degree - self.workers), self.worklist.takes)

    @property
    def bound(self) -> int | None:
        """Rows that may wait at its readers; None without readers."""
        return self._wiring.bound if any(self.streams.values()) else None

    @property
    def most(self) -> int | None:
        """Tasks that it may have at most, where that is bounded."""
        return len(self.tasks) if self._facts.pooled else None

    @property
    def gate(self) -> bool:
        """Whether it takes its input in order, and none of its readers does."""
        return self._facts.gate

    @property
    def pooled(self) -> bool:
        """Whether any worker may take anything, with a task of its own."""
        return self._facts.pooled

    @property
    def waits(self) -> bool:
        """Whether it spends most of its time waiting."""
        return self._busy < _WAITS

    @property
    def away(self) -> bool:
        """Whether it is in processes of its own."""
        return self.component.options.isolation == "process"

    @property
    def python(self) -> bool:
        """Whether it needs Python's lock all the time."""
        if self.away:
            return False
        return self.component.body.pure_python and not self.waits  # type: ignore[union-attr]  # a bolt

    def look(self, took: float, cpu: float) -> None:
        """Note how long a worker was with it, and how much of that it was at work."""
        self._took, self._cpu = self._took + took, self._cpu + cpu
        if self._took > _SHORT:
            self._busy += _RECENT * (min(1.0, self._cpu / self._took) - self._busy)
            self._took = self._cpu = 0.0
