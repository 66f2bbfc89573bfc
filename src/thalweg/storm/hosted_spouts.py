"""Spouts of pystorm inside a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

from thalweg.blocks import DEFAULT_STREAM
from thalweg.components import Spout
from thalweg.contexts import TaskContext
from thalweg.errors import RAISED, ThalwegError, as_error, explain, locate
from thalweg.events import Noticed
from thalweg.multilang.hosting import OpenIds
from thalweg.pacing import PATIENCE
from thalweg.storm.hosting import HostedBody, Stage, is_own, settled
from thalweg.storm_config.keys import LINGER

#: How often a spout is asked in a row whose tuples nobody waits for.
_AT_ONCE = 64
#: Seconds between two looks whether the run is to end, and how long a spout may be at something
#: then before that is told.
_LOOK, _LINGER = 0.5, 3.0
#: What a ReliableSpout knows of its open tuples, and one that is made anew has to know as well.
_OPEN = ("unacked_tuples", "failed_tuples")


class HostedSpout(HostedBody, Spout):
    """Runs a spout of pystorm or streamparse.

    One that exits with status 0 (``sys.exit()`` in ``next_tuple``) has no more tuples, as in a
    child process.
    """

    asks: ClassVar[bool] = True
    #: There when the component has got ready.
    _watcher: threading.Thread | None = None

    def prepare(self, context: TaskContext) -> None:
        """Make the component."""
        #: Whether it is asked for tuples just now, and whether it will be any more.
        self._asked, self._closed = False, threading.Event()
        self._stage = Stage(self.cls, context, self.config)
        self._now = context.clock.now
        #: Tuples sent, whether somebody waits for the end of any, and whether it has finished.
        self._sent = 0
        self._sent_when_failed = -1
        #: Whether the component at hand has come to the end of a next_tuple.
        self._returned = False
        self._counted = self._ended = False
        #: Open ids of tuples that the component at hand has sent; None where it is the first.
        self._own: OpenIds | None = None
        self._begin()
        name = f"end of {context.component}"
        self._watcher = threading.Thread(target=self._watch, name=name, daemon=True)
        self._watcher.start()

    def cleanup(self) -> None:
        """Let go of the component."""
        self._component = None
        self._closed.set()
        if self._watcher is not None:
            self._watcher.join()

    def next_tuple(self) -> None:
        """Ask for tuples, several times where nobody counts them.

        A slow spout is left after a while, so that what it gave goes on.
        """
        ask, now = self._component.next_tuple, self._now
        due = now() + PATIENCE
        self._asked, turn = True, 0
        try:
            for turn in range(_AT_ONCE):  # noqa: B007 (how many have returned)
                before = self._sent
                ask()
                if self._sent == before or self._counted or self._ended or now() >= due:
                    break
            self._returned = True
        except RAISED as error:
            self._returned |= turn > 0
            self._failed(error)
        finally:
            self._asked = False

    def ack(self, id: Any) -> None:
        """Tell that a tuple has been processed."""
        if self._own is None or self._own.end(id):
            self._told(self._component.ack, id)
        else:
            self._ack_of_another(id)

    def fail(self, id: Any) -> None:
        """Tell that a tuple has failed."""
        if self._own is None or self._own.end(id):
            self._told(self._component.fail, id)
        else:
            self._told_of_another(self._component.fail, id)

    def activate(self) -> None:
        """Begin."""
        self._told(self._component.activate)

    def deactivate(self) -> None:
        """Pause."""
        self._told(self._component.deactivate)

    def _watch(self) -> None:
        """Tell, beside the thread of the run, when that is to end and waits for the component."""
        context, closed, linger = self._stage.context, self._closed, self._stage.conf.get(LINGER)
        linger = _LINGER if linger is None else linger
        while not context.stopped():
            if closed.wait(_LOOK):
                return
        if not closed.wait(linger) and self._asked:
            text = explain(
                f"next_tuple of {self._stage.subject}",
                locate(self.cls.next_tuple),  # type: ignore[attr-defined]  # it is a spout
                "that it returns, when it has nothing too",
                f"that it has not, {linger:g} s after the run was to end, which waits for it",
                "a spout that waits for its tuples needs thalweg.isolation: process in its config",
            )
            context.tell(Noticed(text))

    def _ack_of_another(self, id_: Any) -> None:
        """Let a ReliableSpout, which knows it, forget a tuple; others have never heard of it."""
        component = self._component
        known = id_ in getattr(component, "unacked_tuples", ())
        if known and not self._told_of_another(component.ack, id_):
            for name in _OPEN:
                getattr(component, name).pop(id_, None)

    def _told_of_another(self, method: Callable[..., None], id_: Any) -> bool:
        """Tell of a tuple that the component may not know: what it raises is shown, no more."""
        try:
            method(id_)
        except ThalwegError:
            raise
        except RAISED as error:
            if isinstance(error, SystemExit) and error.code in (None, 0):
                self._finish()
            else:
                self._component._handle_run_exception(as_error(error))
            return False
        return True

    def _told(self, method: Callable[..., None], *arguments: Any) -> None:
        try:
            method(*arguments)
        except RAISED as error:
            self._failed(error)

    def _failed(self, raised: BaseException) -> None:
        """End, or begin anew; raises a mistake that the next tuple repeats."""
        if isinstance(raised, SystemExit) and raised.code in (None, 0):
            self._finish()
            return
        error = as_error(raised)
        if error is not raised:
            self._component.exit_on_exception = True  # which is not about exits
        if isinstance(error, ThalwegError):
            raise error
        self._component._handle_run_exception(error)
        if self._component.exit_on_exception:
            in_a_row = not self._returned or self._sent == self._sent_when_failed
            self._stage.replaced(error, in_a_row)
            self._sent_when_failed, self._own = self._sent, OpenIds()
            self._returned = False
            self._begin()
            self._component.activate()

    def _finish(self) -> None:
        self._ended = True
        self.finish()

    def _begin(self) -> None:
        before, component = self._component, self._stage.component(self._hear)
        for name in _OPEN:
            if hasattr(before, name):
                setattr(component, name, getattr(before, name))
        self._component = component
        self._emit = self._emit_function()
        if is_own(type(component), "emit"):
            reliable = hasattr(component, "unacked_tuples")
            component.emit = self._emit_reliable if reliable else self._emit
        component.finish = self._finish
        self._stage.initialize(component)

    def _emit_function(self) -> Callable[..., list[int] | None]:
        """Make ``emit`` of a component: as little as possible for a plain list of values."""
        send: Any = self.emit  # which also takes ``ask``
        own = self._own

        def emit(
            tup: Any,
            tup_id: Any = None,
            stream: str | None = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
        ) -> list[int] | None:
            values = settled(tup)
            self._sent += 1
            if tup_id is not None:
                self._counted = True
                if own is not None:
                    own.note(tup_id)
            if direct_task is None:
                told: list[int] | None = send(
                    *values, id=tup_id, stream=stream or DEFAULT_STREAM, ask=need_task_ids
                )
                return told
            stream = stream or DEFAULT_STREAM
            task = self._stage.direct.find(direct_task, stream)
            self.emit_direct(task, *values, id=tup_id, stream=stream)
            return [direct_task] if need_task_ids else None

        return emit

    def _emit_reliable(
        self,
        tup: Any,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Do as a ReliableSpout does: remember the tuple until it is done."""
        if tup_id is None:
            text = "a ReliableSpout emits each tuple with a tup_id, to know how it ends"
            raise ValueError(text)
        told = self._emit(tup, tup_id, stream, direct_task, need_task_ids)
        # One that could not be sent is not waited for.
        self._component.unacked_tuples[tup_id] = tup, stream, direct_task, need_task_ids
        return told

    def _hear(self, message: Any) -> None:
        """Take a message of a class that does not use our quicker methods."""
        if message.get("command") == "emit":
            stream, task = message.get("stream"), message.get("task")
            asks = task is None and message.get("need_task_ids", True)
            told = self._emit(message["tuple"], message.get("id"), stream, task, asks)
            if asks:
                self._component._pending_task_ids.append(told)
        else:
            self._stage.hear(message)
