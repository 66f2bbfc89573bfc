"""One stage at one place: takes what arrived, lets components work, sends on what they gave."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import msgspec
import numpy as np
import pyarrow as pa

from thalweg.blocks import DEFAULT_STREAM, Block, Origin
from thalweg.components import Kind
from thalweg.errors import ThalwegError, explain
from thalweg.eventtime import newest
from thalweg.ordering import Arrival
from thalweg.runtimes.anchored_tasks import AnchoredTask
from thalweg.runtimes.failpoints import hit
from thalweg.runtimes.outputs import Emission
from thalweg.runtimes.segments import read_block
from thalweg.runtimes.spark.anchoring import own_address
from thalweg.runtimes.spark.arrivals import Spool, in_any_order, in_chunks, in_order
from thalweg.runtimes.spark.exchange import address, exhaust
from thalweg.runtimes.spark.inputs import Entered
from thalweg.runtimes.spark.lineage import asked, output_block
from thalweg.runtimes.spark.links import Behind
from thalweg.runtimes.spark.moving import moved, ordered_place
from thalweg.runtimes.spark.notes import Commit, Failure, Note
from thalweg.runtimes.spark.pairing import Pairing
from thalweg.runtimes.spark.planning import Edge
from thalweg.runtimes.spark.program import Facts, Program
from thalweg.runtimes.spark.routes import Routes
from thalweg.runtimes.spark.staging import Staging
from thalweg.runtimes.spark.stores import Change, Stores
from thalweg.runtimes.spark.wire import (
    Address,
    kind_of,
    pack_block,
    pack_delta,
    pack_note,
    pack_shared,
    unpack_block,
    unpack_delta,
    unpack_note,
    unpack_shared,
)
from thalweg.runtimes.spark.work_tasks import WorkTasks
from thalweg.runtimes.tasks import BoltTask
from thalweg.topology import Component, task_name, task_names
from thalweg.weights import tuples_in

#: Serial number of what ticks and ends make components send: behind all tuples of the batch.
_LATER = 1 << 62
#: Partitions of a DataFrame are this far apart in serial numbers.
_PARTITION_BITS = 40

Payloads = Iterator[bytes]


class StageWork:
    """Runs one stage at one place, for one batch."""

    def __init__(self, program: Program, facts: Facts, stage: int, place: int) -> None:
        self._program, self._facts = program, facts
        self._plan, self._topology = program.plan, program.plan.topology
        self._stage, self._place = stage, place
        self._last = stage == self._plan.stages - 1
        # The partitions of a source are places too, as far as they go; slices of a log are not.
        partition = facts.frame is not None and place < self._plan.places
        # It takes the state to where the source is read: worth it only if its keys are there.
        # While keys move, only their new place knows when they have come.
        stays = facts.tabled is not None and not facts.tabled.moving
        self._at_place = stage > 0 or (partition and stays)
        self._note = Note(stage, place, own_address(program.driver))
        self._stores = Stores(program, facts, place)
        self._staging = Staging(program.location, facts.version, place)
        # A bolt may run in several tasks of Spark, each with random numbers of its own.
        seed = f"{facts.seed}/{facts.version}/{stage}/{place}"
        self._tasks = WorkTasks(program, facts, self._stores, self._staging, seed)
        self._routes = Routes(program, facts)
        self._pairing: Pairing | None = None
        if facts.sampling:
            self._pairing = Pairing(program.links, facts.sampling, seed, facts.unnamed)
        self._spool = Spool(program.limits.memory)
        #: By component and task: what arrived, by the stage that sent it.
        self._arrived: dict[tuple[str, int], dict[int, list[Arrival]]] = {}
        self._notes: list[Note] = []
        self._changes: list[Change] = []
        self._fused: dict[tuple[str, int], bool] = {}
        #: Tuples that a task has sent at a tick, as time went on, or at the end.
        self._sent_later: dict[tuple[str, int], int] = {}
        self._outbox: list[bytes] = []

    # --- begin and end -----------------------------------------------------------------------

    def run(self, payloads: Payloads) -> Iterator[bytes]:
        """Do everything; gives address and payload in turn, or, in the last stage, a commit."""
        begin = time.perf_counter()
        hit(f"stage {self._stage}")
        with self._spool:
            try:
                yield from self._work(payloads)
            except ThalwegError as error:
                self._fail(error)
                exhaust(payloads)
            finally:
                closing = self._tasks.close()
        for problem in closing:
            self._fail(problem)
        self._note.seconds = time.perf_counter() - begin
        yield from self._finish()

    def _fail(self, error: ThalwegError) -> None:
        """Let an error travel as a value: Spark must not try again what will fail again."""
        self._note.failure = self._note.failure or Failure.of(error)
        self._outbox.clear()
        self._changes.clear()

    def _work(self, payloads: Payloads) -> Iterator[bytes]:
        if self._stage == 0:
            behind = self._partition()
            for block in self._enter(self._moved_first(payloads)):
                self._note_time(block)
                self._deliver(block, behind)
                yield from self._drain()
        else:
            yield from self._take_in(payloads)
        for component in self._topology:
            if self._plan.stage_of.get(component.name) == self._stage and self._stage > 0:
                yield from self._run_component(component)
        for component in self._topology:  # those too that belong to another stage
            self._pause(component)
            yield from self._drain()
        self._note.staged = self._staging.write()
        self._tasks.report(self._note, self._place)
        if self._pairing is not None:
            self._note.pairs, self._note.pairing = self._pairing.counts(), self._pairing.seconds
            self._note.names = self._pairing.naming.take()
        self._changes = self._stores.changes(self._stage)

    def _finish(self) -> Iterator[bytes]:
        if self._last:
            self._notes.append(self._note)
            failed = any(note.failure for note in self._notes)
            hit("before objects")
            hit(f"before objects of version {self._facts.version}")
            run = None if failed else self._stores.write_run(self._changes)
            hit("after objects")
            yield msgspec.msgpack.encode(Commit(self._place, run, self._notes))
            return
        for change in self._changes:
            self._send(self._place, pack_delta(*change))
        for note in [*self._notes, self._note]:
            self._send(self._place, iter([pack_note(note)]))
        yield from self._drain()

    def _drain(self) -> Iterator[bytes]:
        yield from self._outbox
        self._outbox.clear()

    def _send(self, place: int, payloads: Iterator[bytes]) -> int:
        sent = 0
        for payload in payloads:
            self._outbox += (address(place), payload)
            sent += len(payload)
        return sent

    # --- what comes in -----------------------------------------------------------------------

    def _moved_first(self, payloads: Payloads) -> Payloads:
        """Do what payloads order; give those that are tuples."""
        for payload in payloads:
            place = ordered_place(payload)
            if place is None:
                yield payload
                continue
            tabled = self._facts.tabled
            assert tabled is not None  # noqa: S101 (nothing moves without tables)
            stores = Stores(self._program, self._facts, place)
            for target, packed, state in moved(stores, tabled.moves(place), place):
                self._note.moved_keys += state.num_rows
                self._note.moved_bytes += state.nbytes
                self._send(target, packed)
            hit("after moves")

    def _partition(self) -> Behind | None:
        """Say which partition of a source this is; its tuples may belong to one place."""
        frame = self._facts.frame
        if frame is None or self._pairing is None or self._place >= self._plan.places:
            return None
        return Behind.partition(frame.component, self._place)

    def _enter(self, payloads: Payloads) -> Iterator[Block]:
        """Read what sources gave: record batches of a DataFrame, or segments of the log."""
        frame = self._facts.frame
        if frame is None:
            for payload in payloads:
                entered = msgspec.msgpack.decode(payload, type=Entered)
                block = read_block(self._program.location, entered.entry, entered.segment)
                yield block.slice(entered.start, entered.stop)
            return
        schema = pa.ipc.read_schema(pa.py_buffer(frame.schema))
        fitting = self._tasks.fitting(self._topology.component(frame.component))
        serial = self._place << _PARTITION_BITS
        read = (pa.ipc.read_record_batch(pa.py_buffer(payload), schema) for payload in payloads)
        for whole in in_chunks(read, self._program.limits.chunk_rows):
            batch = fitting(whole)
            if batch is None:  # nothing of it could be read
                continue
            self._tasks.counts_of(frame.component).send(DEFAULT_STREAM, batch.num_rows)
            yield Block.of(batch, Origin(frame.component), serial)
            serial += batch.num_rows

    def _note_time(self, block: Block) -> None:
        """Note the newest event time of the task of a source; a DataFrame is all its tasks."""
        source, known = self._topology.component(block.origin.component), self._note.newest
        time_ = source.options.time
        if time_ is None or block.origin.stream != DEFAULT_STREAM:
            return
        found = newest(block.batch.column(time_.field), time_.unit)
        if found is None:
            return
        framed = self._facts.frame is not None
        names = task_names(source) if framed else [task_name(source.name, block.origin.task)]
        for name in names:
            known[name] = max(known.get(name, found), found)

    def _take_in(self, payloads: Payloads) -> Iterator[bytes]:
        """Sort out what arrived; what is for a later stage goes on to the same place."""
        for payload in payloads:
            self._spool.add(payload)
        self._note.spilled = self._spool.spilled
        for buffer in self._spool.payloads():
            kind = kind_of(buffer)
            if kind == "anchor":  # it has done what it is for
                continue
            if kind == "note":
                self._notes.append(unpack_note(buffer, Note))
            elif kind == "delta":
                self._stores.overlay(*unpack_delta(buffer))
            else:
                shared = kind == "shared"
                found = list(unpack_shared(buffer)) if shared else [unpack_block(buffer)]
                if not all(self._arrives(to, block) for to, block in found):
                    self._send(self._place, iter([buffer.to_pybytes()]))
                    yield from self._drain()

    def _arrives(self, to: Address, block: Block) -> bool:
        """Keep a block for its task; False when it has to go on to a later stage."""
        if self._plan.place_of(to.task) != self._place:
            raise ThalwegError(explain(f"block for {to} at place {self._place}"))
        if self._plan.stage_of[to.component] != self._stage:
            if self._plan.place_of(block.origin.task) == self._place:
                # What its sender has for the same reader must not overtake it here.
                self._fused[to.component, to.index] = False
            return False
        by_stage = self._arrived.setdefault((to.component, to.task), {})
        by_stage.setdefault(to.stage, []).append((to.index, block))
        return True

    # --- components --------------------------------------------------------------------------

    def _run_component(self, component: Component) -> Iterator[bytes]:
        """Give a component's tasks at this place what arrived, then their ticks and their end."""
        chunk = self._program.limits.chunk_rows
        for task in self._plan.tasks_at(component, self._place):
            # What an earlier stage sent comes first: a sender's tuples stay in its order.
            by_stage = self._arrived.pop((component.name, task), {})
            arrived = [arrival for stage in sorted(by_stage) for arrival in by_stage[stage]]
            sort = component.name in self._plan.in_order
            for index, block in (in_order if sort and arrived else in_any_order)(arrived, chunk):
                self._process(component, task, index, block)
                yield from self._drain()
            if component.name in self._facts.ticks:
                self._later(component, task, self._tasks.get(component, task).tick())
            before, now = self._facts.times.get(component.name, (0, 0))
            if now > before:
                self._later(component, task, self._tasks.get(component, task).advance(now))
            if self._facts.is_due(component.name):
                self._later(component, task, self._tasks.get(component, task).wake())
            self._pause(component)
            if self._facts.end:
                self._later(component, task, self._tasks.get(component, task).end())
            yield from self._drain()

    def _pause(self, component: Component) -> None:
        """Let tasks that may hold tuples finish these: they do not outlive this stage."""
        for number, task in list(self._tasks.pausing(component.name)):
            self._later(component, number, task.pause())
            if task.held and not self._facts.tracked:
                raise still_held(component.name, task.held)

    def _process(
        self,
        component: Component,
        number: int,
        index: int,
        block: Block,
        behind: Behind | None = None,
    ) -> None:
        """Let a task process a block, and deliver what it sends."""
        task = self._tasks.get(component, number)
        input_ = component.inputs[index]
        task.bind(origin=block.origin, key=input_.key)
        # Vectorised bolts ask for all their keys at once; for others that is done here.
        if isinstance(task, BoltTask) and component.kind is Kind.KEYED and input_.key:
            self._stores.prefetch(component, number, [block.batch.column(n) for n in input_.key])
        counts = self._tasks.counts_of(component.name)
        counts.received[number] = counts.received.get(number, 0) + tuples_in(block.batch)
        lineage = component.name in self._plan.traced or self._facts.tracked
        paired = self._pairing is not None and component.name in self._pairing.links.leading
        if paired and component.name in self._program.links.movable:
            columns = tuple(block.batch.column(name) for name in input_.key)
            behind = Behind(component.name, columns)
        if isinstance(task, BoltTask) and not task.body.auto_ack:
            block = self._followed(block, isinstance(task, AnchoredTask))
        begin = time.perf_counter()
        emissions = task.process(block, lineage or paired)
        counts.busy += time.perf_counter() - begin
        if self._facts.tracked:
            self._tasks.kept.open.update(block.serials[sorted(task.kept_rows)].tolist())
            self._tasks.kept.failed.update(block.serials[sorted(task.failed_rows)].tolist())
        task.settle_late()
        if component.name in self._plan.stood_in_for:
            counts.send(DEFAULT_STREAM, tuples_in(block.batch))
        branch = index if len(component.inputs) > 1 else None
        for emission in emissions:
            counts.send(emission.stream, emission.batch.num_rows)
            near = None if behind is None else behind.of(emission)
            kept = emission if lineage else replace(emission, parents=None)
            self._deliver(output_block(component, number, block, kept, branch), near)

    def _followed(self, block: Block, anchored: bool) -> Block:
        """Let a task know its tuples until they are done, where somebody waits for that."""
        if self._facts.tracked:
            return replace(block, roots=[(serial,) for serial in block.serials.tolist()])
        return replace(block, roots=[()] * len(block)) if anchored else block

    def _later(self, component: Component, task: int, emissions: list[Emission]) -> None:
        self._tasks.get(component, task).settle_late()
        sent = self._sent_later.get((component.name, task), 0)
        for emission in emissions:
            rows = emission.batch.num_rows
            self._tasks.counts_of(component.name).send(emission.stream, rows)
            number = self._topology.components.index(component)
            serials = np.full(rows, _LATER + number, dtype=np.int64)
            path = np.full(rows, task, dtype=np.int64), np.arange(sent, sent + rows, dtype=np.int64)
            sent += rows
            origin = Origin(component.name, emission.stream, task)
            self._deliver(
                Block(emission.batch, origin, serials, targets=emission.targets, path=path)
            )
        self._sent_later[component.name, task] = sent

    # --- deliveries --------------------------------------------------------------------------

    def _deliver(self, block: Block, behind: Behind | None = None) -> None:
        """Hand a block to the readers of its stream: here, elsewhere, or beside the driver."""
        origin = block.origin
        edges = self._plan.edges[origin.component, origin.stream]
        if self._pairing is not None:
            self._pairing.watch(block, edges, behind)
        counts = self._tasks.counts_of(origin.component)
        sharing = self._plan.sharing[origin.component, origin.stream]
        if sharing:
            self._share(sharing, block)
        for edge in edges:
            if edge in sharing:
                continue
            sent = block if edge.stands_for is None else replace(block, origin=asked(edge, origin))
            if edge.reads is not None and not self._facts.tracked:
                sent = self._routes.weigh(edge, sent)
            if edge.how == "driver":
                self._staging.add(edge, sent, edge.in_order or self._facts.tracked)
                continue
            reader, done = self._topology.component(edge.reader), 0
            for task, part in self._routes.router(edge).route(sent):
                if edge.how == "here" or self._is_local(edge, task, part):
                    counts.local += tuples_in(part.batch)
                    # What stays here is cut into runs of rows, one after the other.
                    near = behind and edge.how == "here" and behind.run(done, len(part))
                    self._process(reader, task, edge.index, part, near or None)
                    done += len(part)
                else:
                    to = Address(edge.reader, edge.index, task, self._stage)
                    packed = pack_block(to, part, edge.in_order or self._facts.tracked)
                    counts.shuffled += tuples_in(part.batch)
                    counts.shuffled_bytes += self._send(self._plan.place_of(task), packed)

    def _share(self, edges: tuple[Edge, ...], block: Block) -> None:
        """Send tuples once to each place, however many of these readers want them there."""
        counts, in_order = self._tasks.counts_of(block.origin.component), edges[0].in_order
        for place, part, readers in self._routes.shares(edges, block):
            if all(self._is_local(edge, place, part) for edge in edges):
                for bit, edge in enumerate(edges):
                    mine = part.take(np.flatnonzero(readers & (1 << bit)))
                    if len(mine):
                        counts.local += tuples_in(mine.batch)
                        mine = replace(mine, origin=asked(edge, block.origin))
                        reader = self._topology.component(edge.reader)
                        self._process(reader, place, edge.index, mine)
                continue
            to = [
                (Address(e.reader, e.index, place, self._stage), asked(e, block.origin))
                for e in edges
            ]
            packed = pack_shared(to, part, readers, in_order or self._facts.tracked)
            counts.shuffled += tuples_in(part.batch)
            counts.shuffled_bytes += self._send(place, packed)

    def _is_local(self, edge: Edge, task: int, part: Block) -> bool:
        """Say whether tuples skip the exchange: they are for this place, and worth it."""
        if not edge.fused or not self._at_place or self._plan.place_of(task) != self._place:
            return False
        key = edge.reader, edge.index
        if key not in self._fused:  # once: what is sent later must not overtake
            # With tables most tuples stay, so that few keys are looked up twice.
            least = 0 if self._facts.tabled is not None else self._program.limits.fused_bytes
            self._fused[key] = part.batch.nbytes >= least * len(part)
        return self._fused[key]


def still_held(name: str, held: int) -> ThalwegError:
    """Make the error for a bolt that would forget tuples."""
    return ThalwegError(
        explain(
            f"component {name!r}, at the end of a batch",
            "",
            "that it is done with all its tuples: on Spark bolts are made anew for each batch",
            f"{held} that it has neither acknowledged nor let fail",
            "finish them in process_pause, or run it on local",
        )
    )
