"""The pump: asks spouts in turn, logs what they give, tells them what became of it."""

import itertools
import random

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.builder import body_outputs
from thalweg.config import dead_letter
from thalweg.errors import StateError
from thalweg.events import RecordRefused
from thalweg.execution import Run
from thalweg.hashing import KEY_GROUPS
from thalweg.runtimes.making import TaskMaker
from thalweg.runtimes.segments import SegmentLog, read_block
from thalweg.runtimes.spark.pump import Pump, PumpSettings
from thalweg.testing import ABORT, PAUSE, ManualClock, source


class Memory(dict):
    """Objects in memory."""

    write = dict.__setitem__

    def read(self, name):
        return pa.py_buffer(self[name])

    def delete(self, name):
        self.pop(name, None)

    def names(self, folder):
        return [name for name in self if name.startswith(f"{folder}/")]


class Rig:
    """A topology of spouts, and pumps over one log; all that is opened is closed at the end."""

    def __init__(self):
        self.storage, self.clock, self.events, self.pumps = Memory(), ManualClock(), [], []

    def pump(self, *spouts, committed=0, **settings):
        """Open a pump over spouts named a, b, c ...; given as body or (body, options)."""
        builder = tw.TopologyBuilder("t")
        for name, spout in zip("abcdef", spouts, strict=False):
            body, options = spout if isinstance(spout, tuple) else (spout, {})
            known = None if body_outputs(body) else {"n": int}
            builder.add_spout(name, body, fields=known, **options)
        topology = builder.build()
        run = Run(listen=self.events.append)
        maker = TaskMaker(topology, self.clock, 0, KEY_GROUPS, run)
        log = SegmentLog(self.storage)
        pump = Pump(
            topology, maker.spouts, log, self.clock, PumpSettings(**settings), run.stop.is_set
        )
        self.pumps.append(pump)
        pump.open(committed)
        return pump

    def rows(self, entry):
        """Write down an entry: (component/task, values) per segment."""
        return [(f"{s.component}/{s.task}", self.values(entry, s)) for s in entry.segments]

    def values(self, entry, segment):
        batch = read_block(self.storage, entry.name, segment).batch
        return batch.column(0).to_pylist()

    def all_values(self, entries):
        return [n for entry in entries for _, values in self.rows(entry) for n in values]


@pytest.fixture
def rig():
    made = Rig()
    yield made
    for pump in made.pumps:
        pump.close()


CALLS: list[str] = []


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


class Numbers(tw.BlockSpout):
    """Numbers from 0 up to ``end``; even task numbers count from 0, others from 100."""

    outputs = {"n": int}

    def __init__(self, end=10, size=2):
        self.end, self.size, self.at = end, size, 0

    def prepare(self, context):
        self.base = 100 * context.task

    def next_block(self, limit):
        stop = min(self.at + min(limit, self.size), self.end)
        numbers = range(self.base + self.at, self.base + stop)
        self.at = stop
        if stop == self.end:
            self.finish()
        return self.make_batch([list(numbers)])


class Reliable(tw.Spout):
    """Numbers with ids; notes what it is told."""

    outputs = {"n": int}

    def __init__(self, end=4, replay=False):
        self.end, self.replay, self.at = end, replay, 0

    def prepare(self, context):
        CALLS.append("prepare")

    def activate(self):
        CALLS.append("activate")

    def deactivate(self):
        CALLS.append("deactivate")

    def cleanup(self):
        CALLS.append("cleanup")

    def next_tuple(self):
        if self.at == self.end:
            self.finish()
        else:
            self.emit(self.at, id=f"id{self.at}" if self.at % 2 == 0 else None)
            self.at += 1

    def ack(self, id):
        CALLS.append(f"ack {id}")

    def fail(self, id):
        CALLS.append(f"fail {id}")
        if self.replay:
            self.emit(-int(id[2:]), id=id)


def drain(pump):
    """Pull and commit until everything has ended."""
    entries = []
    for _ in range(100):
        entry = pump.pull()
        entries += [entry] if entry else []
        pump.committed([entry.number for entry in pump.pending()])
        if pump.finished:
            return entries
    raise AssertionError("it does not end")


# --- asking --------------------------------------------------------------------------------------


def test_spouts_are_asked_in_turn(rig):
    pump = rig.pump((Numbers(4), {"degree": 2}), Numbers(2))
    assert rig.rows(pump.pull()) == [
        ("a/0", [0, 1]),
        ("a/1", [100, 101]),
        ("b/0", [0, 1]),
        ("a/0", [2, 3]),
        ("a/1", [102, 103]),
    ]


