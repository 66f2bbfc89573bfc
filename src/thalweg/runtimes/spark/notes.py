"""What tasks tell the driver, carried through the exchanges and out with the one action."""

from __future__ import annotations

import traceback

import msgspec

from thalweg import errors
from thalweg.errors import ComponentError, ThalwegError
from thalweg.events import ChildSaid, Noticed, RecordRefused, TupleRefused
from thalweg.statelog.manifests import StagedRef
from thalweg.statelog.objects import CorruptRun
from thalweg.statelog.runs import RunRef

#: Refused tuples that a task describes; beyond that they are only counted.
MAX_REFUSED = 100
#: Characters of a traceback that are kept: its end, which says most.
MAX_TRACE = 20_000


class Refused(msgspec.Struct, frozen=True, array_like=True):
    """A tuple or record that an error policy set aside."""

    component: str
    task: int
    tuple_text: str
    reason: str
    #: Whether it was no tuple yet: a source could not read it.
    unread: bool = False

    def event(self) -> TupleRefused | RecordRefused:
        """Make the event again."""
        if self.unread:
            return RecordRefused(self.component, self.tuple_text, self.reason)
        return TupleRefused(self.component, self.task, self.tuple_text, self.reason)


class ChildWords(msgspec.Struct, frozen=True, array_like=True):
    """What a component in a child process has said; without a component, a notice."""

    component: str
    task: int
    level: int
    text: str

    def event(self) -> ChildSaid | Noticed:
        """Make the event again."""
        if not self.component:
            return Noticed(self.text)
        return ChildSaid(self.component, self.task, self.level, self.text)


class RaisedElsewhere(ThalwegError):
    """The cause of an error that came from another process: its traceback, as text."""

    def __str__(self) -> str:
        """Give the traceback, apart from what is said before it."""
        return f"\n{self.args[0].rstrip()}"


class Failure(msgspec.Struct, frozen=True, array_like=True):
    """An error that ends the run, as plain values."""

    kind: str
    text: str
    component: str = ""
    task: int = 0
    tuple_text: str | None = None
    #: How its cause came about, for those who want to see that.
    trace: str = ""

    @classmethod
    def of(cls, error: ThalwegError) -> Failure:
        """Write an error down."""
        kind, cause = type(error).__name__, error.__cause__
        trace = "" if cause is None else "".join(traceback.format_exception(cause))[-MAX_TRACE:]
        if isinstance(error, ComponentError):
            return cls(kind, str(error), error.component, error.task, error.tuple_text, trace)
        return cls(kind, str(error), trace=trace)

    def error(self) -> ThalwegError:
        """Make the error again; its cause shows the traceback of where it was raised."""
        made = self._made()
        if self.trace:
            made.__cause__ = RaisedElsewhere(self.trace)
        return made

    def _made(self) -> ThalwegError:
        if self.kind == "ComponentError":
            return ComponentError(self.component, self.task, self.text, self.tuple_text)
        if self.kind == "CorruptRun":
            return CorruptRun(self.text)
        known = getattr(errors, self.kind, ThalwegError)
        return known(self.text) if issubclass(known, ThalwegError) else ThalwegError(self.text)


class Counts(msgspec.Struct, array_like=True):
    """What one component did in one task of Spark."""

    component: str
    #: Tuples taken in, by task of the component.
    received: dict[int, int] = {}
    emitted: int = 0
    errors: int = 0
    busy: float = 0.0
    #: Tuples and bytes that it sent through the exchange, and tuples that skipped it.
    shuffled: int = 0
    shuffled_bytes: int = 0
    local: int = 0
    #: Keys and bytes that it changed in its state.
    changed_keys: int = 0
    changed_bytes: int = 0
    #: Tuples sent, by stream.
    sent: dict[str, int] = {}
    #: Tuples that came too late.
    late: int = 0

    def send(self, stream: str, tuples: int) -> None:
        """Count tuples that were sent."""
        self.emitted += tuples
        self.sent[stream] = self.sent.get(stream, 0) + tuples


class Note(msgspec.Struct, array_like=True):
    """All that one task of Spark has to say."""

    stage: int
    place: int
    host: str
    seconds: float = 0.0
    counts: list[Counts] = []
    refused: list[Refused] = []
    staged: list[StagedRef] = []
    #: Serial numbers of tracked source tuples that failed.
    failed: list[int] = []
    #: Schemas of streams whose types were learnt from values, by "component/stream".
    types: dict[str, bytes] = {}
    stop: bool = False
    failure: Failure | None = None
    #: Bytes of input that did not fit in memory.
    spilled: int = 0
    #: Pairs of keys that occurred together, by both ends of a link, and the seconds for that.
    pairs: dict[str, dict[str, bytes]] = {}
    pairing: float = 0.0
    #: Keys whose state it sent to another place, and the bytes of that.
    moved_keys: int = 0
    moved_bytes: int = 0
    said: list[ChildWords] = []
    #: Newest event time of each task of a source, by its name.
    newest: dict[str, int] = {}
    #: Names of keys that were asked for, by hash.
    names: dict[int, str] = {}
    #: Earliest times, of events and of the clock, of the timers of components that are known.
    due: dict[str, tuple[int, int]] = {}


class Commit(msgspec.Struct, array_like=True):
    """What a place gives at the end of a batch."""

    place: int
    run: RunRef | None
    notes: list[Note]


def decode_commit(data: bytes) -> Commit:
    """Read what the last stage gave."""
    return msgspec.msgpack.decode(data, type=Commit)
