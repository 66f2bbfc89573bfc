"""Checkpoints: a run that was stopped, or has failed, goes on where its last snapshot was."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from conformance.harness import Case
from conformance.harness import local as adapter
from conformance.test_conformance import CASES, slug
from thalweg.clock import ManualClock
from thalweg.components import BlockSpout, Bolt, Kind, Spout
from thalweg.events import Event, Noticed
from thalweg.runtimes.local.runtime import Local
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifest, Manifests
from thalweg.statelog.reading import Version, manifest_at
from thalweg.topology import Topology

pytestmark = pytest.mark.usefixtures("forked")

ROWS = [(n, f"w{n * 7919 % 23}") for n in range(2000)]
WORDS = Counter(word for _, word in ROWS)

MODES: dict[str, dict[str, Any]] = {
    "workers": {},
    "partitioned queues": {"queue": "partitioned"},
    "one line": {"queue": "shared"},
    "executors": {"assigning": "executors"},
}


def local(folder: Path, **settings: Any) -> Local:
    """Give a runtime with small blocks, so that a run can be stopped in the middle."""
    chosen: dict[str, Any] = {"workers": 2, "block_rows": 50, "most_block_rows": 50, "window": 4}
    return Local(**chosen | settings, checkpoint=folder / "checkpoint")


class StopAfter:
    """A function for a sink that keeps what it is given, and stops the run after some rows."""

    def __init__(self, rows: int | None = None) -> None:
        self.rows, self.stop, self.seen = rows, threading.Event(), list[Any]()

    def __call__(self, t: Any) -> None:
        self.seen.append(tuple(t))
        if len(self.seen) == self.rows:
            self.stop.set()


def counting(sink: Callable[[Any], None], rows: Any = ROWS, **options: Any) -> tw.Flow:
    """Count words, and show every row."""
    flow = tw.Flow("counting")
    source = flow.source("rows", tw.items(rows), fields={"n": int, "word": str})
    source.tally("counts", key="word", **options).sink("out", tw.call(sink))
    return flow


class Count(Bolt):
    """Counts words in its state, and says at the end how many there were."""

    kind = Kind.KEYED
    outputs = {"word": str, "count": int}
    table = "counts"

    def process(self, t: Any) -> None:
        count = self.state.get(t.word, 0) + 1
        self.state.put(t.word, count)
        self.emit(t.word, count)

    def process_end(self) -> None:
        self.emit("(end)", len(self.state))


def counted(body: Any, sink: Callable[[Any], None], spout: Any = None, **options: Any) -> Topology:
    """Let a bolt count words."""
    builder = tw.TopologyBuilder("counted")
    source = tw.items(ROWS) if spout is None else spout
    builder.add_spout("rows", source, fields={"n": int, "word": str})
    builder.add_bolt("count", body, **options).fields("rows", "word")
    builder.add_bolt("out", tw.call(sink)).global_("count")
    return builder.build()


def last(folder: Path) -> Manifest:
    """Read the newest manifest."""
    return manifest_at(Location.of(folder / "checkpoint" / "state"))


def each_count_once(seen: list[Any]) -> bool:
    """Say whether every word was counted from one to the end, nothing twice."""
    expected = Counter((word, count) for word, n in WORDS.items() for count in range(1, n + 1))
    return Counter(row for row in seen if row[0] != "(end)") == expected


# --- stop, and go on ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", ["total", "key", "sender"])
def test_a_run_that_was_stopped_goes_on_where_it_was(mode: str, order: str, tmp_path: Path) -> None:
    first, second = StopAfter(700), StopAfter()
    runtime = local(tmp_path, **MODES[mode])
    result = counted(Count(), first, degree=2, order=order).run(on=runtime, stop=first.stop)
    assert result.stopped
    assert 700 <= len(first.seen) < len(ROWS)
    result = counted(Count(), second, degree=2, order=order).run(on=runtime)
    assert not result.stopped
    assert result.table("counts") == WORDS
    assert each_count_once(first.seen + second.seen)
    assert ("(end)", 0) not in second.seen
    assert [row for row in first.seen if row[0] == "(end)"] == []
    assert sum(count for word, count in second.seen if word == "(end)") == len(WORDS)


def test_tasks_in_processes_keep_their_state(tmp_path: Path) -> None:
    first, second = StopAfter(700), StopAfter()
    runtime = local(tmp_path, snapshot_every=0.01)
    topology = counted(Count(), first, isolation="process", degree=2)
    topology.run(on=runtime, stop=first.stop)
    result = counted(Count(), second, isolation="process", degree=1).run(on=runtime)
    assert result.table("counts") == WORDS
    assert each_count_once(first.seen + second.seen)


def test_a_run_can_be_stopped_again_and_again(tmp_path: Path) -> None:
    seen: list[Any] = []
    for _ in range(len(ROWS)):
        sink = StopAfter(100)
        result = counting(sink).run(on=local(tmp_path), stop=sink.stop)
        seen += sink.seen
        if not result.stopped:
            break
    assert [row[0] for row in seen] == [n for n, _ in ROWS]
    assert result.table("counts") == WORDS
    old_versions_are_deleted_and_runs_are_merged(tmp_path)


def old_versions_are_deleted_and_runs_are_merged(folder: Path) -> None:
    """Look at what many snapshots have left."""
    manifest, state = last(folder), folder / "checkpoint" / "state"
    assert manifest.version > 13
    assert len(manifest.runs[0]) <= 13
    assert len(list((state / "manifests").iterdir())) == 10
    older = Manifests(Location.of(state)).older(manifest.version + 1)
    named = {ref.name for old in older for ref in old.runs[0]}
    left = {f"runs/{path.name}" for path in (state / "runs").iterdir()}
    assert left == named


def test_a_run_that_had_ended_has_nothing_to_do(tmp_path: Path) -> None:
    first, second = StopAfter(), StopAfter()
    counted(Count(), first).run(on=local(tmp_path))
    version = last(tmp_path).version
    result = counted(Count(), second).run(on=local(tmp_path))
    assert result.table("counts") == WORDS
    assert second.seen == []
    assert last(tmp_path).version == version


class Failing(Count):
    """Fails once on a row, if it is told to."""

    def __init__(self, at: int | None) -> None:
        self.at, self.seen = at, 0

    def process(self, t: Any) -> None:
        if self.at is not None and t.n >= self.at:
            text = "no more"
            raise ValueError(text)
        super().process(t)


@pytest.mark.parametrize("every", [0, 0.005, "5 ms"])
def test_a_run_that_failed_goes_on_from_its_last_snapshot(
    every: float | str, tmp_path: Path
) -> None:
    first, second = StopAfter(), StopAfter()
    runtime = local(tmp_path, snapshot_every=every)
    with pytest.raises(tw.ComponentError, match="no more"):
        counted(Failing(1200), first).run(on=runtime)
    kept = last(tmp_path).inputs["rows/0"]
    assert 0 < kept <= 1200
    result = counted(Failing(None), second).run(on=runtime)
    assert result.table("counts") == WORDS
    assert len(second.seen) == len(ROWS) - kept + 1  # and the end


@pytest.mark.parametrize("assigning", ["workers", "executors"])
@pytest.mark.parametrize("case", [case for case in CASES if not case.needs][::3], ids=slug)
def test_snapshots_change_nothing(case: Case, assigning: str, tmp_path: Path) -> None:
    """Take a snapshot after every block; the results of the conformance suite are the same."""
    run = adapter(assigning=assigning, workers=2, snapshot_every=0, checkpoint=tmp_path)
    seen = run(case.build(), case.inputs, case.settings)
    for expectation in case.expect:
        expectation.check(seen)


# --- what is kept ---------------------------------------------------------------------------------


class Baskets(Bolt):
    """Keeps lists that it changes in place, and forgets those that become long."""

    kind = Kind.KEYED
    outputs = ["word"]
    table = "baskets"

    def process(self, t: Any) -> None:
        basket = self.state.get(t.word)
        if basket is None:
            self.state.put(t.word, [t.n])
        elif len(basket) == 5:
            self.state.delete(t.word)
        else:
            basket.append(t.n)


def baskets(rows: list[tuple[int, str]]) -> dict[str, list[int]]:
    """Do the same without Thalweg."""
    found: dict[str, list[int]] = {}
    for n, word in rows:
        if word not in found:
            found[word] = [n]
        elif len(found[word]) == 5:
            del found[word]
        else:
            found[word].append(n)
    return found


@pytest.mark.parametrize(
    ("isolation", "stops"), [("thread", [70, 95, 133, None]), ("process", [133, None])]
)
def test_deleted_keys_and_values_changed_in_place_are_kept(
    isolation: str, stops: list[int | None], tmp_path: Path
) -> None:
    some = ROWS[:300]
    for stop_at in stops:
        stop = threading.Event()
        spout = tw.items(partial(stopping, some, stop_at, stop))
        topology = counted(Baskets(), lambda _t: None, spout, isolation=isolation, degree=2)
        result = topology.run(on=local(tmp_path, block_rows=1, most_block_rows=1), stop=stop)
    assert result.table("baskets") == baskets(some)


def stopping(rows: list[Any], at: int | None, stop: threading.Event) -> Iterator[Any]:
    """Give rows, and stop the run at one of them."""
    for number, row in enumerate(rows):
        if number == at:
            stop.set()
        yield row


class Largest(Bolt):
    """Keeps one value for all tuples."""

    kind = Kind.GLOBAL
    outputs = {"n": int}

    def process(self, t: Any) -> None:
        largest = max(self.state.get("largest", -1), t.n)
        self.state.put("largest", largest)
        self.emit(largest)


def test_a_global_bolt_keeps_its_state(tmp_path: Path) -> None:
    def topology(rows: list[int], sink: Any) -> Topology:
        builder = tw.TopologyBuilder("largest")
        builder.add_spout("rows", tw.items(rows), fields={"n": int})
        builder.add_bolt("largest", Largest()).global_("rows")
        builder.add_bolt("out", tw.call(sink)).global_("largest")
        return builder.build()

    first, second = StopAfter(2), StopAfter()
    runtime = local(tmp_path, block_rows=1, most_block_rows=1, window=2)
    topology([5, 9, 1, 2], first).run(on=runtime, stop=first.stop)
    topology([5, 9, 1, 2], second).run(on=runtime)
    assert [row[0] for row in first.seen + second.seen] == [5, 9, 9, 9]


def test_keys_expire_also_while_nothing_runs(tmp_path: Path) -> None:
    clock = ManualClock(1000.0)
    runtime = local(tmp_path, clock=clock, block_rows=1, most_block_rows=1, snapshot_every=0)

    def run(words: list[str], stop_at: int | None) -> dict[str, int]:
        stop = threading.Event()
        flow = tw.Flow("visits")
        rows = [(n, word) for n, word in enumerate(words)]
        source = tw.items(partial(stopping, rows, stop_at, stop))
        counts = flow.source("rows", source, fields={"n": int, "word": str})
        counts.key_by("word").count("visits", ttl=10)
        return flow.run(on=runtime, stop=stop).table("visits")

    assert run(["a", "b", "b"], stop_at=1) == {"a": 1, "b": 1}
    clock.advance(8)
    assert run(["a", "b", "b", "a"], stop_at=2) == {"a": 1, "b": 2}
    clock.advance(8)  # nobody has seen a for 16 seconds
    assert run(["a", "b", "b", "a"], stop_at=None) == {"a": 1, "b": 2}


def test_a_snapshot_holds_what_has_changed_since_the_last_one(tmp_path: Path) -> None:
    many = [(n, f"k{n}") for n in range(1000)]
    few = [(n, "k1") for n in range(1000, 1100)]
    sink = StopAfter(1000)
    counting(sink, many + few).run(on=local(tmp_path, snapshot_every=3600), stop=sink.stop)
    counting(StopAfter(), many + few).run(on=local(tmp_path, snapshot_every=3600))
    sizes = [sum(ref.keys.values()) for ref in last(tmp_path).runs[0]]
    assert sizes[0] >= 1000
    assert sizes[1:] == [1]


def test_nothing_is_written_while_nothing_happens(tmp_path: Path) -> None:
    clock, stop, asked = ManualClock(), threading.Event(), list[int]()

    class Quiet(Spout):
        outputs = {"n": int, "word": str}

        def next_tuple(self) -> None:
            asked.append(1)
            if len(asked) == 1:
                self.emit(1, "a")
            if len(asked) == 200:
                stop.set()

    runtime = local(tmp_path, clock=clock, snapshot_every=0.01)
    counted(Count(), lambda _t: None, Quiet()).run(on=runtime, stop=stop)
    assert len(asked) == 200
    assert last(tmp_path).version <= 3


# --- tasks and topologies that change -------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2), (4, 1)])
def test_keys_are_spread_anew_over_other_tasks(before: int, after: int, tmp_path: Path) -> None:
    first, second = StopAfter(700), StopAfter()
    counted(Count(), first, degree=before).run(on=local(tmp_path), stop=first.stop)
    result = counted(Count(), second, degree=after).run(on=local(tmp_path))
    assert result.table("counts") == WORDS
    assert each_count_once(first.seen + second.seen)


def test_a_source_keeps_the_number_of_its_tasks(tmp_path: Path) -> None:
    def flow(degree: int) -> tw.Flow:
        made = tw.Flow("spread")
        source = made.source("rows", tw.items(ROWS), fields={"n": int, "word": str}, degree=degree)
        source.key_by("word").count("counts")
        return made

    flow(1).run(on=local(tmp_path))
    with pytest.raises(tw.StateError, match=r"'rows'.*1 tasks, as in the checkpoint"):
        flow(2).run(on=local(tmp_path))


def test_another_topology_is_refused(tmp_path: Path) -> None:
    counted(Count(), lambda _t: None).run(on=local(tmp_path))
    other = tw.Flow("other")
    other.source("numbers", tw.items([1]), fields={"n": int}).sink("seen", tw.collect([]))
    with pytest.raises(tw.StateError, match="one of this topology"):
        other.run(on=local(tmp_path))


def test_a_checkpoint_of_spark_is_refused(tmp_path: Path) -> None:
    counted(Count(), lambda _t: None).run(on=local(tmp_path))
    state = Location.of(tmp_path / "checkpoint" / "state")
    made = last(tmp_path)
    changed = Manifest(**{f: getattr(made, f) for f in made.__struct_fields__} | {"notes": {}})
    Manifests(state).delete(made.version)
    Manifests(state).commit(changed)
    with pytest.raises(tw.StateError, match="one of the local runtime"):
        counted(Count(), lambda _t: None).run(on=local(tmp_path))


def test_what_has_changed_is_told(tmp_path: Path) -> None:
    told: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Noticed):
            told.append(event.text)

    counting(StopAfter()).run(on=local(tmp_path))
    flow = counting(StopAfter())
    flow.source("more", tw.items([1]), fields={"n": int}).sink("seen", tw.collect([]))
    flow.run(on=local(tmp_path), listen=listen)
    version = last(tmp_path).version - 1
    assert told == [
        f"going on from version {version}",
        "component 'more' is new",
        "component 'seen' is new",
    ]


# --- sinks ----------------------------------------------------------------------------------------


def into_table(folder: Path, sink: Any, degree: int = 1) -> tw.Flow:
    flow = tw.Flow("table")
    rows = flow.source("rows", tw.items(ROWS), fields={"n": int, "word": str})
    rows.sink("kept", tw.to_table(folder / "table"), degree=degree)
    rows.sink("seen", tw.call(sink))
    return flow


def table_rows(folder: Path) -> list[tuple[int, str]]:
    """Read the table as far as it is committed."""
    found = tw.read_table(folder / "table", verify=True).to_table().to_pylist()
    return sorted((row["n"], row["word"]) for row in found)


@pytest.mark.parametrize("degree", [1, 2])
def test_a_table_has_each_row_once(degree: int, tmp_path: Path) -> None:
    sink = StopAfter(700)
    runtime = local(tmp_path, snapshot_every=0.01)
    into_table(tmp_path, sink, degree).run(on=runtime, stop=sink.stop)
    assert table_rows(tmp_path) == sorted(sink.seen)
    into_table(tmp_path, StopAfter(), degree).run(on=runtime)
    assert table_rows(tmp_path) == ROWS
    into_table(tmp_path, StopAfter(), degree).run(on=runtime)
    assert table_rows(tmp_path) == ROWS


def test_a_table_has_nothing_that_no_snapshot_holds(tmp_path: Path) -> None:
    def fail(t: Any) -> None:
        if t.n == 1500:
            text = "no more"
            raise ValueError(text)

    with pytest.raises(tw.ComponentError, match="no more"):
        into_table(tmp_path, fail).run(on=local(tmp_path, snapshot_every=0))
    kept = last(tmp_path).inputs["rows/0"]
    assert table_rows(tmp_path) == ROWS[:kept]
    into_table(tmp_path, StopAfter()).run(on=local(tmp_path, snapshot_every=0))
    assert table_rows(tmp_path) == ROWS


def test_a_table_stays_in_this_process(tmp_path: Path) -> None:
    flow = tw.Flow("table")
    rows = flow.source("rows", tw.items(ROWS), fields={"n": int, "word": str})
    rows.sink("kept", tw.to_table(tmp_path / "table"), isolation="process")
    with pytest.raises(tw.UsageError, match=r"isolation.*'kept' with a checkpoint"):
        flow.run(on=local(tmp_path))


# --- sources --------------------------------------------------------------------------------------


class Queue(Spout):
    """Hands out rows of a list that others share, each once: it cannot give one again."""

    outputs = {"n": int, "word": str}

    def __init__(self, rows: list[tuple[int, str]]) -> None:
        self.rows = rows

    def __deepcopy__(self, memo: Any) -> Queue:
        return Queue(self.rows)

    def next_tuple(self) -> None:
        if self.rows:
            self.emit(*self.rows.pop(0))
        else:
            self.finish()


class LiveBlocks(BlockSpout):
    """The same in blocks."""

    outputs = {"n": int, "word": str}
    replays = False

    def __init__(self, rows: list[tuple[int, str]]) -> None:
        self.rows = rows

    def __deepcopy__(self, memo: Any) -> LiveBlocks:
        return LiveBlocks(self.rows)

    def next_block(self, limit: int) -> pa.RecordBatch:
        taken = [self.rows.pop(0) for _ in range(min(limit, len(self.rows)))]
        if not self.rows:
            self.finish()
        return self.make_batch([[n for n, _ in taken], [word for _, word in taken]])


@pytest.mark.parametrize("kind", [Queue, LiveBlocks])
def test_what_a_source_does_not_give_again_is_logged(kind: Any, tmp_path: Path) -> None:
    rows = list(ROWS)
    runtime = local(tmp_path, snapshot_every=0.02)
    with pytest.raises(tw.ComponentError, match="no more"):
        counted(Failing(1200), lambda _t: None, kind(rows)).run(on=runtime)
    assert 0 < len(rows) < 800
    result = counted(Failing(None), lambda _t: None, kind(rows)).run(on=runtime)
    assert result.table("counts") == WORDS
    entries = list((tmp_path / "checkpoint" / "state" / "entries").iterdir())
    assert len(entries) == 1  # the newest stays


def test_a_logged_source_that_had_ended_stays_ended(tmp_path: Path) -> None:
    counted(Count(), lambda _t: None, Queue(list(ROWS))).run(on=local(tmp_path))
    again = counted(Count(), lambda _t: None, Queue([(1, "new")])).run(on=local(tmp_path))
    assert again.table("counts") == WORDS


class Resumed(Spout):
    """Counts up, and can go on behind any number."""

    outputs = {"n": int, "word": str}

    def __init__(self) -> None:
        self.next, self.resumed = 0, list[int]()

    def __deepcopy__(self, memo: Any) -> Resumed:
        made = Resumed()
        made.resumed = self.resumed
        return made

    def resume(self, rows: int) -> None:
        self.next = rows
        self.resumed.append(rows)

    def next_tuple(self) -> None:
        if self.next == len(ROWS):
            self.finish()
        else:
            self.emit(*ROWS[self.next])
            self.next += 1


def test_a_spout_that_can_resume_is_told_how_far_it_was(tmp_path: Path) -> None:
    first, spout = StopAfter(700), Resumed()
    counted(Count(), first, Resumed()).run(on=local(tmp_path), stop=first.stop)
    result = counted(Count(), lambda _t: None, spout).run(on=local(tmp_path))
    assert spout.resumed == [len(first.seen)]
    assert result.table("counts") == WORDS
    assert not (tmp_path / "checkpoint" / "state" / "entries").exists()


def test_a_rate_goes_on_at_its_pace(tmp_path: Path) -> None:
    clock = ManualClock()
    runtime = local(tmp_path, clock=clock, block_rows=10)

    def flow(sink: StopAfter) -> tw.Flow:
        made = tw.Flow("rate")
        rate = tw.rate(tw.constant(100), lambda n: (n, "w"), count=300)
        rows = made.source("rows", rate, fields={"n": int, "word": str})
        rows.tally("counts", key="word").sink("out", tw.call(sink))
        return made

    first, second = StopAfter(200), StopAfter()
    flow(first).run(on=runtime, stop=first.stop)
    before = clock.now()
    flow(second).run(on=runtime)
    assert [n for n, _ in first.seen + second.seen] == list(range(300))
    assert clock.now() - before == pytest.approx((300 - len(first.seen)) / 100, abs=0.2)


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_damaged_snapshot_is_an_error(isolation: str, tmp_path: Path) -> None:
    topology = counted(Count(), lambda _t: None, isolation=isolation, degree=1)
    counted(Count(), lambda _t: None).run(on=local(tmp_path))
    for run in (tmp_path / "checkpoint" / "state" / "runs").iterdir():
        run.write_bytes(run.read_bytes()[:-1])
    with pytest.raises(tw.StateError, match="the object was damaged"):
        topology.run(on=local(tmp_path))


def test_a_source_that_has_become_shorter_is_refused(tmp_path: Path) -> None:
    sink = StopAfter(700)
    counting(sink).run(on=local(tmp_path), stop=sink.stop)
    with pytest.raises(tw.StateError, match="'rows'"):
        counting(StopAfter(), ROWS[:100]).run(on=local(tmp_path))


def test_only_one_run_at_a_time_may_use_a_checkpoint(tmp_path: Path) -> None:
    def intrude(t: Any) -> None:
        if t.n == 100:
            counting(StopAfter()).run(on=local(tmp_path))

    with pytest.raises(tw.StateError, match="another run use"):
        counting(intrude).run(on=local(tmp_path, snapshot_every=3600))


def test_the_state_can_be_read_without_the_topology(tmp_path: Path) -> None:
    counted(Count(), lambda _t: None, degree=3).run(on=local(tmp_path))
    version = Version(Location.of(tmp_path / "checkpoint" / "state"), last(tmp_path))
    assert sum(batch.num_rows for batch in version.batches("count")) == len(WORDS)
    assert version.look_up("count", "w0") is not None
