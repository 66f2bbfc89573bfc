"""A pool of Spark's scheduler for each run, so that runs in one session share it fairly.

Spark looks at pools only with ``spark.scheduler.mode=FAIR``, which sessions of our own have.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

_PROPERTY = "spark.scheduler.pool"
_taken: set[str] = set()
_lock = threading.Lock()


@contextmanager
def own_pool(context: SparkContext, name: str) -> Iterator[str]:
    """Give the jobs of this thread a pool of their own, until the end of the block."""
    pool = _take(f"thalweg-{name}")
    before = context.getLocalProperty(_PROPERTY)
    use_pool(context, pool)
    try:
        yield pool
    finally:
        context.setLocalProperty(_PROPERTY, before)  # type: ignore[arg-type]  # None takes it away
        with _lock:
            _taken.discard(pool)


def use_pool(context: SparkContext, pool: str) -> None:
    """Put the jobs of this thread into a pool."""
    context.setLocalProperty(_PROPERTY, pool)


def _take(stem: str) -> str:
    """Choose a name; names are used again, because Spark keeps every pool it has heard of."""
    with _lock:
        names = (f"{stem}-{number}" for number in itertools.count(1))
        name = next(name for name in names if name not in _taken)
        _taken.add(name)
    return name
