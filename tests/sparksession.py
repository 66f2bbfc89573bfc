"""The one Spark session of a test run."""

from __future__ import annotations

import atexit
import functools
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from quickjava import make_archive
from quickworkers import worker_settings
from thalweg.runtimes.spark.session import make_session

#: Names jars for the session, such as those of the connector for Kafka.
JARS = "THALWEG_SPARK_JARS"


@functools.cache
def spark_session() -> Any:
    """Give the session; it begins with the first test that asks for it."""
    make_archive()
    settings = {"spark.driver.memory": "2g", **worker_settings()}
    if jars := os.environ.get(JARS):
        settings["spark.jars"] = jars
    session = make_session("local[2]", "tests", settings)
    atexit.register(session.stop)
    # A first job opens the connections that stay for the whole session.
    session.sparkContext.parallelize([1], 1).map(str).collect()
    return session


def take_calls() -> None:
    """Begin the thread that takes Spark's calls of streams; it stays."""
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415 (optional)

    ensure_callback_server_started(spark_session().sparkContext._gateway)


@contextmanager
def calls_end() -> Iterator[None]:
    """End the threads in which streams have called Python: Spark keeps those of ended streams."""
    from py4j.clientserver import ClientServerConnection  # noqa: PLC0415 (optional)

    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        connection = getattr(getattr(thread, "_target", None), "__self__", None)
        if isinstance(connection, ClientServerConnection):
            with suppress(OSError):  # it has just ended by itself
                connection.socket.shutdown(socket.SHUT_RDWR)
            thread.join()
