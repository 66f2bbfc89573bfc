"""Bolts in Storm's manner: they acknowledge tuples by number, and say what their output stems from.

Such a bolt gets tuples a block at a time, but may hold some of them, acknowledge them later and in
any order, and send tuples that stem from several, or from none. Components that run outside, in a
child process, are of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from thalweg.blocks import DEFAULT_STREAM, Block
from thalweg.components import Bolt


class AnchoredBolt(Bolt):
    """An operator that gets numbered tuples and says of each when it is done.

    >>> class Pairs(AnchoredBolt):
    ...     outputs = ["first", "second"]
    ...     held = None
    ...     def process_tuples(self, first, block):
    ...         for number, value in enumerate(block.values("n"), first):
    ...             if self.held is None:
    ...                 self.held = number, value
    ...                 continue
    ...             before, earlier = self.held
    ...             self.emit([earlier, value], anchors=[before, number])
    ...             self.ack(before)
    ...             self.ack(number)
    ...             self.held = None

    What is not acknowledged in time fails, and the spout may send it again.
    """

    auto_ack: ClassVar[bool] = False
    # What most of them do is to talk with another process.
    pure_python: ClassVar[bool] = False

    #: Whether it is still at what it was given, since that takes long: it gets ticks, and nothing
    #: else, until it is not, where a runtime can do that; what it sends goes on meanwhile.
    busy: bool = False
    #: Number of the tuple at hand: what is sent without anchors of its own stems from it.
    at: int = -1
    #: Whether somebody wants to know how the tuples of the block at hand end.
    tracked: bool = False

    def process(self, t: Any) -> None:
        """Never called: tuples come as blocks."""
        self.process_tuples(self.at, t)

    def process_tuples(self, first: int, block: Block) -> None:
        """Handle the tuples of a block; they have the numbers ``first``, ``first + 1`` ..."""
        raise NotImplementedError

    def process_pause(self) -> None:
        """Finish what is held: the bolt is about to be forgotten, or some of its keys to move.

        The first is so on Spark with each batch, and with a checkpoint before each snapshot, behind
        which another run may go on; the second of keyed bolts on all runtimes.

        On Spark a tuple that is not acknowledged behind this fails, if anybody waits for its end.
        Otherwise it would be lost, and the batch fails.
        """

    @property
    def waiting(self) -> bool:
        """Whether it wants :meth:`process_wake` to be called, though no tuple comes."""
        return False

    def process_wake(self) -> None:
        """Send what has come up beside the tuples."""

    def emit(  # type: ignore[override]  # Storm's manner: a list of values
        self,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Sequence[int] | None = None,
        task: int | None = None,
        ask: bool = False,
    ) -> list[int] | None:
        """Send one tuple.

        ``anchors`` are the numbers of the tuples that it stems from, None for the one at hand.
        ``task`` is the receiving task on a direct stream. With ``ask`` the numbers of the
        receiving tasks come back, as :mod:`thalweg.multilang.context` counts them.
        """
        self._not_running("emit")

    #: Columns of the default stream and anchors of its tuples, for who adds to them directly: each
    #: value to its column, and, before :attr:`at` changes, that number for each tuple added.
    outbox: tuple[list[list[Any]], list[Any]] | None = None

    def ack(self, t: Any) -> None:
        """Acknowledge the tuple with this number."""
        self._not_running("ack")

    def fail(self, t: Any) -> None:
        """Let the tuple with this number fail: its spout hears it."""
        self._not_running("fail")

    def begin_again(self) -> None:
        """Take back all that was said and sent of the block at hand."""
        self._not_running("begin_again")

    def refuse(self, number: int, error: Exception) -> None:
        """Say that a tuple of the block at hand cannot be processed; the error policy decides."""
        self._not_running("refuse")
