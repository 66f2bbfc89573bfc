"""Streaming DataFrames: a run that is stopped goes on where it was, with what belongs to it."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from sparksession import calls_end, spark_session, take_calls
from thalweg.components import Kind
from thalweg.events import Activated, Event, Progress
from thalweg.statelog import Location, Manifests

FILES, ROWS = 6, 20


def rows_of(file: int) -> list[tuple[str, int]]:
    return [(f"w{n * 7919 % 13}", n) for n in range(file * ROWS, (file + 1) * ROWS)]


@dataclass
class Stream:
    """Files that Structured Streaming reads one by one, and the run that counts their words."""

    folder: Path
    files: int = 0

    def add(self, files: int) -> None:
        """Write more files; Spark takes the oldest first."""
        (self.folder / "input").mkdir(exist_ok=True)
        for _ in range(files):
            lines = [json.dumps({"word": word, "n": n}) for word, n in rows_of(self.files)]
            hidden = self.folder / "next"
            hidden.write_text("\n".join(lines))
            os.utime(hidden, (self.files, self.files))
            hidden.rename(self.folder / "input" / f"{self.files:02}.json")
            self.files += 1

    def flow(self) -> tw.Flow:
        schema, folder = "word string, n bigint", str(self.folder / "input")
        flow = tw.Flow("streamed")
        rows = flow.source(
            "rows",
            tw.spark_source(
                lambda spark: (
                    spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(folder)
                )
            ),
            fields={"word": str, "n": int},
        )
        rows.tally("counts", key="word")
        keyed = rows.tap(waiting(self.folder)).key_by("word")
        keyed.fold("chain", "", lambda before, n: f"{before} {n}", order="key")
        return flow

    def run(self, **options: Any) -> tw.Result:
        where = {"checkpoint": str(self.folder / "checkpoint"), "state": str(self.folder / "state")}
        own = ("checkpoint", "state", "trigger")
        given = where | {key: options.pop(key) for key in own if key in options}
        on = tw.Spark(spark_session(), places=2, **{"trigger": "available-now"} | given)
        return self.flow().run(on=on, **options)

    def tables(self, result: tw.Result) -> tuple[dict[str, int], dict[str, str]]:
        return dict(result.table("counts")), dict(result.table("chain"))

    @property
    def version(self) -> int:
        last = Manifests(Location.of(self.folder / "state")).latest()
        return 0 if last is None else last.version


def waiting(folder: Path) -> Any:
    """Say that a file is being read, and wait, while there is a file "wait"."""

    def wait(n: int) -> None:
        if n == 2 * ROWS + 5 and (folder / "wait").exists():
            (folder / "within").touch()
            while (folder / "wait").exists():
                pass

    return wait


def expected(files: int) -> tuple[dict[str, int], dict[str, str]]:
    rows = [row for file in range(files) for row in rows_of(file)]
    chain: dict[str, str] = {}
    for word, n in rows:
        chain[word] = f"{chain.get(word, '')} {n}"
    return dict(Counter(word for word, _ in rows)), chain


@pytest.fixture(scope="module")
def _callbacks() -> None:
    """Begin the thread that takes Spark's calls before any test."""
    take_calls()


@pytest.fixture(autouse=True)
def _no_calls_are_left(_callbacks: None) -> Iterator[None]:
    with calls_end():
        yield


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    made = Stream(tmp_path)
    made.add(FILES)
    return made


