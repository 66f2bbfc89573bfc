"""Spark's connector for Kafka where it is not there, and what it says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, PropertyMock

import pytest
from kafka_flows import FIELDS

import thalweg as tw
from sparksession import JARS, spark_session
from thalweg.errors import UsageError
from thalweg.runtimes.spark.kafka_frames import Connected, lost, position_of


@pytest.mark.spark
@pytest.mark.skipif(JARS in os.environ, reason="the session has jars of its own")
def test_without_the_connector_it_is_told_what_to_add() -> None:
    flow = tw.Flow("missing")
    flow.source("in", tw.kafka("127.0.0.1:1", "any", fields=FIELDS)).tally("counts", key="word")
    package = f"--packages org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_session().version}"
    with pytest.raises(UsageError, match=package):
        flow.run(on=tw.Spark(session=spark_session(), kafka="connector"))


def test_another_word_is_refused() -> None:
    with pytest.raises(UsageError, match="'driver', 'connector'"):
        tw.Spark(kafka="spark")  # type: ignore[arg-type] # what is tested


@pytest.mark.parametrize(
    ("said", "is_lost"),
    [
        ("[KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may have been lost", True),
        ("batch 1: 4 failed attempts, the last one: Some data may have been lost because", True),
        ("batch 1: 4 failed attempts, the last one: no room on the disk", False),
    ],
)
def test_what_spark_says_of_messages_that_are_gone_is_known(said: str, is_lost: bool) -> None:
    found = lost(RuntimeError(said))
    assert (found is not None) == is_lost
    assert found is None or "lost='skip'" in str(found)


def test_the_consumer_is_closed_although_spark_does_not_say_how_far_it_came() -> None:
    source: Any = tw.kafka("127.0.0.1:1", "any", fields=FIELDS, group="readers")
    topics, reading, query = Connected(source, 10), MagicMock(), MagicMock()
    topics._reading = reading
    type(query).lastProgress = PropertyMock(side_effect=RuntimeError("Spark is gone"))
    with pytest.raises(RuntimeError, match="Spark is gone"):
        topics.close(query)
    reading.close.assert_called_once_with()


@pytest.mark.spark
def test_offsets_are_read_from_a_folder_with_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "runs [1] {a,b}"
    (folder / "offsets").mkdir(parents=True)
    lines = ["v1", "{}", json.dumps({"clicks": {"0": 7, "1": 9}})]
    (folder / "offsets" / "3").write_text("\n".join(lines))
    assert position_of(spark_session(), str(folder), 3) == {"clicks/0": 7, "clicks/1": 9}
