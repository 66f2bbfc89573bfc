"""When tasks need other places though no degree changes: links that are full, cores, machines.

Too much for a link is another congestion than too much for the tasks: more of them are of no use to
a component whose tuples wait on their way. The cure is to bring tasks together that talk much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from thalweg.control.scaling.values import Node, Sample, Stream, TaskLoad, View
from thalweg.placement.values import Task, Unit

#: Part of their time that tasks work at most where it is not they who are too slow.
_IDLE = 0.9


@dataclass(frozen=True)
class Triggers:
    """What lets tasks move."""

    #: How full a link has to be for its streams to count as limited by it.
    link: float = 0.9
    #: Cores that the tasks of a core ask for together beyond which its machine is overloaded.
    over: float = 1.0
    #: Part of its cores that a machine uses below which its tasks go to others; 0 for never.
    under: float = 0.0


@dataclass(frozen=True)
class Trouble:
    """What is wrong with the places that tasks have."""

    #: Streams that are limited by a link.
    links: tuple[Stream, ...]
    #: Whether a machine is overloaded; whether one does so little that it may not be needed.
    over: bool
    under: bool
    reason: str


@dataclass(frozen=True)
class Moved:
    """Tasks that get another unit, and why."""

    units: Mapping[Task, Unit]
    reason: str

    @property
    def changes(self) -> bool:
        """Whether any task moves."""
        return bool(self.units)

    @property
    def components(self) -> tuple[str, ...]:
        """The components whose tasks move, each once."""
        return tuple(dict.fromkeys(task.component for task in self.units))


def trouble(view: View, triggers: Triggers) -> Trouble | None:
    """Look at links and machines, as the last samples tell of them; None if all is well."""
    full = {s: use for s, use in _links(view).items() if use >= triggers.link}
    loads = _loads(view)
    over = max((load.asked for load in loads), default=0.0) > triggers.over + 1e-9
    least = min((load.machine for load in loads if load.machine is not None), default=1.0)
    texts = [_filled(stream, use) for stream, use in full.items()]
    texts += ["tasks ask for more of a core than there is"] if over else []
    texts += [f"a machine is used to {100 * least:.0f} %"] if least < triggers.under else []
    if not texts:
        return None
    return Trouble(tuple(full), over, least < triggers.under, "; ".join(texts))


def limited(view: View, node: Node, link: float) -> str:
    """Say why more tasks are of no use to a component; empty if they may be.

    >>> from thalweg.control.scaling.monitor import Monitor
    >>> nodes = Node("split"), Node("count", (Stream("split", "out"),), most=8)
    >>> monitor = Monitor(nodes)
    >>> monitor.add(Sample("split", 10.0, 1, 900, 900, {"out": 900}, links={"out": 0.97}))
    >>> monitor.add(Sample("count", 10.0, 1, 400, 400, busy=4.0))
    >>> limited(monitor.view(10.0), nodes[1], link=0.9)
    "the link of 'split' -> 'out' is 97 % full"
    """
    last = _last(view, node.name)
    if last is None or last.busy > _IDLE * last.degree * view.period:
        return ""
    full = ((stream, _links(view).get(stream, 0.0)) for stream in node.inputs)
    return "; ".join(_filled(stream, use) for stream, use in full if use >= link)


def _links(view: View) -> dict[Stream, float]:
    lasts = [last for node in view.nodes if (last := _last(view, node.name)) is not None]
    return {Stream(last.component, name): use for last in lasts for name, use in last.links.items()}


def _loads(view: View) -> Sequence[TaskLoad]:
    lasts = (_last(view, node.name) for node in view.nodes)
    return [load for last in lasts if last is not None for load in last.tasks]


def _last(view: View, name: str) -> Sample | None:
    window = view.windows.get(name)
    return window.last if window is not None and window.samples else None


def _filled(stream: Stream, use: float) -> str:
    return f"the link of {stream.component!r} -> {stream.name!r} is {100 * use:.0f} % full"
