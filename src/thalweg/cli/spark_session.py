"""Getting Spark ready for ``thalweg run``: what can be known before it is started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from thalweg.runtimes.spark.reaching import check_installed, check_master
from thalweg.runtimes.spark.runtime import Spark
from thalweg.runtimes.spark.session import session_for, settings_for, submitted
from thalweg.statelog.location import Location


@contextmanager
def started(spark: Spark, name: str, say: Callable[[str], None]) -> Iterator[Spark]:
    """Give a Spark runtime whose session has been started; it ends with the run."""
    if not submitted():
        check_installed()
        settings_for(spark.master, spark.config)
        check_master(spark.master)
    if spark.state:
        Location.of(spark.state).probe()
    if not submitted():
        say(f"starting Spark at {spark.master} (this takes a few seconds)")
    with session_for(None, spark.master, name, spark.config) as session:
        yield replace(spark, session=session)
