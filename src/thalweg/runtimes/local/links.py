"""What lies between operators: links, and what all operators of a run share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from thalweg.blocks import Block
from thalweg.groupings import All
from thalweg.runtimes.local.flights import Flights
from thalweg.runtimes.local.holding import Holding
from thalweg.runtimes.local.isolation import AnyTask
from thalweg.runtimes.local.pairs import Pairs
from thalweg.runtimes.local.ring import AnyReorderBuffer, ReorderBuffer
from thalweg.runtimes.local.settings import no_pause
from thalweg.runtimes.local.units import Special
from thalweg.topology import Component, Input


class Reader(Protocol):
    """An operator, as far as those see it that send to it."""

    component: Component
    #: Whether every unit has to come to it, be it with nothing in it.
    ordered: bool

    @property
    def away(self) -> bool:
        """Whether it is in processes of its own."""

    def arrive(self, number: int, link: Link, blocks: Sequence[Block]) -> None:
        """Take what one input has of a unit."""


@dataclass(eq=False)
class Link:
    """A stream on its way to one reader."""

    reader: Reader
    index: int
    input: Input
    #: Rows that wait at the reader, and all that have come.
    waiting: int = 0
    arrived: int = 0
    #: Who has to wait while it is full; None for a source, which looks itself.
    sender: Holding | None = None
    full: bool = False

    def fill(self, bound: int) -> None:
        """Tell the sender, if as much waits as may; under the reader's lock."""
        full = self.waiting >= bound
        if full != self.full and self.sender is not None:
            self.full = full
            (self.sender.fill if full else self.sender.drain)()

    @property
    def copies(self) -> int:
        """Tasks that get each of its tuples."""
        return self.reader.component.degree if isinstance(self.input.grouping, All) else 1


Streams = dict[str, list[Link]]


@dataclass(frozen=True)
class Wiring:
    """What all operators of a run share."""

    flights: Flights
    #: Specials that are under way, by the number of their unit.
    specials: dict[int, Special]
    #: Called when something was added to a worklist.
    woken: Callable[[Any], None]
    #: Called with (links, blocks) before the blocks are on their way, and when a part is done.
    delivered: Callable[[Link, Block], None]
    processed: Callable[[AnyTask, Block], None]
    now: Callable[[], float]
    #: Makes reorder buffers.
    ring: Callable[..., AnyReorderBuffer] = ReorderBuffer
    #: Rows that may wait on a link before its sender has to wait.
    bound: int = 100_000
    #: Called with the name of a point that a thread has come to; tests let it pause there.
    pause: Callable[[str], None] = no_pause
    #: Counts which keys occur together; None where nobody wants to know.
    pairs: Pairs | None = None