def test_an_entry_ends_with_enough_rows_and_the_next_goes_on_with_the_next_spout(rig):
    pump = rig.pump(Numbers(), Numbers(), rows=3)
    assert rig.rows(pump.pull()) == [("a/0", [0, 1]), ("b/0", [0, 1])]
    assert rig.rows(pump.pull()) == [("a/0", [2, 3]), ("b/0", [2, 3])]
    pump = Rig().pump(Numbers(), Numbers(), rows=1)
    assert [pump.pull().segments[0].component for _ in range(4)] == ["a", "b", "a", "b"]


def test_block_rows_are_asked_at_once(rig):
    entry = rig.pump(Numbers(3, size=99), block_rows=2).pull()
    assert rig.rows(entry) == [("a/0", [0, 1]), ("a/0", [2])]


def test_an_entry_has_no_more_rows_than_are_wanted_now(rig):
    pump = rig.pump(Numbers(end=20, size=50))
    pump.most_rows = 7
    assert [entry.rows for entry in drain(pump)] == [7, 7, 6]


def test_a_spout_that_counts_what_it_holds_is_believed(rig):
    pump = rig.pump(tw.rate(tw.constant(10), lambda n: n), Numbers(end=3))
    drained = pump.pull()
    assert drained is not None
    rig.clock.advance(2.05)
    assert pump.backlog() == {"a": 20, "b": 0}
    pump.most_rows = 5
    pump.pull()
    assert pump.backlog() == {"a": 15, "b": 0}
    assert pump.sent == {("a", "default"): 5, ("b", "default"): 3}


def test_a_spout_that_has_more_and_does_not_count_has_as_much_again(rig):
    pump = rig.pump(Numbers(end=20, size=50))
    pump.most_rows = 8
    pump.pull()
    assert pump.backlog() == {"a": 8}
    drain(pump)
    assert pump.backlog() == {"a": 0}


def test_an_entry_ends_after_its_time(rig):
    class Slow(Numbers):
        def next_block(self, limit):
            self.context.clock.sleep(0.2)
            return super().next_block(limit)

    entry = rig.pump(Slow(100), seconds=0.5).pull()
    assert len(entry.segments) == 3
    assert entry.clock == pytest.approx(0.6)


def test_nothing_is_logged_when_nothing_came(rig):
    pump = rig.pump(source([PAUSE(2), 1]))
    assert pump.pull() is None
    assert (pump.wait_hint(), len(rig.storage)) == (2, 0)
    rig.clock.sleep(2)
    assert rig.all_values([pump.pull()]) == [1]


def test_the_hint_to_wait_is_the_shortest_one(rig):
    pump = rig.pump(source([PAUSE(2)]), source([PAUSE(3)]))
    pump.pull()
    assert pump.wait_hint() == 2
    assert rig.pump(Numbers(), idle=0.25).wait_hint() == 0.25
    pump = rig.pump(Numbers(1), idle=0.5)
    drain(pump)
    assert pump.wait_hint() == 0.5


def test_a_stop_ends_a_round(rig):
    class Stops(Numbers):
        def next_block(self, limit):
            self.context.stop()
            return super().next_block(limit)

    pump = rig.pump(Stops(), Numbers())
    assert rig.rows(pump.pull()) == [("a/0", [0, 1])]
    assert pump.pull() is None


def test_nothing_is_asked_while_too_many_entries_are_open(rig):
    pump = rig.pump(Numbers(100), rows=1, pending_entries=2)
    entries = [pump.pull() for _ in range(3)]
    assert pump.pull() is None
    assert pump.pending() == entries
    pump.committed([1])
    assert pump.pull().number == 4


def test_an_end_without_rows_is_logged_too(rig):
    pump = rig.pump(Reliable(2))
    assert pump.pull().finished == ("a/0",)
    late = rig.pump(source([1, PAUSE(1)]), committed=1)
    assert late.pull() is None  # it is known to have ended


def test_the_end_of_all_spouts_is_the_end_when_all_is_committed(rig):
    pump = rig.pump(Numbers(2))
    entry = pump.pull()
    assert not pump.finished
    pump.committed([entry.number])
    assert pump.finished
    assert pump.pull() is None


