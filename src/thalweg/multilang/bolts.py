"""Bolts in child processes: Storm's protocol, a block at a time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from thalweg.anchored import AnchoredBolt
from thalweg.blocks import Block
from thalweg.components import Kind
from thalweg.contexts import TaskContext
from thalweg.errors import ThalwegError, explain
from thalweg.events import Noticed
from thalweg.multilang import keeping
from thalweg.multilang.child import Child, ChildError
from thalweg.multilang.hosted import Hosted, any_fields
from thalweg.multilang.hosting import (
    INFO,
    NOBODYS,
    Conversation,
    Emitted,
    Ended,
    Said,
    Sender,
    Synced,
)
from thalweg.multilang.keeping import Partner
from thalweg.multilang.settings import Shell
from thalweg.multilang.wire import make_wire

#: Seconds between two looks at what a child has said by itself.
POLL = 0.5
#: Ticks that a bolt gets, one behind the other, when it has to finish what it holds.
_LAST_TICKS = 20
#: Tuples that one sends, without being done with any, before these go on.
_MOST_ALONE = 100_000
_HELD_HINT = (
    "nothing may be held between batches of Spark, in a snapshot, or while keys move: it has to"
    " acknowledge each tuple, or to let it fail; give it ticks (tick=...) if it waits for them,"
    " more time (linger=..., or thalweg.linger), or run it on local without a checkpoint, with a"
    " degree that stays"
)


class StillSendingError(ThalwegError):
    """A child sends tuples without end, and is not done with any, when the run is to end."""


class ShellBolt(Hosted, AnchoredBolt):
    """A bolt that is a program of its own, in any language, and speaks Storm's protocol.

    >>> ShellBolt("ruby split.rb", outputs=["word"], serializer="json").shell.command
    ('ruby', 'split.rb')

    Settings are those of :class:`thalweg.multilang.settings.Shell`. What the program keeps in its
    memory is neither written down nor moved. Where that matters, on Spark with a fields grouping,
    it has to say ``stateless=True``, or to be a :class:`KeyedShellBolt`.
    """

    #: Seconds between two looks, however long it is between two ticks that the child gets.
    poll: float = POLL
    #: Whether what it keeps in its memory belongs to keys.
    outside_state: bool = True
    #: What helps where that cannot be, for messages.
    remedy: str = "say stateless=True if it keeps nothing by key, or use a KeyedShellBolt"
    #: Whether it is known to keep tuples that it has acknowledged until a tick.
    gathers: bool = False
    #: Whether it is part of a topology of Storm's, where its memory ends with it.
    as_in_storm: bool = False
    #: Whether a block may be given in parts, with what it has sent going on between them.
    in_parts: ClassVar[bool] = True
    #: When it has to finish what it holds, on this machine, for messages.
    when_paused: ClassVar[str] = "before a snapshot"

    def __init__(
        self,
        command: str | Sequence[str],
        outputs: Any = (),
        streams: Mapping[str, Any] | None = None,
        direct_streams: Iterable[str] = (),
        *,
        stateless: bool = False,
        **settings: Any,
    ) -> None:
        self.shell = shell = Shell.of(command, settings)
        self.outputs = any_fields(outputs)
        self.streams = {name: any_fields(spec) for name, spec in (streams or {}).items()}
        self.direct_streams = frozenset(direct_streams)  # type: ignore[misc]  # of this one
        self.outside_state = self.kind is Kind.STATELESS and not stateless
        self.default_tick = min(POLL, shell.tick or POLL)  # type: ignore[misc]  # of this one
        self.needed_tick = shell.tick
        self._partner: Partner | None = None
        #: The heartbeat that it has not answered yet, and what is to be given behind that.
        self._owed: int | None = None
        self._rest: deque[bytes] = deque()

    def prepare(self, context: TaskContext) -> None:
        """Start the child, unless it is there from an earlier batch."""
        self.context = context
        own = context.graph.component(context.component).options.tick
        if own is not None:
            self.shell = replace(self.shell, tick=own)
        self._next_tick = context.clock.now() + (self.shell.tick or 0.0)
        found = keeping.take(context, self.shell, self._setup()) if context.lasting else None
        if found is None:
            found = self._begin(Conversation(make_wire(self.shell.serializer)))
        else:
            found.child.log = lambda text: self._say(INFO, text)
        self._partner, self._clean, self._last = found, True, False
        #: Tuples that it has sent since it was done with anything, and when that was.
        self._alone, self._done_at = 0, time.monotonic()
        #: Since when it knows that the run is to end.
        self._ends_at: float | None = None
        #: Why it was ended before the run was, and how many tuples nobody has finished then.
        self._given_up, self._missed = "", 0
        #: Whether it may hold tuples for whose end nobody waits, and which these are of a block.
        self._unknown = False
        self._waited: tuple[int, Any] = 0, None

    def cleanup(self) -> None:
        """Let the child end, or keep it for the next batch."""
        if self._given_up:
            self.context.tell(Noticed(self._last_words))
        partner, self._partner = self._partner, None
        if partner is None:
            return
        done = self._clean and not partner.talk.given
        if self.context.lasting and done and not self._last:
            keeping.keep(self.context, partner)
        elif self._clean:
            partner.child.close()
        else:
            partner.child.kill()

    def process_tuples(self, first: int, block: Block) -> None:
        """Give the tuples to the child, and wait until it has seen them, or is long at one."""
        self._hear_out()
        self._note_who_waits(first, block)
        if self._partner is None:
            self._missed += len(block)
            return
        self._check_held()
        messages = self._messages(first, block)
        for data in messages:
            self._through(data)
            if self._partner is None:
                self._missed += first + len(block) - 1 - self.at
                return
            if self._owed is not None:  # what it holds is known when it has seen all
                self._rest.extend(messages)
                return
        self._check_held()

    @property
    def busy(self) -> bool:  # type: ignore[override]  # it is known from the conversation
        """Whether it is long at a tuple, and sends others meanwhile."""
        return bool(self._rest) or self._owed is not None

    def _hear_out(self) -> None:
        """Let the child come to the end of what it is at."""
        while self.busy:
            self._go_on()

    def _go_on(self) -> None:
        """Hear more of what the child is at, or give it what is left."""
        self._through(self._rest.popleft() if self._owed is None else b"")

    def _messages(self, first: int, block: Block, without: Collection[int] = ()) -> Iterator[bytes]:
        """Give the tuples of a block as bytes, some at a time; without some numbers."""
        rows = list(zip(*(block.values(name) for name in block.batch.schema.names), strict=True))
        numbers: Sequence[int] = range(first, first + len(rows))
        if without:
            numbers = [number for number in numbers if number not in without]
            rows = [rows[number - first] for number in numbers]
        origin, most = block.origin, self.shell.max_pending
        task = self._ids.of(origin.component, origin.task)
        sender = Sender(origin.component, origin.stream, task)
        for start in range(0, len(rows), most):
            some = numbers[start : start + most]
            self.at = some[-1]
            data = self._talk.tuples(some, rows[start : start + most], sender)
            self._refuse_some()
            yield data

    def _refuse_some(self) -> None:
        """Let those tuples fail that cannot be written as messages."""
        refused, self._talk.refused = self._talk.refused, []
        for number, error in refused:
            kind = f"{self.shell.serializer} cannot hold it: {error}"
            self.refuse(number, TypeError(kind))

    def process_tick(self) -> None:
        """Hear what the child has said meanwhile; send it a tick if one is due."""
        now, every = self.context.clock.now(), self.shell.tick
        if self.busy:
            self._go_on()
        elif self._partner is None:
            return
        elif every is not None and now >= self._next_tick:
            self._next_tick = max(self._next_tick + every, now)
            self._through(self._talk.tick(every))
        else:
            self._through(b"")

    def process_pause(self) -> None:
        """Let the child finish what it holds; it is an error if it does not."""
        self._hear_out()
        if self._partner is not None and self._talk.given and self._has_to_finish:
            self._insist(self._finish)
        if self._has_to_finish:
            self._check_finished()

    def _check_finished(self) -> None:
        if self._partner is None:
            text, self._given_up = self._last_words, ""
            raise ThalwegError(text)
        held = len(self._talk.given)
        when = "at the end of a batch" if self.context.lasting else self.when_paused
        if held:
            raise ThalwegError(
                explain(
                    f"child of {self.context.component!r}, {when}",
                    "",
                    "that it has finished all its tuples",
                    f"{held} that it holds after {self.shell.linger:g} s",
                    _HELD_HINT,
                )
            )

    @property
    def _has_to_finish(self) -> bool:
        """Whether what it holds would be lost: what a spout waits for, that may send again."""
        return self._unknown or bool(self.context.lasting)

    def process_end(self) -> None:
        """Let the child finish what it holds: ticks, and some time."""
        self._last = True
        self._hear_out()
        if self._partner is not None and self._talk.given:
            self._insist(self._finish)
        if self._partner is not None and self._talk.given:
            text = f"{self._subject}: its child still holds {len(self._talk.given)} tuples"
            self.context.tell(
                Noticed(f"{text} at the end of the run, after {self.shell.linger:g} s")
            )

    def _finish(self, data: bytes = b"") -> None:
        """Give a child ticks, and some time, as long as it holds tuples."""
        self._wholly(data)
        every, talk = self.shell.tick, self._talk
        for _ in range(0 if every is None else _LAST_TICKS):
            if talk.given:
                self._wholly(talk.tick(every or 0.0))
        due = time.monotonic() + self.shell.linger  # the child knows no other clock
        while talk.given and (left := due - time.monotonic()) > 0:
            message = self._present.next_message(patience=min(left, POLL))
            if message is not None:
                self._take(message)

    # --- the child ---------------------------------------------------------------------------

    @property
    def _now(self) -> Partner:
        assert self._partner is not None  # noqa: S101 (between prepare and cleanup)
        return self._partner

    @property
    def _present(self) -> Child:
        return self._now.child

    @property
    def _talk(self) -> Conversation:
        return self._now.talk

    def _begin(self, talk: Conversation) -> Partner:
        setup = self._setup()
        return Partner(self.shell, setup, self._start(setup), talk)

    def _through(self, data: bytes) -> None:
        """Send bytes and a heartbeat, and hear everything until the child answers to that."""
        self._insist(self._once, data)

    def _insist(self, step: Callable[[bytes], None], data: bytes = b"") -> None:
        """Do something with the child, or else with its successors.

        These get all that is not finished instead.
        """
        while self._partner is not None:
            try:
                step(data)
            except ChildError as error:
                if self._begin_anew(error):
                    data = self._again()
            except StillSendingError as error:
                self._give_up(error)
            else:
                return

    def _give_up(self, error: ThalwegError) -> None:
        """End a child that keeps the run from its end."""
        gone, self._partner = self._now, None
        self._forget_rest()
        gone.child.kill()
        self._given_up, self._missed = str(error), len(gone.talk.given)

    @property
    def _last_words(self) -> str:
        text = f"{self._given_up}; it is ended with {self._missed} tuples"
        return f"{text} that it has not finished"

    def _forget_rest(self) -> None:
        self._owed = None
        self._rest.clear()

    def _again(self) -> bytes:
        """Give what a new child has to be given first."""
        return self._talk.again()

    def _once(self, data: bytes) -> None:
        """Send bytes and a heartbeat, if it has answered the last, and hear what there is then."""
        self._clean = False
        if data or self._owed is None:
            self._send(data)
        self._alone, begin = 0, time.monotonic()
        owed = self._owed or 0
        self._hear_until(lambda: self._talk.beats.has(owed) or self._goes_on(begin))
        if self._talk.beats.has(owed):
            self._owed = None
        self._clean = self._owed is None

    def _wholly(self, data: bytes) -> None:
        """Send bytes, and hear everything until the child answers."""
        self._once(data)
        while self._owed is not None:
            self._once(b"")

    def _send(self, data: bytes) -> None:
        self._take_what_came(POLL)
        self._owed, beat = self._talk.heartbeat()
        self._present.send(data + beat)
        self._done_at = time.monotonic()

    def _goes_on(self, begin: float) -> bool:
        """Say whether what it has sent is to go on, though it is not done with anything."""
        if not self._alone:
            return False
        now = time.monotonic()
        if now < max(begin, self._done_at) + POLL and self._alone < _MOST_ALONE:
            return False
        self._check_end(now)
        return self.in_parts and not self.context.lasting

    def _check_end(self, now: float) -> None:
        """Let it go on for a while when the run is to end, and no longer."""
        if self._is_late(now, self._done_at):
            told = f"its child still sends tuples {self.shell.linger:g} s after the run was to end"
            text = f"{self._subject}: {told}"
            raise StillSendingError(text)

    def _is_late(self, now: float, since: float = 0.0) -> bool:
        """Say whether it has had its time since it heard of the end, and since something else."""
        if not self.context.stopped():
            return False
        if self._ends_at is None:
            self._ends_at = now
        return now >= max(self._ends_at, since) + self.shell.linger

    def _begin_anew(self, error: ChildError) -> bool:
        """Start a successor of a child that has failed; not for ever when the run is to end."""
        if self._is_late(time.monotonic()):
            late = f"{self.shell.linger:g} s after the run was to end its child still fails"
            self._give_up(ChildError(f"{self._subject}: {late}: {error}"))
            return False
        gone = self._now
        gone.child.kill()
        self._partner = None
        self._forget_rest()
        gone.talk.failures += not gone.talk.told
        self._replaced(error, 0 if gone.talk.told else gone.talk.failures)
        gone.talk.begin_anew()
        self._partner = self._begin(gone.talk)
        return True

    def _take(self, message: Any) -> Said | None:
        try:
            said = self._talk.said(message)
        except ThalwegError as error:
            raise self._present.broken(error) from error
        for _ in range(self._talk.beats.hear(said)):
            self._present.send(self._talk.another_beat())
        self._obey(said)
        return said

    def _ask_again(self) -> None:
        if self._talk.beats.unsure:
            self._present.send(self._talk.another_beat())

    def _obey(self, said: Said | None) -> None:
        match said:
            case Emitted():
                self._alone += 1
                self._pass_on(said)
            case Ended(number, ok):
                self._alone, self._done_at = 0, time.monotonic()
                (self.ack if ok else self.fail)(number)
                if number != NOBODYS and ok:
                    self._succeeded(number)
                elif number != NOBODYS:
                    self._talk.told |= self._is_waited_for(number)
            case Synced():
                self._alone, self._done_at = 0, time.monotonic()
            case _:
                self._hear(said)

    def _succeeded(self, _number: int) -> None:
        """Note that it has acknowledged a tuple: it is not as those that have failed before it."""
        self._talk.failures, self._talk.told = 0, False

    def _note_who_waits(self, first: int, block: Block) -> None:
        holds = self._partner is None or bool(self._talk.given)
        self._unknown = (self._unknown and holds) or not _all_known(block)
        self._waited = first, block.roots

    def _is_waited_for(self, number: int) -> bool:
        """Say whether a spout is told how a tuple ends: it gives it up, some time."""
        first, roots = self._waited
        return bool(roots and roots[number - first]) if number >= first else not self._unknown

    def _pass_on(self, said: Emitted) -> None:
        task = None if said.task is None else self._task(said.task, said.stream)
        told = self.emit(said.values, said.stream, said.anchors, task, said.asks)
        if said.asks:
            self._present.answer(told or [])

    def _check_held(self) -> None:
        if len(self._talk.given) > self.shell.most_held:
            name = self.context.component
            raise ThalwegError(
                explain(
                    f"child of {name!r}",
                    expected=f"at most {self.shell.most_held} tuples that it has not finished",
                    got=f"{len(self._talk.given)}",
                    hint="it has to acknowledge each tuple, or to let it fail; or set most_held, in"
                    " a configuration thalweg.most_held",
                )
            )


def _all_known(block: Block) -> bool:
    """Say whether somebody waits for the end of each tuple."""
    return block.roots is not None and all(block.roots)
