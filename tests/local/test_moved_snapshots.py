"""Snapshots of state that changes its place: between tasks, into processes, and when one dies."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_checkpoints import Baskets, baskets, counted, local
from test_isolation import children

import thalweg as tw
from conformance import cases_keyed
from conformance.harness import Case
from conformance.harness import local as adapter
from conformance.test_conformance import slug
from thalweg.events import Event, Noticed
from thalweg.runtimes.local import isolation, resettling
from thalweg.runtimes.local.isolating import Verdict

ROWS = [(n, f"w{n * 7919 % 23}") for n in range(600)]


@pytest.mark.parametrize("case", [c for c in cases_keyed.CASES if not c.needs], ids=slug)
def test_tables_are_the_same_after_degrees_have_changed(case: Case, tmp_path: Path) -> None:
    settings = {"workers": 2, "snapshot_every": 0, "block_rows": 3, "checkpoint": tmp_path}
    first = adapter(restless=7, **settings)(case.build(), case.inputs, case.settings)
    for expectation in case.expect:
        expectation.check(first)
    second = adapter(**settings)(case.build(), case.inputs, case.settings)
    assert second.tables == first.tables


def run_twice(folder: Path, rows: Callable[[], Iterator[Any]], stop: threading.Event) -> Any:
    """Run until stopped, and to the end; gives the table."""
    told: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Noticed):
            told.append(event.text)

    runtime = local(folder, block_rows=1, most_block_rows=1, snapshot_every=0)
    topology = counted(Baskets(), lambda _t: None, tw.items(rows), isolation="process", degree=1)
    topology.run(on=runtime, stop=stop, listen=listen)
    assert any("restarted" in text for text in told)
    again = counted(Baskets(), lambda _t: None, tw.items(ROWS), degree=2)
    return again.run(on=runtime).table("baskets")


@pytest.mark.parametrize("bytes_", [0, 64 << 20], ids=["snapshots of the process", "its blocks"])
def test_a_process_that_dies_between_two_snapshots_loses_no_change(
    bytes_: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "_LOG_BYTES", bytes_)
    stop = threading.Event()

    def rows() -> Iterator[Any]:
        for n, row in enumerate(ROWS):
            if n == 200:
                os.kill(children()[0], signal.SIGKILL)
            if n == 260:
                stop.set()
            yield row

    assert run_twice(tmp_path, rows, stop) == baskets(ROWS)


def test_state_that_moves_into_processes_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resettling, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(resettling, "judge", lambda look: Verdict(True, "it is a test"))
    stop, moved, given = threading.Event(), threading.Event(), list[Any]()

    def listen(event: Event) -> None:
        if isinstance(event, Noticed) and "goes on in" in event.text:
            moved.set()

    def rows() -> Iterator[Any]:
        n = 0
        while not moved.is_set():
            n += 1
            yield n, f"w{n * 7919 % 23}"
        for more in range(n + 1, n + 100):
            yield more, f"w{more * 7919 % 23}"
        stop.set()
        yield n + 100, "last"

    def noted() -> Iterator[Any]:
        for row in rows():
            given.append(row)
            yield row

    runtime = local(tmp_path, block_rows=1, most_block_rows=1, snapshot_every=0.05)
    topology = counted(Baskets(), lambda _t: None, tw.items(noted))
    topology.run(on=runtime, stop=stop, listen=listen)
    monkeypatch.undo()
    result = counted(Baskets(), lambda _t: None, tw.items(list(given))).run(on=runtime)
    assert result.table("baskets") == baskets(given)
