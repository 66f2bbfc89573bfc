"""The one Spark session of a test run."""

from __future__ import annotations

import atexit
import functools
from typing import Any

from quickjava import make_archive
from thalweg.runtimes.spark.session import make_session


@functools.cache
def spark_session() -> Any:
    """Give the session; it begins with the first test that asks for it."""
    make_archive()
    session = make_session("local[2]", "tests", {"spark.driver.memory": "2g"})
    atexit.register(session.stop)
    # A first job opens the connections that stay for the whole session.
    session.sparkContext.parallelize([1], 1).map(str).collect()
    return session
