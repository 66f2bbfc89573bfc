"""Two runs at once with the same state: one of them goes on, the other says why it cannot."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.events import Event, Progress
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import ManualClock, source

WORDS = [f"w{n * 7919 % 31}" for n in range(160)]
CLEAR = "another run uses|does another run use"


def counting(tap: Callable[[str], None] = lambda word: None) -> tw.Flow:
    flow = tw.Flow("counting")
    words = flow.source("words", source(WORDS), fields={"word": str})
    words.tap(tap).tally("counts", key="word")
    return flow


def run(state: Path, flow: tw.Flow, **options: Any) -> dict[str, int]:
    pump = PumpSettings(rows=20, block_rows=20)
    on = tw.Spark(spark_session(), places=2, state=str(state), clock=ManualClock(), pump=pump)
    return dict(flow.run(on=on, **options).table("counts"))


class At:
    """Does something once, when so many batches have been committed."""

    def __init__(self, batches: int, do: Callable[[], None]) -> None:
        self.left, self.do = batches, do

    def __call__(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.left -= 1
            if self.left == 0:
                self.do()


def test_a_run_that_was_overtaken_says_so_and_leaves_the_state_alone(tmp_path: Path) -> None:
    found: list[dict[str, int]] = []
    overtake = At(2, lambda: found.append(run(tmp_path, counting())))
    with pytest.raises(tw.StateError, match=CLEAR):
        run(tmp_path, counting(), listen=overtake)
    assert found == [dict(Counter(WORDS))]
    assert run(tmp_path, counting()) == Counter(WORDS)


class Late:
    """A second run in a thread of its own, which waits within its first batch."""

    def __init__(self, folder: Path) -> None:
        self.state, self.within, self.go = folder / "state", folder / "within", folder / "go"
        self.problems: list[BaseException] = []
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        within, go = self.within, self.go

        def wait(_word: str) -> None:
            within.touch()
            while not go.exists():
                pass

        try:
            run(self.state, counting(wait))
        except tw.ThalwegError as error:
            self.problems.append(error)

    def begin(self) -> None:
        """Begin, and return when it has taken its first batch."""
        self.thread.start()
        while self.thread.is_alive() and not self.within.exists():
            pass

    def end(self) -> None:
        """Let it go on until it has ended."""
        self.go.touch()
        self.thread.join()

    def check(self) -> None:
        """Expect that it was told, and that the state is as it should be."""
        (problem,) = self.problems
        assert isinstance(problem, tw.StateError)
        assert "another run" in str(problem)
        assert run(self.state, counting()) == Counter(WORDS)


def test_a_run_that_comes_late_is_refused_and_leaves_the_first_alone(tmp_path: Path) -> None:
    """The second run begins while the first is between two batches, and is slower."""
    late = Late(tmp_path)
    try:
        table = run(late.state, counting(), listen=At(2, late.begin))
    finally:
        late.end()
    assert table == Counter(WORDS)
    late.check()


def test_a_run_that_begins_before_the_commit_of_another_takes_nothing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run has written the objects of a batch, and not yet the manifest."""
    late, points = Late(tmp_path), tmp_path / "points"
    points.mkdir()
    (points / "armed").write_text("before manifest=wait@3")
    monkeypatch.setenv("THALWEG_FAILPOINTS", str(points))
    tables: list[dict[str, int]] = []
    told: list[Any] = []
    first = threading.Thread(
        target=lambda: tables.append(run(late.state, counting(), listen=told.append))
    )
    first.start()
    try:
        while first.is_alive() and not list(points.glob("*: wait")):
            pass
        late.begin()
    finally:
        (points / "go").touch()
        first.join()
        late.end()
    assert tables == [dict(Counter(WORDS))]
    assert not [event for event in told if "going back" in getattr(event, "text", "")]
    late.check()
