"""A worker process: one task of a component, which takes messages until it is told to close.

It is started as ``python -m thalweg.runtimes.local.child IN OUT``, with two ends of pipes. The
first thing that comes is the component itself, from the process that started this one.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from thalweg.blocks import Block, Origin
from thalweg.columns import settle_arrow
from thalweg.errors import ComponentError
from thalweg.events import Event, Noticed, TupleRefused
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
    to_bytes,
    write,
)
from thalweg.runtimes.local.handing import Wanted, census
from thalweg.runtimes.local.pieces import in_pieces, together
from thalweg.runtimes.local.pinning import stay
from thalweg.runtimes.local.pruning import without_unread
from thalweg.runtimes.making import TaskMaker, make_shapes
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.services import Services
from thalweg.runtimes.shipping import unpack as unpack_code
from thalweg.runtimes.tasks import BoltTask
from thalweg.signals import left_to_parent
from thalweg.state import MemoryState
from thalweg.state import pack as pack_entries
from thalweg.state import unpack as unpack_entries
from thalweg.statelog.tracked import Tracked
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
        component, self._services = parcel.component, Services()
        self._counter = Counter(component.name, 1)
        maker = TaskMaker(
            topology=Topology(parcel.topology, (component,)),
            clock=self._clock,
            seed=parcel.seed,
            key_groups=parcel.key_groups,
            run=Run(
                listen=self._heard.append,
                settings=parcel.settings,
                hooks=parcel.hooks,
                services=self._services,
            ),
            letters={component.name: self._letters},
            read={component.name: parcel.read},
            tracked=parcel.tracked,
            watermarks={component.name: parcel.watermark},
        )
        state = maker.memory(component)
        self.task: AnyBoltTask = maker.bolt(
            component, parcel.task, self._counter, make_shapes(component, parcel.columns), state
        )
        #: Numbers of tuples that were acknowledged, or let fail, since the last answer.
        self._settled: list[tuple[int, bool]] = []
        if isinstance(self.task, BoltTask):
            self.task.settle = lambda roots, ok: self._settled.append((roots[0], ok))
        self._by_tuple = getattr(component.body, "by_tuple", False)
        self.arena, self.window, self._columns = Arena(), Window(), parcel.columns
        self._calls: dict[str, Callable[[Told], Answer]] = {
            "prepare": self._prepare,
            "process": self._process,
            "tick": lambda _told: self._pack(self.task.tick()),
            "end": lambda _told: self._pack(self.task.end()),
            "advance": lambda told: self._pack(self.task.advance(told.time)),
            "wake": lambda _told: self._pack(self.task.wake()),
            "forget": self._forget,
            "entries": self._entries,
            "load": self._load,
            "census": self._census,
            "give": self._give,
            "take": self._take,
            "delta": self._delta,
            "take back": self._take_back,
            "touched": self._touched,
            "touch": self._touch,
            "close": self._close,
        }

    def handle(self, told: Told) -> Answer:
        """Do what a message says; errors become part of the answer."""
        self._clock.time = told.now
        self.task.context.rescaled(told.degree)
        before, waited = self._counter.errors, self._counter.tally.seconds
        late = self._counter.late
        try:
            self._services.pool.check()
            answer = self._calls[told.call](told)
        except ComponentError as error:
            answer = Answer(failure=Failed(str(error), error.tuple_text))
        except Exception as error:
            answer = Answer(failure=Failed(f"{type(error).__name__}: {error}", component=False))
        refused = [event for event in self._heard if isinstance(event, TupleRefused)]
        answer.refused = [Refused(event.tuple_text, event.reason) for event in refused]
        answer.notices = [event.text for event in self._heard if isinstance(event, Noticed)]
        answer.letters, answer.errors = self._letters.lines, self._counter.errors - before
        answer.settled, self._settled = self._settled, []
        answer.seconds = self._counter.tally.seconds - waited
        answer.alarm, answer.late = self.task.alarm, self._counter.late - late
        noted = self._services.registry.take()
        answer.noted = msgspec.to_builtins(noted, enc_hook=repr) if noted else {}
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
        block = Block.of(batch, origin)
        if told.first >= 0:
            block = replace(block, roots=[(told.first + row,) for row in range(len(block))])
        # Tuples that the component acknowledges itself are known by the block that they came with.
        whole = not self._by_tuple or told.first >= 0
        pieces = iter([block]) if whole else in_pieces(block)
        first, failed, sent = 0, list[int](), list[tuple[int, list[Emission]]]()
        for piece in pieces:
            sent.append((first, self.task.process(piece, told.lineage)))
            failed += [first + row for row in sorted(self.task.failed_rows)]
            first += len(piece)
        answer = self._pack(together(sent))
        answer.failed_rows, answer.kept_rows = failed, sorted(self.task.kept_rows)
        return answer

    def _pack(self, emissions: list[Emission]) -> Answer:
        read = self._columns
        slim = [replace(e, batch=without_unread(e.batch, read[e.stream])) for e in emissions]
        return pack(slim, self.arena)

    def _forget(self, told: Told) -> Answer:
        if isinstance(self.task, BoltTask):
            self.task.forget(frozenset(told.forgotten))
        return Answer()

    def _entries(self, _told: Told) -> Answer:
        state = self.task.context.state
        entries = state.entries() if isinstance(state, MemoryState) else []
        return self._found(pack_entries(entries))

    def _found(self, found: bytes) -> Answer:
        data, name, size = self.arena.put(found)
        return Answer(data=data, arena=name, size=size)

    def _load(self, told: Told) -> Answer:
        state = self.task.context.state
        if isinstance(state, MemoryState):
            state.load(unpack_entries(self.window.get(told.data, told.arena, told.size)))
        return Answer()

    def _census(self, told: Told) -> Answer:
        return self._found(msgspec.msgpack.encode(census(self.task.context.state, told.lineage)))

    def _give(self, told: Told) -> Answer:
        state, data = self.task.context.state, self.window.get(told.data, told.arena, told.size)
        wanted = msgspec.msgpack.decode(data, type=Wanted)
        if not isinstance(state, MemoryState):
            return self._found(msgspec.msgpack.encode([]))
        return self._found(state.write_kept(wanted.give(state)))

    def _take(self, told: Told) -> Answer:
        state = self.task.context.state
        if isinstance(state, MemoryState):
            data = self.window.get(told.data, told.arena, told.size)
            state.take_over(state.read_kept(data))
        return Answer()

    def _delta(self, told: Told) -> Answer:
        state = self.task.context.state
        if not isinstance(state, Tracked):
            return Answer()
        part = state.delta(self.task.component.name, told.now)
        return Answer() if part is None else self._found(to_bytes(part).to_pybytes())

    def _take_back(self, told: Told) -> Answer:
        state = self.task.context.state
        if isinstance(state, Tracked):
            part = from_bytes(self.window.get(told.data, told.arena, told.size))
            state.take_back(part, self.task.component.name)
        return Answer()

    def _touched(self, _told: Told) -> Answer:
        state = self.task.context.state
        keys = state.touched() if isinstance(state, Tracked) else []
        return self._found(msgspec.msgpack.encode(keys))

    def _touch(self, told: Told) -> Answer:
        state = self.task.context.state
        if isinstance(state, Tracked):
            data = self.window.get(told.data, told.arena, told.size)
            state.touch(msgspec.msgpack.decode(data, type=list[bytes]))
        return Answer()

    def _close(self, _told: Told) -> Answer:
        self._services.pool.close()
        self.task.close()
        self._services.pool.check()
        return Answer()


def main(incoming: int, outgoing: int) -> None:
    """Handle messages until told to close, or until nobody is there any more."""
    # Who started this process says when it ends; what components start sits out a Ctrl-C as well.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, left_to_parent())
    worker: Worker
    try:
        parcel = unpack_code(read(incoming, Told).data or b"")
        stay(parcel.cores, parcel.task)
        settle_arrow()
        worker = Worker(parcel)
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
