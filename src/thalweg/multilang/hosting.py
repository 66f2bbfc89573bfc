"""Both ends of a conversation with a child, without I/O: what it has, and what it has said.

A bolt's child gets tuples with ids and may finish them at any time. That it has seen all that was
sent so far is known from the answer to a heartbeat, which it reads behind it. Others between the
tuples show that it is at work.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from thalweg.blocks import DEFAULT_STREAM
from thalweg.errors import explain, shorten
from thalweg.multilang.wire import JsonWire, ProtocolError, Wire, all_plain, check_values

#: Storm's names for what does not come from a component.
SYSTEM, TICK, HEARTBEAT = "__system", "__tick", "__heartbeat"
#: Ours: values of keys before their tuples come, and the question for those that have changed.
RESTORE, SNAPSHOT = "__restore", "__snapshot"
#: The number of tuples whose end nobody waits for, and how many of them are remembered.
NOBODYS, _ASIDES = -1, 1000
#: Tuples between two heartbeats: a child that is busy with them, and says nothing, is heard.
BEAT_EVERY = 100


@dataclass(frozen=True)
class Emitted:
    """It sends a tuple."""

    values: list[Any]
    stream: str
    #: Numbers of the tuples that it stems from.
    anchors: Sequence[int]
    #: The receiving task, by Storm's count; None for everybody who reads the stream.
    task: int | None
    #: Whether it waits to be told who gets it.
    asks: bool
    #: Id of a spout's tuple.
    id: Any = None


@dataclass(frozen=True)
class Ended:
    """It is done with a tuple."""

    number: int
    ok: bool


@dataclass(frozen=True)
class Logged:
    """It has something to say."""

    level: int
    text: str


@dataclass(frozen=True)
class Reported:
    """It reports an error."""

    text: str


@dataclass(frozen=True)
class Measured:
    """It has measured something."""

    name: str
    params: Any


@dataclass(frozen=True)
class Changed:
    """It gives the values that keys have now."""

    entries: list[Any]


@dataclass(frozen=True)
class Synced:
    """It has seen all that was sent before."""


Said = Emitted | Ended | Logged | Reported | Measured | Changed | Synced
#: Storm's levels of what is logged: 0 is a trace, 4 an error.
INFO, ERROR = 2, 4


class Beats:
    """Knows which heartbeats a child has answered.

    It says ``sync`` to each. Some, such as pystorm's, say it behind each error as well, and it
    looks the same. Until that is known of a child, one more heartbeat is sent for each error: so
    many answers, and one more, are sure to contain the one that is waited for.

    >>> beats = Beats()
    >>> own = beats.begin()
    >>> beats.hear(Reported("bad")), beats.hear(Synced()), beats.has(own)
    (1, 0, False)
    >>> beats.hear(Synced()), beats.has(own)
    (0, True)
    """

    def __init__(self) -> None:
        self._sent = self._came = self._errors = 0
        #: Whether errors are followed by a sync; None while nobody knows.
        self._follows: bool | None = None
        self._after_error = False

    def begin(self) -> int:
        """Send a heartbeat; gives its number."""
        self._sent += 1
        return self._sent

    @property
    def more(self) -> int:
        """How many heartbeats have to follow one, for its answer to be known."""
        return self._errors if self._follows is None else 0

    def hear(self, said: Said | None) -> int:
        """Take in what the child says; gives how many more heartbeats are due because of it."""
        after, self._after_error = self._after_error, isinstance(said, Reported)
        if isinstance(said, Synced):
            self._came += 1
            if self._came > self._sent:
                self._follows = True
        elif after:  # one says it straight behind an error, or not at all
            self._errors -= 1
            if self._follows is None:
                self._follows = False
        self._errors += self._after_error
        return int(self._after_error and self._follows is None)

    @property
    def unsure(self) -> bool:
        """Whether the sync behind an error may have been the answer to a heartbeat.

        Then it may be that fewer syncs come than are waited for: one more heartbeat helps.
        """
        return self._errors > 0 and self._follows is not False

    def has(self, number: int) -> bool:
        """Say whether the heartbeat with a number has surely been answered."""
        return self._came >= number + (0 if self._follows is False else self._errors)


@dataclass
class Conversation:
    """What a child has been given and has not finished, by id, in the order of sending."""

    wire: Wire
    #: The number that the host has for each tuple, and its bytes.
    given: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    #: Tuples that no child can be given: their numbers, and why.
    refused: list[tuple[int, Exception]] = field(default_factory=list)
    beats: Beats = field(default_factory=Beats)
    #: Children that have failed since one has acknowledged a tuple, but for those of whose tuples
    #: a spout is told; and whether one is told of any that the child at hand has let fail.
    failures: int = 0
    told: bool = False
    #: Ids of tuples that come from no component, the last of them.
    _asides: deque[str] = field(default_factory=lambda: deque(maxlen=_ASIDES))
    _sent: int = 0

    def tuples(self, numbers: Iterable[int], rows: Sequence[Sequence[Any]], of: Sender) -> bytes:
        """Give tuples: their bytes, for the child."""
        given, made = self.given, []
        # At once for all rows: it costs little where they hold nothing of the kind.
        odd = isinstance(self.wire, JsonWire) and not all_plain(chain.from_iterable(rows))
        for number, values in zip(numbers, rows, strict=True):
            try:
                if odd:
                    check_values(values)
                id_, data = self._message(values, of)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                self.refused.append((number, error))
                continue
            given[id_] = number, data
            made.append(data)
        return self._with_beats(made)

    def _with_beats(self, made: list[bytes]) -> bytes:
        """Put tuples behind each other, and heartbeats between them."""
        for at in range(BEAT_EVERY, len(made), BEAT_EVERY):
            made[at] = self.another_beat() + made[at]
        return b"".join(made)

    def _message(self, values: Sequence[Any], of: Sender) -> tuple[str, bytes]:
        self._sent += 1
        id_ = str(self._sent)
        message = {
            "id": id_,
            "comp": of.component,
            "stream": of.stream,
            "task": of.task,
            "tuple": values,
        }
        return id_, self.wire.encode(message)

    def again(self) -> bytes:
        """Give all that is not finished once more, to another child."""
        return self._with_beats([data for _, data in self.given.values()])

    def begin_anew(self) -> None:
        """Talk with another child, which has seen nothing yet."""
        self.beats, self.told = Beats(), False
        self._asides.clear()

    def tick(self, seconds: float) -> bytes:
        """Let time pass."""
        whole = int(seconds) if seconds == int(seconds) else seconds
        return self.aside(TICK, [whole])

    def aside(self, stream: str, values: Sequence[Any]) -> bytes:
        """Give a tuple that comes from no component; nobody waits for its end."""
        id_, data = self._message(values, Sender(SYSTEM, stream, -1))
        self._asides.append(id_)
        return data

    def heartbeat(self) -> tuple[int, bytes]:
        """Ask it whether it is there; gives the number of the heartbeat to wait for as well."""
        number = self.beats.begin()
        more = [self.beats.begin() for _ in range(self.beats.more)]
        return number, b"".join(map(self._beat, [number, *more]))

    def another_beat(self) -> bytes:
        """Ask it once more."""
        return self._beat(self.beats.begin())

    def _beat(self, number: int) -> bytes:
        told = {"id": f"beat-{number}", "comp": None, "stream": HEARTBEAT, "task": -1}
        return self.wire.encode(told | {"tuple": []})

    def said(self, message: Any) -> Said | None:
        """Take in a message of a bolt."""
        command = _command(message)
        if command in ("ack", "fail"):
            number = self._number(message.get("id"), command)
            self._finished(message["id"])
            return Ended(number, command == "ack")
        if command == "emit":
            return _emitted(message, [self._number(id_, "anchor") for id_ in _anchors(message)])
        return _aside(command, message)

    def _finished(self, id_: str) -> None:
        if self.given.pop(id_, None) is None:
            self._asides.remove(id_)

    def _number(self, id_: Any, what: str) -> int:
        found = self.given.get(id_) if isinstance(id_, str) else None
        if found is not None:
            return found[0]
        if id_ in self._asides:
            return NOBODYS
        raise ProtocolError(
            explain(
                f"{what} of tuple {shorten(id_, 40)}",
                expected="a tuple that it has been given and has not finished",
                hint="each tuple is acknowledged, or let fail, once, and anchors come before",
            )
        )


@dataclass(frozen=True)
class Sender:
    """Where tuples come from, by Storm's count."""

    component: str
    stream: str
    task: int


