"""Policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from thalweg.control.scaling.autoscale import Autoscale
from thalweg.control.scaling.autoscale_plus import AutoscalePlus
from thalweg.control.scaling.ds2 import Ds2
from thalweg.control.scaling.incremental import Incremental
from thalweg.control.scaling.learning import Learning, Table
from thalweg.control.scaling.ours import PROFILES, Thalweg
from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Policy
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

    >>> named("ds2").name, named("thalweg:economy").use.target
    ('ds2', 0.97)
    """
    name, _, profile = text.partition(":")
    for known in PROFILES:
        if (name, profile) == ("thalweg", known):
            return Thalweg(known)
    if name not in POLICIES or profile:
        known_names = [*POLICIES, *(f"thalweg:{profile}" for profile in PROFILES)]
        raise UsageError(
            explain("scaling policy", expected=f"one of {known_names}", got=repr(text))
        )
    return POLICIES[name]()
