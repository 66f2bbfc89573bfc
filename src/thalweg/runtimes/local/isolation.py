"""Tasks in processes of their own, for components that are busy in Python.

Such a task looks like any other. Its state lives with it; what is needed to rebuild it is here: a
snapshot, and the blocks since then. When its process dies, a new one is given the snapshot, goes
through these blocks again (what they sent is known already), and then gets the block at hand.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from thalweg.acking import Roots
from thalweg.blocks import DEFAULT_STREAM, Block
from thalweg.components import BlockBolt
from thalweg.config import DeadLetter
from thalweg.contexts import TaskContext
from thalweg.errors import ComponentError, ThalwegError
from thalweg.events import Event, Noticed, TupleRefused
from thalweg.eventtime import ALWAYS
from thalweg.metrics import Counter, Tally
from thalweg.runtimes.block_tasks import AnyBoltTask
from thalweg.runtimes.local.crossing import (
    Answer,
    Arena,
    Parcel,
    Placed,
    Told,
    Window,
    from_bytes,
    read,
    unpack,
    write,
)
from thalweg.runtimes.local.handing import Census, Handed, Wanted
from thalweg.runtimes.local.pruning import read_columns
from thalweg.runtimes.making import TaskMaker
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.refusals import DeadLetters, Lines
from thalweg.runtimes.shipping import pack as pack_code
from thalweg.state import MemoryState
from thalweg.state import unpack as unpack_entries
from thalweg.topology import Component

# A snapshot is taken when the blocks since the last one are so many bytes, or more than it is.
_LOG_BYTES = 64 << 20
#: What goes with a message: a block, or packed entries.
Data: TypeAlias = "bytes | pa.RecordBatch | None"
# Blocks come and go: without this, glibc gives their memory back to the kernel each time.
_KEEPS_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(64 << 20), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}
# Times that one message may end a process before the run does.
_ATTEMPTS = 3
# Seconds in which a worker hears that the process is gone whose answer it waits for.
_HEARD = 0.1
# How often that is waited for: one that waits for somebody else does not hear it.
_ROUNDS = 50
# Calls that change the state of a task.
_CHANGING = ("process", "tick", "end", "advance", "wake", "give", "take", "take back", "delta")


class Launched(Protocol):
    """A process that was started."""

    @property
    def pid(self) -> int:
        """Its number."""

    def wait(self) -> int:
        """Wait until it has ended; gives how."""


def launch(incoming: int, outgoing: int) -> Launched:
    """Start a worker process between two ends of pipes."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    command = [sys.executable, "-m", "thalweg.runtimes.local.child", str(incoming), str(outgoing)]
    return subprocess.Popen(  # noqa: S603 (this very program)
        command,
        pass_fds=(incoming, outgoing),
        stdin=subprocess.DEVNULL,
        env=_KEEPS_MEMORY | os.environ | {"PYTHONPATH": path},
    )


