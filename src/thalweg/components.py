"""What users write: spouts and bolts, tuple by tuple or on whole record batches.

A component's *body* is one of these objects. Each task works on its own copy of it, made before
``prepare``; attributes set in ``__init__`` are therefore private to a task.
"""

from __future__ import annotations

import copy
import enum
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self

import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM, Origin, Rows
from thalweg.contexts import KeyedState, TaskContext, Timers
from thalweg.errors import UsageError, explain
from thalweg.keys import Key
from thalweg.tuples import Tuple


class Kind(enum.Enum):
    """What state a bolt keeps, and so how its tuples may be spread."""

    STATELESS = "stateless"
    KEYED = "keyed"
    GLOBAL = "global"


class Body:
    """Common to spouts and bolts: outputs, life cycle, and what the runtime sets."""

    #: Fields of the default stream: names, {name: type}, an Arrow schema or a record class.
    outputs: Any = ()
    #: Further streams by name, with their fields.
    streams: Mapping[str, Any] = MappingProxyType({})
    #: Names of the streams on which the sender chooses the receiving task.
    direct_streams: ClassVar[frozenset[str]] = frozenset()
    #: Whether its tasks cannot come and go while a run goes on, since each writes a file, say.
    fixed_degree: ClassVar[bool] = False

    context: TaskContext

    def prepare(self, context: TaskContext) -> None:
        """Get ready; called once per task before anything else."""

    def cleanup(self) -> None:
        """Let go of what ``prepare`` took; called once per task at the end, also after errors."""

    def make_batch(self, columns: Sequence[Any], stream: str = DEFAULT_STREAM) -> pa.RecordBatch:
        """Make a record batch for a stream of columns: Arrow arrays, or lists of values."""
        return self.context.shapes[stream].batch(columns)

    def _not_running(self, what: str) -> NoReturn:
        raise UsageError(
            explain(
                f"{type(self).__name__}.{what}",
                expected="to be called inside a running topology",
                hint="use thalweg.testing.run_inline to try a component",
            )
        )


class Shared:
    """For bodies whose tasks share what they refer to (functions, lists): a shallow copy each."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy.copy(self)


class Spout(Body):
    """A source that emits tuples when asked.

    ``next_tuple`` emits none, one or several tuples; after ``finish()`` it is not asked again.
    A tuple emitted with an ``id`` is tracked: ``ack(id)`` follows when all that stems from it has
    been processed, ``fail(id)`` when some of it failed. Replays are emitted in ``fail``, or later
    in ``next_tuple`` by a spout that calls ``finish`` only when nothing is open any more.
    """

    #: False when what it gives comes in any case, whether somebody has room for it or not.
    slowable: ClassVar[bool] = True
    #: Whether it may ask, with ``emit(..., ask=True)``, which tasks get a tuple.
    asks: ClassVar[bool] = False

    def next_tuple(self) -> None:
        """Emit what there is now, without waiting."""
        raise NotImplementedError

    def ack(self, id: Any) -> None:
        """Hear that a tuple has been processed completely."""

    def fail(self, id: Any) -> None:
        """Hear that a tuple failed; emit it again to have it replayed."""

    def activate(self) -> None:
        """Begin to be asked for tuples."""

    def deactivate(self) -> None:
        """Stop being asked for tuples."""

    def emit(self, *values: Any, id: Any = None, stream: str = DEFAULT_STREAM) -> None:
        """Send one tuple."""
        self._not_running("emit")

    def emit_direct(
        self, task: int, *values: Any, id: Any = None, stream: str = DEFAULT_STREAM
    ) -> None:
        """Send one tuple to the given task of each receiver of a direct stream."""
        self._not_running("emit_direct")

    def finish(self) -> None:
        """Say that there will be no more tuples."""
        self._not_running("finish")


#: What ``wait_hint`` gives when there is certainly more: between two files, say.
AT_ONCE = 1e-6


class BlockSpout(Body):
    """A source that gives record batches; files and generators are of this kind.

    ``next_block`` may use :meth:`make_batch` to turn columns of values into a record batch.
    """

    #: False when what it gives comes in any case, whether somebody has room for it or not.
    slowable: ClassVar[bool] = True
    #: False when a new task does not give the same rows again, in the same order.
    replays: ClassVar[bool] = True
    #: False while it has nothing to read: event time does not wait for it then.
    awaited: bool = True
    #: Whether it is known that it comes to an end by itself.
    ends: bool = False
    #: How far event time has come with what it gave, where it says so (:mod:`thalweg.strands`).
    reached: int | None = None
    #: Columns of the block given last as Python values, where they are at hand and stay so.
    lists: dict[str, list[Any]] = {}  # noqa: RUF012 (replaced, never changed)

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give up to ``limit`` rows, or None when there are none now, without waiting."""
        raise NotImplementedError

    def wait_hint(self) -> float:
        """Give the seconds until it is worth asking again: 0 if unknown, AT_ONCE if it has more."""
        return 0.0

    def taken_in(self) -> None:
        """Hear that all rows given so far have entered; with a log they are in it by now."""

    def backlog(self) -> int | None:
        """Give the number of rows that are there and were not given yet; None when unknown."""
        return None

    def finish(self) -> None:
        """Say that there will be no more rows."""
        self._not_running("finish")


