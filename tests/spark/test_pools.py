"""Each run has a pool of Spark's scheduler to itself, and leaves the session as it was."""

from __future__ import annotations

import threading
from typing import Any

import thalweg as tw
from sparksession import spark_session
from thalweg.events import Event, Progress
from thalweg.testing import ManualClock, source

POOL = "spark.scheduler.pool"


def run(seen: list[str | None], before: threading.Barrier | None = None) -> None:
    flow = tw.Flow("pooled")
    flow.source("words", source(["a", "b", "a"]), fields={"word": str}).tally("counts", key="word")
    context = spark_session().sparkContext

    def listen(event: Event) -> None:
        if isinstance(event, Progress):
            if before is not None and not seen:
                before.wait()
            seen.append(context.getLocalProperty(POOL))

    result = flow.run(on=tw.Spark(spark_session(), places=2, clock=ManualClock()), listen=listen)
    assert result.table("counts") == {"a": 2, "b": 1}


def test_a_run_gives_back_the_pool_that_was_there() -> None:
    context = spark_session().sparkContext
    context.setLocalProperty(POOL, "mine")
    seen: list[Any] = []
    try:
        run(seen)
        assert set(seen) == {"thalweg-pooled-1"}
        assert context.getLocalProperty(POOL) == "mine"
    finally:
        context.setLocalProperty(POOL, None)  # type: ignore[arg-type]
    run(seen)
    assert set(seen) == {"thalweg-pooled-1"}
    assert context.getLocalProperty(POOL) is None


def test_runs_at_the_same_time_have_different_pools() -> None:
    both = threading.Barrier(2)
    seen: tuple[list[Any], list[Any]] = ([], [])
    threads = [threading.Thread(target=run, args=(mine, both)) for mine in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {frozenset(mine) for mine in seen} == {
        frozenset({"thalweg-pooled-1"}),
        frozenset({"thalweg-pooled-2"}),
    }
