"""Python components of Storm inside a run: no pipes, no child process.

The classes may be ours or those of pystorm and streamparse. A component is made as its child
process would make it; what it says (``emit``, ``ack`` ...) goes straight to the run. Classes that
say these things in a way of their own still work, through ``send_message``, which all of them use.
"""

from __future__ import annotations

import copy
import io
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar

from thalweg.anyvalues import SCALARS
from thalweg.contexts import TaskContext
from thalweg.errors import ThalwegError, explain
from thalweg.events import ChildSaid, Noticed
from thalweg.groupings import All
from thalweg.multilang.context import DirectTasks, TaskIds, storm_context
from thalweg.multilang.measuring import Measures
from thalweg.storm.components import checked_values
from thalweg.storm.logs import LEVELS, level_of
from thalweg.storm_config.keys import RESTARTS

#: How often a component is made anew, in a row, because its code raised; if nobody says so.
_RESTARTS = 3
#: Packages whose methods may be replaced by quicker ones that do the same.
_LIBRARIES = frozenset(["pystorm", "streamparse", "thalweg"])
#: Packages that log for themselves.
_NOT_OF_COMPONENTS = frozenset(["py4j", "pyspark", "thalweg", "asyncio"])
_INFO = LEVELS["info"]
_ERROR = LEVELS["error"]


class HostedBody:
    """A component of the run that runs one of pystorm's or streamparse's classes."""

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
        self.streams: Mapping[str, Any] = dict(streams or {})
        self.direct_streams = frozenset(direct_streams)
        self.config = dict(config or {})


def is_own(cls: type, method: str) -> bool:
    """Say whether a method is the library's, not one of the user's class."""
    found = getattr(cls, method)
    return found.__module__.partition(".")[0] in _LIBRARIES


def gathers(cls: type) -> bool:
    """Say whether a bolt does something at ticks with what it has kept, of which nobody knows.

    What those keep that gather batches is known: their tuples are not acknowledged.
    """
    return not is_own(cls, "process_tick") and not hasattr(cls, "process_batches")


def make_component(cls: type) -> Any:
    """Make a component that reads and writes nothing by itself."""
    streams = {"input_stream": io.BytesIO(), "output_stream": io.BytesIO()}
    return cls(**streams, rdb_signal=None, serializer="json")


def settled(tup: Any) -> Sequence[Any]:
    """Give the values of a tuple as they are now, whatever happens to lists later.

    >>> row = ["a", [1]]
    >>> sent = settled(row)
    >>> row[1].append(2)
    >>> sent
    ['a', [1]]
    """
    if type(tup) is not list:
        checked_values(tup)
    for value in tup:
        if type(value) not in SCALARS:
            return own_values(tup)
    return tuple(tup)


def own_values(values: Sequence[Any]) -> list[Any]:
    """Copy those of some values that can be changed."""
    return [v if type(v) in SCALARS else _copied(v) for v in values]


def _copied(value: Any) -> Any:
    """Copy what can be changed; lists and dictionaries of scalars quickly."""
    kind = type(value)
    if kind is list and SCALARS.issuperset(map(type, value)):
        return value.copy()
    if kind is dict and SCALARS.issuperset(map(type, value.values())):
        return value.copy()
    return copy.deepcopy(value)


def emit_one(
    line: list[Any], scalars: set[object], general: Callable[..., list[int] | None]
) -> Callable[..., list[int] | None]:
    """Make ``emit`` that puts rows of one plain value into a line of them."""

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
                line.append(value)
                return None
        return general(tup, stream, anchors, direct_task, need_task_ids)

    return emit


def emit_two(
    line: list[Any], scalars: set[object], general: Callable[..., list[int] | None]
) -> Callable[..., list[int] | None]:
    """Do the same for rows of two values."""

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
                line.extend(tup)
                return None
        return general(tup, stream, anchors, direct_task, need_task_ids)

    return emit


