"""One Spark session for one measurement: two cores, quiet, and gone without a trace afterwards."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.errors import UsageError, explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds to wait for Spark to say that a query has ended.
_PATIENCE = 60.0
#: Cores, shuffle partitions and places: the same number for everyone.
PLACES = 2
#: Spark's setting for its state stores.
STORE = "spark.sql.streaming.stateStore.providerClass"
_STORES = "org.apache.spark.sql.execution.streaming.state"
ROCKSDB, HDFS = f"{_STORES}.RocksDBStateStoreProvider", f"{_STORES}.HDFSBackedStateStoreProvider"
#: Where queries without a checkpoint of their own put it.
CHECKPOINTS = "spark.sql.streaming.checkpointLocation"

_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.shuffle.partitions": str(PLACES),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    STORE: ROCKSDB,
}
#: The JVM logs while it starts, before a session could tell it not to. Without an appender Spark
#: takes this for no configuration and puts its own in place.
_SILENCE = """\
appender.none.type = Null
appender.none.name = none
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = off
"""
#: Seconds that a JVM gets to end once its session has stopped.
_PATIENCE = 60


@contextmanager
def bench_session(name: str, **conf: str) -> Iterator[SparkSession]:
    """Start a JVM and a session with ``conf`` added; at the end nothing of both is left.

    Queries find their checkpoint in a folder that goes with the session.
    """
    need("pyspark", "pip install 'thalweg[spark]'")
    from pyspark import SparkContext  # noqa: PLC0415 (an optional dependency)

    if SparkContext._active_spark_context is not None:
        hint = "stop it first: its JVM has settings of its own"
        raise UsageError(explain(f"bench {name!r}", expected="no Spark session", hint=hint))
    with tempfile.TemporaryDirectory(prefix="thalweg-") as folder:
        try:
            session = _started(name, Path(folder), conf)
            try:
                yield session
            finally:
                session.stop()
        finally:
            _end_jvm()


def need(module: str, hint: str) -> None:
    """Refuse to go on without a module that only some measurements use.

    >>> need("sys", hint="it is always there")
    """
    try:
        found = importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even its parent is there
        found = False
    if not found:
        raise UsageError(explain(f"module {module!r}", expected="it installed", hint=hint))


def _started(name: str, folder: Path, conf: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 (an optional dependency)

    logging = folder / "log4j2.properties"
    logging.write_text(_SILENCE, encoding="utf-8")
    settings = _SETTINGS | {
        CHECKPOINTS: str(folder / "checkpoints"),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging.as_uri()}",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder.master(f"local[{PLACES}]").appName(name)
    for key, value in (settings | conf).items():
        builder = builder.config(key, value)
    with _workers_run(sys.executable):
        return builder.getOrCreate()


@contextmanager
def _workers_run(python: str) -> Iterator[None]:
    """Have workers use this interpreter, as only the environment can say."""
    before = os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = python
    try:
        yield
    finally:
        del os.environ["PYSPARK_PYTHON"]
        if before is not None:
            os.environ["PYSPARK_PYTHON"] = before


def _end_jvm() -> None:
    """End the JVM and wait for it; PySpark itself keeps it until Python ends."""
    from pyspark import SparkContext  # noqa: PLC0415 (an optional dependency)

    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is None:
        return
    gateway.shutdown()
    process = gateway.proc
    if process is not None:
        process.stdin.close()
        process.wait(_PATIENCE)


@contextmanager
def watched(spark: SparkSession) -> Iterator[list[dict[str, Any]]]:
    """Give a list that takes the progress of every micro-batch of one query, until it ends.

    Spark tells of progress from a thread of its own, so the end of the block waits for the last.
    """
    from pyspark.sql.streaming.listener import StreamingQueryListener  # noqa: PLC0415 (optional)

    seen: list[dict[str, Any]] = []
    ended = threading.Event()

    class Listener(StreamingQueryListener):
        """Keeps what it hears."""

        def onQueryStarted(self, event: Any) -> None: ...

        def onQueryProgress(self, event: Any) -> None:
            seen.append(json.loads(event.progress.json))

        def onQueryIdle(self, event: Any) -> None: ...

        def onQueryTerminated(self, event: Any) -> None:
            ended.set()

    listener = Listener()
    spark.streams.addListener(listener)
    try:
        yield seen
        ended.wait(_PATIENCE)
    finally:
        spark.streams.removeListener(listener)
