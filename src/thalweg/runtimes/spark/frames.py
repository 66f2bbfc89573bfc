"""DataFrames as sources: Structured Streaming drives them, each batch becomes one of ours."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from thalweg.connectors.frames import SparkSource
from thalweg.errors import ThalwegError, TopologyError, UsageError, explain, shorten
from thalweg.runtimes.spark.exchange import newest_number
from thalweg.runtimes.spark.inputs import BatchInput, from_frame
from thalweg.runtimes.spark.settings import AVAILABLE_NOW, SparkSettings
from thalweg.runtimes.spark.starting import parted
from thalweg.topology import Component, Topology


class StoppedEarly(ThalwegError):
    """Tells Spark that a batch was not processed; it comes again with the next run."""


class Frames:
    """The DataFrame sources of a topology while it runs."""

    def __init__(
        self,
        topology: Topology,
        settings: SparkSettings,
        take: Callable[[BatchInput], None],
        committed: Mapping[str, int],
    ) -> None:
        self._components = [c for c in topology if isinstance(c.body, SparkSource)]
        self._settings = settings
        self._take = take
        #: The last batch of each source that the state has, where it has one.
        self._committed = committed
        self._queries: list[Any] = []
        self._error: BaseException | None = None
        self._stopping = threading.Event()

    def start(self, session: Any) -> None:
        """Run static DataFrames at once, and let streaming ones begin."""
        for component in self._components:
            assert isinstance(component.body, SparkSource)  # noqa: S101 (chosen above)
            frame = component.body.frame(session)
            frame = _with_fields(frame, component)
            if frame.isStreaming:
                self._check_durable(component)
                self._check_together(session, component)
                self._queries.append(self._stream(frame, component))
            else:
                self._take(from_frame(frame, component.name, 0, self._settings.clock.now()))

    def _check_durable(self, component: Component) -> None:
        """Refuse to keep offsets without state, or state without offsets: they would part."""
        if (self._settings.checkpoint is None) != (self._settings.state is None):
            raise UsageError(
                explain(
                    f"streaming source {component.name!r}",
                    expected="both checkpoint and state, or neither",
                    got="only checkpoint" if self._settings.checkpoint else "only state",
                )
            )

    def _check_together(self, session: Any, component: Component) -> None:
        """Refuse offsets that do not go on where the state ends, before Spark reads on."""
        if self._settings.checkpoint is None:
            return
        folder = self._folder(component)
        begun, done = (
            newest_number(session, f"{folder}/{kind}") for kind in ("offsets", "commits")
        )
        committed = self._committed.get(component.name, -1)
        # A batch that was begun and is not done comes again; the state may have it by now.
        number = max(begun, done + 1)
        if number != committed + 1 and not (begun == committed > done):
            raise parted(component.name, number, committed)

    def _folder(self, component: Component) -> str:
        return f"{self._settings.checkpoint}/{component.name}"

    def _stream(self, frame: Any, component: Component) -> Any:
        def run(batch: Any, number: int) -> None:
            if self._stopping.is_set():
                # Spark would count the batch as done if this returned.
                raise StoppedEarly(component.name)
            try:
                taken = from_frame(batch, component.name, number, self._settings.clock.now())
                self._take(taken)
            except BaseException as error:
                self._error = error
                raise

        writer = frame.writeStream.foreachBatch(run).queryName(component.name)
        if self._settings.checkpoint:
            writer = writer.option("checkpointLocation", self._folder(component))
        if self._settings.trigger == AVAILABLE_NOW:
            writer = writer.trigger(availableNow=True)
        elif self._settings.trigger:
            writer = writer.trigger(processingTime=self._settings.trigger)
        return writer.start()

    @property
    def streaming(self) -> bool:
        """Whether there are streaming DataFrames."""
        return bool(self._queries)

    @property
    def ended(self) -> bool:
        """Whether no query runs any more."""
        return not any(query.isActive for query in self._queries)

    def check(self) -> None:
        """Raise what a query has met."""
        if self._stopping.is_set() and self._error is None:
            return
        if self._error is not None:
            raise self._error
        for query in self._queries:
            problem = None if query.isActive else query.exception()
            if problem is not None:
                text = explain(f"source {query.name!r}", got=str(problem).splitlines()[0])
                raise UsageError(text) from problem

    def stop(self) -> None:
        """Let the queries finish the batch at hand and end."""
        self._stopping.set()
        for query in self._queries:
            query.stop()

    def close(self) -> list[Exception]:
        """Stop what still runs; give what was raised."""
        self._stopping.set()
        errors: list[Exception] = []
        for query in self._queries:
            try:
                query.stop()
            except Exception as error:
                errors.append(error)
        self._take = _closed  # Spark keeps the callback, which must not keep the whole run
        return errors


def _closed(_taken: BatchInput) -> None:
    text = "the run has ended"
    raise StoppedEarly(text)


def _with_fields(frame: Any, component: Component) -> Any:
    """Take the columns that the source's fields name."""
    if not isinstance(frame, DataFrame):
        subject = f"function of source {component.name!r}"
        raise TopologyError(explain(subject, "", "a DataFrame", shorten(frame, 80)))
    (fields,) = component.outputs.values()
    missing = [name for name in fields.names if name not in frame.columns]
    if missing:
        raise TopologyError(
            explain(
                f"DataFrame of source {component.name!r}",
                expected=f"columns {list(fields.names)}",
                got=str(frame.columns),
            )
        )
    return frame.select(*fields.names)
