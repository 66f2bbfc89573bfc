"""Where a topology runs when nobody says where: here, on all cores, without Java or Spark."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

import thalweg as tw
from thalweg.cli.running import Display, run_topology
from thalweg.cli.showing import Peaks, summary_table
from thalweg.events import Event, Progress, RunFinished, RunStarted
from thalweg.metrics import ComponentMetrics, Snapshot


def flow() -> tw.Flow:
    made = tw.Flow("words")
    words = made.source("words", tw.items(["to", "be", "to"]), fields={"word": str})
    words.filter(lambda word: word != "").tally("counts", key="word")
    return made


WAYS: dict[str, Callable[..., Any]] = {
    "a flow": lambda **told: flow().run(**told),
    "a topology": lambda **told: flow().build().run(**told),
}


@pytest.mark.parametrize("run", WAYS.values(), ids=WAYS)
def test_it_runs_on_local(run: Callable[..., Any]) -> None:
    events: list[Event] = []
    assert run(listen=events.append).table("counts") == {"to": 2, "be": 1}
    assert events[0] == RunStarted("words", "local")


def test_the_command_runs_it_on_local(capsys: pytest.CaptureFixture[str]) -> None:
    run_topology(flow().build(), None, {})
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "words runs on local"
    assert lines[-2].startswith("3 tuples in, 3 out, ")


def test_inline_is_there_for_those_who_ask() -> None:
    events: list[Event] = []
    assert flow().run(on="inline", listen=events.append).table("counts")["to"] == 2
    assert events[0] == RunStarted("words", "inline")


WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = sys.modules["py4j"] = None  # as if they were not installed
import thalweg as tw
flow = tw.Flow("words")
flow.source("words", tw.items(["to", "be", "to"]), fields={"word": str}).tally("counts", key="word")
print(flow.run().table("counts"))
"""


def test_it_needs_neither_spark_nor_java() -> None:
    done = subprocess.run(  # noqa: S603 (this very program)
        [sys.executable, "-c", WITHOUT_SPARK],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": ""},
    )
    assert (done.stdout, done.stderr) == ("{'to': 2, 'be': 1}\n", "")


# --- what people see of the local runtime ------------------------------------------------------


def test_a_snapshot_tells_queues_and_choices() -> None:
    seen: list[Event] = []
    made = tw.Flow("numbers")
    numbers = made.source("numbers", tw.items(range(5000)), fields={"n": int})
    numbers.map(lambda n: n, fields={"n": int}, name="same").sink("out", tw.call(lambda t: None))
    metrics = made.run(on=tw.Local(workers=2, block_rows=100), listen=seen.append).metrics
    for name in ("same", "out"):
        component = metrics.component(name)
        assert (component.waiting, component.reordering) == (0, 0)
        assert component.chosen > 0
    assert metrics.component("numbers").chosen is None
    inline = made.run(on="inline").metrics.component("same")
    assert (inline.waiting, inline.reordering, inline.chosen) == (None, None, None)


def snapshot(waiting: int, reordering: int, dropped: int = 0) -> Snapshot:
    source = ComponentMetrics("source", 1, 0, 9, 0, 0.5, (0,), dropped=dropped)
    bolt = ComponentMetrics(
        "bolt", 1, 9, 9, 0, 0.5, (9,), waiting=waiting, reordering=reordering, chosen=1234
    )
    return Snapshot(1.0, (source, bolt), 9, 9, 0, None)


def shown(*events: Event, verbose: bool) -> list[str]:
    file = io.StringIO()
    display = Display(Console(file=file, width=200), verbose)
    for event in events:
        display.listen(event)
    return [line.split() for line in file.getvalue().splitlines() if line.strip()]


def test_verbose_summaries_show_the_longest_queues_that_were_seen() -> None:
    looks = [Progress(snapshot(50, 1)), Progress(snapshot(7000, 0)), Progress(snapshot(3, 4))]
    lines = shown(*looks, RunFinished(snapshot(0, 0), False), verbose=True)
    assert lines[0][-5:] == ["chosen", "most", "waiting", "most", "reordering"]
    bolt = next(line for line in lines if line[0] == "bolt")
    assert bolt[-3:] == ["1,234", "7,000", "4"]


def test_other_summaries_do_not() -> None:
    lines = shown(RunFinished(snapshot(0, 0), False), verbose=False)
    assert lines[0] == ["component", "tasks", "received", "emitted", "errors", "busy"]


def test_what_was_dropped_has_a_column_only_where_there_is_something() -> None:
    names = [column.header for column in summary_table(snapshot(0, 0, dropped=5)).columns]
    assert "dropped" in names
    names = [column.header for column in summary_table(snapshot(0, 0), Peaks()).columns]
    assert "dropped" not in names
