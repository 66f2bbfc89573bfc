"""What bolts and spouts in child processes have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

from thalweg.anyvalues import anything
from thalweg.contexts import TaskContext
from thalweg.errors import ThalwegError
from thalweg.events import ChildSaid, Noticed
from thalweg.multilang.child import Child, ChildError, NoProgram
from thalweg.multilang.context import DirectTasks, TaskIds, storm_context
from thalweg.multilang.hosting import (
    ERROR,
    INFO,
    Changed,
    Emitted,
    Ended,
    Logged,
    Measured,
    Reported,
    Said,
    Synced,
)
from thalweg.multilang.measuring import Measures
from thalweg.multilang.settings import Shell

#: Seconds without a word after which a child may be asked once more.
_SILENCE = 1.0


def any_fields(spec: Any) -> Any:
    """Let fields of which only names are known hold anything."""
    if isinstance(spec, str):
        spec = [spec]
    return dict.fromkeys(spec, anything) if isinstance(spec, Sequence) else spec


class Hosted:
    """A component whose work is done by a child."""

    shell: Shell
    context: TaskContext
    _measures: Measures | None = None
    #: Storm's numbers of tasks are those of a whole topology.
    tasks_by_number: ClassVar[bool] = True

    @property
    def _present(self) -> Child:
        """The child that is there now."""
        raise NotImplementedError

    def _setup(self) -> dict[str, Any]:
        """Say what the child is told at its beginning."""
        context = self.context
        config: dict[str, Any] = {"topology.name": context.topology, **self.shell.config}
        if self.shell.tick is not None:
            config["topology.tick.tuple.freq.secs"] = self.shell.tick
        return {"conf": config, "context": storm_context(context)}

    @cached_property
    def _ids(self) -> TaskIds:
        return TaskIds.of_topology(self.context.graph)

    @cached_property
    def _direct(self) -> DirectTasks:
        return DirectTasks(self.context)

    def _task(self, number: int, stream: str) -> int:
        """Find the task that a child names, of those that read a stream."""
        try:
            return self._direct.find(number, stream)
        except ThalwegError as error:
            raise self._present.broken(error) from error

    def _start(self, setup: dict[str, Any]) -> Child:
        """Start a child."""
        try:
            return Child(self.shell, setup, lambda text: self._say(INFO, text))
        except NoProgram as error:
            text = f"{self._subject}: {error}"
            raise ChildError(text) from error

    def _hear_until(
        self,
        done: Callable[[], bool],
        lacking: str = "",
        patience: float = _SILENCE,
        since: tuple[float, bool] | None = None,
    ) -> tuple[float, bool]:
        """Take what the child says until something is so, with a look at that from time to time.

        One that does not get on with its work is taken for hung, however much it logs. Gives when
        that will be, and whether it has said anything since: for who goes on to hear it.
        """
        limit = self.shell.timeout
        self._present.get_ready()
        due, talked = since or (time.monotonic() + limit, False)
        while not done():
            left = max(0.0, due - time.monotonic())
            message = self._present.next_message(min(left, patience))
            if message is None and left > patience:
                self._ask_again()
                continue
            said = None if message is None else self._take(message)
            if isinstance(said, Emitted | Ended | Changed | Synced):
                due, talked = time.monotonic() + limit, False
            elif message is not None and time.monotonic() < due:
                talked = True
            else:
                why = lacking or "has said nothing" + " of its work" * talked
                text = f"{why} for {limit:g} s; it is taken for hung"
                raise self._present.broken(text)
        return due, talked

    def _take_what_came(self, seconds: float, enough: Callable[[], bool] = bool) -> None:
        """Take what the child has said by now; some never stop talking, and are left after that."""
        until = time.monotonic() + seconds
        while not enough() and time.monotonic() < until:
            message = self._present.next_message(patience=0.0)
            if message is None:
                break
            self._take(message)

    def _ask_again(self) -> None:
        """Do something about a child that has said nothing for a second, if that can help."""

    def _take(self, message: Any) -> Said | None:
        """Do what the child says; gives what that was."""
        raise NotImplementedError

    @property
    def _subject(self) -> str:
        return f"component {self.context.component!r}, task {self.context.task}"

    def _say(self, level: int, text: str) -> None:
        context = self.context
        context.tell(ChildSaid(context.component, context.task, level, text))

    def _hear(self, said: Said | None) -> None:
        """Note what needs no answer."""
        match said:
            case Logged(level, text):
                self._say(level, text)
            case Reported(text):
                self._say(ERROR, text)
            case Measured(name, params):
                if self._measures is None or self._measures.context is not self.context:
                    self._measures = Measures(self.context, self.shell.metrics)
                self._measures.note(name, params)

    def _replaced(self, error: ChildError, attempt: int) -> None:
        """Tell that a child is replaced; raises when that has happened too often.

        Attempt 0 is one that does not count.
        """
        subject = self._subject
        if attempt > self.shell.restarts:
            times = f", {attempt} times in a row" if attempt > 1 else ""
            text = f"{subject}: its child has failed{times}: {error}"
            raise ChildError(text) from error
        how = f"({attempt} of {self.shell.restarts})" if attempt else "and its spout is told"
        self.context.tell(Noticed(f"{subject}: {error}; it is started anew {how}"))
