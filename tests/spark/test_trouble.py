"""What a run on Spark does with errors, idle streams, batches that stand still, poison."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.clock import SystemClock
from thalweg.events import Noticed
from thalweg.runtimes.spark.limits import Limits, Retries
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import PAUSE, ManualClock, source


def runtime(**options: Any) -> tw.Spark:
    return tw.Spark(spark_session(), places=2, **{"clock": ManualClock()} | options)


# --- errors ---------------------------------------------------------------------------------------


def test_what_a_bolt_raises_names_the_component_the_task_and_the_tuple() -> None:
    class Picky(tw.Bolt):
        outputs = ["n"]

        def process(self, t: Any) -> None:
            if t.n == 77:
                raise ValueError("not this one")
            self.emit(t.n)

    flow = tw.Flow("picky")
    numbers = flow.source("numbers", tw.items(range(100)), fields={"n": int})
    numbers.key_by("n").through("pick", Picky(), degree=2).sink("out", tw.call(print))
    with pytest.raises(tw.ComponentError, match="not this one") as caught:
        flow.run(on=runtime())
    error = caught.value
    assert (error.component, error.tuple_text) == ("pick", "n=77")
    assert error.task in (0, 1)


def test_what_a_spout_has_need_not_be_fit_to_travel() -> None:
    class Locked(tw.Spout):
        outputs = ["n"]
        decoder = threading.Lock()

        def next_tuple(self) -> None:
            with self.decoder:
                self.emit(7)
            self.finish()

    builder = tw.TopologyBuilder("locked")
    found: list[Any] = []
    builder.add_spout("numbers", Locked())
    builder.add_bolt("out", tw.collect(found)).global_("numbers")
    builder.build().run(on=runtime())
    assert [t.n for t in found] == [7]


def test_a_key_of_a_type_that_cannot_be_one_is_refused() -> None:
    flow = tw.Flow("keys")
    rows = flow.source("rows", tw.items([[1, 2], [3]]), fields=["pair"])
    rows.key_by("pair").running_count().sink("out", tw.call(print))
    with pytest.raises(tw.ThalwegError, match="pair"):
        flow.run(on=runtime())


# --- time -----------------------------------------------------------------------------------------


class Ticking(tw.Bolt):
    """Says at each tick how many tuples there have been."""

    kind = tw.Kind.GLOBAL
    outputs = ["seen"]

    def process(self, t: Any) -> None:
        self.state.put("seen", self.state.get("seen", 0) + 1)

    def process_tick(self) -> None:
        self.emit(self.state.get("seen", 0))


def test_ticks_fire_while_nothing_comes() -> None:
    seen: list[Any] = []
    flow = tw.Flow("idle")
    numbers = flow.source("numbers", source([1, 2, PAUSE("35 s"), 3]), fields={"n": int})
    numbers.through("tick", Ticking(), tick="10 s").sink("out", tw.collect(seen))
    flow.run(on=runtime())
    assert [t.seen for t in seen] == [2, 2, 2]


def test_ticks_fire_while_nothing_comes_on_a_real_clock() -> None:
    stop = threading.Event()
    seen: list[Any] = []

    def listen(_event: Any) -> None:
        if len(seen) >= 3:
            stop.set()

    flow = tw.Flow("idle")
    numbers = flow.source("numbers", source([1, 2, PAUSE("1 h")]), fields={"n": int})
    numbers.through("tick", Ticking(), tick="50 ms").sink("out", tw.collect(seen))
    result = flow.run(on=runtime(clock=SystemClock()), stop=stop, listen=listen)
    assert [t.seen for t in seen[:3]] == [2, 2, 2]
    assert result.stopped


def test_a_batch_that_stands_still_raises_an_alarm(tmp_path: Path) -> None:
    go, told = tmp_path / "go", []

    def wait(n: int) -> int:
        while not go.exists():
            pass
        return n

    def listen(event: Any) -> None:
        if isinstance(event, Noticed):
            told.append(event.text)
            if "tasks done" in event.text:  # before that Spark may still plan
                go.touch()

    flow = tw.Flow("stalled")
    flow.source("numbers", tw.items([1]), fields={"n": int}).map(wait).sink("out", tw.call(str))
    flow.run(on=runtime(limits=Limits(stall=0.2)), listen=listen)
    assert all("batch 1 has not moved for 0.2 s" in text for text in told)
    assert any("of" in text and "tasks done" in text for text in told)


# --- poison ---------------------------------------------------------------------------------------


def poisoned() -> tw.Flow:
    def check(n: int) -> int:
        if n == 25:
            raise ValueError("poison")
        return n

    flow = tw.Flow("poisoned")
    numbers = flow.source("numbers", tw.items(range(60)), fields={"n": int})
    numbers.map(check, fields={"n": int}).tally("counts", key="n")
    return flow


def test_the_input_of_a_batch_that_cannot_be_processed_is_set_aside(tmp_path: Path) -> None:
    told: list[str] = []

    def listen(event: Any) -> None:
        told.extend([event.text] if isinstance(event, Noticed) else [])

    on = runtime(
        state=str(tmp_path),
        pump=PumpSettings(rows=10, block_rows=10),
        retries=Retries(then="set-aside"),
    )
    table = poisoned().run(on=on, listen=listen).table("counts")
    assert table == {n: 1 for n in range(60) if not 20 <= n < 30}
    (folder,) = (tmp_path / "set-aside").iterdir()
    assert list(folder.iterdir())
    assert any("poison" in text and "set aside" in text for text in told)


def test_without_that_policy_the_run_ends_with_what_was_committed(tmp_path: Path) -> None:
    on = runtime(state=str(tmp_path), pump=PumpSettings(rows=10, block_rows=10))
    with pytest.raises(tw.ComponentError, match="poison"):
        poisoned().run(on=on)
    assert len(list((tmp_path / "manifests").iterdir())) == 2