class Forwarding(logging.Handler):
    """Gives what is logged to a function (level, text)."""

    def __init__(self, say: Callable[[int, str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Give one record."""
        self._say(LEVELS.get(record.levelname.lower(), _INFO), self.format(record))


@contextmanager
def forwarded(config: Mapping[str, Any], say: Callable[[str], None]) -> Iterator[None]:
    """Let what modules of components log be told; on Storm it goes to its log as well."""
    root = logging.getLogger()
    before, handler = root.level, Forwarding(lambda _level, text: say(text))
    handler.addFilter(lambda record: record.name.partition(".")[0] not in _NOT_OF_COMPONENTS)
    root.addHandler(handler)
    root.setLevel(level_of(config))
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


class Stage:
    """Where a component of a task lives: makes it, introduces it, hears what it says."""

    def __init__(self, cls: type, context: TaskContext, config: Mapping[str, Any]) -> None:
        self._cls = cls
        self.context = context
        self.conf = {"topology.name": context.topology, **config}
        self._failures, said = 0, self.conf.get(RESTARTS)
        self._restarts = _RESTARTS if said is None else said
        self._measures = Measures(context)

    def let_go(self, body: Any) -> None:
        """Let go of the run, but for who hears of it: threads of components may stay for ever.

        What a runtime has put onto the body of a component leads to all of the run, too.
        """
        known, kind = self.context, type(body)
        self.context = TaskContext(
            known.topology, known.component, known.task, known.degree, known.clock, known.random,
            tell=known.tell,
        )  # fmt: skip
        self._measures = Measures(self.context)
        for name in ("ids", "direct"):
            self.__dict__.pop(name, None)
        for name in [name for name in vars(body) if callable(getattr(kind, name, None))]:
            delattr(body, name)
        body.context = self.context

    def component(self, send_message: Callable[[Any], None]) -> Any:
        """Make a component, not yet told to begin."""
        made = make_component(self._cls)
        context = storm_context(self.context)
        made.storm_conf, made.context = self.conf, context
        made.topology_name, made.debug = self.context.topology, self.conf.get("topology.debug")
        made.task_id, made.component_name = context["taskid"], self.context.component
        made.logger = self._logger()
        made.send_message = send_message
        return made

    @property
    def subject(self) -> str:
        """Its task, for messages."""
        return f"component {self.context.component!r}, task {self.context.task}"

    def initialize(self, component: Any) -> None:
        """Let a component begin."""
        try:
            component.initialize(component.storm_conf, component.context)
        except ValueError as error:
            if "main thread" not in str(error):
                raise
            raise ThalwegError(
                explain(
                    f"initialize of {self.subject}",
                    expected="nothing that needs the main thread, as handlers of signals do",
                    got=str(error),
                    hint='give it a process: config = {"thalweg.isolation": "process"}',
                )
            ) from error

    @cached_property
    def ids(self) -> TaskIds:
        """Numbers of tasks as Storm counts them."""
        return TaskIds.of_topology(self.context.graph)

    @cached_property
    def direct(self) -> DirectTasks:
        """Tasks by these numbers, for direct streams."""
        return DirectTasks(self.context)

    def shares(self, component: str, stream: str) -> bool:
        """Say whether somebody else gets the tuples of a stream too, as the same objects."""
        readers = self.context.graph.readers(component, stream)
        return len(readers) > 1 or any(isinstance(input_.grouping, All) for _, input_ in readers)

    def say(self, level: int, text: str) -> None:
        """Pass on what a component logs."""
        self.context.tell(ChildSaid(self.context.component, self.context.task, level, text))

    def hear(self, message: Mapping[str, Any]) -> None:
        """Take what every component may say, and needs no answer."""
        match message.get("command"):
            case "log":
                self.say(message.get("level", _INFO), str(message.get("msg")))
            case "error":
                self.say(_ERROR, str(message.get("msg")))
            case "metrics":
                self._measures.note(str(message.get("name")), message.get("params"))

    def replaced(self, error: Exception, in_a_row: bool, told: bool = False) -> None:
        """Tell that a component is made anew; raises when that has happened too often in a row.

        What a spout is ``told`` does not count: it gives its tuple up, some time.
        """
        how = "and its spout is told"
        if not told:
            self._failures = self._failures + 1 if in_a_row else 1
            how = f"({self._failures} of {self._restarts} in a row)"
        if self._failures > self._restarts:
            raise error
        text = f"{self.subject}: {type(error).__name__}: {error}; it is started anew {how}"
        self.context.tell(Noticed(text))

    def _logger(self) -> logging.Logger:
        # One of its own, outside the tree of loggers: tasks of one component do not mix.
        logger = logging.Logger(f"pystorm.component.{self.context.component}")
        logger.setLevel(level_of(self.conf))
        logger.addHandler(Forwarding(self.say))
        return logger
