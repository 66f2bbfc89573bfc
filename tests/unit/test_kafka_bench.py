"""The measurement of ways to read a topic on Spark: what is made of its figures."""

from __future__ import annotations

import pytest

from kafkaserver import NoKafka, connector
from thalweg.bench import kafka
from thalweg.errors import UsageError


def test_the_summary_compares_best_with_best_and_median_with_median() -> None:
    speeds = {"driver": 100.0, "connector": 50.0, "spark_count": 25.0, "spark_read": 200.0}
    results = {
        name: {"best": best, "median": best / 2 if name == "connector" else best, "cpu_us": 1.0}
        for name, best in speeds.items()
    }
    found = kafka.summary(results)
    assert (found["connector_vs_driver"], found["connector_vs_driver_median"]) == (0.5, 0.25)
    assert (found["connector_vs_spark_count"], found["connector_vs_spark_read"]) == (2.0, 0.25)
    assert found["driver_per_s"] == 100.0


def test_without_a_connector_it_is_told_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(spark: str) -> None:
        raise NoKafka(spark)

    monkeypatch.setattr(connector, "connector_jars", missing)
    with pytest.raises(UsageError, match=r"\.venv-oldest"):
        kafka.run(True, lambda _text: None, kafka.Options())
