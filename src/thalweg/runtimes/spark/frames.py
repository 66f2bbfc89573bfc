"""DataFrames as sources: Structured Streaming drives them, each batch becomes one of ours."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from thalweg.connectors.frames import SparkSource
from thalweg.errors import ThalwegError, TopologyError, UsageError, explain, shorten
from thalweg.runtimes.spark.exchange import newest_number
from thalweg.runtimes.spark.inputs import BatchInput, from_frame
from thalweg.runtimes.spark.kafka_frames import Connected, lost, position_of
from thalweg.runtimes.spark.settings import AVAILABLE_NOW, SparkSettings
from thalweg.runtimes.spark.starting import parted
from thalweg.topology import Component, Topology, task_names


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
        tell: Callable[[str], None],
    ) -> None:
        self._components = [c for c in topology if isinstance(c.body, SparkSource)]
        self._settings = settings
        self._take = take
        #: The last batch of each source that the state has, where it has one.
        self._committed = committed
        self._tell = tell
        self._queries: list[Any] = []
        #: Topics that Spark reads, and the queries that do it.
        self._topics: list[tuple[Connected, Any]] = []
        self._error: BaseException | None = None
        self._stopping = threading.Event()

    def start(self, session: Any) -> None:
        """Run static DataFrames at once, and let streaming ones begin."""
        for component in self._components:
            assert isinstance(component.body, SparkSource)  # noqa: S101 (chosen above)
            if isinstance(component.body, Connected):
                self._follow(session, component, component.body)
                continue
            frame = component.body.frame(session)
            frame = _with_fields(frame, component)
            if frame.isStreaming:
                self._check_durable(component)
                self._check_together(session, component)
                self._queries.append(self._stream(frame, component))
            else:
                taken = from_frame(frame, component, 0, self._settings.clock.now())
                self._take(replace(taken, ended=taken.tasks))

    def _follow(self, session: Any, component: Component, topics: Connected) -> None:
        """Let Spark's connector read topics."""
        self._check_durable(component)
        self._check_together(session, component)
        done = self._committed.get(component.name)
        known = None if done is None else position_of(session, self._folder(component), done)
        self._topics.append((topics, None))
        topics.open(self._settings.clock.now, self._tell, known)
        query = self._stream(topics.frame(session).select(*topics.decoder.names), component)
        self._queries.append(query)
        self._topics[-1] = topics, query

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
                taken = from_frame(batch, component, number, self._settings.clock.now())
                self._take(taken)
            except BaseException as error:
                self._error = error
                raise

        writer = frame.writeStream.foreachBatch(run).queryName(component.name)
        if self._settings.checkpoint:
            writer = writer.option("checkpointLocation", self._folder(component))
        assert isinstance(component.body, SparkSource)  # noqa: S101 (all of them are)
        if self._settings.trigger == AVAILABLE_NOW or component.body.bounded:
            writer = writer.trigger(availableNow=True)
        elif self._settings.trigger:
            writer = writer.trigger(processingTime=self._settings.trigger)
        return writer.start()

    @property
    def streaming(self) -> bool:
        """Whether there are streaming DataFrames without an end of their own."""
        return len(self._queries) > sum(topics.bounded for topics, _ in self._topics)

    @property
    def ended(self) -> bool:
        """Whether no query runs any more."""
        return not any(query.isActive for query in self._queries)

    @property
    def over(self) -> frozenset[str]:
        """The tasks of streaming sources whose queries have ended."""
        done = {query.name for query in self._queries if not query.isActive}
        over = (component for component in self._components if component.name in done)
        return frozenset(name for component in over for name in task_names(component))

    def check(self) -> None:
        """Raise what a query has met."""
        for topics, query in self._topics:
            topics.keep(query)
        if self._stopping.is_set() and self._error is None:
            return
        if self._error is not None:
            raise lost(self._error) or self._error
        for query in self._queries:
            problem = None if query.isActive else query.exception()
            if problem is not None:
                text = explain(f"source {query.name!r}", got=str(problem).splitlines()[0])
                raise lost(problem) or UsageError(text) from problem

    def stop(self) -> None:
        """Let the queries finish the batch at hand and end."""
        self._stopping.set()
        for query in self._queries:
            query.stop()

    def close(self) -> list[Exception]:
        """Stop what still runs; give what was raised."""
        self._stopping.set()
        errors: list[Exception] = []
        ends = [query.stop for query in self._queries]
        ends += [partial(topics.close, query) for topics, query in self._topics]
        for end in ends:
            try:
                end()
            except Exception as error:
                errors.append(error)
        # Spark keeps the callback, which must not keep the whole run.
        self._take, self._tell, self._error = _closed, _unheard, None
        return errors


def _unheard(_text: str) -> None: ...


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
