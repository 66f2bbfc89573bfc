"""Messages of a real broker of MQTT: each of them at least once."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.connectors import mqtt_session
from thalweg.errors import RecordError, UsageError
from thalweg.events import Noticed

FIELDS = {"n": int}
#: Seconds for an answer of the broker; only one that is broken takes as long.
PATIENCE = 300.0


def reading(broker: Any, topic: str, **options: Any) -> Any:
    options = {"fields": FIELDS, "timeout": PATIENCE, **options}
    return tw.mqtt("127.0.0.1", topic, port=broker.port, session=topic, **options)


def numbers(rows: int, start: int = 0) -> list[dict[str, int]]:
    return [{"n": n} for n in range(start, start + rows)]


def read(source: Any, until: int | None, on: Any = "local", **options: Any) -> list[Any]:
    """Run until so many tuples have come, or the one with the number 299."""
    found: list[Any] = []
    stop = threading.Event()

    def keep(t: Any) -> None:
        found.append(tuple(t))
        if len(found) == until or (until is None and t.n == 299):
            stop.set()

    flow = tw.Flow("read")
    flow.source("in", source, **options).sink("out", tw.call(keep), order="total")
    flow.run(on=on, stop=stop)
    return found


def subscribed(broker: Any, topic: str, **options: Any) -> Any:
    """Let the broker know the session, so that it keeps what comes; gives the source."""
    source = reading(broker, topic, **options)
    begun = threading.Event()
    begun.set()
    flow = tw.Flow("subscribed")
    flow.source("in", source).sink("out", tw.collect([]))
    flow.run(stop=begun)
    return source


@pytest.mark.parametrize("on", ["inline", "local"])
def test_messages_come_in_their_order_and_once_when_nothing_happens(broker: Any, on: str) -> None:
    topic = broker.topic()
    source = subscribed(broker, topic, extra=["topic"])
    broker.send(topic, numbers(500))
    assert read(source, 500, on) == [(n, topic) for n in range(500)]
    broker.send(topic, numbers(10, 500))
    # All that was processed is acknowledged, so only what is new comes.
    assert read(source, 10, on) == [(n, topic) for n in range(500, 510)]


def test_what_a_run_did_not_finish_comes_again(broker: Any) -> None:
    topic = broker.topic()
    source = subscribed(broker, topic)
    broker.send(topic, numbers(300))

    def fail(n: int) -> int:
        if n == 100:
            raise ValueError(n)
        return n

    flow = tw.Flow("failing")
    found: list[Any] = []
    local = tw.Local(block_rows=10, most_block_rows=10)
    flow.source("in", source).map(fail, fields=FIELDS).sink("out", tw.collect(found))
    with pytest.raises(tw.ComponentError):
        flow.run(on=local)
    rest = read(source, None)
    assert rest[0][0] <= 100
    assert [n for (n,) in rest] == list(range(rest[0][0], 300))
    assert read_rest(source, broker, topic) == [(-1,)]


def read_rest(source: Any, broker: Any, topic: str) -> list[Any]:
    """Send one more, and read until it has come."""
    broker.send(topic, numbers(1, -1))
    return read(source, 1)


@pytest.mark.spark
def test_on_spark_messages_are_acknowledged_with_their_batch(broker: Any, tmp_path: Path) -> None:
    topic = broker.topic()
    source = subscribed(broker, topic)
    broker.send(topic, numbers(200))
    spark = tw.Spark(session=spark_session(), state=str(tmp_path))
    found = read(source, 200, spark)
    assert sorted(found) == [(n,) for n in range(200)]
    assert read_rest(source, broker, topic) == [(-1,)]


def test_a_broker_that_was_away_is_waited_for(own_broker: Any) -> None:
    broker, topic = own_broker, own_broker.topic()
    found: list[int] = []
    stop, away, back = threading.Event(), threading.Event(), threading.Event()

    def keep(t: Any) -> None:
        found.append(t.n)
        if t.n == 1:
            broker.kill()
        elif t.n == 2:
            stop.set()

    def listen(event: Any) -> None:
        if isinstance(event, Noticed):
            (away if "waiting until it is back" in event.text else back).set()

    source = subscribed(broker, topic)
    broker.send(topic, numbers(1, 1))
    flow = tw.Flow("away")
    flow.source("in", source).sink("out", tw.call(keep))
    run = threading.Thread(target=flow.run, kwargs={"stop": stop, "listen": listen})
    run.start()
    away.wait()
    broker.start()
    back.wait()
    broker.send(topic, numbers(1, 2))
    run.join()
    assert found[-1] == 2


@pytest.mark.parametrize("qos", [0, 1])
def test_what_waits_is_bounded(broker: Any, monkeypatch: pytest.MonkeyPatch, qos: int) -> None:
    monkeypatch.setattr(mqtt_session, "MOST_WAITING", 5)
    topic = broker.topic()
    wanted = mqtt_session.Broker("127.0.0.1", broker.port, (topic,), topic, PATIENCE)
    session = mqtt_session.Session(wanted, [].append)
    broker.send(topic, numbers(50), qos)
    found: list[bytes] = []
    while len(found) < 50:
        assert session.waiting <= 5
        found += [message.value() for message in session.take(3)]
        session.gave(rows=True)
        session.processed(session.position())
    session.close()
    assert found == [b'{"n": %d}' % n for n in range(50)]


def test_a_session_that_is_closed_leaves_no_sockets(broker: Any) -> None:
    wanted = mqtt_session.Broker("127.0.0.1", broker.port, ("none",), broker.topic(), PATIENCE)
    gc.collect()
    gc.disable()  # whoever waits for that keeps them open
    try:
        session = mqtt_session.Session(wanted, [].append)
        client = weakref.ref(session._client)
        session.close()
        assert client() is None
    finally:
        gc.enable()


def test_bad_messages_are_refused_alone(broker: Any, tmp_path: Path) -> None:
    topic = broker.topic()
    source = subscribed(broker, topic)
    broker.send(topic, [{"n": 1}, b"{", {"n": 2}])
    bad = tmp_path / "bad.jsonl"
    assert read(source, 2, on_error=tw.dead_letter(bad)) == [(1,), (2,)]
    assert f"topic {topic}: Input data was truncated" in bad.read_text()


def test_messages_that_are_all_refused_do_not_hold_up_the_others(
    broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_session, "MOST_WAITING", 5)
    topic = broker.topic()
    source = subscribed(broker, topic)
    broker.send(topic, [*[b"{"] * 40, {"n": 1}])
    assert read(source, 1, "inline", on_error="skip") == [(1,)]
    assert read_rest(source, broker, topic) == [(-1,)]


@pytest.mark.spark
def test_on_spark_a_message_that_ends_the_run_comes_again_with_those_beside_it(
    broker: Any, tmp_path: Path
) -> None:
    topic = broker.topic()
    source = subscribed(broker, topic)
    broker.send(topic, [*numbers(30), b"{", *numbers(269, 31), {"n": 299}])
    state = {"session": spark_session(), "state": str(tmp_path)}
    with pytest.raises(RecordError, match="truncated"):
        read(source, 1000, tw.Spark(**state))
    found = {n for (n,) in read(source, None, tw.Spark(**state), on_error="skip")}
    assert found >= set(range(31, 300))


def test_what_a_broker_retains_comes_once(broker: Any) -> None:
    topic = broker.topic()
    broker.send(topic, numbers(1), retain=True)
    source = reading(broker, topic)
    assert read(source, 1) == [(0,)]
    assert read_rest(source, broker, topic) == [(-1,)]


def test_a_broker_that_is_not_there_is_told(broker: Any) -> None:
    with pytest.raises(
        RecordError, match=r"MQTT at 127.0.0.1:1: expected an answer, got .*refused"
    ):
        read(tw.mqtt("127.0.0.1", "x", port=1, session="x", fields=FIELDS), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": []}, "at least one topic"),
        ({"session": ""}, "and a name"),
        ({"extra": ["key"]}, "extra field: expected topic"),
        ({"format": "xml"}, "format of messages"),
        ({"pasword": "x"}, "option of mqtt"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    given = {"topics": "x", "session": "x", "fields": FIELDS, **options}
    with pytest.raises(UsageError, match=message):
        tw.mqtt("localhost", **given)


@pytest.mark.parametrize(
    ("keep", "kept"), [("500 ms", 1), ("2 s", 2), (1e12, mqtt_session.FOR_EVER)]
)
def test_a_session_is_kept_for_whole_seconds(keep: Any, kept: int) -> None:
    """And never for none, which would throw away what waits."""
    source = tw.mqtt("localhost", "x", session="x", fields=FIELDS, keep=keep)
    assert source.broker.keep == kept


def test_passwords_are_not_shown() -> None:
    who = {"user": "ann", "password": "secret"}
    source = tw.mqtt("localhost", "x", session="x", fields=FIELDS, **who)
    assert "secret" not in repr(source.broker)
