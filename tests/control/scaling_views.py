"""Views made by hand, for tests of the policies that read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from thalweg.control.scaling.monitor import Monitor
from thalweg.control.scaling.policies import faster
from thalweg.control.scaling.values import (
    Change,
    Decision,
    Node,
    Policy,
    Sample,
    Stream,
    TaskLoad,
    View,
    Window,
)

PERIOD = 10.0


def bolt(name: str, *parents: str, most: int = 8, **more: float) -> Node:
    """A component that reads the stream ``out`` of others."""
    inputs = tuple(Stream(parent, "out") for parent in parents)
    return Node(name, inputs, most=most, **more)  # type: ignore[arg-type] # only numbers follow


def samples(
    name: str,
    received: Sequence[int],
    *,
    cost: float = 0.1,
    degree: int = 1,
    pending: Sequence[int] | int = 0,
    ratio: float = 1.0,
    tasks: tuple[TaskLoad, ...] = (),
) -> tuple[Sample, ...]:
    """Samples of a component that processed all it could, at 10 s, 20 s and so on."""
    made = []
    for at, count in enumerate(received):
        done = min(count, int(PERIOD / cost * degree))
        waiting = pending if isinstance(pending, int) else pending[at]
        made.append(
            Sample(
                name,
                PERIOD * (at + 1),
                degree,
                count,
                done,
                {"out": round(done * ratio)},
                waiting,
                cost if done else None,
                cost if done else None,
                done * cost,
                tasks,
            )
        )
    return tuple(made)


def source(name: str, sent: Sequence[int]) -> tuple[Sample, ...]:
    """Samples of a source that sent so much."""
    return tuple(
        Sample(name, PERIOD * (at + 1), 1, 0, 0, {"out": count}) for at, count in enumerate(sent)
    )


def view(
    nodes: Sequence[Node],
    history: Mapping[str, Sequence[Sample]],
    *,
    delta: float = 60.0,
    grace: float = 0.0,
    changes: Sequence[Change] = (),
    slots: int | None = None,
) -> View:
    """A view at the time of the newest sample; degrees are those of the last samples."""
    size = round(delta / PERIOD)
    now = max((h[-1].time for h in history.values() if h), default=0.0)
    found = {node.name: tuple(history.get(node.name, ())) for node in nodes}
    begin = now - (size - 0.5) * PERIOD
    windows = {
        name: Window(tuple(s for s in kept if s.time > begin), size) for name, kept in found.items()
    }
    degrees = {name: kept[-1].degree if kept else 1 for name, kept in found.items()}
    return View(
        now, tuple(nodes), degrees, windows, delta, PERIOD, found, tuple(changes), grace, slots
    )


def drive(
    policy: Policy,
    rates: Sequence[float],
    *,
    cost: float = 0.08,
    degree: int = 1,
    most: int = 8,
    speed: float = 1.0,
) -> list[Sample]:
    """Let a policy run one component that is fed at these rates, as a fluid would flow.

    With a speed everything happens so much faster, and the policy is told so.
    """
    policy, period, cost = faster(policy, speed), PERIOD / speed, cost / speed
    node = bolt("work", "rate", most=most)
    monitor = Monitor([Node("rate"), node], policy.timing)
    made: list[Sample] = []
    waiting = 0
    for at, rate in enumerate(rates, 1):
        received = round(rate * PERIOD)
        done = min(waiting + received, int(period / cost * degree))
        waiting += received - done
        seconds = cost if done else None
        feed = Sample("rate", period * at, 1, 0, 0, {"out": received})
        work = Sample(
            "work", period * at, degree, received, done, {}, waiting, seconds, seconds, done * cost
        )
        made.append(work)
        monitor.add(feed, work)
        (decision,) = policy.decide(monitor.view(period * at, {"rate": 1, "work": degree}))
        monitor.changed(period * at, [decision])
        degree = decision.degree
    return made


def throttled(
    policy: Policy, offered: Sequence[float], *, told: bool = False, cores: int = 8
) -> list[tuple[Sample, Decision]]:
    """The same where at most 50 tuples may wait, so that the source has to wait.

    It says how much it has if it is ``told``; more tasks than ``cores`` do no more.
    """
    cost, most_waiting, degree = 0.08, 50, 1
    monitor = Monitor([Node("rate"), bolt("work", "rate")], policy.timing)
    made: list[tuple[Sample, Decision]] = []
    waiting = left = 0
    for at, rate in enumerate(offered, 1):
        left += round(rate * PERIOD)
        could = int(PERIOD / cost * min(degree, cores))
        sent = min(left, could + most_waiting - waiting)
        left, done = left - sent, min(waiting + sent, could)
        waiting += sent - done
        full = 0.9 if left else 0.0
        pending = left if told else 0
        feed = Sample("rate", PERIOD * at, 1, sent, sent, {"out": sent}, pending=pending, held=full)
        busy = done * cost * max(1.0, degree / cores)
        work = Sample("work", PERIOD * at, degree, sent, done, {}, waiting, cost, cost, busy)
        monitor.add(feed, work)
        (decision,) = policy.decide(monitor.view(PERIOD * at, {"rate": 1, "work": degree}))
        monitor.changed(PERIOD * at, [decision])
        made.append((work, decision))
        degree = decision.degree
    return made


def changes(run: Sequence[Sample]) -> list[tuple[float, int, int]]:
    """When a degree changed, from what and to what."""
    pairs = pairwise(run)
    return [(a.time, a.degree, b.degree) for a, b in pairs if a.degree != b.degree]
