"""Bolts of pystorm inside a run: adapters between blocks and ``process(tup)``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, ClassVar

from thalweg.anchored import AnchoredBolt
from thalweg.anyvalues import SCALARS
from thalweg.blocks import DEFAULT_STREAM, Block
from thalweg.components import TaskContext
from thalweg.errors import RAISED, ThalwegError, as_error
from thalweg.hooks import listeners
from thalweg.storm.bolts import values_type
from thalweg.storm.components import Tuple
from thalweg.storm.hosting import Stage, gathers, is_own, own_values, settled

_new = tuple.__new__
#: Ids of tuples are numbers as text; ticks have one that no tuple has.
_TICK_ID = "-1"


class HostedBolt(AnchoredBolt):
    """Runs a bolt of pystorm or streamparse, one that acknowledges tuples or lets it be done."""

    #: What it keeps in its attributes is neither written down nor moved.
    outside_state: bool = True
    #: What it has instead, for messages.
    keeps = "attributes of a Python object, which are neither"
    #: It ends with the component, which nobody has written with anything else in mind.
    as_in_storm: ClassVar[bool] = True
    pure_python: ClassVar[bool] = True
    tasks_by_number: ClassVar[bool] = True
    _component: Any = None

    def __init__(
        self,
        cls: type,
        outputs: Any = (),
        streams: Mapping[str, Any] | None = None,
        direct_streams: Iterable[str] = (),
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.cls = cls
        self.outputs = outputs
        self.streams = dict(streams or {})
        self.direct_streams = frozenset(direct_streams)  # type: ignore[misc]  # of this one
        self.config = dict(config or {})
        stateless = self.config.get("thalweg.stateless", getattr(cls, "stateless", False))
        self.outside_state = not stateless
        self.gathers = not stateless and gathers(cls)

    def prepare(self, context: TaskContext) -> None:
        """Make the component."""
        self._stage = Stage(self.cls, context, self.config)
        #: By stream: the class of values, and whether others get the same values.
        self._types: dict[Any, tuple[Any, bool]] = {}
        #: Whether any tuple so far had somebody who waits for its end.
        self._ever_tracked = False
        #: Whether hooks hear how tuples end, be it of tuples that nobody else waits for.
        ends = "bolt_ack", "bolt_fail"
        self._heard = any(listeners(context.hooks, call) for call in ends)
        #: Numbers of the tuples of a block for which the component raised.
        self._raised: set[int] = set()
        #: The last of these, and whether any tuple was processed since something raised.
        self._last_bad = -2
        self._went_well = True
        self._begin()

    def process_tuples(self, first: int, block: Block) -> None:
        """Show the component each tuple."""
        self._ever_tracked |= self.tracked
        self._raised.clear()
        numbered = enumerate(self._tuples(first, block), first)
        while not self._each(numbered):
            pass
        if self._quick:
            self._component.emit = self._general
        self._went_well |= len(self._raised) < len(block)
        if self._acks and (self.tracked or self._heard):
            for number in range(first, first + len(block)):
                if number not in self._raised:
                    self.ack(number)

    def process_tick(self) -> None:
        """Give the component a tick."""
        every = self._stage.conf.get("topology.tick.tuple.freq.secs", 0)
        tick = self._tuple(_TICK_ID, "__system", "__tick", -1, (every,))
        self._aside(lambda: self._by_time() if self._timed else self._tick(tick), [tick])

    def process_pause(self) -> None:
        """Do as at the end: another component takes over."""
        self.process_end()

    def process_end(self) -> None:
        """Let a component that gathers batches process what it has."""
        if getattr(self._component, "_batches", None):
            self._aside(self._component.process_batches, [])

    def cleanup(self) -> None:
        """Let go of the component."""
        self._component = None

    # --- tuples ------------------------------------------------------------------------------

    def _tuples(self, first: int, block: Block) -> Iterator[Tuple]:
        """Make tuples as pystorm's are, without Python code per tuple."""
        origin, names = block.origin, block.batch.schema.names
        key = origin.component, origin.stream
        if key not in self._types:
            self._types[key] = values_type(*key, names), self._stage.shares(*key)
        type_, shared = self._types[key]
        columns = map(block.values, names)
        if shared:
            columns = map(_own_column, columns)
        values = map(_new, repeat(type_), zip(*columns, strict=True))
        task = self._stage.ids.of(origin.component, origin.task)
        ids = map(str, range(first, first + len(block)))
        parts = zip(ids, repeat(key[0]), repeat(key[1]), repeat(task), values, strict=False)
        return map(_new, repeat(self._tuple), parts)

    def _each(self, numbered: Iterator[tuple[int, Tuple]]) -> bool:
        """Call the component on each tuple, until one raises; gives whether all are done."""
        component = self._component
        columns, anchors = self.outbox or ([[]], [])
        sent, note = columns[0], anchors.append
        if self._quick:
            component.emit = self._quick_emit(columns)
        process = component.process
        try:
            for number, tup in numbered:
                self.at = number
                component._current_tups = [tup]
                process(tup)
                added = len(sent) - len(anchors)
                if added == 1:
                    note(number)
                elif added:
                    anchors.extend(repeat(number, added))
        except ThalwegError:
            raise  # a mistake that the next tuple repeats
        except RAISED as error:
            anchors.extend(repeat(self.at, len(sent) - len(anchors)))
            self._failed(error, self.at)
            return False
        component._current_tups = []
        return True

    def _quick_emit(self, columns: list[list[Any]]) -> Callable[..., list[int] | None]:
        """Make ``emit`` for one block: values of the common kind go straight into their columns."""
        if len(columns) == 1:
            return _emit_one(columns[0].append, self._general)
        return _emit_two(columns[0].append, columns[1].append, self._general)

    def _tick(self, tick: Tuple) -> None:
        self._component.process_tick(tick)

    def _by_time(self) -> None:
        if self._component._batches:
            self._component.process_batches()

    def _aside(self, call: Callable[[], None], current: list[Tuple]) -> None:
        """Call something for which no tuple is at hand."""
        self._component._current_tups = current
        try:
            call()
        except ThalwegError:
            raise
        except RAISED as error:
            self._failed(error, self.at)
        else:
            self._component._current_tups = []

    def _failed(self, raised: BaseException, number: int) -> None:
        """Let the library report it and fail what has failed; begin anew, unless it says not to."""
        component, error = self._component, as_error(raised)
        if error is not raised:
            component.exit_on_exception = True  # which is not about exits
        component._handle_run_exception(error)
        component._current_tups = []
        ticking = number < 0
        in_a_row = not self._went_well if ticking else number == self._last_bad + 1
        self._raised.add(number)
        self._last_bad, self._went_well = max(number, self._last_bad), False
        if component.exit_on_exception:
            self._stage.replaced(error, in_a_row)
            self._begin()

    # --- what the component says -------------------------------------------------------------

    def _begin(self) -> None:
        component = self._component = self._stage.component(self._hear)
        self._tuple = _tuple_class(component)
        #: A component that gathers batches acknowledges its tuples itself.
        self._batches = hasattr(component, "process_batches")
        self._timed = hasattr(component, "secs_between_batches")
        #: Whether most tuples that it emits can go straight into their columns.
        self._quick = False
        if is_own(type(component), "emit"):
            self._general: Callable[..., list[int] | None]
            self._general = self._emit_batched if self._batches else self._emit_function()
            component.emit = self._general
            plain = not self._batches and component.auto_anchor
            self._quick = plain and self.outbox is not None and len(self.outbox[0]) <= 2
        if is_own(type(component), "ack"):
            component.ack = self._ack
        if is_own(type(component), "fail"):
            component.fail = self._let_fail
        self._stage.initialize(component)
        self._acks = component.auto_ack and not self._batches

    def _emit_function(self) -> Callable[..., list[int] | None]:
        """Make ``emit`` of a component: as little as possible for a plain list of values."""
        send, anchored, scalars = self.emit, self._component.auto_anchor, SCALARS

        def emit(
            tup: Any,
            stream: str | None = None,
            anchors: Any = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
        ) -> list[int] | None:
            if type(tup) is list:
                for value in tup:
                    if type(value) not in scalars:
                        tup = settled(tup)
                        break
            else:
                tup = settled(tup)
            if anchors is not None:
                anchors = self._numbers(anchors)
            elif not anchored:
                anchors = ()
            if direct_task is None:
                return send(tup, stream or DEFAULT_STREAM, anchors, None, need_task_ids)
            return self._send(tup, stream, anchors, direct_task, need_task_ids)

        return emit

    def _emit_batched(
        self, tup: Any, stream: str | None = None, anchors: Any = None, **more: Any
    ) -> None:
        """Send a tuple that stems from the whole batch, unless the component says otherwise."""
        if anchors is None:
            anchors = self._component._current_tups if self._component.auto_anchor else ()
        self._send(settled(tup), stream, self._numbers(anchors), more.get("direct_task"))

    def _send(
        self,
        values: Sequence[Any],
        stream: str | None,
        numbers: Sequence[int] | None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        stream = stream or DEFAULT_STREAM
        if direct_task is None:
            return self.emit(values, stream, numbers, ask=need_task_ids)
        self.emit(values, stream, numbers, self._stage.direct.find(direct_task, stream))
        return [direct_task] if need_task_ids else None

    def _numbers(self, anchors: Any) -> Sequence[int]:
        if not self._ever_tracked:
            return ()
        given = [anchors] if isinstance(anchors, str) else anchors
        return [int(getattr(anchor, "id", anchor)) for anchor in given]

    def _ack(self, tup: Any) -> None:
        if self._ever_tracked or self._heard:
            self.ack(int(getattr(tup, "id", tup)))

    def _let_fail(self, tup: Any) -> None:
        if self._ever_tracked or self._heard:
            self.fail(int(getattr(tup, "id", tup)))

    def _hear(self, message: Any) -> None:
        """Take a message of a class that does not use our quicker methods."""
        command = message.get("command")
        if command == "emit":
            numbers = self._numbers(message.get("anchors") or ())
            stream, task = message.get("stream"), message.get("task")
            asks = task is None and message.get("need_task_ids", True)
            told = self._send(settled(message["tuple"]), stream, numbers, task, asks)
            if asks:
                self._component._pending_task_ids.append(told)
        elif command in ("ack", "fail"):
            (self._ack if command == "ack" else self._let_fail)(message["id"])
        else:
            self._stage.hear(message)


def _own_column(values: list[Any]) -> list[Any]:
    """Give values that nobody else can change; scalars are nobody's."""
    return values if SCALARS.issuperset(map(type, values)) else own_values(values)


def _tuple_class(component: Any) -> Any:
    """Find the library's own class of tuples: components may compare with it."""
    library = "pystorm.component"
    if any(cls.__module__ == library for cls in type(component).__mro__):
        return sys.modules[library].Tuple
    return Tuple


def _emit_one(
    add: Callable[[Any], None], general: Callable[..., list[int] | None]
) -> Callable[..., list[int] | None]:
    scalars = SCALARS

    def emit(
        tup: Any,
        stream: str | None = None,
        anchors: Any = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        plain = stream is anchors is direct_task is None and not need_task_ids
        if plain and type(tup) is list and len(tup) == 1:
            (value,) = tup
            if type(value) in scalars:
                add(value)
                return None
        return general(tup, stream, anchors, direct_task, need_task_ids)

    return emit


def _emit_two(
    add_first: Callable[[Any], None],
    add_second: Callable[[Any], None],
    general: Callable[..., list[int] | None],
) -> Callable[..., list[int] | None]:
    scalars = SCALARS

    def emit(
        tup: Any,
        stream: str | None = None,
        anchors: Any = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        plain = stream is anchors is direct_task is None and not need_task_ids
        if plain and type(tup) is list and len(tup) == 2:
            first, second = tup
            if type(first) in scalars and type(second) in scalars:
                add_first(first)
                add_second(second)
                return None
        return general(tup, stream, anchors, direct_task, need_task_ids)

    return emit
