"""Runs on topics of a real server: stopped and killed, each message counts once."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kafka_flows import FIELDS, collected, reading, words
from killed_reader import Job, link

import thalweg as tw
from attempts import make_attempts
from quickjava import java_options, make_archive
from sparksession import spark_session
from thalweg.errors import RecordError, StateError
from thalweg.events import Noticed, Progress
from thalweg.runtimes.spark.pump import PumpSettings

# --- checkpoints -----------------------------------------------------------------------------


def test_the_next_run_goes_on_where_the_last_one_was(broker: Any, tmp_path: Path) -> None:
    topic = broker.topic(3)
    counts = []
    for start in (0, 300, None, 600):
        if start is not None:
            broker.send(topic, words(300, start))
        found: list[Any] = []
        flow = tw.Flow("stopped")
        flow.source("in", reading(broker, topic)).tally("counts", key="word").sink(
            "out", tw.collect(found)
        )
        result = flow.run(on=tw.Local(checkpoint=str(tmp_path)))
        counts.append((len(found), sum(result.table("counts").values())))
    assert counts == [(300, 300), (300, 600), (0, 600), (300, 900)]


def test_a_snapshot_of_messages_that_are_gone_is_refused(broker: Any, tmp_path: Path) -> None:
    topic = broker.topic(1)
    broker.send(topic, words(100))
    stop = threading.Event()

    def see(t: Any) -> None:
        if t.n == 50:
            stop.set()

    def run(**options: Any) -> list[int]:
        found: list[int] = []
        flow = tw.Flow("gone")
        flow.source("in", reading(broker, topic, **options)).sink(
            "out", tw.call(lambda t: (found.append(t.n), see(t)))
        )
        local = tw.Local(checkpoint=str(tmp_path), block_rows=1, most_block_rows=1, window=2)
        flow.run(on=local, stop=stop)
        return found

    read = run()
    admin = broker.admin_module.AdminClient({"bootstrap.servers": broker.address})
    (deleted,) = admin.delete_records([broker.client.TopicPartition(topic, 0, 90)]).values()
    deleted.result()
    stop.clear()
    with pytest.raises(StateError, match=f"message {len(read)} of partition {topic}/0"):
        run()
    assert run(lost="skip") == list(range(90, 100))
    assert run(start={(topic, 0): 7}) == [], "the snapshot counts, not the start that is gone"


def run_killed(broker: Any, folder: Path, *armed: str, **options: Any) -> Job:
    """Let a job be killed until it comes to its end, and check what it came to."""
    topic, output = broker.topic(3), broker.topic(2)
    job = Job(folder=str(folder), servers=broker.address, topic=topic, output=output, **options)
    broker.send(topic, words(job.rows))
    java = {"SPARK_SUBMIT_OPTS": java_options()} if job.spark else {}
    make_attempts(Path(__file__).with_name("killed_reader.py"), job, armed, java)
    check(broker, job)
    return job


def check(broker: Any, job: Job) -> None:
    """Each word's chain is that of its messages in order; the output topic has each once."""
    chains: Counter[str] = Counter()
    expected: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for word, message in words(job.rows):
        chains[word] = link(chains[word], message["n"])
        expected[word].append({**message, "value": chains[word]})
    assert json.loads(Path(job.folder, "tables.json").read_text()) == chains
    sent: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for message in broker.read(job.output):
        sent[message.key().decode()].append(json.loads(message.value()))
    assert sent == expected


@pytest.mark.parametrize(
    "moment", ["before run", "before manifest", "after manifest", "before delivery mark"]
)
def test_killed_at_a_named_moment_each_message_counts_once(
    broker: Any, tmp_path: Path, moment: str
) -> None:
    job = run_killed(broker, tmp_path, f"{moment}=kill@1,3", rows=3000)
    failed = [path.name for path in Path(job.folder, "failpoints").iterdir() if ":" in path.name]
    assert failed, "it was killed at least once"


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_any_moment_each_message_counts_once(
    broker: Any, tmp_path: Path, seed: int
) -> None:
    job = run_killed(broker, tmp_path, rows=3000, kills=4, seed=seed, degree=seed)
    assert int(Path(job.folder, "kills").read_text()) > 0


# --- sending ---------------------------------------------------------------------------------


def sent(broker: Any, topic: str, rows: Any, fields: Any, **options: Any) -> list[Any]:
    """Send rows through a sink, and read the messages."""
    flow = tw.Flow("sent")
    flow.source("in", tw.items(rows), fields=fields).sink(
        "out", tw.to_kafka(broker.address, topic, **options)
    )
    flow.run()
    return broker.read(topic)


@pytest.mark.parametrize("transactional", [False, True])
def test_what_is_sent_can_be_read_again(broker: Any, tmp_path: Path, transactional: bool) -> None:
    topic = broker.topic(3)
    flow = tw.Flow("sent")
    rows = [(n, f"w{n % 7}") for n in range(1000)]
    flow.source("in", tw.items(rows), fields=FIELDS).sink(
        "out", tw.to_kafka(broker.address, topic, key="word", transactional=transactional)
    )
    flow.run(on=tw.Local(checkpoint=str(tmp_path)))
    found = collected(reading(broker, broker.settled(topic), extra=["key"]))
    assert sorted((t.n, t.word) for t in found) == rows
    assert all(t.key == t.word for t in found)