class OpenIds:
    """Ids of the open tuples of a spout that was begun anew: others are of one before it.

    >>> ids = OpenIds()
    >>> ids.note([1, 2])
    >>> ids.end([1, 2]), ids.end([1, 2]), ids.end("another's")
    (True, False, False)
    """

    def __init__(self) -> None:
        self._open: Counter[Hashable] = Counter()

    def note(self, id_: Any) -> None:
        """Note a tuple that it has sent."""
        self._open[_key(id_)] += 1

    def end(self, id_: Any) -> bool:
        """Forget a tuple that has ended; says whether this one has sent it."""
        key = _key(id_)
        if self._open[key] > 1:
            self._open[key] -= 1
            return True
        return self._open.pop(key, 0) > 0


def _key(id_: Any) -> Hashable:
    """Give something that can be looked up, for an id of any kind."""
    try:
        hash(id_)
    except TypeError:
        return repr(id_)
    found: Hashable = id_
    return found


def spout_said(message: Any) -> Said:
    """Take in a message of a spout, which must know what it says."""
    command = _command(message)
    if command == "emit":
        return _emitted(message, ())
    said = _aside(command, message)
    if said is None:
        raise ProtocolError(explain("command of a spout", "", "emit, sync, log ...", repr(command)))
    return said


def _command(message: Any) -> Any:
    if not isinstance(message, dict) or not isinstance(message.get("command"), str):
        expected = "an object with a 'command'"
        raise ProtocolError(explain("message", "", expected, shorten(message, 120)))
    return message["command"]