class Process:
    """A worker process, and the way to it."""

    def __init__(self, code: bytes) -> None:
        down, up = os.pipe(), os.pipe()
        self._process = launch(down[0], up[1])
        os.close(down[0])
        os.close(up[1])
        self._outgoing, self._incoming = down[1], up[0]
        self._arena, self._window = Arena(), Window()
        self._first: bytes | None = code

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def ask(self, told: Told, data: Data = None) -> tuple[Answer, bytes]:
        """Send a message and wait for the answer; EOFError when the process has died."""
        try:
            if self._first is not None:
                first, self._first = self._first, None
                write(self._outgoing, Told("begin", data=first))
                answer = read(self._incoming, Answer)
                if answer.failure is not None:
                    return answer, b""
            if data is not None:
                told.data, told.arena, told.size = self._put(data)
            write(self._outgoing, told)
            answer = read(self._incoming, Answer)
            return answer, self._window.get(answer.data, answer.arena, answer.size)
        except (BrokenPipeError, FileNotFoundError) as error:
            raise EOFError from error

    def _put(self, data: bytes | pa.RecordBatch) -> Placed:
        if isinstance(data, bytes):
            return self._arena.put(data)
        return self._arena.put_batches([data])[0]

    def kill(self) -> None:
        """End it, whatever it is at."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> int:
        """Wait for its end, and let go of everything."""
        os.close(self._outgoing)
        code = self._process.wait()
        os.close(self._incoming)
        self._arena.close()
        self._window.close()
        return code


@dataclass(frozen=True)
class Around:
    """What a task in a process needs of the run."""

    now: Callable[[], float]
    listen: Callable[[Event], None]
    letters: Lines | None
    counter: Counter


@dataclass(eq=False)
class RemoteTask:
    """A task whose component lives in another process."""

    component: Component
    context: TaskContext
    parcel: Parcel
    around: Around
    failed_rows: set[int] = field(default_factory=set)
    kept_rows: set[int] = field(default_factory=set)
    #: Called when a tuple of an earlier block is acknowledged (True) or fails (False).
    settle: Callable[[Roots, bool], None] = lambda _roots, _ok: None
    restarts: int = 0

    def __post_init__(self) -> None:
        self._code = pack_code(self.parcel)
        self._process: Process | None = Process(self._code)
        self._abandoned = False
        #: Held by who waits for an answer.
        self._asking = RLock()
        self._bound: dict[str, Any] = {}
        self._snapshot: bytes = b""
        #: Keys that had changed when the snapshot was taken, where somebody wants to know.
        self._touched: bytes | None = None
        #: What had changed when it was closed.
        self._last_delta: pa.RecordBatch | None = None
        self._log: list[tuple[Told, Data]] = []
        self._logged = 0
        #: When its timers want it to be woken, in microseconds of the clock.
        self.alarm = ALWAYS
        #: How far event time has come.
        self._time = self.parcel.watermark
        body = self.component.body
        self._takes = body.takes if isinstance(body, BlockBolt) else None
        self._passes_on = isinstance(body, BlockBolt) and body.passes_on
        #: Tuples that the component acknowledges itself have numbers; the roots of those it keeps.
        self._numbered = None if getattr(body, "auto_ack", True) else 0
        self._kept: dict[int, Roots] = {}

    def bind(self, **attributes: Any) -> None:
        """Remember where the next block comes from."""
        self._bound |= attributes

    def prepare(self) -> None:
        """Let the component get ready."""
        self._ask(Told("prepare"))

    def process(self, block: Block, lineage: bool = True) -> list[Emission]:
        """Send the columns that matter, and give what comes back."""
        self.failed_rows.clear()
        self.kept_rows.clear()
        batch, key = block.batch, self._bound["key"]
        if self._takes is not None:
            wanted = {*key, *self._takes}
            if not wanted.issuperset(batch.schema.names):
                batch = batch.select([name for name in batch.schema.names if name in wanted])
        told = Told("process", origin=block.origin, key=key, lineage=lineage)
        if self._numbered is not None and block.roots is not None:
            told.first, self._numbered = self._numbered, self._numbered + len(block)
        answer, data = self._ask(told, batch)
        self.failed_rows.update(answer.failed_rows)
        for row in answer.kept_rows:
            self.kept_rows.add(row)
            self._kept[told.first + row] = (block.roots or ())[row]
        emissions = unpack(answer, data)
        if self._passes_on and DEFAULT_STREAM in self.context.read_streams:
            whole = self.context.shapes[DEFAULT_STREAM].conform(block.batch)
            emissions.append(Emission(DEFAULT_STREAM, whole, np.arange(len(block))))
        return emissions

    def tick(self) -> list[Emission]:
        """Let time pass."""
        return unpack(*self._ask(Told("tick")))

    def advance(self, now: int) -> list[Emission]:
        """Let event time go on."""
        self._time = now
        return unpack(*self._ask(Told("advance", time=now)))

    def wake(self) -> list[Emission]:
        """Let the component hear of timers that are due."""
        return unpack(*self._ask(Told("wake")))

    def end(self) -> list[Emission]:
        """Tell the component that its inputs have ended."""
        return unpack(*self._ask(Told("end")))

    def forget(self, roots: frozenset[int]) -> None:
        """Let the component let go of tuples whose roots have all failed by now."""
        gone = [number for number, own in self._kept.items() if roots.issuperset(own)]
        for number in gone:
            del self._kept[number]
        if gone:
            self._ask(Told("forget", forgotten=gone))

    def census(self, hashes: bool) -> Census:
        """Count the keys of its state."""
        _, data = self._ask(Told("census", lineage=hashes))
        return msgspec.msgpack.decode(data, type=Census)

    def give(self, wanted: Wanted) -> Handed:
        """Take keys out of its state."""
        _, data = self._ask(Told("give"), msgspec.msgpack.encode(wanted))
        keys = len(msgspec.msgpack.decode(data, type=list[msgspec.Raw]))
        return Handed(data, keys, len(data))

    def take(self, data: bytes) -> None:
        """Add to its state what another one gave."""
        self._ask(Told("take"), data)

    def delta(self) -> pa.RecordBatch | None:
        """Give what has changed in its state since the last call, as a part."""
        if self._process is None:
            last, self._last_delta = self._last_delta, None
            return last
        _, data = self._ask(Told("delta"))
        return from_bytes(data) if data else None

    def take_back(self, part: pa.RecordBatch) -> None:
        """Add the rows of a part to its state; they do not count as changed."""
        self._ask(Told("take back"), part)

    def close(self) -> None:
        """Take over the state, for those who read tables, and end the process."""
        if self._process is None:
            return
        try:
            if self.parcel.tracked and self.context.state is not None:
                self._last_delta = self.delta()
            if isinstance(self.context.state, MemoryState) and self.component.table:
                _, data = self._ask(Told("entries"))
                self.context.state.load(unpack_entries(data))
            self._ask(Told("close"))
        finally:
            self._end()

    def abandon(self) -> None:
        """End the process at once; a worker that waits for its answer waits no longer."""
        self._abandoned = True
        for _ in range(_ROUNDS):
            if self._asking.acquire(timeout=_HEARD):
                break
            if (process := self._process) is not None:
                process.kill()
        else:  # it does not wait for the process, but for somebody who listens
            return
        try:
            if self._process is not None:
                self._process.kill()
                self._end()
        finally:
            self._asking.release()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()
        if self.around.letters is not None:
            self.around.letters.close()

    def settle_late(self) -> None:
        """Do nothing: it has told already."""

    @property
    def tally(self) -> Tally:
        """What is counted of its tuples."""
        return self.around.counter.tally

    @property
    def pid(self) -> int | None:
        """The process that it is in now."""
        return None if self._process is None else self._process.pid

    # --- the process -------------------------------------------------------------------------

    def _ask(self, told: Told, data: Data = None) -> tuple[Answer, bytes]:
        """Ask the process; one that dies is replaced, and asked again."""
        with self._asking:
            return self._ask_again(told, data)

    def _ask_again(self, told: Told, data: Data) -> tuple[Answer, bytes]:
        told.now, told.degree = self.around.now(), self.context.degree
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                if attempt > 1:
                    self._restore()
                if self._process is None:
                    raise self._gone()
                answer, found = self._process.ask(told, data)
            except EOFError:
                self._replace(told, attempt)
                continue
            self._note(answer)
            self._remember(told, data)
            return answer, found
        text = f"its process has died {_ATTEMPTS} times on the same {told.call}"
        raise self._error(text)

    def _replace(self, told: Told, attempt: int) -> None:
        if self._process is None or self._abandoned:
            raise self._gone()
        code = self._process.close()
        self._process = Process(self._code)
        self.restarts += 1
        name = self.component.name
        self.around.listen(
            Noticed(
                f"the process of {name!r}, task {self.context.task}, ended with {code} during "
                f"{told.call}; it is restarted, {len(self._log)} blocks are gone through again"
                f" (attempt {attempt} of {_ATTEMPTS})"
            )
        )

    def _restore(self) -> None:
        """Bring a new process to where the last one was."""
        assert self._process is not None  # noqa: S101 (just made)
        process = self._process

        def tell(call: str, data: Data = None) -> None:
            process.ask(Told(call, self.around.now(), degree=self.context.degree), data)

        tell("prepare")
        if self._snapshot:
            tell("load", self._snapshot)
        if self._touched is not None:
            tell("touch", self._touched)
        for told, data in self._log:
            process.ask(told, data)

    def _remember(self, told: Told, data: Data) -> None:
        """Keep what changed the state, until a snapshot has it."""
        if told.call not in _CHANGING or self.context.state is None:
            return
        if told.call == "delta" and self._log and self._log[-1][0].call == "delta":
            return  # nothing has changed in between
        self._log.append((told, data))
        self._logged += data.nbytes if isinstance(data, pa.RecordBatch) else 0
        if self._logged > max(_LOG_BYTES, len(self._snapshot)):
            _, self._snapshot = self._ask(Told("entries"))
            if self.parcel.tracked:
                _, self._touched = self._ask(Told("touched"))
            self._log, self._logged = [], 0
            self._code = pack_code(replace(self.parcel, watermark=self._time))

    def _note(self, answer: Answer) -> None:
        around, name = self.around, self.component.name
        for number, ok in answer.settled:
            if number in self._kept:
                self.tally.settled(ok)
                self.settle(self._kept.pop(number), ok)
        self.tally.seconds += answer.seconds
        self.alarm = answer.alarm
        for metric, (kind, raw, every) in answer.noted.items():
            self.context.registering(metric, kind, every).merge(raw)
        for text in answer.notices:
            around.listen(Noticed(text))
        for refused in answer.refused:
            event = TupleRefused(name, self.context.task, refused.tuple_text, refused.reason)
            around.listen(event)
        for line in answer.letters:
            if around.letters is not None:
                around.letters.write(line)
        around.counter.errors += answer.errors
        around.counter.late += answer.late
        if answer.failure is not None:
            if not answer.failure.component:
                raise self._error(answer.failure.text)
            text, found = answer.failure.text, answer.failure.tuple_text
            raise ComponentError(name, self.context.task, text, found)

    def _gone(self) -> ThalwegError:
        text = "its process was ended"
        return self._error(text)

    def _error(self, text: str) -> ThalwegError:
        name = self.component.name
        return ComponentError(name, self.context.task, f"component {name!r}: {text}")


AnyTask = AnyBoltTask | RemoteTask


def abandon_all(tasks: Iterable[object]) -> None:
    """End the processes that tasks are in, for whoever interrupts a run: they may be stuck."""
    for task in tasks:
        if isinstance(task, RemoteTask):
            with suppress(BufferError):  # what was being sent when somebody interrupted
                task.abandon()


def remote_task(maker: TaskMaker, context: TaskContext, counter: Counter) -> RemoteTask:
    """Make a task in a process of its own, which begins at once."""
    component = maker.topology.component(context.component)
    policy, body = component.options.on_error, component.body
    letters = (maker.letters or {}).get(component.name)
    if letters is None and isinstance(policy, DeadLetter):
        letters = DeadLetters(policy.path)
    # What it passes on is passed on here.
    passed = {DEFAULT_STREAM} if isinstance(body, BlockBolt) and body.passes_on else set()
    parcel = Parcel(
        topology=context.topology,
        component=component,
        task=context.task,
        seed=maker.seed,
        key_groups=maker.key_groups,
        settings=dict(context.settings),
        read=context.read_streams - passed,
        columns=read_columns(maker.topology, component),
        tracked=maker.tracked,
        hooks=tuple(maker.run.hooks),
        cores=maker.cores,
        watermark=context.watermark,
    )
    around = Around(context.clock.now, maker.run.listen, letters, counter)
    return RemoteTask(component, context, parcel, around)