def test_messages_with_the_same_key_are_in_order_in_one_partition(broker: Any) -> None:
    topic = broker.topic(4)
    rows = [(n, f"w{n % 7}") for n in range(1000)]
    places: dict[bytes, set[int]] = defaultdict(set)
    numbers: dict[bytes, list[int]] = defaultdict(list)
    for message in sent(broker, topic, rows, FIELDS, key="word"):
        places[message.key()].add(message.partition())
        numbers[message.key()].append(json.loads(message.value())["n"])
    assert len(places) == 7
    assert all(len(found) == 1 for found in places.values())
    assert all(found == sorted(found) for found in numbers.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "json"}, (None, b'{"n":1,"word":"a"}')),
        ({"format": "msgpack", "key": "n"}, (b"1", msgspec.msgpack.encode({"n": 1, "word": "a"}))),
        ({"format": "text", "key": "n"}, (b"1", b"a")),
        ({"format": lambda t: f"{t.word}!", "key": lambda t: t.word}, (b"a", b"a!")),
        ({"format": lambda t: None, "key": "word"}, (b"a", None)),
    ],
)
def test_formats_of_what_is_sent(broker: Any, options: Any, message: Any) -> None:
    (found,) = sent(broker, broker.topic(1), [(1, "a")], FIELDS, **options)
    assert (found.key(), found.value()) == message


def test_a_message_that_brokers_refuse_ends_the_run(broker: Any) -> None:
    topic = broker.topic(1)
    large = {"message.max.bytes": 3_000_000}
    with pytest.raises(RecordError, match=f"(?s)topic '{topic}'.*too large"):
        sent(broker, topic, ["x" * 2_000_000], ["word"], format="text", config=large)


def test_a_server_that_is_away_too_long_ends_the_run(broker: Any) -> None:
    topic = broker.topic(1)
    sink = tw.to_kafka(broker.address, topic, timeout=5)

    def rows() -> Any:
        yield "a"
        broker.server.kill()
        yield "b"

    flow = tw.Flow("away")
    flow.source("in", tw.items(rows), fields=["word"]).sink("out", sink)
    try:
        with pytest.raises(RecordError, match=f"topic '{topic}'"):
            flow.run(on=tw.Inline(block_rows=1))
    finally:
        broker.server.kill()  # should the run have ended before that
        broker.server.start()


def test_a_server_that_comes_back_has_each_message_once(broker: Any, tmp_path: Path) -> None:
    topic = broker.topic(2)

    def rows() -> Any:
        for n in range(400):
            if n == 200:  # a snapshot may be on its way
                broker.server.kill()
                broker.server.start()
            yield n, f"w{n % 7}"

    flow = tw.Flow("back")
    # As long as it takes to be back.
    sink = tw.to_kafka(broker.address, topic, key="word", transactional=True, timeout=300)
    flow.source("in", tw.items(rows), fields=FIELDS).sink("out", sink)
    local = tw.Local(
        checkpoint=str(tmp_path), snapshot_every=0.01, block_rows=10, most_block_rows=10
    )
    flow.run(on=local)
    found = [json.loads(message.value())["n"] for message in broker.read(topic)]
    assert sorted(found) == list(range(400))


def test_without_a_checkpoint_a_transactional_sink_says_what_it_is(broker: Any) -> None:
    topic = broker.topic(1)
    notices: list[str] = []
    flow = tw.Flow("said")
    flow.source("in", tw.items(["a"]), fields=["word"]).sink(
        "out", tw.to_kafka(broker.address, topic, transactional=True)
    )
    flow.run(listen=lambda e: notices.append(e.text) if isinstance(e, Noticed) else None)
    assert any("at least once" in text for text in notices)
    assert len(broker.read(topic)) == 1


# --- on Spark --------------------------------------------------------------------------------


@pytest.mark.spark
def test_on_spark_a_stopped_run_goes_on_and_each_message_counts_once(
    broker: Any, tmp_path: Path
) -> None:
    topic, output = broker.topic(3), broker.topic(2)
    broker.send(topic, words(3000))
    state, stop = str(tmp_path), threading.Event()

    def run(stop: threading.Event, listen: Any) -> Any:
        flow = tw.Flow("on-spark")
        source = reading(broker, topic, group="on-spark")
        tallied = flow.source("in", source).tally("counts", key="word")
        tallied.sink("out", tw.to_kafka(broker.address, output, key="word", transactional=True))
        pump = PumpSettings(rows=500, block_rows=100)
        spark = tw.Spark(session=spark_session(), state=state, pump=pump)
        return flow.run(on=spark, stop=stop, listen=listen)

    first = run(stop, lambda event: stop.set() if isinstance(event, Progress) else None)
    assert first.stopped
    assert 0 < sum(first.table("counts").values()) < 3000
    second = run(threading.Event(), lambda event: None)
    assert second.table("counts") == Counter(word for word, _ in words(3000))
    found = [json.loads(message.value())["n"] for message in broker.read(output)]
    assert sorted(found) == list(range(3000))
    assert sum(broker.group_offsets("on-spark", topic).values()) == 3000
    broker.send(topic, words(10, 3000))
    third = run(threading.Event(), lambda event: None)
    assert sum(third.table("counts").values()) == 3010


def test_a_killed_driver_goes_on_and_each_message_counts_once(broker: Any, tmp_path: Path) -> None:
    make_archive()
    # With messages that are logged and no more, and with output that is sent but not marked so.
    armed = ("after segment=kill@2", "before delivery mark=kill@2")
    job = run_killed(broker, tmp_path, *armed, rows=600, spark=True)
    assert int(Path(job.folder, "kills").read_text()) == len(armed)