class _BoltBody(Body):
    #: What state it keeps.
    kind: ClassVar[Kind] = Kind.STATELESS
    #: True when the result does not depend on the order of its input.
    commutative: ClassVar[bool] = False
    #: True when its default stream is its input, tuple for tuple, whatever its state.
    passes_on: ClassVar[bool] = False
    #: Type of the values in its state (a Struct, a dataclass ...); Any for plain values.
    state_type: Any = Any
    #: How values of its state become bytes, where msgpack of ``state_type`` will not do.
    state_codec: Any = None
    #: True when it spends its time in Python, so that two threads would only wait for each other.
    pure_python: ClassVar[bool] = False
    #: Whether it makes Python objects of every tuple; small blocks then stay in the caches.
    by_tuple: ClassVar[bool] = False
    #: Seconds for which it holds tuples before it sends what came of them, as windows do.
    holds: float = 0.0
    #: Seconds between two ticks where the topology says nothing; None for no ticks.
    default_tick: ClassVar[float | None] = None
    #: Whether each task is called in one thread; None: if its class has a ``prepare`` of its own.
    one_thread: ClassVar[bool | None] = None

    #: State of this task (keyed and global bolts), and timers where there is a ``process_timer``.
    state: KeyedState
    timers: Timers
    #: Where the tuples at hand come from.
    origin: Origin
    #: Names of the key fields of the tuples at hand.
    key: tuple[str, ...] = ()

    #: Whether it has to know how far event time has come, by how many microseconds that has to go
    #: on to make a difference, from where on such steps are counted, whether it sends nothing in
    #: between, so that nobody behind it waits for one, and how far behind time its tuples may be.
    timed: ClassVar[bool] = False
    watermark_step: int = 1
    watermark_offset: int = 0
    stepwise: bool = False
    watermark_lag: int = 0

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if has_timers(cls):
            cls.timed = True

    def process_tick(self) -> None:
        """Do what is done at intervals (option ``tick``)."""

    def process_watermark(self, now: int) -> None:
        """Hear that event time has come so far (``timed = True``), in microseconds since 1970."""

    def process_timer(self, key: Key, at: int, name: str) -> None:
        """Hear that a timer of a key is due, and for which time it was set, in microseconds."""

    def process_end(self) -> None:
        """Emit what is left when all inputs of a bounded run have ended."""


def has_timers(kind: type) -> bool:
    """Say whether bolts of a class hear of timers."""
    return getattr(kind, "process_timer", None) not in (None, _BoltBody.process_timer)