def test_what_is_asked_and_refused_is_counted(rig):
    rows = [1, "x", 2]
    pump = rig.pump((tw.items(rows), {"on_error": "skip"}), Numbers(4))
    pump.counters["a"].busy = pump.counters["b"].busy = 0.0
    pump.pull()
    a, b = pump.counters["a"], pump.counters["b"]
    assert (a.emitted, a.errors, b.emitted, b.errors) == (2, 1, 4, 0)
    assert min(a.busy, b.busy) > 0


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"block_rows": 0}, {"pending_entries": -1}])
def test_limits_that_make_no_sense_are_refused(wrong):
    with pytest.raises(tw.UsageError, match=f"{next(iter(wrong))}: expected at least"):
        PumpSettings(**wrong)


# --- telling -------------------------------------------------------------------------------------


def test_acks_follow_the_commit(rig):
    pump = rig.pump(Reliable())
    entry = pump.pull()
    assert [segment.tracked for segment in entry.segments] == [True]
    assert CALLS == ["prepare", "activate"]
    pump.committed([1])
    assert CALLS[2:] == ["ack id0", "ack id2"]
    assert (pump.acked, pump.failed) == (2, 0)


def test_rows_that_failed_are_told_by_their_serial(rig):
    pump = rig.pump(Numbers(2), Reliable())
    pump.pull()
    pump.committed([1], failed={4, 5})
    assert CALLS[2:] == ["ack id0", "fail id2"]
    assert (pump.acked, pump.failed) == (1, 1)


def test_replays_are_logged_with_the_next_entry(rig):
    pump = rig.pump(Reliable(3, replay=True))
    pump.pull()
    pump.committed([1], failed=[2])
    assert not pump.finished
    assert pump.wait_hint() == 0
    entry = pump.pull()
    assert (rig.rows(entry), entry.segments[0].serial) == ([("a/0", [-2])], 3)
    pump.committed([2])
    assert CALLS[-2:] == ["fail id2", "ack id2"]
    assert pump.finished
    assert pump.counters["a"].emitted == 4


def test_a_spout_that_ends_when_it_is_told_is_logged_before_the_end(rig):
    class EndsWithAck(Reliable):
        def next_tuple(self):
            if self.at < self.end:
                super().next_tuple()

        def ack(self, id):
            self.finish()

    pump = rig.pump(EndsWithAck(1))
    assert pump.pull().finished == ()
    pump.committed([1])
    assert not pump.finished
    assert pump.pull().finished == ("a/0",)
    pump.committed([2])
    assert pump.finished


def test_commits_come_in_order(rig):
    pump = rig.pump(Numbers(100), rows=1)
    pump.pull(), pump.pull()
    with pytest.raises(StateError, match=r"expected the oldest: \[1\], got \[2\]"):
        pump.committed([2])
    pump.committed([2, 1])
    with pytest.raises(StateError, match=r"expected the oldest: \[\], got \[2\]"):
        pump.committed([2])


def test_what_is_open_at_the_end_fails(rig):
    pump = rig.pump(Reliable(replay=True))
    pump.pull()
    pump.give_up()
    assert CALLS[2:] == ["deactivate", "fail id0", "fail id2"]
    assert (pump.failed, pump.pull()) == (2, None)


# --- errors --------------------------------------------------------------------------------------


def test_what_came_before_an_error_is_processed_first(rig):
    pump = rig.pump(source([1, 2, ABORT, 3]), Numbers(2))
    entry = pump.pull()
    assert rig.rows(entry) == [("a/0", [1, 2]), ("b/0", [0, 1])]
    assert pump.pull() is None
    pump.committed([1])
    assert not pump.finished
    for _ in range(2):
        with pytest.raises(tw.Aborted):
            pump.pull()


def test_an_error_before_anything_came_is_raised_at_once(rig):
    class Raises(Numbers):
        def next_block(self, limit):
            raise ValueError("no")

    with pytest.raises(tw.ComponentError, match=r"'a', task 0.*next_block.*ValueError: no"):
        rig.pump(Raises()).pull()


def test_a_record_that_cannot_be_read_is_an_error(rig):
    with pytest.raises(tw.RecordError, match=r"'x'.*source 'a'"):
        rig.pump(tw.items(["x"])).pull()


def test_entries_that_cannot_be_written_are_written_later(rig):
    pump = rig.pump(Numbers(2))
    rig.storage.write = lambda *_: (_ for _ in ()).throw(StateError("full"))
    with pytest.raises(StateError, match="full"):
        pump.pull()
    del rig.storage.write
    assert rig.all_values([pump.pull()]) == [0, 1]


class BadCleanup(Reliable):
    def cleanup(self):
        super().cleanup()
        raise RuntimeError("stuck")


