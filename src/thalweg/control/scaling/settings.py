"""What a run is told about scaling, as one value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.control.scaling.policies import faster, named
from thalweg.control.scaling.values import Policy
from thalweg.errors import UsageError, explain


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

    def __post_init__(self) -> None:
        if not self.speed > 0:
            raise UsageError(explain("scaling speed", "", "more than 0", str(self.speed)))
        if self.loss is not None and not 0 <= self.loss < 1:
            raise UsageError(explain("scaling loss", "", "0 or more, below 1", str(self.loss)))
        limits = self.most.values() if isinstance(self.most, Mapping) else [self.limit("", 1)]
        if min(limits, default=1) < 1:
            raise UsageError(explain("scaling most", "", "1 or more", str(self.most)))
        _ = self.leading, self.others

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

    def limit(self, component: str, default: int) -> int:
        """Give the highest degree of a component."""
        if isinstance(self.most, Mapping):
            return self.most.get(component, default)
        return default if self.most is None else self.most

    def _made(self, policy: str | Policy) -> Policy:
        made = named(policy) if isinstance(policy, str) else policy
        if not callable(getattr(made, "decide", None)):
            raise UsageError(explain("scaling", "", "a policy or its name", repr(policy)))
        return faster(made, self.speed)
