"""Partitions that one task reads: each is in the order of time, whichever comes first."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kafka_flows import by_minute, in_step, reading, send_times

import thalweg as tw
from sparksession import spark_session
from thalweg.runtimes.spark.pump import PumpSettings

RUNTIMES = {
    "inline": tw.Inline,
    "local": lambda: tw.Local(workers=2),
    "spark": lambda: tw.Spark(spark_session(), places=2, pump=PumpSettings(2000, 500)),
}
TIMES = range(5000)


@pytest.mark.parametrize("on", ["inline", "local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_backlog_loses_nothing(broker: Any, on: str) -> None:
    topic = in_step(broker, 3, TIMES)
    assert by_minute(reading(broker, topic), RUNTIMES[on]()) == (3 * len(TIMES), 0)


def test_messages_that_are_refused_are_no_reason_to_lose_others(broker: Any) -> None:
    topic = broker.topic(2)
    for partition in range(2):
        values = [{"n": at if at % 7 else "x", "word": "a"} for at in range(700)]
        broker.send(topic, [("k", value) for value in values], partition=partition)
    flow, found = tw.Flow("refused"), []
    rows = flow.source("in", reading(broker, topic), time="n", on_error="skip")
    windows = rows.window(tw.tumbling("1 min")).aggregate("w", n=tw.agg.count())
    windows.sink("out", tw.collect(found))
    metrics = flow.run(on="inline").metrics
    assert (sum(t.n for t in found), metrics.late, metrics.errors) == (1200, 0, 200)


def test_what_has_gathered_in_a_pause_loses_nothing(broker: Any, tmp_path: Path) -> None:
    topic, stop, found = in_step(broker, 3, range(600)), threading.Event(), Counter[int]()

    def run(until: Any, enough: int) -> int:
        def see(t: Any) -> None:
            found[t.start.timestamp()] += t.n
            if sum(found.values()) >= enough:
                stop.set()

        flow = tw.Flow("pauses")
        source = reading(broker, topic, until=until)
        rows = flow.source("in", source, time=tw.event_time("n", delay="10 s"))
        windows = rows.window(tw.tumbling("1 min")).aggregate("w", n=tw.agg.count())
        windows.sink("out", tw.call(see))
        return flow.run(on=tw.Local(workers=2, checkpoint=tmp_path), stop=stop).metrics.late

    late = run(None, 3 * 540)
    send_times(broker, topic, 3, range(600, 5000))
    stop.clear()
    assert late + run("now", 10**9) == 0
    assert sum(found.values()) == 3 * 5000


def told_while_it_goes_on(broker: Any, topic: str, on: Any, windows: int) -> list[int]:
    """Give what windows count until so many are told; the topic goes on."""
    flow, found, stop = tw.Flow("goes-on"), list[int](), threading.Event()

    def see(t: Any) -> None:
        found.append(t.n)
        if len(found) == windows:
            stop.set()

    rows = flow.source("in", reading(broker, topic, until=None), time="n")
    rows.window(tw.tumbling("1 min")).aggregate("w", n=tw.agg.count()).sink("out", tw.call(see))
    flow.run(on=on, stop=stop)
    return found[:windows]


@pytest.mark.parametrize("on", ["inline", "local", pytest.param("spark", marks=pytest.mark.spark)])
def test_partitions_that_have_nothing_more_hold_nothing(broker: Any, on: str) -> None:
    topic = broker.topic(3)  # the third one stays empty
    for partition, end in ((0, 400), (1, 100)):
        messages = [("k", {"n": at, "word": "a"}) for at in range(end)]
        broker.send(topic, messages, partition=partition)
    assert told_while_it_goes_on(broker, topic, RUNTIMES[on](), 6) == [120, 100, 60, 60, 60, 60]


@pytest.mark.parametrize("on", ["inline", pytest.param("spark", marks=pytest.mark.spark)])
def test_the_mark_of_a_transaction_behind_the_last_message_holds_nothing(
    broker: Any, on: str
) -> None:
    topic = broker.topic(2)
    for partition, end in ((0, 100), (1, 400)):
        producer = broker.client.Producer(
            {"bootstrap.servers": broker.address, "transactional.id": f"{topic}-{partition}"}
        )
        producer.init_transactions()
        producer.begin_transaction()
        for at in range(end):
            producer.produce(topic, json.dumps({"n": at, "word": "a"}), partition=partition)
        producer.commit_transaction()
    broker.settled(topic)
    assert told_while_it_goes_on(broker, topic, RUNTIMES[on](), 6) == [120, 100, 60, 60, 60, 60]
