"""Going on where a source was before a restart, by letting the same rows go by again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from thalweg.errors import StateError, explain
from thalweg.events import Event
from thalweg.metrics import Counter
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.refusals import Refusals
from thalweg.runtimes.spout_tasks import BlockSpoutTask


class Skipping:
    """Drops the first rows of a block spout, and says nothing of the records it refuses there.

    Made before the task is prepared, since a body may keep what its context offers.
    """

    def __init__(self, task: BlockSpoutTask, rows: int) -> None:
        self._task = task
        self._rows = self._left = rows
        self._loud = task.refusals
        task.refusals = _quiet(task)
        task.context = replace(task.context, refuse_record=self._refuse)
        task.bind(context=task.context)

    def __bool__(self) -> bool:
        return self._left > 0

    def limit(self, rows: int) -> int:
        """Say how many rows to ask for, so that nothing new is refused in silence."""
        return min(rows, self._left) if self else rows

    def behind(self, emissions: Sequence[Emission]) -> list[Emission]:
        """Give what is new."""
        kept = []
        for emission in emissions:
            dropped = min(self._left, emission.batch.num_rows)
            self._left -= dropped
            if dropped < emission.batch.num_rows:
                kept.append(replace(emission, batch=emission.batch[dropped:], lists={}))
        if not self:
            self.end()
        elif self._task.finished:
            raise self._too_short()
        return kept

    def end(self) -> None:
        """Refuse records aloud again."""
        self._task.refusals = self._loud

    def _refuse(self, raw: str, reason: str) -> None:
        self._task.refusals.record_failed(raw, reason)

    def _too_short(self) -> StateError:
        context = self._task.context
        return StateError(
            explain(
                f"spout {context.component!r}, task {context.task}, after a restart",
                expected=f"the {self._rows} rows that it had sent before, and then new ones",
                got=f"only {self._rows - self._left} rows",
                hint="let it give the same rows again, or go on by itself in resume(rows)",
            )
        )


def _ignore(_event: Event) -> None:
    """Say nothing."""


def _quiet(task: BlockSpoutTask) -> Refusals:
    """Apply the same policy, but count, keep and tell nothing."""
    component, options = task.component, task.component.options
    if options.on_error != "fail":
        component = replace(component, options=replace(options, on_error="skip"))
    return Refusals(
        component, task.context.task, Counter(component.name, component.degree), _ignore
    )