class Bolt(_BoltBody):
    """An operator that sees one tuple at a time, its fields as attributes.

    >>> class Split(Bolt):
    ...     outputs = ["word"]
    ...     def process(self, t):
    ...         for word in t.sentence.split():
    ...             self.emit(word)

    A tuple is acknowledged when ``process`` returns, and fails when it raises. With
    ``auto_ack = False`` the bolt calls ``ack(t)`` or ``fail(t)`` itself, at once or later.
    """

    auto_ack: ClassVar[bool] = True
    pure_python: ClassVar[bool] = True
    by_tuple: ClassVar[bool] = True

    def process(self, t: Any) -> None:
        """Handle one tuple; ``emit`` as often as needed."""
        raise NotImplementedError

    def emit(self, *values: Any, stream: str = DEFAULT_STREAM) -> None:
        """Send one tuple, its values in the order of the fields; it stems from the one at hand.

        ``stream`` is for bolts that declare further streams.
        """
        self._not_running("emit")

    def emit_direct(self, task: int, *values: Any, stream: str = DEFAULT_STREAM) -> None:
        """Send one tuple to the given task of each receiver of a direct stream."""
        self._not_running("emit_direct")

    def ack(self, t: Tuple) -> None:
        """Acknowledge a tuple (``auto_ack = False``)."""
        self._not_running("ack")

    def fail(self, t: Tuple) -> None:
        """Let a tuple fail: its spout hears it."""
        self._not_running("fail")


class BlockBolt(_BoltBody):
    """An operator on whole record batches.

    ``values(field)`` gives a column of the block at hand as Python values, converted once.
    With ``by_row`` a block whose result does not fit its fields is processed again row by row, to
    refuse only the rows that are to blame; otherwise the whole block is refused. One that
    ``reads_first`` has all values before it changes anything: so it goes on without tuples that
    have a value which Python has not.

    What ``process_block`` returns goes to the default stream. ``parents`` names for each output row
    the input row it stems from; without it, outputs of equal length stem row from row, others from
    the block as a whole.

    A commutative bolt to which only its key and the fields ``reads`` of a tuple matter may name
    these (often none). It is then prepared for blocks without other fields, and with a column
    :data:`thalweg.weights.WEIGHT` that says how many equal tuples each row stands for. If it
    ``passes_on`` tuples as well, it does so only while ``context.read_streams`` has that stream.
    """

    by_row: ClassVar[bool] = False
    reads_first: ClassVar[bool] = False
    #: Fields that matter beside the key, where equal tuples may come as one row; None for all.
    reads: tuple[str, ...] | None = None

    @property
    def takes(self) -> tuple[str, ...] | None:
        """Fields that it looks at beside the key, where others need not be sent; None for all.

        What it ``passes_on`` does not count: runtimes do that in its stead.
        """
        return self.reads

    def process_block(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Handle one record batch."""
        raise NotImplementedError

    def send(
        self,
        columns: Sequence[Any],
        parents: Rows | Callable[[], Rows],
        stream: str = DEFAULT_STREAM,
    ) -> None:
        """Send columns; a row that does not fit refuses the tuple it stems from, and no other.

        A function that gives ``parents``, in the order of the input, is called where somebody needs
        to know them.
        """
        self._not_running("send")

    def values(self, name: str) -> list[Any]:
        """Give a column of the block at hand as Python values; not to be changed."""
        self._not_running("values")

    def emit(
        self,
        batch: pa.RecordBatch,
        *,
        stream: str = DEFAULT_STREAM,
        parents: Rows | Callable[[], Rows] | None = None,
    ) -> None:
        """Send a record batch; ``parents`` as for ``send``."""
        self._not_running("emit")


AnySpout = Spout | BlockSpout
AnyBolt = Bolt | BlockBolt
AnyBody = AnySpout | AnyBolt
