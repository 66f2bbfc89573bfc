"""Settings, one frozen value per concern."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from thalweg.clock import seconds
from thalweg.errors import TopologyError, UsageError, explain, meant
from thalweg.eventtime import EventTime, as_event_time
from thalweg.hooks import checked_hooks

OrderName = Literal["sender", "key", "total"]
#: From the weakest promise to the strongest.
ORDERS: tuple[OrderName, ...] = ("sender", "key", "total")


IsolationName = Literal["thread", "process"]
ISOLATIONS: tuple[IsolationName, ...] = ("thread", "process")

OverflowName = Literal["block", "drop_oldest", "fail"]
OVERFLOWS: tuple[OverflowName, ...] = ("block", "drop_oldest", "fail")

SheddingName = Literal["random", "window"]
SHEDDINGS: tuple[SheddingName, ...] = ("random", "window")

#: What a topology's owner cares about most.
ProfileName = Literal["performance", "balanced", "economy"]
PROFILE_NAMES: tuple[ProfileName, ...] = ("performance", "balanced", "economy")

#: Options that are one of a few words.
_CHOICES: dict[str, tuple[str, ...]] = {
    "order": ORDERS,
    "isolation": ISOLATIONS,
    "overflow": OVERFLOWS,
}


@dataclass(frozen=True)
class DeadLetter:
    """Put what cannot be processed into this file (JSON lines: raw record and reason)."""

    path: Path


OnError = Literal["fail", "skip"] | DeadLetter


def dead_letter(path: str | os.PathLike[str]) -> DeadLetter:
    """Keep bad records or tuples in a file, with the reason, and go on.

    >>> dead_letter("bad.jsonl").path.name
    'bad.jsonl'
    """
    return DeadLetter(Path(path))


def on_error(policy: object) -> OnError:
    """Check a policy for what cannot be processed."""
    if policy == "fail":
        return "fail"
    if policy == "skip":
        return "skip"
    if isinstance(policy, DeadLetter):
        return policy
    raise UsageError(
        explain("error policy", expected="'fail', 'skip' or dead_letter(path)", got=repr(policy))
    )


@dataclass(frozen=True)
class Options:
    """How one component runs."""

    #: Number of tasks; None lets the runtime choose (inline: one).
    degree: int | None = None
    #: Seconds between two calls of process_tick; None for no ticks.
    tick: float | None = None
    #: What to do when the component raises on a tuple.
    on_error: OnError = "fail"
    #: Least order of its inputs; None for what its kind asks for.
    order: OrderName | None = None
    #: Seconds after its last change at which a key of its state is forgotten; None for never.
    ttl: float | None = None
    #: Where its tasks run on the local runtime: in its threads, or in processes of their own; None
    #: for threads, until processes are measured to pay.
    isolation: IsolationName | None = None
    #: What happens on the local runtime to what a source gives that cannot be slowed, when too
    #: much waits behind it; None for block: it is not asked meanwhile.
    overflow: OverflowName | None = None
    #: Objects that hear what its tasks do (:mod:`thalweg.hooks`), beside those of the run.
    hooks: tuple[Any, ...] = ()
    #: Tuples with an id that each task of a spout may have open; None for as many as there are.
    max_pending: int | None = None
    #: Which field of a source says when something happened; None for nobody asks.
    time: EventTime | None = None
    #: What it is worth when there are not tasks for all; more is better.
    priority: float = 1.0

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str) -> Options:
        """Read options given by name; an unknown name is an error that says which exist."""
        return replace(cls(), **cls.checked(values, where))

    @classmethod
    def checked(cls, values: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Check options given by name and bring them into their final form."""
        known = [field.name for field in fields(cls)]
        read = dict(values)
        for name in read:
            if name not in known:
                hint = meant(name, known)
                raise TopologyError(
                    explain(f"option {name!r}", where, f"one of {known}", hint=hint)
                )
        for name in ("tick", "ttl"):
            if read.get(name) is not None:
                read[name] = seconds(read[name], f"{name} in {where}")
        if "on_error" in read:
            read["on_error"] = on_error(read["on_error"])
        if read.get("time") is not None:
            read["time"] = as_event_time(read["time"])
        if "hooks" in read:
            read["hooks"] = checked_hooks(read["hooks"], where)
        most = read.get("max_pending")
        if most is not None and (not isinstance(most, int) or most < 1):
            raise TopologyError(explain("max_pending", where, "at least 1", repr(most)))
        if "priority" in read:
            read["priority"] = _checked_priority(read["priority"], where)
        for name, choices in _CHOICES.items():
            if read.get(name) is not None and read[name] not in choices:
                expected = f"one of {choices}"
                raise TopologyError(explain(name, where, expected, repr(read[name])))
        return read


def _checked_priority(given: object, where: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise TopologyError(explain("priority", where, "a number", repr(given)))
    return float(given)


@dataclass(frozen=True)
class Quality:
    """What a topology asks for: how soon, at what price, and what it may give up.

    >>> Quality(loss=0.2, by="window", window="10 s").length
    10.0
    >>> Quality(latency="500 ms", profile="performance").bound
    0.5
    """

    #: The largest share of its sources' tuples; 0 for none.
    loss: float = 0.0
    #: Single tuples at random, or all tuples of some windows, so that the others are exact.
    by: SheddingName = "random"
    #: Seconds of a window, by the clock as tuples come.
    window: float | str | None = None
    #: Seconds from a source to the last component that a tuple may take; None for any.
    latency: float | str | None = None
    #: The profile of policy ``thalweg`` where a run says none.
    profile: ProfileName | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.loss < 1:
            raise UsageError(explain("quality loss", "", "0 or more, below 1", str(self.loss)))
        if self.by not in SHEDDINGS:
            raise UsageError(explain("quality by", "", f"one of {SHEDDINGS}", repr(self.by)))
        if (self.by == "window") != (self.window is not None):
            expected = "a duration with by='window', and only then"
            raise UsageError(explain("quality window", "", expected, repr(self.window)))
        if self.profile not in (None, *PROFILE_NAMES):
            expected = f"one of {PROFILE_NAMES}"
            raise UsageError(explain("quality profile", "", expected, repr(self.profile)))
        _ = self.length, self.bound

    @property
    def bound(self) -> float | None:
        """Seconds that a tuple may take; None for any."""
        return None if self.latency is None else seconds(self.latency, "quality latency")

    @property
    def length(self) -> float | None:
        """Seconds of a window; None where single tuples go."""
        return None if self.window is None else seconds(self.window, "quality window")

    def allowed(self, loss: float | None) -> float:
        """Give the share that a run may give up, which has its own word: None for none."""
        return self.loss if loss is None else min(loss, self.loss)


def setting(text: str, option: str = "--set") -> tuple[str, str]:
    """Read ``key=value`` from a command line.

    >>> setting("rows=100")
    ('rows', '100')
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(explain(option, expected="key=value", got=repr(text)))
    return name.strip(), value
