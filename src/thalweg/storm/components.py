"""What spouts and bolts of pystorm have in common; as a child process they speak the protocol.

Inside a run the same classes are driven by :mod:`thalweg.storm.hosting`, without pipes.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections import deque
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from thalweg.storm.logs import LEVELS, logger_of, redirect_prints, set_up
from thalweg.storm.outside import Described
from thalweg.storm.pipes import Pipes, StormWentAwayError

_log = logging.getLogger("pystorm")


class Tuple(NamedTuple):
    """A tuple as a bolt sees it."""

    id: str
    component: str
    stream: str
    task: int
    #: The values: a named tuple where the fields are known.
    values: Any


class Component(Described):
    """Base of spouts and bolts."""

    #: Whether the process ends when user code raises (Storm then starts it anew).
    exit_on_exception: ClassVar[bool] = True

    def __init__(
        self,
        input_stream: Any = None,
        output_stream: Any = None,
        rdb_signal: Any = None,
        serializer: str = "json",
    ) -> None:
        del rdb_signal  # there is no remote debugger here
        self.topology_name: str | None = None
        self.task_id: int | None = None
        self.component_name: str | None = None
        self.debug: bool | None = None
        self.storm_conf: dict[str, Any] | None = None
        self.context: dict[str, Any] | None = None
        self.pid = os.getpid()
        self.logger: Any = _log
        self.serializer = Pipes(input_stream or sys.stdin, output_stream or sys.stdout, serializer)
        self._pending_commands: deque[Any] = deque()
        self._pending_task_ids: deque[Any] = deque()
        self._asking = threading.RLock()

    @classmethod
    def spec(cls, *_arguments: Any, **_wanted: Any) -> Any:
        """Refuse: only spouts and bolts have a place in a topology."""
        text = f"specs are of spouts or bolts; {cls.__name__} is neither"
        raise TypeError(text)

    # --- what components override, or call -----------------------------------------------------

    def initialize(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Get ready; called once before anything else."""

    def emit(
        self,
        tup: Any,
        tup_id: Any = None,
        stream: str | None = None,
        anchors: Any = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Send a tuple; with ``need_task_ids``, say which tasks get it."""
        message: dict[str, Any] = {"command": "emit", "tuple": checked_values(tup)}
        told = {"anchors": anchors, "id": tup_id, "stream": stream, "task": direct_task}
        message |= {name: value for name, value in told.items() if value is not None}
        if not need_task_ids:
            message["need_task_ids"] = False  # Storm's own default is to tell
        if direct_task is not None or not need_task_ids:
            self.send_message(message)
            return [direct_task] if need_task_ids and direct_task is not None else None
        with self._asking:  # the answer belongs to this message
            self.send_message(message)
            return self.read_task_ids()

    def log(self, message: Any, level: str | None = None) -> None:
        """Log through Storm, whatever the level."""
        number = LEVELS.get(level or "info", LEVELS["info"])
        self.send_message({"command": "log", "msg": str(message), "level": number})

    def report_metric(self, name: str, value: Any) -> None:
        """Report a value of a metric."""
        self.send_message({"command": "metrics", "name": name, "params": value})

    def raise_exception(self, exception: BaseException, tup: Any = None) -> None:
        """Report an exception, with the tuple that was at hand."""
        where = f" while processing {tup!r}" if tup else ""
        lines = traceback.format_exception(exception)
        text = f"Python {type(exception).__name__} raised{where}\n{''.join(lines)}"
        self.send_message({"command": "error", "msg": text})
        self.send_message({"command": "sync"})

    @staticmethod
    def is_heartbeat(tup: Tuple) -> bool:
        """Say whether a tuple only asks whether the component is alive."""
        return tup.task == -1 and tup.stream == "__heartbeat"

    # --- the life of a child process -----------------------------------------------------------

    def run(self) -> None:
        """Speak with whoever started this process, until its input ends."""
        storm_conf, context = self.read_handshake()
        self._setup_component(storm_conf, context)
        self.initialize(storm_conf, context)
        while True:
            try:
                self._run()
            except StormWentAwayError:
                self._exit(2)
            except Exception as error:
                self._run_failed(error)
                if self.exit_on_exception:
                    self._exit(1)

    def _run_failed(self, error: Exception) -> None:
        text = f"Exception in {type(self).__name__}.run()"
        try:
            self.logger.error(text, exc_info=error)
            self._handle_run_exception(error)
        except StormWentAwayError:
            self._exit(2)
        except Exception:
            _log.exception("the report of an error failed too")

    def _run(self) -> None:
        raise NotImplementedError

    def _handle_run_exception(self, error: Exception) -> None:
        self.raise_exception(error)

    def _exit(self, status: int) -> None:
        """End, also when other threads go on."""
        if threading.active_count() > 1:
            os._exit(status)
        sys.exit(status)

    def _setup_component(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        self._tell(storm_conf, context)
        names = ("topology_name", "component_name", "task_id", "pid")
        if not storm_conf.get("pystorm.log.path"):
            self.log("logs of this component go to whoever runs it")
        set_up(self, {name: getattr(self, name) for name in names})
        if self.serializer.output_stream is sys.stdout:
            redirect_prints()

    def _tell(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Note who this component is."""
        self.storm_conf, self.context = storm_conf, context
        self.topology_name = storm_conf.get("topology.name", "")
        self.debug = storm_conf.get("topology.debug", False)
        self.task_id = context.get("taskid", "")
        by_task = context.get("task->component", {})
        self.component_name = context.get("componentid") or by_task.get(str(self.task_id), "")
        self.logger = logger_of(str(self.component_name))

    def read_handshake(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Learn who this component is; tell the number of this process."""
        message = self.read_message()
        (Path(message["pidDir"]) / str(self.pid)).touch()
        self.send_message({"pid": self.pid})
        return message["conf"], message["context"]

    # --- messages ------------------------------------------------------------------------------

    def read_message(self) -> Any:
        """Wait for the next message."""
        return self.serializer.read_message()

    def send_message(self, message: Any) -> None:
        """Send a message."""
        if isinstance(message, dict):
            self.serializer.send_message(message)
        else:
            self.logger.error("not a message, and not sent: %r", message)

    def read_task_ids(self) -> Any:
        """Wait for an answer about tasks; commands that come before it are kept."""
        return self._read(self._pending_task_ids, self._pending_commands, list)

    def read_command(self) -> Any:
        """Wait for a command or tuple; answers about tasks that come before it are kept."""
        return self._read(self._pending_commands, self._pending_task_ids, dict)

    def _read(self, wanted: deque[Any], others: deque[Any], kind: type) -> Any:
        if wanted:
            return wanted.popleft()
        while not isinstance(message := self.read_message(), kind):
            others.append(message)
        return message


def checked_values(tup: Any) -> Any:
    """Refuse what is no list of values."""
    if not isinstance(tup, list | tuple):
        text = f"a tuple is emitted as a list or tuple of its values; given: {tup!r}"
        raise TypeError(text)
    return tup