class StopAfter:
    """Stops a run when it has committed some batches."""

    def __init__(self, batches: int) -> None:
        self.stop, self.left = threading.Event(), batches

    def __call__(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.left -= 1
            if self.left <= 0:
                self.stop.set()


# --- stopping -------------------------------------------------------------------------------------


def test_a_run_that_is_not_stopped_reads_every_file_once(stream: Stream) -> None:
    result = stream.run()
    assert stream.tables(result) == expected(FILES)
    assert stream.version == FILES


@pytest.mark.parametrize("trigger", ["available-now", None])
def test_a_run_that_was_stopped_goes_on_where_it_was(stream: Stream, trigger: str | None) -> None:
    listen = StopAfter(2)
    first = stream.run(trigger=trigger, listen=listen, stop=listen.stop)
    assert first.stopped
    assert 2 <= stream.version < FILES
    again = StopAfter(2)
    stream.run(listen=again, stop=again.stop)
    assert stream.tables(stream.run()) == expected(FILES)


def test_a_run_that_is_stopped_within_a_batch_counts_it_once(stream: Stream) -> None:
    (stream.folder / "wait").touch()
    stop, done = threading.Event(), []
    run = threading.Thread(target=lambda: done.append(stream.run(stop=stop)))
    run.start()
    try:
        while run.is_alive() and not (stream.folder / "within").exists():
            pass
        stop.set()
    finally:
        (stream.folder / "wait").unlink()
        run.join()
    assert done[0].stopped
    assert stream.version < FILES
    assert stream.tables(stream.run()) == expected(FILES)


def test_files_that_come_between_two_runs_are_read_by_the_second(stream: Stream) -> None:
    stream.run()
    stream.add(2)
    assert stream.tables(stream.run()) == expected(FILES + 2)


# --- checkpoint and state that do not belong together ---------------------------------------------


def all_files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(stream: Stream, number: int, committed: int) -> None:
    """Expect that a run is refused, and that it writes nothing to the state."""
    before = all_files(stream.folder / "state")
    text = f"batch {committed + 1}, the next one for this state.*batch {number} from the checkpoint"
    with pytest.raises(tw.StateError, match=f"(?s)source 'rows'.*{text}"):
        stream.run()
    assert all_files(stream.folder / "state") == before


@pytest.mark.parametrize("more", [0, 1])
def test_a_checkpoint_whose_state_is_gone_is_refused(stream: Stream, more: int) -> None:
    stream.run()
    stream.add(more)
    shutil.rmtree(stream.folder / "state")
    refused(stream, number=FILES, committed=-1)


def test_state_that_is_behind_its_checkpoint_is_refused(stream: Stream) -> None:
    stream.run()
    stream.add(1)
    Manifests(Location.of(stream.folder / "state")).go_back_to(FILES - 1)
    refused(stream, number=FILES, committed=FILES - 2)


@pytest.mark.parametrize("files", [1, 2])
def test_state_whose_checkpoint_is_gone_is_refused(tmp_path: Path, files: int) -> None:
    stream = Stream(tmp_path)
    stream.add(files)
    stream.run()
    shutil.rmtree(stream.folder / "checkpoint")
    refused(stream, number=0, committed=files - 1)


def test_state_that_is_one_batch_ahead_is_a_crash_before_the_checkpoint_was_written(
    stream: Stream,
) -> None:
    stream.run()
    folder = stream.folder / "checkpoint" / "rows" / "commits"
    for path in folder.glob(f"*{FILES - 1}*"):
        path.unlink()
    stream.add(1)
    assert stream.tables(stream.run()) == expected(FILES + 1)


@pytest.mark.parametrize("kept", ["checkpoint", "state"])
def test_only_one_of_both_is_refused(stream: Stream, kept: str) -> None:
    other = {"checkpoint": "state", "state": "checkpoint"}[kept]
    with pytest.raises(tw.UsageError, match=rf"(?s)'rows'.*both checkpoint.*only {kept}"):
        stream.run(**{other: None})
    assert not (stream.folder / "checkpoint").exists()
    assert stream.version == 0


def test_without_both_a_run_begins_anew_each_time(stream: Stream) -> None:
    for _ in range(2):
        assert stream.tables(stream.run(checkpoint=None, state=None)) == expected(FILES)


class Ticking(tw.Bolt):
    """Lets ticks be batches."""

    kind = Kind.GLOBAL

    def process(self, t: Any) -> None:
        """Take it in."""

    def process_tick(self) -> None:
        """Nothing to do."""


def test_a_run_that_is_paused_takes_no_batch_until_it_goes_on(stream: Stream) -> None:
    steering, told, seen = tw.Steering(), [], []

    def listen(event: Event) -> None:
        if isinstance(event, Activated):
            told.append(event.active)
        if not isinstance(event, Progress):
            return
        if not told:
            steering.deactivate()
        elif told == [False]:  # batches of ticks alone
            seen.append(event.snapshot.tuples_in)
            if len(seen) >= 5 and len(set(seen[-4:])) == 1:
                steering.activate()

    flow = stream.flow()
    flow.source("numbers", tw.items([]), fields={"n": int}).through("ticking", Ticking(), tick=0.05)
    runtime = tw.Spark(spark_session(), places=2, trigger="available-now")
    result = flow.run(on=runtime, steering=steering, listen=listen)
    assert told == [False, True]
    # One may have been under way, and come in its turn between two ticks.
    assert len(set(seen)) <= 2
    assert seen[-1] < FILES * ROWS
    assert stream.tables(result) == expected(FILES)


def test_a_column_of_times_comes_as_times() -> None:
    found: list[Any] = []
    flow = tw.Flow("times")
    rows = tw.spark_source(lambda spark: spark.sql("SELECT timestamp_millis(1700000000123) AS at"))
    flow.source("rows", rows, fields={"at": pa.timestamp("us", "UTC")}).sink(
        "out", tw.collect(found)
    )
    flow.run(on=tw.Spark(spark_session(), places=2))
    assert [t.at.timestamp() for t in found] == [1_700_000_000.123]
