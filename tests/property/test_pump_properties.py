"""The pump: whatever is committed, and whenever it crashes, nothing is lost, doubled or swapped."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from property.strategies import COLUMNS, arrays
from thalweg.blocks import DEFAULT_STREAM
from thalweg.builder import TopologyBuilder
from thalweg.clock import ManualClock
from thalweg.components import BlockSpout, Spout
from thalweg.contexts import TaskContext
from thalweg.errors import StateError
from thalweg.execution import Run
from thalweg.hashing import KEY_GROUPS
from thalweg.runtimes.making import TaskMaker
from thalweg.runtimes.segments import Entry, Piece, SegmentLog, read_block
from thalweg.runtimes.spark.pump import Pump, PumpSettings


class Memory(dict[str, bytes]):
    """Objects in memory; the next one may be cut off while it is written."""

    cut: int | None = None

    def write(self, name: str, data: bytes) -> None:
        self[name] = data[: self.cut]
        if self.cut is not None:
            self.cut = None
            raise StateError("the machine stopped")

    def read(self, name: str) -> pa.Buffer:
        return pa.py_buffer(self[name])

    def delete(self, name: str) -> None:
        self.pop(name, None)

    def names(self, folder: str) -> list[str]:
        return [name for name in self if name.startswith(f"{folder}/")]


# --- spouts that follow a script: how many rows there are at each ask, and then the end ----------


class Scripted:
    """Numbers from 0 on; each task has its own script."""

    context: TaskContext

    def __init__(self, scripts: list[list[int]]) -> None:
        self.scripts = scripts

    def prepare(self, context: TaskContext) -> None:
        self.left = list(self.scripts[context.task])
        self.at = 0

    def take(self, limit: int) -> list[int]:
        self.context.clock.sleep(0.1)
        if not self.left:
            return []
        count = min(limit, self.left[0])
        self.left[0] -= count
        if not self.left[0]:
            del self.left[0]
        self.at += count
        return list(range(self.at - count, self.at))

    def resume(self, rows: int) -> None:
        assert rows <= sum(self.left)
        while rows:
            rows -= len(self.take(rows))


class Blocks(Scripted, BlockSpout):
    """Cannot resume: its rows go by again."""

    outputs = {"n": int}
    resume = None  # type: ignore[assignment] # a body without it

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        taken = self.take(limit)
        if not self.left:
            self.finish()
        return self.make_batch([taken]) if taken else None


class Resuming(Blocks):
    resume = Scripted.resume  # type: ignore[assignment] # it has one


class Tuples(Scripted, Spout):
    """Sends on two streams, with and without ids; ends when it is asked in vain."""

    outputs = {"n": int}
    streams = {"odd": {"n": int}}

    def next_tuple(self) -> None:
        taken = self.take(2)
        for n in taken:
            id_ = (self.context.task, n) if n % 3 else None
            self.emit(n, id=id_, stream="odd" if n % 2 else DEFAULT_STREAM)
        if not self.left and not taken:
            self.finish()


KINDS = {"blocks": Blocks, "resuming": Resuming, "tuples": Tuples}
SCRIPTS = st.lists(st.lists(st.integers(0, 5), max_size=5), min_size=1, max_size=2)
PROGRAMS = st.dictionaries(st.sampled_from(sorted(KINDS)), SCRIPTS, min_size=1)
SETTINGS = st.builds(
    PumpSettings,
    rows=st.integers(1, 12),
    block_rows=st.integers(1, 4),
    seconds=st.sampled_from([0.0, 0.25, 99.0]),
    pending_entries=st.integers(0, 3),
)
#: Pull; commit some; crash; crash while an entry is written; forget what is committed.
STEPS = st.lists(
    st.just(("pull", 0))
    | st.tuples(st.just("commit"), st.integers(0, 3))
    | st.tuples(st.sampled_from(["crash", "cut", "forget"]), st.integers(0, 400)),
    max_size=25,
)


class World:
    """What outlives a crash: the log, the number of the last commit, and what was committed."""

    def __init__(self, program: dict[str, list[list[int]]], settings: PumpSettings) -> None:
        builder = TopologyBuilder("t")
        for name, scripts in program.items():
            builder.add_spout(name, KINDS[name](scripts), degree=len(scripts))
        self.topology, self.settings = builder.build(), settings
        self.storage, self.clock = Memory(), ManualClock()
        self.number, self.done = 0, list[Entry]()
        self.rows: dict[tuple[str, int, str], list[int]] = defaultdict(list)
        self.serials: list[int] = []
        self.start()

    def start(self) -> None:
        maker = TaskMaker(self.topology, self.clock, 0, KEY_GROUPS, Run())
        self.log = SegmentLog(self.storage)
        self.pump = Pump(self.topology, maker.spouts, self.log, self.clock, self.settings)
        self.pump.open(self.number)

    def step(self, act: str, much: int) -> None:
        if act == "commit":
            self.commit(much)
        elif act == "forget":
            self.log.forget(min(much, self.number))
        elif act == "crash":
            self.start()
        else:
            self.pull(much if act == "cut" else None)

    def pull(self, cut: int | None = None) -> None:
        before, self.storage.cut = self.pump.pending(), cut
        try:
            entry = self.pump.pull()
        except StateError:
            self.start()
            return
        self.storage.cut = None
        assert entry is None or self.pump.pending() == [*before, entry]
        assert len(self.pump.pending()) <= self.settings.pending_entries + 1

    def commit(self, count: int) -> None:
        entries = self.pump.pending()[:count]
        self.pump.committed([entry.number for entry in entries], failed=range(0, 999, 5))
        for entry in entries:
            self.number += 1
            assert entry.number == self.number
            self.read(entry)

    def read(self, entry: Entry) -> None:
        for segment in entry.segments:
            block = read_block(self.storage, entry.name, segment)
            origin = block.origin
            self.rows[origin.component, origin.task, origin.stream] += block.batch["n"].to_pylist()
            self.serials += block.serials.tolist()


def expected(program: dict[str, list[list[int]]]) -> dict[Any, list[int]]:
    rows: dict[Any, list[int]] = {}
    for name, scripts in program.items():
        for task, script in enumerate(scripts):
            numbers = range(sum(script))
            if name == "tuples":
                rows[name, task, "odd"] = [n for n in numbers if n % 2]
                rows[name, task, DEFAULT_STREAM] = [n for n in numbers if n % 2 == 0]
            else:
                rows[name, task, DEFAULT_STREAM] = list(numbers)
    return {origin: values for origin, values in rows.items() if values}


@given(PROGRAMS, SETTINGS, STEPS)
def test_nothing_is_lost_or_doubled_or_swapped_whenever_it_crashes(
    program: dict[str, list[list[int]]], settings: PumpSettings, steps: list[tuple[str, int]]
) -> None:
    world = World(program, settings)
    for act, much in steps:
        world.step(act, much)
    for _ in range(1000):
        if world.pump.finished:
            break
        world.pull()
        world.commit(9)
    assert world.pump.finished
    assert dict(world.rows) == expected(program)
    assert world.serials == list(range(len(world.serials)))
    world.start()
    assert world.pump.finished


@given(PROGRAMS, SETTINGS)
def test_every_row_with_an_id_ends_once(
    program: dict[str, list[list[int]]], settings: PumpSettings
) -> None:
    world = World(program, settings)
    for _ in range(1000):
        world.pull()
        world.commit(2)
        if world.pump.finished:
            break
    sent = [n for origin, values in world.rows.items() if origin[0] == "tuples" for n in values]
    assert world.pump.acked + world.pump.failed == sum(n % 3 != 0 for n in sent)
    assert {name: counter.emitted for name, counter in world.pump.counters.items()} == {
        name: sum(map(sum, scripts)) for name, scripts in program.items()
    }


# --- the log alone -------------------------------------------------------------------------------


@st.composite
def pieces(draw: st.DrawFn) -> Piece:
    rows = draw(st.integers(1, 40))
    columns = draw(st.lists(arrays(COLUMNS, rows), min_size=1, max_size=2))
    batch = pa.RecordBatch.from_arrays(columns, [f"c{i}" for i in range(len(columns))])
    targets = np.arange(rows) if draw(st.booleans()) else None
    return Piece(draw(st.sampled_from("ab")), draw(st.integers(0, 2)), batch, "s", targets)


@given(st.lists(st.lists(pieces(), max_size=3), max_size=3))
def test_any_rows_come_back_as_they_were_in_small_segments(given_: list[list[Piece]]) -> None:
    storage = Memory()
    log = SegmentLog(storage, segment_bytes=16_000)
    entries = [log.append(0.0, each, []) for each in given_]
    assert SegmentLog(storage).after(0) == entries
    serial = 0
    for entry, each in zip(entries, given_, strict=True):
        segments = iter(entry.segments)
        for piece in each:
            blocks = []
            while sum(map(len, blocks)) < piece.batch.num_rows:
                segment = next(segments)
                assert (segment.serial, segment.length <= 16_000) == (serial, True)
                blocks.append(read_block(storage, entry.name, segment))
                serial += segment.rows
            back = pa.Table.from_batches([block.batch for block in blocks]).combine_chunks()
            assert back.equals(pa.Table.from_batches([piece.batch]).combine_chunks()) or (
                str(back.to_pylist()) == str(piece.batch.to_pylist())  # NaN differs from itself
                and back.schema.equals(piece.batch.schema)
            )
            if piece.targets is not None:
                found = [t for block in blocks if block.targets is not None for t in block.targets]
                assert found == piece.targets.tolist()
        assert next(segments, None) is None
