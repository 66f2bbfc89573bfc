"""Bolts of pystorm inside a run: adapters between blocks and ``process(tup)``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from threading import get_ident
from typing import Any, ClassVar

from thalweg.anchored import AnchoredBolt
from thalweg.anyvalues import SCALARS
from thalweg.blocks import DEFAULT_STREAM, Block
from thalweg.contexts import TaskContext
from thalweg.errors import RAISED, ThalwegError, as_error, explain, shorten
from thalweg.events import Noticed
from thalweg.hooks import listeners
from thalweg.storm.bolts import values_type
from thalweg.storm.components import Tuple
from thalweg.storm.hosting import (
    HostedBody,
    Stage,
    emit_one,
    emit_two,
    gathers,
    is_own,
    own_values,
    settled,
)
from thalweg.storm_config.keys import STATELESS

_new = tuple.__new__
#: Ids of tuples are numbers as text; ticks have one that no tuple has.
_TICK_ID = "-1"


class HostedBolt(HostedBody, AnchoredBolt):
    """Runs a bolt of pystorm or streamparse, one that acknowledges tuples or lets it be done."""

    #: What it keeps in its attributes is neither written down nor moved.
    outside_state: bool = True
    #: What it has instead, and what helps, for messages.
    keeps = "attributes of a Python object, which are neither"
    remedy = (
        "say stateless = True in the class, or thalweg.stateless: true in its configuration, if it"
        " keeps nothing by key; or use a keyed bolt or a table"
    )
    #: It ends with the component, which nobody has written with anything else in mind.
    as_in_storm: ClassVar[bool] = True
    pure_python: ClassVar[bool] = True
    #: As in its process on Storm: connections and event loops of its ``initialize`` are of use.
    one_thread: ClassVar[bool | None] = True

    def __init__(self, cls: type, *described: Any, **more: Any) -> None:
        super().__init__(cls, *described, **more)
        stateless = self.config.get(STATELESS, getattr(cls, "stateless", False))
        self.outside_state = not stateless
        self.gathers = not stateless and gathers(cls)
        #: What was emitted quickly, and calls of other threads, row behind row. It is always this
        #: list, and only added to in one step, so that no thread loses or tears a row.
        self._line: list[Any] = []
        #: The tuple that was at hand, for the first of these rows.
        self._marks: list[int] = []
        #: The thread that has the component now; none between two blocks.
        self._thread: int | None = None

    def prepare(self, context: TaskContext) -> None:
        """Make the component."""
        self._stage = Stage(self.cls, context, self.config)
        #: Fields of the default stream, where values of common kinds may go straight into the line.
        self._fields = len(self.outbox[0]) if self.outbox and len(self.outbox[0]) <= 2 else 0
        #: Values of a row of the line, and the kinds of values that need no copy.
        self._width = self._fields or 1
        self._plain = set(SCALARS)
        #: Whether another thread has ever said anything, and whether nobody hears it any more.
        self._others = self._closed = self._told = False
        #: By stream: the class of values, and whether others get the same values.
        self._types: dict[Any, tuple[Any, bool]] = {}
        #: Whether any tuple so far had somebody who waits for its end.
        self._ever_tracked = False
        #: Whether hooks hear how tuples end, be it of tuples that nobody else waits for.
        ends = "bolt_ack", "bolt_fail"
        self._heard = any(listeners(context.hooks, call) for call in ends)
        #: Numbers of the tuples of a block for which the component raised.
        self._raised: set[int] = set()
        #: The first number of a block, and whether anybody waits for the ends of its tuples.
        self._waited: tuple[int, Any] = 0, None
        #: The last that raised, and whether any tuple was processed since something did.
        self._last_bad = -2
        self._went_well = True
        with self._at_work():
            self._begin()

    def process_tuples(self, first: int, block: Block) -> None:
        """Show the component each tuple."""
        self._ever_tracked |= self.tracked
        self._waited = first, block.roots
        self._raised.clear()
        numbered = enumerate(self._tuples(first, block), first)
        with self._at_work():
            while not self._each(numbered):
                pass
        self._went_well |= len(self._raised) < len(block)
        if self._acks and (self.tracked or self._heard):
            for number in range(first, first + len(block)):
                if number not in self._raised:
                    self.ack(number)

    def process_tick(self) -> None:
        """Give the component a tick."""
        every = self._stage.conf.get("topology.tick.tuple.freq.secs", 0)
        tick = self._tuple(_TICK_ID, "__system", "__tick", -1, (every,))
        with self._at_work():
            self._aside(lambda: self._by_time() if self._timed else self._tick(tick), [tick])

    def process_pause(self) -> None:
        """Do as at the end: another component takes over."""
        self.process_end()

    def process_end(self) -> None:
        """Let a component that gathers batches process what it has."""
        with self._at_work():
            if getattr(self._component, "_batches", None):
                self._aside(self._component.process_batches, [])

    @property
    def waiting(self) -> bool:
        """Whether other threads have said something, and no block is at hand that takes it on."""
        return self._thread is None and bool(self._line)

    def process_wake(self) -> None:
        """Pass on what other threads have said."""
        with self._at_work():
            pass

    def cleanup(self) -> None:
        """Let go of the component, and hear nothing more of its threads."""
        component, self._component = self._component, None
        if component is not None:
            self._closed, self.outbox = True, None
            self._plain.clear()  # so that whoever kept a quick emit is refused
            self._stage.let_go(self)
        if self._line:
            self._too_late()
            self._line.clear()

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
        component, line, width = self._component, self._line, self._width
        marks, note = self._marks, self._marks.append
        process = component.process
        try:
            for number, tup in numbered:
                self.at = number
                component._current_tups = [tup]
                process(tup)
                added = len(line) - width * len(marks)
                if added == width:
                    note(number)
                elif added:
                    marks.extend(repeat(number, added // width))
        except ThalwegError:
            raise  # a mistake that the next tuple repeats
        except RAISED as error:
            self._pass_on()
            self._failed(error, self.at)
            return False
        component._current_tups = []
        return True

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
        ticking, (first, roots) = number < 0, self._waited
        in_a_row = not self._went_well if ticking else number == self._last_bad + 1
        self._raised.add(number)
        self._last_bad, self._went_well = max(number, self._last_bad), False
        if component.exit_on_exception:
            told = not ticking and bool(roots and roots[number - first])
            self._stage.replaced(error, in_a_row, told)
            self._begin()

    # --- what the component says -------------------------------------------------------------

    def _begin(self) -> None:
        component = self._component = self._stage.component(self._hear)
        self._tuple = _tuple_class(component)
        #: A component that gathers batches acknowledges its tuples itself.
        self._batches = hasattr(component, "process_batches")
        self._timed = hasattr(component, "secs_between_batches")
        if is_own(type(component), "emit"):
            component.emit = self._emit_batched if self._batches else self._emit_function()
            if self._fields and component.auto_anchor and not self._batches:
                component.emit = self._quick_emit(component.emit)
        if is_own(type(component), "ack"):
            component.ack = self._ack
        if is_own(type(component), "fail"):
            component.fail = self._let_fail
        self.at = -1  # no tuple is to blame for what it emits before the first
        self._stage.initialize(component)
        self._pass_on()
        self._acks = component.auto_ack and not self._batches

    def _quick_emit(
        self, general: Callable[..., list[int] | None]
    ) -> Callable[..., list[int] | None]:
        """Make ``emit`` that puts values of the common kind straight into the line."""
        if self._fields == 1:
            return emit_one(self._line, self._plain, general)
        return emit_two(self._line, self._plain, general)

    def _emit_function(self) -> Callable[..., list[int] | None]:
        """Make ``emit`` of a component: as little as possible for a plain list of values."""
        scalars, line, here = SCALARS, self._line, get_ident
        component, anchored = self._component, self._component.auto_anchor

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
            if here() != self._thread:
                if anchors is None:
                    anchors = component._current_tups if anchored else ()
                return self._hand_over(tup, stream, anchors, direct_task, need_task_ids)
            if line:
                self._pass_on()
            if anchors is not None:
                anchors = self._numbers(anchors)
            elif not anchored:
                anchors = ()
            if direct_task is None:
                return self.emit(tup, stream or DEFAULT_STREAM, anchors, None, need_task_ids)
            return self._send(tup, stream, anchors, direct_task, need_task_ids)

        return emit

    def _emit_batched(
        self, tup: Any, stream: str | None = None, anchors: Any = None, **more: Any
    ) -> None:
        """Send a tuple that stems from the whole batch, unless the component says otherwise."""
        if anchors is None:
            anchors = self._component._current_tups if self._component.auto_anchor else ()
        send = self._send_anchored if get_ident() == self._thread else self._hand_over
        send(settled(tup), stream, anchors, more.get("direct_task"))

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

    def _send_anchored(
        self, values: Sequence[Any], stream: str | None, anchors: Any, direct_task: int | None
    ) -> None:
        self._send(values, stream, self._numbers(anchors), direct_task)

    def _numbers(self, anchors: Any) -> Sequence[int]:
        if not self._ever_tracked:
            return ()
        given = [anchors] if isinstance(anchors, str) else anchors
        return [_number(anchor, "anchor") for anchor in given]

    def _ack(self, tup: Any) -> None:
        if get_ident() != self._thread:
            self._later(partial(self._ack, tup))
        elif self._ever_tracked or self._heard:
            self.ack(_number(tup, "ack"))

    def _let_fail(self, tup: Any) -> None:
        if get_ident() != self._thread:
            self._later(partial(self._let_fail, tup))
        elif self._ever_tracked or self._heard:
            self.fail(_number(tup, "fail"))

    def _hear(self, message: Any) -> None:
        """Take a message of a class that does not use our quicker methods."""
        command = message.get("command")
        if command == "emit":
            values, anchors = settled(message["tuple"]), message.get("anchors") or ()
            stream, task = message.get("stream"), message.get("task")
            asks = task is None and message.get("need_task_ids", True)
            if get_ident() != self._thread:
                self._hand_over(values, stream, anchors, task, asks)
                return
            told = self._send(values, stream, self._numbers(anchors), task, asks)
            if asks:
                self._component._pending_task_ids.append(told)
        elif command in ("ack", "fail"):
            (self._ack if command == "ack" else self._let_fail)(message["id"])
        else:
            self._stage.hear(message)

    # --- what its other threads say ----------------------------------------------------------

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Have the component in this thread; what others have said comes before, and behind."""
        self._thread, self.at = get_ident(), -1
        try:
            self._pass_on()
            yield
            self._pass_on()
        except BaseException:
            self._line.clear()  # the run ends with this
            raise
        finally:
            self._thread = None

    def _pass_on(self) -> None:
        """Send what is in the line."""
        line, marks, width = self._line, self._marks, self._width
        end = len(line)  # others may add to it meanwhile
        if not end:
            return
        marks.extend(repeat(self.at, end // width - len(marks)))
        if self._others or self.outbox is None:
            self._one_by_one(end)
            return
        columns, anchors = self.outbox
        for place, column in enumerate(columns):
            values = line[place:end:width]
            if column:
                column.extend(values)
            else:
                columns[place] = values
        del line[:end]
        anchors.extend(marks)
        marks.clear()

    def _one_by_one(self, end: int) -> None:
        """Send rows among which may be calls of other threads, in their order."""
        at, marks, values, width = self.at, self._marks.copy(), self._line[:end], self._width
        self._marks.clear()
        del self._line[:end]
        for row, self.at in enumerate(marks):
            first = values[row * width]
            if type(first) is partial:
                first()
            else:
                self.emit(values[row * width : (row + 1) * width])
        self.at = at

    def _hand_over(
        self,
        values: Sequence[Any],
        stream: str | None,
        anchors: Any,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Let the thread that has the component next send a tuple of another one."""
        if need_task_ids and direct_task is None:
            raise self._refused(
                explain(
                    f"emit of {self._stage.subject} with need_task_ids",
                    expected="the thread that calls process",
                    got="another one, which cannot be told who gets the tuple",
                    hint="leave it out, or choose the task",
                )
            )
        own = anchors if isinstance(anchors, str) else tuple(anchors)
        self._later(partial(self._send_anchored, values, stream, own, direct_task))
        return [direct_task] if need_task_ids and direct_task is not None else None

    def _later(self, call: Callable[[], None]) -> None:
        self._others = True
        if not self._closed:
            self._line.extend((call, *repeat(None, self._width - 1)))
        if self._closed:  # now, or meanwhile
            raise self._too_late()

    def _too_late(self) -> ThalwegError:
        return self._refused(
            explain(
                f"emit, ack or fail by another thread of {self._stage.subject}",
                expected="a component at work",
                got="one that has ended, so it is lost",
            )
        )

    def _refused(self, text: str) -> ThalwegError:
        """Make an error for another thread, where it may end unseen: the first one is told."""
        if not self._told:
            self._told = True
            self._stage.context.tell(Noticed(text))
        return ThalwegError(text)


def _number(tup: Any, what: str) -> int:
    """Give the number of a tuple, or of its id."""
    id_ = getattr(tup, "id", tup)
    try:
        return int(id_)
    except (TypeError, ValueError):
        raise ThalwegError(
            explain(
                f"{what} of tuple {shorten(id_, 40)}",
                expected="a tuple that it has been given",
                hint="the tuple itself, or its id",
            )
        ) from None


def _own_column(values: list[Any]) -> list[Any]:
    """Give values that nobody else can change; scalars are nobody's."""
    return values if SCALARS.issuperset(map(type, values)) else own_values(values)


def _tuple_class(component: Any) -> Any:
    """Find the library's own class of tuples: components may compare with it."""
    library = "pystorm.component"
    if any(cls.__module__ == library for cls in type(component).__mro__):
        return sys.modules[library].Tuple
    return Tuple