def test_all_tasks_are_closed_whatever_fails(rig):
    pump = rig.pump(BadCleanup(), (BadCleanup(), {"degree": 2}))
    errors = pump.close()
    assert CALLS.count("cleanup") == 3
    assert ["stuck" in str(error) for error in errors] == [True] * 3
    assert pump.close() == []


def test_tasks_opened_before_a_failure_can_be_closed(rig):
    class BadPrepare(Reliable):
        def prepare(self, context):
            raise RuntimeError("no")

    with pytest.raises(tw.ComponentError, match="no"):
        rig.pump(Reliable(), BadPrepare(), Reliable())
    rig.pumps[0].close()
    assert CALLS == ["prepare", "cleanup", "cleanup"]


# --- after a restart -----------------------------------------------------------------------------


def test_what_is_not_committed_is_given_again_and_the_source_goes_on_behind_it(rig):
    pump = rig.pump(Numbers(8), rows=2)
    entries = [pump.pull(), pump.pull()]
    pump = rig.pump(Numbers(8), committed=1)
    assert rig.all_values(pump.pending()) == [2, 3]
    assert pump.pending() == entries[1:]
    pump.committed([2])
    assert rig.all_values(drain(pump)) == [4, 5, 6, 7]


def test_the_spout_goes_on_when_all_entries_but_the_last_are_forgotten(rig):
    pump = rig.pump(Numbers(4), Numbers(20), rows=2)
    for _ in range(6):
        pump.committed([pump.pull().number])
    SegmentLog(rig.storage).after(6)
    log = SegmentLog(rig.storage)
    log.after(6)
    log.forget(6)
    assert len(rig.storage) == 1
    pump = rig.pump(Numbers(4), Numbers(20), committed=6)
    assert rig.rows(pump.pull())[0] == ("b/0", [8, 9])


def test_a_block_that_reaches_over_the_end_of_the_log_is_cut(rig):
    rig.pump(Numbers(9, size=3), rows=3).pull()

    class TakesNoLimit(Numbers):
        def next_block(self, limit):
            return super().next_block(99)

    assert rig.all_values([rig.pump(TakesNoLimit(9, size=5), committed=1).pull()]) == [*range(3, 9)]


def test_a_source_that_waits_is_skipped_as_it_comes(rig):
    def items():
        return source([0, 1, PAUSE(5), 2, 3, PAUSE(5), 4])

    pump = rig.pump(items())
    pump.pull(), rig.clock.sleep(5), pump.pull()
    pump = rig.pump(items(), committed=2)
    assert (pump.pull(), pump.wait_hint()) == (None, 5)
    rig.clock.sleep(5)
    assert (pump.pull(), pump.wait_hint()) == (None, 5)
    rig.clock.sleep(5)
    assert rig.all_values([pump.pull()]) == [4]


def test_a_body_that_can_resume_is_told_how_many_rows_it_had_sent(rig):
    class Resumes(Numbers):
        def resume(self, rows):
            CALLS.append(f"resume {rows}")
            self.at = rows

    pump = rig.pump((Resumes(6), {"degree": 2}), rows=6)
    pump.pull()
    assert CALLS == []
    pump = rig.pump((Resumes(6), {"degree": 2}), committed=1)
    assert CALLS == ["resume 4", "resume 2"]
    assert rig.rows(pump.pull())[:2] == [("a/0", [4, 5]), ("a/1", [102, 103])]


def test_a_spout_of_tuples_that_can_resume_is_told_so_before_it_begins(rig):
    class Resumes(Reliable):
        def resume(self, rows):
            CALLS.append(f"resume {rows}")
            self.at = rows

    rig.pump(Resumes(), rows=3, block_rows=3).pull()
    CALLS.clear()
    pump = rig.pump(Resumes(), committed=1)
    assert CALLS == ["prepare", "resume 3", "activate"]
    assert rig.all_values([pump.pull()]) == [3]


def test_a_spout_of_tuples_without_resume_starts_anew(rig):
    rig.pump(Reliable(), rows=3, block_rows=3).pull()
    assert rig.all_values([rig.pump(Reliable(), committed=1).pull()]) == [0, 1, 2, 3]


def test_a_spout_that_has_ended_is_left_alone(rig):
    rig.pump(Reliable(2), Numbers(4)).pull()
    CALLS.clear()
    pump = rig.pump(Reliable(2), Numbers(4), committed=0)
    assert pump.pull() is None
    pump.committed([1])
    assert pump.finished
    assert CALLS == []


