"""What a run is told about scaling, as one value."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from thalweg.config import ProfileName, Quality
from thalweg.control.scaling.policies import faster, meeting, named
from thalweg.control.scaling.values import Node, Policy
from thalweg.errors import UsageError, explain

#: Seconds: looks that are nearer to each other find nothing, and take all the time there is.
_LEAST_PERIOD = 0.01


@dataclass(frozen=True)
class Scaling:
    """How the degrees of components follow the stream while a topology runs.

    >>> Scaling("autoscale", speed=20).leading.timing
    Timing(delta=3.0, period=0.5, grace=3.0)
    """

    #: Who decides: a policy, or its name.
    policy: str | Policy = "thalweg"
    #: Tasks that a component may have at most: one number for all, or by component. None, and for
    #: components that are not named: what the runtime allows.
    most: int | Mapping[str, int] | None = None
    #: An SQLite file for samples and decisions; a later run goes on with what is in it.
    history: str | os.PathLike[str] | None = None
    #: Divides all seconds of policies: 20 lets them decide on 3 s where they go by a minute.
    speed: float = 1.0
    #: The largest share of their tuples that sources may give up where the highest degrees do not
    #: do; 0 for none, None for what the topology allows (its quality).
    loss: float | None = None
    #: Whether decisions are only told.
    dry_run: bool = False
    #: Other policies, which are asked as well, and whose decisions are only told.
    beside: tuple[str | Policy, ...] = ()
    #: Whether operators that say that they may change places do so where it is measured to pay.
    order: bool = True
    #: Tasks that all components may have together, sources too; None for no limit. Where they are
    #: too few, components of the highest priority come first.
    slots: int | None = None
    #: Whether Delta has to be longer than the windows of operators. They are lengths of event time:
    #: say False where a stream is replayed much faster than it happened.
    windows: bool = True
    #: Whether policies that go by the cores of a task see what tasks have used, as that becomes
    #: known, and not what was declared.
    learns: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.speed < math.inf:
            expected = "more than 0, and finite"
            raise UsageError(explain("scaling speed", "", expected, str(self.speed)))
        if self.loss is not None and not 0 <= self.loss < 1:
            raise UsageError(explain("scaling loss", "", "0 or more, below 1", str(self.loss)))
        limits = self.most.values() if isinstance(self.most, Mapping) else [self.limit("", 1)]
        if min(limits, default=1) < 1:
            raise UsageError(explain("scaling most", "", "1 or more", str(self.most)))
        if self.slots is not None and self.slots < 1:
            raise UsageError(explain("scaling slots", "", "1 or more", str(self.slots)))
        for policy in (self.leading, *self.others):
            _check_timing(policy)

    @classmethod
    def of(cls, given: str | Policy | Scaling | None) -> Scaling | None:
        """Take a policy, its name, or all settings; None for no scaling."""
        return given if given is None or isinstance(given, Scaling) else cls(given)

    @property
    def leading(self) -> Policy:
        """The policy that decides."""
        return self._made(self.policy)

    @property
    def others(self) -> tuple[Policy, ...]:
        """Those that are asked as well."""
        return tuple(map(self._made, self.beside))

    @property
    def called(self) -> str:
        """The name of the policy that decides, as it was given."""
        return self.policy if isinstance(self.policy, str) else self.policy.name

    def led_by(self, policy: str) -> Scaling:
        """Give the same with another policy; one that was asked beside changes places with it.

        >>> Scaling("ds2", beside=("static", "autoscale")).led_by("static").beside
        ('ds2', 'autoscale')
        """
        beside = tuple(self.policy if each == policy else each for each in self.beside)
        return replace(self, policy=policy, beside=beside)

    def windowed(self, node: Node, window: float, bursts: float) -> Node:
        """Describe a component that holds tuples for so long, if policies are to know of it."""
        return replace(node, window=window, bursts=bursts) if self.windows else node

    def limit(self, component: str, default: int) -> int:
        """Give the highest degree of a component."""
        if isinstance(self.most, Mapping):
            return self.most.get(component, default)
        return default if self.most is None else self.most

    def policies(self, quality: Quality | None = None) -> list[Policy]:
        """Give the leading policy and the others, for a topology that asks for a quality.

        >>> [leading] = Scaling().policies(Quality(latency="2 s", profile="economy"))
        >>> leading.profile, leading.bound
        ('economy', 2.0)
        """
        asked = Quality() if quality is None else quality
        made = (self._made(each, asked.profile) for each in (self.policy, *self.beside))
        return [meeting(each, asked.bound) for each in made]

    def _made(self, policy: str | Policy, profile: ProfileName | None = None) -> Policy:
        made = named(policy, profile) if isinstance(policy, str) else policy
        if not callable(getattr(made, "decide", None)):
            raise UsageError(explain("scaling", "", "a policy or its name", repr(policy)))
        return faster(made, self.speed)


def _check_timing(policy: Policy) -> None:
    timing = policy.timing
    if not timing.period >= _LEAST_PERIOD:
        subject, hint = f"sample period of {policy.name!r}", "a lower speed"
        expected = f"{_LEAST_PERIOD:g} s or more"
        raise UsageError(explain(subject, "", expected, f"{timing.period:g} s", hint))
    for name, value in {"delta": timing.delta, "grace": timing.grace}.items():
        if not value >= 0:  # also nan
            subject = f"{name} of {policy.name!r}"
            raise UsageError(explain(subject, "", "0 s or more", f"{value:g} s"))
