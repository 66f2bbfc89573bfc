"""Spouts in child processes: asked, they answer, and say when they are done with it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from thalweg.components import Spout
from thalweg.contexts import TaskContext
from thalweg.errors import ThalwegError, explain, shorten
from thalweg.events import Noticed
from thalweg.multilang.child import Child, ChildError, CleanEnd
from thalweg.multilang.hosted import Hosted, any_fields
from thalweg.multilang.hosting import Emitted, OpenIds, Said, Synced, spout_said
from thalweg.multilang.settings import Shell
from thalweg.multilang.wire import ProtocolError, make_wire
from thalweg.pacing import PATIENCE

#: Seconds between two times that it is heard which count as waiting for it.
_BETWEEN = 1.0
#: Seconds for which it is heard when the run is to end, however long others took to do so.
_LEAST = 0.5


class ShellSpout(Hosted, Spout):
    """A spout that is a program of its own, in any language, and speaks Storm's protocol.

    A program that ends with status 0 has no more tuples. Settings are those of
    :class:`thalweg.multilang.settings.Shell`.
    """

    asks: ClassVar[bool] = True

    def __init__(
        self,
        command: str | Sequence[str],
        outputs: Any = (),
        streams: Mapping[str, Any] | None = None,
        direct_streams: Iterable[str] = (),
        **settings: Any,
    ) -> None:
        self.shell = Shell.of(command, settings)
        self.outputs = any_fields(outputs)
        self.streams = {name: any_fields(spec) for name, spec in (streams or {}).items()}
        self.direct_streams = frozenset(direct_streams)  # type: ignore[misc]  # of this one
        self._child: Child | None = None

    def prepare(self, context: TaskContext) -> None:
        """Start the child."""
        self.context = context
        self._encode = make_wire(self.shell.serializer).encode
        #: Whether it is to give tuples, and how tuples ended of which it has not been told; with
        #: whether it has sent them itself.
        self._active = False
        self._later: deque[tuple[str, Any, bool]] = deque()
        #: Open ids of tuples that the child at hand has sent; None where it is the first.
        self._own: OpenIds | None = None
        #: Whether it is told which tuples of those before it have failed, and is just then.
        self._hears_all, self._at_another = True, False
        #: How many tuples it has sent, and when it was last asked for something.
        self._sent, self._asked_at = 0, time.monotonic()
        #: What it was asked last, and how often in a row children have failed that came to the end
        #: of no ``next``.
        self._asked, self._failures = "", 0
        #: When it is taken for hung, and whether it has said anything since it got on with its
        #: work; and until when it was heard.
        self._hung, self._heard_at = (0.0, False), 0.0
        #: Until when it is heard at least, though the run is to end.
        self._heard_until = 0.0
        self._begin()

    def _begin(self) -> None:
        self._child, self._begun_at = self._start(self._setup()), time.monotonic()
        #: Whether it is done with all that it was asked, and knows that it is to give tuples.
        self._synced, self._awake = True, False

    def cleanup(self) -> None:
        """Let the child end."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def activate(self) -> None:
        """Begin."""
        self._active = True
        self._insist(self._turn)

    def deactivate(self) -> None:
        """Pause; to be called again while :attr:`pausing`."""
        self._active = False
        self._insist(self._turn)

    @property
    def pausing(self) -> bool:
        """Whether its child has not heard yet that it pauses."""
        return self._child is not None and not self._active and (not self._synced or self._awake)

    def next_tuple(self) -> None:
        """Ask for what there is; what a child has sent goes on though it is not done with it."""
        self._insist(self._next)

    def ack(self, id: Any) -> None:
        """Tell that a tuple has been processed."""
        self._tell("ack", id)

    def fail(self, id: Any) -> None:
        """Tell that a tuple has failed."""
        self._tell("fail", id)

    # --- what it is asked --------------------------------------------------------------------

    def _next(self) -> None:
        before = self._sent
        if not self._synced:
            # Only what it is waited for counts: it may not have been asked for a while.
            unheard = max(0.0, time.monotonic() - self._heard_at - _BETWEEN)
            self._listen((self._hung[0] + unheard, self._hung[1]))
        if self._synced and self._sent == before:
            self._catch_up()
            self._send("next")
            self._listen()

    def _listen(self, since: tuple[float, bool] | None = None) -> None:
        """Take what the child sends until it is done, or has been at it for a while."""
        due = time.monotonic() + PATIENCE
        self._hung = self._hear_until(
            lambda: self._synced or time.monotonic() >= due, "", PATIENCE, since
        )
        self._heard_at = time.monotonic()

    def _turn(self) -> None:
        """Let the child begin or pause, when it is done with what it is at.

        One that is long at it is waited for only when the run is to end; before that it hears of it
        when somebody looks again.
        """
        self._take_what_came(PATIENCE, lambda: self._synced)
        if not self._synced and self.context.stopped():
            self._hear_out()
        if self._synced:
            self._catch_up()

    def _is_late(self) -> bool:
        """Say whether it has had its time, since the run is to end and it was asked."""
        since = self.context.stopped_at()
        if since is None:
            return False
        due = max(since, self._asked_at) + self.shell.linger
        return time.monotonic() >= max(due, self._heard_until)

    def _hear_in_time(self, done: Callable[[], bool]) -> None:
        """Take what the child says until something is so; not for long when the run is to end."""
        # While others were heard it may have waited for that, with more than a pipe can hold.
        self._heard_until = time.monotonic() + min(_LEAST, self.shell.linger)
        self._hear_until(lambda: done() or self._is_late())
        if not done():
            why = f"has not answered {self.shell.linger:g} s after the run was to end"
            raise self._present.broken(why)

    def _hear_out(self) -> None:
        before = self._sent

        def enough() -> bool:
            return self._synced or (self._sent > before and self._is_late())

        self._hear_in_time(enough)
        if not self._synced:
            why = f"still answers to next {self.shell.linger:g} s after the run was to end"
            raise self._present.broken(why)

    def _tell(self, command: str, id_: Any) -> None:
        """Tell the child how a tuple ended; while it is busy it expects nothing of the kind."""
        if self._child is None:
            return
        own = self._own is None or self._own.end(id_)
        if not own and (command == "ack" or not self._hears_all):
            return  # it would not know it
        self._later.append((command, id_, own))
        if self._synced:
            self._insist(self._catch_up)
        elif len(self._later) > self.shell.most_held:
            raise ThalwegError(
                explain(
                    f"child of {self.context.component!r}",
                    expected=f"at most {self.shell.most_held} tuples that end during one next",
                    hint="it has to say sync from time to time; or set most_held, in a"
                    " configuration thalweg.most_held",
                )
            )

    def _catch_up(self) -> None:
        """Tell the child what it should know by now."""
        if self._awake != self._active:
            self._ask("activate" if self._active else "deactivate")
            self._awake = self._active
        while self._later:
            command, id_, own = self._later[0]
            self._at_another = not own
            self._ask(command, id_)
            self._at_another = False
            self._later.popleft()

    def _ask(self, command: str, id_: Any = "") -> None:
        """Send a command, and take what comes until the child is done with it."""
        self._send(command, id_)
        self._hear_in_time(lambda: self._synced)

    def _send(self, command: str, id_: Any = "") -> None:
        self._present.send(self._encode({"command": command, "id": id_}))
        self._synced, self._asked, self._asked_at = False, command, time.monotonic()

    # --- the child ---------------------------------------------------------------------------

    @property
    def _present(self) -> Child:
        assert self._child is not None  # noqa: S101 (only asked while it is there)
        return self._child

    def _insist(self, step: Callable[[], None]) -> None:
        """Do something with the child, or else with its successors, unless the run is to end."""
        while self._child is not None:
            try:
                step()
            except CleanEnd:
                self._child.close()
                self._child = None
                self.finish()
            except ChildError as error:
                self._child.kill()
                self._child = None
                if self.context.stopped():
                    self.finish()
                    how = "it is not started anew, since the run is to end"
                    self.context.tell(Noticed(f"{self._subject}: {error}; {how}"))
                    return
                if self._at_another:
                    self._hears_all = self._at_another = False
                    how = "it is started anew, and told no more of what one before it has sent"
                    self.context.tell(Noticed(f"{self._subject}: {error}; {how}"))
                else:
                    self._failures += 1
                    self._replaced(error, self._failures)
                self._begin_anew()
            else:
                return

    def _begin_anew(self) -> None:
        """Start a successor: it hears of what others have sent only what it may send again."""
        failed = [(c, id_, False) for c, id_, _ in self._later if c == "fail" and self._hears_all]
        self._own, self._later = OpenIds(), deque(failed)
        self._begin()

    def _take(self, message: Any) -> Said:
        try:
            said = spout_said(message)
        except ThalwegError as error:
            raise self._present.broken(error) from error
        if isinstance(said, Emitted):
            self._check_id(said.id)
            if self._own is not None and said.id is not None:
                self._own.note(said.id)
            if time.monotonic() >= self._begun_at + self.shell.timeout:
                self._failures = 0  # it may be at one ``next`` for ever
            self._pass_on(said)
        elif isinstance(said, Synced):
            self._synced = True
            if self._asked == "next":
                self._failures = 0
        self._hear(said)
        return said

    def _check_id(self, id_: Any) -> None:
        """Refuse an id that it cannot be told again."""
        try:
            self._encode(id_)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            text = explain(
                f"id {shorten(id_, 40)} of a tuple",
                "",
                f"what {self.shell.serializer} can hold",
                str(error),
            )
            raise self._present.broken(ProtocolError(text)) from error

    def _pass_on(self, said: Emitted) -> None:
        self._sent += 1
        if said.task is not None:
            task = self._task(said.task, said.stream)
            self.emit_direct(task, *said.values, stream=said.stream, id=said.id)
            return
        told: Any = self.emit(  # type: ignore[call-arg,func-returns-value]  # since it asks
            *said.values, stream=said.stream, id=said.id, ask=said.asks
        )
        if said.asks and self._child is not None:
            self._child.answer(told or [])
