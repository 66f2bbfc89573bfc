"""Getting Spark ready for ``thalweg run``: what can be known before, and a quiet start."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from thalweg.runtimes.spark.reaching import check_installed, check_master
from thalweg.runtimes.spark.runtime import Spark
from thalweg.runtimes.spark.session import session_for
from thalweg.statelog.location import Location

#: Java says so before it reads any setting; nobody needs to know.
_NOISE = b"WARNING: Using incubator modules"
_READER = "thalweg-stderr"


@contextmanager
def started(spark: Spark, name: str, say: Callable[[str], None]) -> Iterator[Spark]:
    """Give a Spark runtime whose session has been started; it ends with the run."""
    check_installed()
    check_master(spark.master)
    if spark.state:
        Location.of(spark.state).probe()
    say(f"starting Spark at {spark.master} (this takes a few seconds)")
    with contextlib.ExitStack() as stack:
        with without_noise() as hushed:
            making = session_for(None, spark.master, name, spark.config)
            session = stack.enter_context(making)
        stack.callback(hushed.set)  # workers that are sent home grumble
        yield replace(spark, session=session)


@contextmanager
def without_noise() -> Iterator[threading.Event]:
    """Keep noise from standard error of processes that are started in here; the rest passes.

    They write into a pipe, which is read for as long as one of them lives. Setting the event that
    is given keeps back everything.
    """
    hushed = threading.Event()
    kept = os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(
        target=_forward, args=(reading, kept, hushed), name=_READER, daemon=True
    ).start()
    try:
        yield hushed
    finally:
        os.dup2(kept, 2)


def _forward(reading: int, to: int, hushed: threading.Event) -> None:
    with open(reading, "rb") as lines, contextlib.suppress(OSError):
        for line in lines:
            if not (hushed.is_set() or line.startswith(_NOISE)):
                os.write(to, line)
    os.close(to)
