"""Policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from pathlib import Path

from thalweg.control.scaling.autoscale import Autoscale
from thalweg.control.scaling.autoscale_plus import AutoscalePlus
from thalweg.control.scaling.ds2 import Ds2
from thalweg.control.scaling.incremental import Incremental
from thalweg.control.scaling.learning import Learning, Table
from thalweg.control.scaling.ours import PROFILES, Thalweg
from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Policy, Timing
from thalweg.errors import UsageError, explain

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


def named(text: str) -> Policy:
    """Make a policy by its name; ``thalweg:economy`` names a profile too.

    ``learning:FILE`` knows what ``thalweg train`` has written to a file.

    >>> named("ds2").name, named("thalweg:economy").use.target
    ('ds2', 0.97)
    """
    name, _, profile = text.partition(":")
    if name == "learning" and profile:
        return Learning(Table.load(Path(profile)))
    for known in PROFILES:
        if (name, profile) == ("thalweg", known):
            return Thalweg(known)
    if name not in POLICIES or profile:
        profiles = (f"thalweg:{profile}" for profile in PROFILES)
        known_names = [*POLICIES, *profiles, "learning:FILE"]
        raise UsageError(
            explain("scaling policy", expected=f"one of {known_names}", got=repr(text))
        )
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
        use = made.use
        wait, drain, delay = use.wait / speed, use.drain / speed, use.delay / speed
        values = replace(use, wait=wait, drain=drain, delay=delay)
        made = replace(made, values=values, pause=made.pause / speed, memory=made.memory / speed)
    return made
