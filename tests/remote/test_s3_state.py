"""Whole runs on Spark with their state in an object store."""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from s3server import SECRET, Server
from typer.testing import CliRunner

import thalweg as tw
from sparksession import spark_session
from thalweg.cli.app import app
from thalweg.events import Event, Noticed, Progress
from thalweg.runtimes.spark.limits import Limits
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.statelog import Manifest, Manifests
from thalweg.testing import ABORT, ManualClock, source

pytestmark = pytest.mark.spark

WORDS = [f"w{n * 7919 % 31}" for n in range(200)]
ROWS = 20


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Give a folder of the bucket that no other test uses."""
    return f"{tmp_path.parent.name}/{tmp_path.name}"


def runtime(uri: str, places: int = 2, **limits: int) -> tw.Spark:
    return tw.Spark(
        spark_session(),
        places=places,
        state=uri,
        clock=ManualClock(),
        pump=PumpSettings(rows=ROWS, block_rows=ROWS),
        limits=Limits(**limits),
    )


def counting(given: tw.BlockSpout | list[Any]) -> tw.Flow:
    flow = tw.Flow("counting")
    spout = source(given) if isinstance(given, list) else given
    words = flow.source("words", spout, fields={"word": str})
    words.tally("counts", key="word")
    return flow


def run_to_abort(given: list[Any], on: tw.Spark) -> None:
    """Run batches, and stop as a crash does: without an end."""
    with pytest.raises(tw.Aborted):
        counting([*given, ABORT]).run(on=on)


def latest(server: Server, folder: str) -> Manifest:
    found = Manifests(server.location(folder)).latest()
    assert found is not None
    return found


def test_a_run_goes_on_with_other_numbers_of_places(s3: Server, folder: str) -> None:
    given: list[Any] = []
    for places in (2, 3, 1):
        given += WORDS
        run_to_abort(given, runtime(s3.uri(folder), places))
    result = counting([*given, *WORDS]).run(on=runtime(s3.uri(folder), 2))
    assert result.table("counts") == Counter(WORDS * 4)


def test_objects_stay_few_and_runs_are_fetched_once_per_worker(s3: Server, folder: str) -> None:
    before = len(s3.requests())
    limits, batches = {"runs": 3, "versions": 3}, 30
    run_to_abort(WORDS * 3, runtime(s3.uri(folder), **limits))
    assert latest(s3, folder).version >= batches
    objects = [name for name in s3.objects(folder) if not name.endswith("/")]
    # Of each retained version: its manifest, its entry, and at each place some runs.
    assert len(objects) <= 3 * (2 + 2 * (3 + 2)) + 5, objects
    fetched = Counter(
        request.path
        for request in s3.requests()[before:]
        if request.method == "GET" and f"{folder}/runs/" in request.path
    )
    workers = 2 * 2  # each of two tasks at a time may get one of two processes
    assert fetched
    assert max(fetched.values()) <= workers
    assert sum(fetched.values()) <= workers * batches * 2


def test_a_damaged_run_is_made_again_from_the_log(s3: Server, folder: str) -> None:
    run_to_abort(WORDS, runtime(s3.uri(folder)))
    location, refs = s3.location(folder), [r for refs in latest(s3, folder).runs for r in refs]
    name = max(refs, key=lambda ref: ref.last).name
    data = bytearray(location.read(name).to_pybytes())
    data[len(data) // 2] ^= 0xFF
    location.write(name, bytes(data))
    told: list[str] = []
    # Unlike marked sources, items begin anew when the run does.
    words = tw.items(WORDS * 2)
    result = counting(words).run(on=runtime(s3.uri(folder)), listen=noting(told))
    assert result.table("counts") == Counter(WORDS * 2)
    assert any(name in text and "going back to version" in text for text in told)
    assert not any(SECRET in text or "hush" in text for text in told)


def noting(told: list[str]) -> Callable[[Event], None]:
    def listen(event: Event) -> None:
        if isinstance(event, Noticed):
            told.append(event.text)

    return listen


def test_people_can_look_at_it(s3: Server, folder: str, tmp_path: Path) -> None:
    counting(WORDS).run(on=runtime(s3.uri(folder)))
    state, file = s3.uri(folder), tmp_path / "counts.jsonl"

    def thalweg(*words: str) -> str:
        result = CliRunner().invoke(app, ["state", *words], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert "hush" not in result.output
        return result.output

    assert "counts" in thalweg("ls", state)
    assert json.loads(thalweg("get", state, "counts", "w7")) == Counter(WORDS)["w7"]
    thalweg("export", state, "counts", "-o", str(file))
    _, *rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert {row["key"]: row["value"] for row in rows} == Counter(WORDS)


def test_tables_are_written_there(s3: Server, folder: str) -> None:
    flow = tw.Flow("copying")
    words = flow.source("words", source(WORDS), fields={"word": str})
    words.sink("out", tw.to_table(s3.uri(f"{folder}/table")))
    flow.run(on=runtime(s3.uri(f"{folder}/state")))
    table = tw.read_table(s3.uri(f"{folder}/table"), verify=True).to_table()
    assert Counter(table["word"].to_pylist()) == Counter(WORDS)


def test_a_batch_takes_few_requests(s3: Server, folder: str) -> None:
    stop, seen = threading.Event(), []

    def listen(event: Event) -> None:
        if isinstance(event, Progress):
            seen.append(len(s3.requests()))
            if len(seen) == 6:
                stop.set()

    counting(WORDS).run(on=runtime(s3.uri(folder)), stop=stop, listen=listen)
    # The entry and two runs are written and read, a manifest is committed; more where Spark
    # chose another worker, which has no copies yet.
    assert min(after - before for before, after in itertools.pairwise(seen[1:])) <= 14
