"""Policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from pathlib import Path

from thalweg.config import ProfileName
from thalweg.control.scaling.autoscale import Autoscale
from thalweg.control.scaling.autoscale_plus import AutoscalePlus
from thalweg.control.scaling.ds2 import Ds2
from thalweg.control.scaling.incremental import Incremental
from thalweg.control.scaling.learning import Learning, Table
from thalweg.control.scaling.ours import PROFILES, Thalweg
from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Policy, Timing
from thalweg.errors import UsageError, explain, meant

#: How to make each policy as it is without settings; the first is the default.
POLICIES: Mapping[str, Callable[[], Policy]] = {
    "thalweg": Thalweg,
    "static": Static,
    "incremental": Incremental,
    "learning": lambda: Learning(Table()),
    "autoscale": Autoscale,
    "autoscale+": AutoscalePlus,
    "ds2": Ds2,
}
#: Names that need nothing else: policies, and profiles of ours.
NAMES: tuple[str, ...] = (*POLICIES, *(f"thalweg:{profile}" for profile in PROFILES))


def named(text: str, profile: ProfileName | None = None) -> Policy:
    """Make a policy by its name; ``thalweg:economy`` names a profile too.

    ``profile`` is that of ``thalweg`` where the name says none.

    ``learning:FILE`` knows what ``thalweg train`` has written to a file.

    >>> named("ds2").name, named("thalweg:economy").use.target
    ('ds2', 0.97)
    """
    name, _, more = text.partition(":")
    if name == "learning" and more:
        return Learning(Table.load(Path(more)))
    for known in PROFILES:
        if name == "thalweg" and known == (more or profile):
            return Thalweg(known)
    if name not in POLICIES or more:
        known_names = [*NAMES, "learning:FILE"]
        expected, hint = f"one of {known_names}", meant(text, NAMES)
        raise UsageError(explain("scaling policy", "", expected, repr(text), hint))
    return POLICIES[name]()


def faster(policy: Policy, speed: float) -> Policy:
    """Divide all seconds that a policy goes by, for a stream that changes so much faster.

    >>> quick = faster(Thalweg(), 20)
    >>> quick.timing, quick.use.wait
    (Timing(delta=1.5, period=0.5, grace=0.5), 0.75)
    """
    if speed == 1:
        return policy
    if not is_dataclass(policy):
        expected = "a policy that is a dataclass, where a speed is given"
        raise UsageError(explain(f"scaling policy {policy.name!r}", "", expected, repr(policy)))
    old = policy.timing
    made = replace(policy, timing=Timing(old.delta / speed, old.period / speed, old.grace / speed))
    if isinstance(made, Thalweg):
        values, pause, memory = made.use.faster(speed), made.pause / speed, made.memory / speed
        made = replace(made, values=values, pause=pause, memory=memory)
    return made


def meeting(policy: Policy, bound: float | None) -> Policy:
    """Let a policy keep tuples within seconds, if it is one that can.

    >>> meeting(Thalweg(), 2.0).bound, meeting(Ds2(), 2.0) == Ds2()
    (2.0, True)
    """
    if bound is None or not isinstance(policy, Thalweg):
        return policy
    return replace(policy, bound=bound if policy.bound is None else min(bound, policy.bound))
