"""Topics as sources, with a real server: what is read, refused and kept."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kafka_flows import FIELDS, POISON, collected, reading, words

import thalweg as tw
from thalweg.errors import RecordError, UsageError
from thalweg.events import Noticed, RunStarted

RUNTIMES = {
    "inline": tw.Inline,
    "local": lambda: tw.Local(workers=2),
}


# --- reading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("degree", [1, 2, 5])
def test_all_partitions_are_read_whatever_the_number_of_tasks(
    broker: Any, runtime: str, degree: int
) -> None:
    topic = broker.topic(partitions=3)
    broker.send(topic, words(1000))
    found = collected(reading(broker, topic), RUNTIMES[runtime](), degree)
    assert sorted(t.n for t in found) == list(range(1000))


def test_each_partition_comes_in_its_order(broker: Any) -> None:
    topic = broker.topic(partitions=3)
    broker.send(topic, words(1000))
    places: dict[int, list[int]] = defaultdict(list)
    for t in collected(reading(broker, topic, extra=["partition", "offset"])):
        places[t.partition].append(t.offset)
    assert len(places) == 3
    assert all(offsets == list(range(len(offsets))) for offsets in places.values())


def test_several_topics_are_one_stream(broker: Any) -> None:
    topics = [broker.topic(2), broker.topic(1)]
    for at, topic in enumerate(topics):
        broker.send(topic, words(10, 10 * at))
    found = collected(reading(broker, topics, extra={"topic": "whence"}))
    assert {(t.n, t.whence) for t in found} == {(n, topics[n // 10]) for n in range(20)}


def test_what_is_known_of_a_message_comes_as_fields_on_request(broker: Any) -> None:
    topic = broker.topic(1)
    at = 1_700_000_000_123
    broker.send(topic, [("ann", {"n": 1, "word": "a"})], timestamp=at, headers={"trace": b"\x01"})
    extra = ["key", "topic", "partition", "offset", "timestamp", "headers"]
    (t,) = collected(reading(broker, topic, extra=extra))
    assert (t.n, t.word, t.key, t.topic, t.partition, t.offset) == (1, "a", "ann", topic, 0, 0)
    assert t.timestamp == dt.datetime.fromtimestamp(at / 1000, dt.UTC)
    assert t.headers == [("trace", b"\x01")]


@pytest.mark.parametrize(
    ("format_", "raw", "fields", "value"),
    [
        ("text", "naïve", None, {"value": "naïve"}),
        ("bytes", b"\xff\x00", None, {"value": b"\xff\x00"}),
        ("text", None, None, {"value": None}),
        ("msgpack", msgspec.msgpack.encode({"n": 1, "word": "a"}), FIELDS, {"n": 1, "word": "a"}),
        (lambda raw: raw.decode().split(","), "1,a", ["n", "word"], {"n": "1", "word": "a"}),
    ],
)
def test_formats(broker: Any, format_: Any, raw: Any, fields: Any, value: dict[str, Any]) -> None:
    topic = broker.topic(1)
    broker.send(topic, [("k", raw)])
    (t,) = collected(reading(broker, topic, format=format_, fields=fields))
    assert {name: getattr(t, name) for name in value} == value


def test_reading_begins_where_it_is_told(broker: Any) -> None:
    topic = broker.topic(2)
    for partition in (0, 1):
        broker.send(topic, words(10), partition=partition)
    found = collected(reading(broker, topic, start={(topic, 0): 7}, extra=["partition"]))
    assert Counter(t.partition for t in found) == {0: 3, 1: 10}
    assert collected(reading(broker, topic, start="latest")) == []


def test_messages_of_transactions_that_were_given_up_are_not_read(broker: Any) -> None:
    topic = broker.topic(1)
    producer = broker.client.Producer(
        {"bootstrap.servers": broker.address, "transactional.id": topic}
    )
    producer.init_transactions()
    for n, end in ((0, "commit"), (1, "abort"), (2, "commit")):
        producer.begin_transaction()
        producer.produce(topic, json.dumps({"n": n, "word": "a"}))
        getattr(producer, f"{end}_transaction")()
    assert [t.n for t in collected(reading(broker, broker.settled(topic)))] == [0, 2]


# --- a stream without end --------------------------------------------------------------------


class Following:
    """A run that goes on in a thread of its own until told to stop."""

    def __init__(self, source: Any, on: Any = None) -> None:
        self.found: list[Any] = []
        self.notices: list[str] = []
        self.started = False
        self._stop, self._came = threading.Event(), threading.Condition()
        flow = tw.Flow("following")
        flow.source("in", source).sink("out", tw.call(self._take))
        self._flow, self._on, self._error = flow, on, None
        self._thread = threading.Thread(target=self._run)

    def _take(self, t: Any) -> None:
        with self._came:
            self.found.append(t)
            self._came.notify_all()

    def _listen(self, event: Any) -> None:
        with self._came:
            self.started = self.started or isinstance(event, RunStarted)
            if isinstance(event, Noticed):
                self.notices.append(event.text)
            self._came.notify_all()

    def _run(self) -> None:
        try:
            self._flow.run(on=self._on, stop=self._stop, listen=self._listen)
        except BaseException as error:
            self._error = error
            with self._came:
                self._came.notify_all()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds."""
        with self._came:
            self._came.wait_for(lambda: self._error is not None or condition())
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Following:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def test_partitions_that_are_added_are_read_from_their_beginning(broker: Any) -> None:
    topic = broker.topic(1)
    broker.send(topic, words(5))
    source = reading(broker, topic, until=None, refresh=0.1, start="latest", extra=["partition"])
    with Following(source) as run:
        run.until(lambda: run.started)
        broker.add_partitions(topic, 3)
        broker.send(topic, words(7), partition=2)
        run.until(lambda: len(run.found) == 7)
    assert {t.partition for t in run.found} == {2}


