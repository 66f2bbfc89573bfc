"""Topics that Spark's own connector reads: the same results, refusals and guarantees.

They need a session with the connector among its jars, as ``scripts/test-oldest-spark`` has.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka_flows import POISON, collected, reading, words
from test_kafka_runs import run_killed

import thalweg as tw
from quickjava import make_archive
from sparksession import JARS, calls_end, spark_session, take_calls
from thalweg.errors import RecordError, StateError
from thalweg.events import BatchDone, Progress, RecordRefused
from thalweg.runtimes.spark.pump import PumpSettings

JARS_OF_SPARK = os.environ.get(JARS, "")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        "spark-sql-kafka" not in JARS_OF_SPARK,
        reason=f"{JARS} names no connector for Kafka; scripts/test-oldest-spark does",
    ),
]


@pytest.fixture
def spark() -> Any:
    """Make runtimes whose topics the connector reads."""

    def make(**options: Any) -> tw.Spark:
        return tw.Spark(session=spark_session(), **{"kafka": "connector", "places": 2, **options})

    return make


@pytest.fixture(scope="module")
def _callbacks() -> None:
    """Begin the thread that takes Spark's calls before any test."""
    take_calls()


@pytest.fixture(autouse=True)
def _no_calls_are_left(_callbacks: None) -> Iterator[None]:
    with calls_end():
        yield


def durable(folder: Path) -> dict[str, str]:
    return {"state": f"{folder}/state", "checkpoint": f"{folder}/offsets"}


def rows_of(found: list[Any]) -> list[Any]:
    return sorted((tw.as_dict(t) for t in found), key=lambda row: row["n"])


# --- reading ---------------------------------------------------------------------------------


def test_tuples_are_those_of_the_client_with_all_that_is_known_of_messages(
    broker: Any, spark: Any
) -> None:
    topic = broker.topic(3)
    broker.send(topic, words(500), timestamp=1_700_000_000_123, headers={"trace": b"\x01"})
    broker.send(topic, [(None, {"n": 500, "word": "ü"})])
    extra = ["key", "topic", "partition", "offset", "timestamp", "headers"]
    source = reading(broker, topic, extra=extra)
    expected = rows_of(collected(source))
    assert [row["n"] for row in expected] == list(range(501))
    for runtime in (spark(), spark(kafka="driver")):
        assert rows_of(collected(source, runtime)) == expected


def test_each_partition_comes_in_its_order_batch_by_batch(broker: Any, spark: Any) -> None:
    topic = broker.topic(2)
    broker.send(topic, words(300))
    seen: list[tuple[int, int]] = []
    sizes: list[int] = []
    flow = tw.Flow("ordered")
    source = flow.source("in", reading(broker, topic, extra=["partition", "offset"]))
    source.sink("out", tw.call(lambda t: seen.append((t.partition, t.offset))))
    flow.run(
        on=spark(pump=PumpSettings(rows=100)),
        listen=lambda e: sizes.append(e.rows) if isinstance(e, BatchDone) else None,
    )
    for partition in (0, 1):
        offsets = [offset for found, offset in seen if found == partition]
        assert offsets == list(range(len(offsets)))
    assert sum(sizes) == 300
    assert max(sizes) <= 100, "a batch has no more rows than the pump would have given"


def test_windows_of_event_time_are_the_same(broker: Any, spark: Any) -> None:
    topic = broker.topic(2)
    for n in range(60):
        broker.send(topic, [(None, {"n": n, "word": f"w{n % 3}"})], timestamp=1000 * n + 1)

    def counts(on: Any) -> Any:
        found: list[Any] = []
        flow = tw.Flow("windows")
        source = reading(broker, topic, extra={"timestamp": "at"})
        stream = flow.source("in", source, time=tw.event_time("at", delay="1 hour"))
        windows = stream.key_by("word").window(tw.tumbling("10 s"))
        windows.aggregate(n=tw.agg.count()).sink("out", tw.collect(found))
        flow.run(on=on)
        return sorted(map(str, found))

    expected = counts(tw.Inline())
    assert len(expected) == 18
    assert counts(spark()) == expected


def test_reading_begins_where_it_is_told_or_where_the_group_was(broker: Any, spark: Any) -> None:
    topic, group = broker.topic(2), "connected"
    for partition in (0, 1):
        broker.send(topic, words(10, 10 * partition), partition=partition)
    told = reading(broker, topic, start={(topic, 0): 7}, group=group)
    assert sorted(t.n for t in collected(told, spark())) == list(range(7, 20))
    assert broker.group_offsets(group, topic) == {0: 10, 1: 10}
    broker.send(topic, words(5, 20))
    assert sorted(t.n for t in collected(told, spark())) == list(range(20, 25))


def test_messages_of_transactions_that_were_given_up_are_not_read(broker: Any, spark: Any) -> None:
    topic = broker.topic(1)
    producer = broker.client.Producer(
        {"bootstrap.servers": broker.address, "transactional.id": topic}
    )
    producer.init_transactions()
    for n, end in ((0, "commit"), (1, "abort"), (2, "commit")):
        producer.begin_transaction()
        producer.produce(topic, json.dumps({"n": n, "word": "a"}))
        getattr(producer, f"{end}_transaction")()
    assert [t.n for t in collected(reading(broker, broker.settled(topic)), spark())] == [0, 2]