def _anchors(message: dict[str, Any]) -> Sequence[Any]:
    anchors = message.get("anchors") or []
    if not isinstance(anchors, str | list):
        got = shorten(message, 120)
        raise ProtocolError(explain("emit", "", "a list of ids as 'anchors'", got))
    return [anchors] if isinstance(anchors, str) else anchors


def _emitted(message: dict[str, Any], anchors: Sequence[int]) -> Emitted:
    values, stream = message.get("tuple"), message.get("stream") or DEFAULT_STREAM
    task = message.get("task") or None
    if not isinstance(values, list) or not isinstance(stream, str):
        got = shorten(message, 120)
        raise ProtocolError(explain("emit", "", "a list 'tuple' and a name as 'stream'", got))
    if task is not None and not isinstance(task, int):
        raise ProtocolError(explain("emit", "", "a number as 'task'", shorten(task, 40)))
    asks = task is None and message.get("need_task_ids") is not False
    return Emitted(values, stream, anchors, task, asks, message.get("id"))


def _aside(command: str, message: dict[str, Any]) -> Said | None:
    """Read what every component may say; None for what is not known."""
    text = shorten(message.get("msg"), 10_000) if command in ("log", "error") else ""
    match command:
        case "sync":
            return Synced()
        case "log":
            level = message.get("level", INFO)
            return Logged(level if isinstance(level, int) else INFO, _plain(message, text))
        case "error":
            return Reported(_plain(message, text))
        case "metrics":
            return Measured(str(message.get("name")), message.get("params"))
        case "snapshot":
            return Changed(_entries(message.get("entries")))
    return None


def _entries(found: Any) -> list[Any]:
    pairs = isinstance(found, list) and all(isinstance(e, list) and len(e) == 2 for e in found)
    if not pairs:
        expected = "'entries', a list of [key, value]"
        raise ProtocolError(explain("snapshot", "", expected, shorten(found, 120)))
    return list(found)


def _plain(message: dict[str, Any], text: str) -> str:
    said = message.get("msg")
    return said[:10_000] if isinstance(said, str) else text
