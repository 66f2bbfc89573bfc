"""What a run has for its tasks: where metrics are registered, and threads for background work."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from thalweg.execution import Run
from thalweg.registered import Registry
from thalweg.runtimes.background import Background


@dataclass(frozen=True)
class Services:
    """Shared by all tasks of a run, or by the one of a process."""

    registry: Registry = field(default_factory=Registry)
    pool: Background = field(default_factory=Background)

    @classmethod
    def of_run(cls, run: Run, start: float) -> Services:
        """Make those that a run asks for."""
        return cls(Registry(start), Background(run.background_threads))

    def of(self, component: str, task: int) -> dict[str, Any]:
        """Give those fields of a task's context that connect it to the services."""
        key = component, task
        return {
            "registering": partial(self.registry.register, key),
            "calling": partial(self.pool.submit, key),
        }
