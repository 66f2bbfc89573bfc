"""What every run tells by itself: that tuples came too late, or that nothing tells the time.

>>> late_text("visits", 3)
"3 tuples came too late at 'visits'; see delay= of event_time, or late='side' of window; inputs \
that are not in step should be sources of their own"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from thalweg.events import Event, Noticed, Progress, RunFinished, RunStarted
from thalweg.metrics import Snapshot

#: The stream of tuples that came too late, where windows have one.
LATE_STREAM = "late"


class Noticing:
    """Passes events on, and tells once of each component that has lost tuples."""

    def __init__(self, listen: Callable[[Event], None], topology: Any) -> None:
        self._listen, self._topology = listen, topology
        self._told: set[str] = set()

    def __call__(self, event: Event) -> None:
        """Hear an event."""
        if isinstance(event, Progress | RunFinished):
            for component, text in late_texts(event.snapshot, self._topology):
                if component not in self._told:
                    self._told.add(component)
                    self._listen(Noticed(text))
        self._listen(event)
        if isinstance(event, RunStarted):
            names = untold(self._topology)
            if names:
                self._listen(Noticed(untold_text(names)))


def late_texts(snapshot: Snapshot, topology: Any) -> Iterator[tuple[str, str]]:
    """Give the components that have left out tuples, and what to say of it."""
    for metrics in snapshot.components:
        if metrics.late and not topology.readers(metrics.component, LATE_STREAM):
            yield metrics.component, late_text(metrics.component, metrics.late)


def late_text(component: str, tuples: int) -> str:
    """Say that tuples were left out, and what to do."""
    some = "1 tuple" if tuples == 1 else f"{tuples:,} tuples"
    hint = "see delay= of event_time, or late='side' of window"
    apart = "inputs that are not in step should be sources of their own"
    return f"{some} came too late at {component!r}; {hint}; {apart}"


def untold(topology: Any) -> list[str]:
    """Name the components that wait for time to go on, where no source before them tells it."""
    found = []
    #: The sources before each component; those before a component come before it.
    before: dict[str, list[Any]] = {}
    for component in topology:
        if component.is_spout:
            before[component.name] = [component]
            continue
        sources = [s for input_ in component.inputs for s in before[input_.component]]
        before[component.name] = sources
        timeless = all(source.options.time is None for source in sources)
        goes_on = not all(getattr(source.body, "ends", False) for source in sources)
        if timeless and goes_on and getattr(component.body, "timely", False):
            found.append(component.name)
    return found


def untold_text(names: list[str]) -> str:
    """Say that windows wait for the end of the stream, and what to do."""
    shown = ", ".join(map(repr, names))
    return f"no source tells {shown} the time, so windows are told at its end only; say time= there"