def test_a_server_that_was_away_is_waited_for(broker: Any) -> None:
    topic = broker.topic(3)
    broker.send(topic, words(100))
    with Following(reading(broker, topic, until=None)) as run:
        run.until(lambda: len(run.found) == 100)
        broker.server.kill()
        run.until(lambda: any("waiting until one is back" in text for text in run.notices))
        broker.server.start()
        broker.send(topic, words(100, 100))
        run.until(lambda: len(run.found) == 200)
    assert sorted(t.n for t in run.found) == list(range(200))
    assert "Kafka: connected again" in run.notices


def test_the_backlog_is_what_was_not_given_yet(broker: Any) -> None:
    topic = broker.topic(2)
    broker.send(topic, words(1000))
    source = reading(broker, topic)
    seen = []

    class Watched(type(source)):  # type: ignore[misc] # a class that is made by a function
        def next_block(self, limit: int) -> Any:
            batch = super().next_block(min(limit, 100))
            seen.append((batch.num_rows if batch is not None else 0, self.backlog()))
            return batch

    watched = Watched(source.cluster, source.wanted, source.format, source.extra)
    watched.outputs = source.outputs
    collected(watched, tw.Inline())
    given = 0
    for rows, backlog in seen:
        given += rows
        assert backlog is None or backlog <= 1000 - given
    assert seen[-1][1] == 0


# --- groups ----------------------------------------------------------------------------------


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_group_goes_on_behind_what_was_processed(broker: Any, runtime: str) -> None:
    topic = broker.topic(3)
    group = f"{topic}-{runtime}"
    broker.send(topic, words(100))
    assert len(collected(reading(broker, topic, group=group), RUNTIMES[runtime]())) == 100
    assert sum(broker.group_offsets(group, topic).values()) == 100
    broker.send(topic, words(10, 100))
    again = collected(reading(broker, topic, group=group), RUNTIMES[runtime]())
    assert sorted(t.n for t in again) == list(range(100, 110))


def test_offsets_of_what_failed_are_not_kept(broker: Any) -> None:
    topic, group = broker.topic(1), "fails"
    broker.send(topic, words(100))

    def refuse_60(t: Any) -> None:
        if t.n == 60:
            raise ValueError(t.n)

    flow = tw.Flow("fails")
    flow.source("in", reading(broker, topic, group=group)).sink("out", tw.call(refuse_60))
    with pytest.raises(tw.ThalwegError, match="60"):
        flow.run(on=tw.Local(block_rows=10, most_block_rows=10))
    kept = broker.group_offsets(group, topic).get(0, 0)
    assert kept <= 60
    again = collected(reading(broker, topic, group=group))
    assert {60, 99} <= {t.n for t in again}


def test_with_a_checkpoint_the_group_follows_the_snapshots(broker: Any, tmp_path: Path) -> None:
    topic, group = broker.topic(2), "follows"
    broker.send(topic, words(50))
    collected(reading(broker, topic, group=group), tw.Local(checkpoint=str(tmp_path)))
    assert sum(broker.group_offsets(group, topic).values()) == 50


# --- what cannot be read ---------------------------------------------------------------------


def test_bad_messages_are_skipped_one_by_one(broker: Any) -> None:
    topic = broker.topic(1)
    broker.send(topic, POISON)
    found = collected(reading(broker, topic), on_error="skip")
    assert [t.n for t in found] == [0, 4]


def test_bad_messages_go_to_the_dead_letters_with_their_place(broker: Any, tmp_path: Path) -> None:
    topic = broker.topic(1)
    broker.send(topic, POISON)
    letters = tmp_path / "letters.jsonl"
    collected(reading(broker, topic), on_error=tw.dead_letter(letters))
    kept = [json.loads(line) for line in letters.read_text().splitlines()]
    assert [letter["raw"] for letter in kept] == ["{no json", '{"n": "one", "word": "a"}', ""]
    assert [letter["reason"].partition(":")[0] for letter in kept] == [
        f"{topic}/0, offset {offset}" for offset in (1, 2, 3)
    ]
    assert "it has no value" in kept[2]["reason"]


def test_a_bad_message_ends_the_run_and_comes_again_in_the_next(
    broker: Any, tmp_path: Path
) -> None:
    topic = broker.topic(1)
    broker.send(topic, POISON)
    for _ in range(2):
        with pytest.raises(RecordError, match=f"{topic}/0, offset 1"):
            collected(reading(broker, topic), tw.Local(checkpoint=str(tmp_path)))


# --- what is wrong from the beginning --------------------------------------------------------


def test_a_wrong_address_is_told(broker: Any) -> None:
    source = tw.kafka("127.0.0.1:1", "any", fields=FIELDS, timeout=3)
    with pytest.raises(RecordError, match=r"Kafka at 127.0.0.1:1.*(?i:refused)"):
        collected(source)


def test_a_topic_that_is_not_there_is_told_with_those_that_are(broker: Any) -> None:
    broker.topic()
    with pytest.raises(RecordError, match="topic 'nothing', got only topic-"):
        collected(reading(broker, "nothing"))
    flow = tw.Flow("out")
    flow.source("in", tw.items(["a"]), fields=["word"]).sink(
        "out", tw.to_kafka(broker.address, "nothing")
    )
    with pytest.raises(RecordError, match="'nothing'"):
        flow.run()


def test_settings_that_the_client_does_not_know_are_told(broker: Any) -> None:
    source = tw.kafka(broker.address, "any", fields=FIELDS, config={"securety.protocol": "ssl"})
    with pytest.raises(UsageError, match=r"securety\.protocol"):
        collected(source)
