"""What has piled up while nothing ran is worked off in batches of bounded size."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_streams import _callbacks, _no_calls_are_left  # noqa: F401 (fixtures for every stream)

import thalweg as tw
from sparksession import spark_session
from thalweg.events import Event, Progress
from thalweg.runtimes.spark.pump import PumpSettings

#: Files before the outage and in the backlog, and the rows of each.
FIRST, MORE, ROWS = 1, 4, 200
#: A spout is asked until there are so many rows, and for so many at once.
ENOUGH, AT_ONCE = 100, 25


class Batches:
    """Notes the rows of each batch; stops the run after some of them."""

    def __init__(self, most: int | None = None) -> None:
        self.sizes: list[int] = []
        self.stop, self._most = threading.Event(), most

    def listen(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.sizes.append(event.snapshot.tuples_in - sum(self.sizes))
            if len(self.sizes) == self._most:
                self.stop.set()


def word(n: int) -> str:
    return f"w{n * 7919 % 13}"


def write(folder: Path, numbers: range) -> None:
    folder.mkdir(exist_ok=True)
    for number in numbers:
        rows = range(number * ROWS, (number + 1) * ROWS)
        lines = [json.dumps({"word": word(n), "n": n}) for n in rows]
        (folder / f"{number:02}.jsonl").write_text("\n".join(lines) + "\n")


def run(source: Any, where: Path, trigger: str | None, batches: Batches) -> tw.Result:
    flow = tw.Flow("backlog")
    rows = flow.source("rows", source, fields={"word": str, "n": int})
    rows.tally("counts", key="word")
    rows.key_by("word").sum("sums", "n")
    on = tw.Spark(
        spark_session(),
        places=2,
        state=str(where / "state"),
        checkpoint=str(where / "checkpoint"),
        trigger=trigger,
        pump=PumpSettings(rows=ENOUGH, block_rows=AT_ONCE),
    )
    return flow.run(on=on, listen=batches.listen, stop=batches.stop)


def after_an_outage(
    source: Callable[[Path], Any], where: Path, trigger: str | None = None
) -> list[int]:
    """Run, stop, let the backlog pile up, and run again; gives the sizes of those batches."""
    write(where / "input", range(FIRST))
    first, second = Batches(most=1), Batches()
    assert run(source(where / "input"), where, trigger, first).stopped
    write(where / "input", range(FIRST, FIRST + MORE))
    result = run(source(where / "input"), where, trigger, second)
    everything = range((FIRST + MORE) * ROWS)
    sums: Counter[str] = Counter()
    for n in everything:
        sums[word(n)] += n
    assert result.table("counts") == dict(Counter(map(word, everything)))
    assert result.table("sums") == dict(sums)
    assert sum(first.sizes) + sum(second.sizes) == len(everything)
    return [size for size in second.sizes if size]


def files(folder: Path) -> Any:
    return tw.files(str(folder))


def stream(**options: int) -> Callable[[Path], Any]:
    def make(folder: Path) -> Any:
        schema, path = "word string, n bigint", str(folder)
        return tw.spark_source(
            lambda spark: spark.readStream.schema(schema).options(**options).json(path)
        )

    return make


@pytest.mark.parametrize("trigger", [None, "available-now"])
def test_spouts_are_asked_for_as_much_as_the_pump_takes(
    tmp_path: Path, trigger: str | None
) -> None:
    sizes = after_an_outage(files, tmp_path, trigger)
    assert max(sizes) < ENOUGH + AT_ONCE
    assert len(sizes) > MORE * ROWS // (ENOUGH + AT_ONCE)


def test_streams_give_as_many_files_as_their_option_says(tmp_path: Path) -> None:
    bounded = stream(maxFilesPerTrigger=2)
    assert after_an_outage(bounded, tmp_path, "available-now") == [2 * ROWS, 2 * ROWS]


def test_a_stream_without_a_bound_gives_its_backlog_in_one_batch(tmp_path: Path) -> None:
    assert after_an_outage(stream(), tmp_path, "available-now") == [MORE * ROWS]
