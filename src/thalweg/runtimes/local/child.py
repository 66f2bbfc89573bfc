"""A worker process: one task of a component, which takes messages until it is told to close.

It is started as ``python -m thalweg.runtimes.local.child IN OUT``, with two ends of pipes. The
first thing that comes is the component itself, from the process that started this one.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from thalweg.blocks import Block, Origin
from thalweg.errors import ComponentError
from thalweg.events import Event, TupleRefused
from thalweg.execution import Run
from thalweg.metrics import Counter
from thalweg.runtimes.block_tasks import AnyBoltTask
from thalweg.runtimes.local.crossing import (
    Answer,
    Arena,
    Failed,
    Parcel,
    Refused,
    Told,
    Window,
    from_bytes,
    pack,
    read,
    write,
)
from thalweg.runtimes.making import TaskMaker, make_shapes
from thalweg.runtimes.shipping import unpack as unpack_code
from thalweg.state import MemoryState
from thalweg.state import pack as pack_entries
from thalweg.state import unpack as unpack_entries
from thalweg.topology import Topology


class ToldClock:
    """The clock of the process that sends messages: it stands still while one is handled."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        """Give the time of the message at hand."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """Let time pass, for this component alone."""
        self.time += max(0.0, seconds)


@dataclass
class Letters:
    """Keeps what was refused for the answer."""

    lines: list[bytes] = field(default_factory=list)

    def write(self, line: bytes) -> None:
        """Take a line."""
        self.lines.append(line)

    def close(self) -> None:
        """Nothing is open."""


class Worker:
    """Handles messages."""

    def __init__(self, parcel: Parcel) -> None:
        self._clock, self._letters, self._heard = ToldClock(), Letters(), list[Event]()
        component = parcel.component
        self._counter = Counter(component.name, 1)
        maker = TaskMaker(
            topology=Topology(parcel.topology, (component,)),
            clock=self._clock,
            seed=parcel.seed,
            key_groups=parcel.key_groups,
            run=Run(listen=self._heard.append, settings=parcel.settings),
            letters={component.name: self._letters},
            read={component.name: parcel.read},
        )
        state = maker.memory(component)
        self.task: AnyBoltTask = maker.bolt(
            component, parcel.task, self._counter, make_shapes(component), state
        )
        self.arena, self.window = Arena(), Window()
        self._calls: dict[str, Callable[[Told], Answer]] = {
            "prepare": self._prepare,
            "process": self._process,
            "tick": lambda _told: pack(self.task.tick(), self.arena),
            "end": lambda _told: pack(self.task.end(), self.arena),
            "entries": self._entries,
            "load": self._load,
            "close": self._close,
        }

    def handle(self, told: Told) -> Answer:
        """Do what a message says; errors become part of the answer."""
        self._clock.time = told.now
        before = self._counter.errors
        try:
            answer = self._calls[told.call](told)
        except ComponentError as error:
            answer = Answer(failure=Failed(str(error), error.tuple_text))
        except Exception as error:
            answer = Answer(failure=Failed(f"{type(error).__name__}: {error}", component=False))
        refused = [event for event in self._heard if isinstance(event, TupleRefused)]
        answer.refused = [Refused(event.tuple_text, event.reason) for event in refused]
        answer.letters, answer.errors = self._letters.lines, self._counter.errors - before
        self._letters.lines = []
        self._heard.clear()
        return answer

    def _prepare(self, _told: Told) -> Answer:
        self.task.prepare()
        return Answer()

    def _process(self, told: Told) -> Answer:
        batch = from_bytes(self.window.get(told.data, told.arena, told.size))
        origin = told.origin or Origin("")
        self.task.bind(origin=origin, key=told.key)
        emissions = self.task.process(Block.of(batch, origin), told.lineage)
        answer = pack(emissions, self.arena)
        answer.failed_rows = sorted(self.task.failed_rows)
        return answer

    def _entries(self, _told: Told) -> Answer:
        state = self.task.context.state
        entries = state.entries() if isinstance(state, MemoryState) else []
        data, name, size = self.arena.put([pack_entries(entries)])
        return Answer(data=data, arena=name, size=size)

    def _load(self, told: Told) -> Answer:
        state = self.task.context.state
        if isinstance(state, MemoryState):
            state.load(unpack_entries(self.window.get(told.data, told.arena, told.size)))
        return Answer()

    def _close(self, _told: Told) -> Answer:
        self.task.close()
        return Answer()


def main(incoming: int, outgoing: int) -> None:
    """Handle messages until told to close, or until nobody is there any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this process says when it ends
    worker: Worker
    try:
        worker = Worker(unpack_code(read(incoming, Told).data or b""))
        write(outgoing, Answer())
    except Exception as error:
        write(outgoing, Answer(failure=Failed(f"{type(error).__name__}: {error}", component=False)))
        return
    try:
        while True:
            told = read(incoming, Told)
            write(outgoing, worker.handle(told))
            if told.call == "close":
                return
    except (EOFError, BrokenPipeError):
        return
    finally:
        worker.arena.close()
        worker.window.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
