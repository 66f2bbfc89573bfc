"""Metrics for OpenTelemetry, read from its own reader in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import thalweg as tw
from thalweg.errors import UsageError
from thalweg.exporting.otel import MOST_NAMES, OpenTelemetryConsumer
from thalweg.registered import DataPoint, TaskInfo

sdk = pytest.importorskip("opentelemetry.sdk.metrics", reason="thalweg[otel] is not installed")


@pytest.fixture
def reader() -> Iterator[Any]:
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: PLC0415 (an extra)

    yield InMemoryMetricReader()


@pytest.fixture
def consumer(reader: Any) -> Iterator[OpenTelemetryConsumer]:
    provider = sdk.MeterProvider([reader])
    yield OpenTelemetryConsumer(provider)
    provider.shutdown()


def values(reader: Any) -> dict[tuple[str, tuple[Any, ...]], Any]:
    found = {}
    for resource in reader.get_metrics_data().resource_metrics:
        for scope in resource.scope_metrics:
            assert scope.scope.name == "thalweg"
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    about = {k: v for k, v in point.attributes.items() if k != "topology"}
                    found[metric.name, tuple(about.values())] = point.value
    return found


INFO = TaskInfo("words", "split", 1, time=60.0, interval=60.0)


def test_counts_add_up_and_all_else_is_the_last_value(
    consumer: OpenTelemetryConsumer, reader: Any
) -> None:
    for count, latency in ((3, 1.5), (4, 2.5)):
        points = [DataPoint("__execute-count", count), DataPoint("__execute-latency", latency)]
        consumer.handle(INFO, [*points, DataPoint("__receive", {"population": count})])
    found = values(reader)
    assert found["thalweg.executed", ("split", 1)] == 7
    assert found["thalweg.execute.latency", ("split", 1)] == 2.5
    assert found["thalweg.waiting", ("split", 1)] == 4


def test_metrics_of_components_come_under_their_names(
    consumer: OpenTelemetryConsumer, reader: Any
) -> None:
    points = [DataPoint("long words", 3), DataPoint("by user", {"ann": 1, "bob": 2})]
    consumer.handle(INFO, [*points, DataPoint("text", "no number"), DataPoint("mean", None)])
    assert values(reader) == {
        ("thalweg.user.long_words", ("split", 1)): 3,
        ("thalweg.user.by_user", ("split", 1, "ann")): 1,
        ("thalweg.user.by_user", ("split", 1, "bob")): 2,
    }


def test_the_number_of_names_is_bounded(consumer: OpenTelemetryConsumer, reader: Any) -> None:
    many = {f"user {i}": 1 for i in range(3 * MOST_NAMES)}
    consumer.handle(INFO, [DataPoint("by user", many)])
    found = values(reader)
    assert len(found) == MOST_NAMES + 1
    assert found["thalweg.user.by_user", ("split", 1, "other")] == 2 * MOST_NAMES


def test_a_run_tells_it(consumer: OpenTelemetryConsumer, reader: Any) -> None:
    flow = tw.Flow("words")
    source = flow.source("words", tw.items(["to", "be", "to"]), fields={"word": str})
    source.tally("counts", key="word")
    flow.run(on="inline", consumers=[consumer])
    found = values(reader)
    assert found["thalweg.emitted", ("words", 0)] == 3
    assert found["thalweg.executed", ("counts", 0)] == 3


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Set the provider of the process, which OpenTelemetry allows only once."""
    metrics = pytest.importorskip("opentelemetry.metrics")
    return lambda provider: monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)


def test_where_no_provider_was_set_it_says_how_to_set_one(process: Callable[[Any], None]) -> None:
    process(pytest.importorskip("opentelemetry.metrics").NoOpMeterProvider())
    with pytest.raises(UsageError, match=r"which sends nothing .*set_meter_provider\(") as refused:
        OpenTelemetryConsumer()
    assert "OpenTelemetryConsumer(provider)" in str(refused.value)


def test_the_provider_of_the_process_sends_what_it_has_at_the_end(
    process: Callable[[Any], None],
) -> None:
    sent: list[int] = []

    class Flushed(sdk.MeterProvider):  # type: ignore[misc] # an extra, of which no type is known
        def force_flush(self, timeout_millis: float = 10_000) -> bool:
            sent.append(1)
            return bool(super().force_flush(timeout_millis))

    provider = Flushed()
    process(provider)
    OpenTelemetryConsumer().cleanup()
    provider.shutdown()
    assert sent == [1]