def test_ids_of_an_earlier_run_are_not_told(rig):
    rig.pump(Reliable()).pull()
    pump = rig.pump(Reliable())
    assert [segment.tracked for segment in pump.pending()[0].segments] == [False]
    pump.committed([1], failed=[0])
    assert (pump.acked, pump.failed) == (0, 0)


def test_rows_of_an_earlier_run_that_this_one_processes_are_counted(rig):
    rig.pump(Numbers(8), rows=2).pull()
    pump = rig.pump(Numbers(8))
    assert pump.counters["a"].emitted == 2
    drain(pump)
    assert pump.counters["a"].emitted == 8


def test_types_that_were_learnt_stay(rig):
    class Learns(tw.Spout):
        outputs = ["n"]

        def __init__(self, value):
            self.value = value

        def next_tuple(self):
            self.emit(self.value)

    rig.pump(Learns(1), rows=1, block_rows=1).pull()
    with pytest.raises(tw.ComponentError, match="int64"):
        again = rig.pump(Learns("text"))
        again.committed([1])
        again.pull()


def test_a_source_that_gives_less_than_before_is_an_error(rig):
    rig.pump(Numbers(8), rows=6).pull()
    pump = rig.pump(Numbers(4), committed=1)
    with pytest.raises(StateError, match=r"'a', task 0.*the 6 rows.*got only 4 rows.*resume"):
        pump.pull()


def test_records_are_not_refused_a_second_time(rig, tmp_path):
    kept = tmp_path / "bad.jsonl"

    def opened(committed):
        spout = tw.items([1, "x", 2, 3, "y", 4])
        options = {"on_error": dead_letter(kept)}
        return rig.pump((spout, options), committed=committed, rows=1, block_rows=3)

    def refused():
        return [event.raw for event in rig.events if isinstance(event, RecordRefused)]

    assert rig.all_values([opened(0).pull()]) == [1, 2]
    assert rig.all_values([opened(1).pull()]) == [3, 4]
    assert refused() == ["\"'x'\"", "\"'y'\""]
    pump = opened(2)
    drain(pump)
    assert pump.finished
    assert len(refused()) == len(kept.read_text().splitlines()) == 2
    assert pump.counters["a"].errors == 0


def test_records_behind_the_logged_rows_are_refused_aloud(rig):
    def opened(committed, block_rows):
        spout = tw.items([1, 2, "x", 3]), {"on_error": "skip"}
        return rig.pump(spout, committed=committed, rows=1, block_rows=block_rows)

    opened(0, 1).pull()
    pump = opened(1, 4)
    assert rig.all_values(drain(pump)) == [2, 3]
    assert (len(rig.events), pump.counters["a"].errors) == (1, 1)


class Shelves(tw.BlockSpout):
    """Numbers from several shelves, in another order for each seed; a position is what is left."""

    outputs = {"n": int}
    replays = False

    def __init__(self, seed):
        self.seed = seed

    def prepare(self, context):
        self.random = random.Random(self.seed)
        self.left = {"a": list(range(50)), "b": list(range(50, 100))}

    def next_block(self, limit):
        names = [name for name, left in self.left.items() if left]
        if not names:
            self.finish()
            return None
        name = self.random.choice(names)
        taken, rest = self.left[name][:limit], self.left[name][limit:]
        self.left = self.left | {name: rest}
        return self.make_batch([taken])

    def position(self):
        return self.left

    def seek(self, position):
        self.left = position

    def processed(self, position):
        CALLS.append(sorted(n for left in position.values() for n in left))


@pytest.mark.parametrize("crashes", [(1, 1), (2, 1, 3), (1, 1, 1, 1)])
def test_a_spout_with_a_position_goes_on_where_the_log_ends(rig, crashes):
    settings = {"rows": 5, "block_rows": 3}
    committed, given = 0, {}
    for seed, entries in enumerate([*crashes, 100]):
        pump = rig.pump(Shelves(seed), committed=committed, **settings)
        for _ in range(entries):
            if pump.finished:
                break
            given |= {entry.number: rig.all_values([entry]) for entry in pump.pending()}
            entry = pump.pull()
            given |= {entry.number: rig.all_values([entry])} if entry else {}
            committed = pump.pending()[0].number  # a crash leaves the others to the next one
            pump.committed([committed])
    assert sorted(n for values in given.values() for n in values) == list(range(100))
    assert CALLS[-1] == []
    assert all(set(after) <= set(before) for before, after in itertools.pairwise(CALLS))
