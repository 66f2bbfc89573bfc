"""An alarm for batches that stand still."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark import SparkContext


@contextmanager
def watched(
    context: SparkContext, what: str, after: float, notice: Callable[[str], None]
) -> Iterator[None]:
    """Say what a job waits for when no task of it has ended for ``after`` seconds."""
    done = threading.Event()
    watcher = threading.Thread(
        target=_watch, args=(context, what, after, notice, done), name="thalweg-watch", daemon=True
    )
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(
    context: SparkContext,
    what: str,
    after: float,
    notice: Callable[[str], None],
    done: threading.Event,
) -> None:
    before: str | None = None
    while not done.wait(after):
        now = _state(context)
        if now == before:
            notice(f"{what} has not moved for {after:g} s: {now}")
        before = now


def _state(context: SparkContext) -> str:
    """Say what Spark works on."""
    tracker = context.statusTracker()
    stages = [info for id_ in tracker.getActiveStageIds() if (info := tracker.getStageInfo(id_))]
    if not stages:
        return "no stage is active; Spark plans, or waits for executors"
    return "; ".join(
        f"stage {info.stageId} has {info.numCompletedTasks} of {info.numTasks} tasks done, "
        f"{info.numActiveTasks} running, {info.numFailedTasks} failed"
        + ("" if info.numActiveTasks else " (it waits for free cores or executors)")
        for info in stages
    )