# --- what cannot be read ---------------------------------------------------------------------


def test_bad_messages_are_counted_told_and_kept_as_with_the_client(
    broker: Any, spark: Any, tmp_path: Path
) -> None:
    topic = broker.topic(1)
    broker.send(topic, POISON)
    found = {}
    for way in ("driver", "connector"):
        letters, told = tmp_path / way, []
        flow = tw.Flow("poison")
        source = reading(broker, topic)
        stream = flow.source("in", source, on_error=tw.dead_letter(letters))
        stream.tally("counts", key="word")
        result = flow.run(
            on=spark(kafka=way),
            listen=lambda e, told=told: told.append(e) if isinstance(e, RecordRefused) else None,
        )
        found[way] = result.metrics.errors, told, letters.read_text(), result.table("counts")
    assert found["connector"] == found["driver"]
    assert found["connector"][0] == 3


def test_a_bad_message_ends_the_run_and_comes_again_in_the_next(
    broker: Any, spark: Any, tmp_path: Path
) -> None:
    topic = broker.topic(1)
    broker.send(topic, POISON)
    for _ in range(2):
        with pytest.raises(RecordError, match=f"{topic}/0, offset 1"):
            collected(reading(broker, topic), spark(**durable(tmp_path)))
    again = collected(reading(broker, topic), spark(**durable(tmp_path)), on_error="skip")
    assert [t.n for t in again] == [0, 4]


# --- going on --------------------------------------------------------------------------------


def test_a_stopped_run_goes_on_and_each_message_counts_once(
    broker: Any, spark: Any, tmp_path: Path
) -> None:
    topic, output = broker.topic(3), broker.topic(2)
    broker.send(topic, words(1000))
    stop = threading.Event()

    def run(stop: threading.Event, listen: Any = lambda _event: None, **options: Any) -> Any:
        flow = tw.Flow("going-on")
        stream = flow.source("in", reading(broker, topic, group="going-on", **options))
        tallied = stream.tally("counts", key="word")
        tallied.sink("out", tw.to_kafka(broker.address, output, key="word", transactional=True))
        on = spark(pump=PumpSettings(rows=300), **durable(tmp_path))
        return flow.run(on=on, stop=stop, listen=listen)

    stopping = lambda event: stop.set() if isinstance(event, Progress) else None  # noqa: E731 (short)
    first = run(stop, stopping, until=None)
    assert first.stopped
    assert 0 < sum(first.table("counts").values()) < 1000
    second = run(threading.Event())
    assert not second.stopped
    assert second.table("counts") == Counter(word for word, _ in words(1000))
    assert sum(broker.group_offsets("going-on", topic).values()) == 1000
    broker.send(topic, words(10, 1000))
    third = run(threading.Event(), start="latest")
    assert sum(third.table("counts").values()) == 1010
    sent = [json.loads(message.value())["n"] for message in broker.read(output)]
    assert sorted(sent) == list(range(1010))


def test_messages_that_are_gone_are_told_or_skipped(
    broker: Any, spark: Any, tmp_path: Path
) -> None:
    topic = broker.topic(1)
    broker.send(topic, words(50))
    assert len(collected(reading(broker, topic), spark(**durable(tmp_path)))) == 50
    broker.send(topic, words(50, 50))
    admin = broker.admin_module.AdminClient({"bootstrap.servers": broker.address})
    (deleted,) = admin.delete_records([broker.client.TopicPartition(topic, 0, 90)]).values()
    deleted.result()
    with pytest.raises(StateError, match=f"message 50 of partition {topic}/0"):
        collected(reading(broker, topic), spark(**durable(tmp_path)))
    skipped = collected(reading(broker, topic, lost="skip"), spark(**durable(tmp_path)))
    assert [t.n for t in skipped] == list(range(90, 100))


@pytest.mark.parametrize("ways", [("driver", "connector"), ("connector", "driver")])
def test_a_state_goes_on_the_way_it_was_begun(
    broker: Any, spark: Any, tmp_path: Path, ways: tuple[str, str]
) -> None:
    topic = broker.topic(1)
    broker.send(topic, words(10))
    collected(reading(broker, topic), spark(kafka=ways[0], **durable(tmp_path)))
    with pytest.raises(StateError, match=f"kafka='{ways[0]}'"):
        collected(reading(broker, topic), spark(kafka=ways[1], **durable(tmp_path)))


def test_a_killed_driver_goes_on_and_each_message_counts_once(broker: Any, tmp_path: Path) -> None:
    make_archive()
    # At some moment of the first batches; in a batch; with one that Spark does not know is done.
    armed = ("before manifest=kill@3", "after manifest=kill@3")
    one = {"jars": JARS_OF_SPARK, "kills": 1, "seed": 2}
    job = run_killed(broker, tmp_path, *armed, rows=600, spark=True, **one)
    assert int(Path(job.folder, "kills").read_text()) == 1 + len(armed)


# --- what is wrong from the beginning --------------------------------------------------------


def test_a_topic_that_is_not_there_is_told(broker: Any, spark: Any) -> None:
    with pytest.raises(RecordError, match="topic 'nothing'"):
        collected(reading(broker, "nothing"), spark())
