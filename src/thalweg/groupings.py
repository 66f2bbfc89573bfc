"""Groupings: values that say how a stream is split among the tasks of its receiver.

A grouping describes; the routers in :mod:`thalweg.routing` act. Whatever the grouping, a router
gives each tuple to exactly one task, except ``All``, which gives it to every task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import pyarrow as pa


@runtime_checkable
class CustomGrouping(Protocol):
    """A user's own rule. ``choose`` must depend only on the batch and on its own state."""

    def prepare(self, tasks: int) -> None:
        """Learn how many tasks the receiver has; called once before the first block."""

    def choose(self, batch: pa.RecordBatch) -> Sequence[int]:
        """Give the index of the receiving task for each row."""


#: How many tasks a partial key may have: two, or more for those that are heavy.
Choices = Literal[2, "heavy"]


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Take one name, or several in any sequence."""
    return (names,) if isinstance(names, str) else tuple(names)


@dataclass(frozen=True)
class Shuffle:
    """Evenly, in turn."""


@dataclass(frozen=True)
class Fields:
    """By key: equal values of these fields go to the same task.

    With ``bounds`` the split is by range: values below the first bound go to task 0, and so on.
    """

    names: tuple[str, ...]
    bounds: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _names(self.names))
        object.__setattr__(self, "bounds", tuple(self.bounds))


@dataclass(frozen=True)
class PartialKey:
    """By key with two choices, the less loaded one taken; the receiver must be able to merge.

    With ``choices="heavy"`` keys that are too heavy for two tasks have as many as they need.
    """

    names: tuple[str, ...]
    choices: Choices = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _names(self.names))


@dataclass(frozen=True)
class LocalOrShuffle:
    """To a task at the sender's place when there is one, else in turn."""


@dataclass(frozen=True)
class All:
    """Every tuple to every task."""


@dataclass(frozen=True)
class Global:
    """Everything to the first task."""


@dataclass(frozen=True)
class Direct:
    """The sender names the receiving task (``emit_direct``)."""


@dataclass(frozen=True)
class NoGrouping:
    """The receiver does not care; the same as shuffle (Storm's ``none``)."""


@dataclass(frozen=True)
class LoadAware:
    """To the task with the least estimated work; for stateless receivers."""


@dataclass(frozen=True, eq=False)
class Custom:
    """By a user's object."""

    rule: CustomGrouping


Grouping = (
    Shuffle
    | Fields
    | PartialKey
    | LocalOrShuffle
    | All
    | Global
    | Direct
    | NoGrouping
    | LoadAware
    | Custom
)


def describe(grouping: Grouping) -> str:
    """Name a grouping as people write it.

    It says what the state of a receiver depends upon, so not how many choices a partial key has.

    >>> describe(Fields(("word",))), describe(LocalOrShuffle()), describe(NoGrouping())
    ('fields(word)', 'local_or_shuffle', 'none')
    """
    if isinstance(grouping, Fields | PartialKey):
        name = "fields" if isinstance(grouping, Fields) else "partial_key"
        ranged = isinstance(grouping, Fields) and grouping.bounds
        return f"{name}({', '.join(grouping.names)}{' by range' if ranged else ''})"
    if isinstance(grouping, Custom):
        return f"custom({type(grouping.rule).__name__})"
    return _NAMES[type(grouping)]


_NAMES: dict[type, str] = {
    Shuffle: "shuffle",
    LocalOrShuffle: "local_or_shuffle",
    All: "all",
    Global: "global",
    Direct: "direct",
    NoGrouping: "none",
    LoadAware: "load_aware",
}
