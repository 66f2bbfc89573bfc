"""Messages and flows that the tests of Kafka share."""

from __future__ import annotations

from typing import Any

import thalweg as tw

FIELDS = {"n": int, "word": str}

#: Messages of which three cannot be read.
POISON: list[tuple[str, Any]] = [
    ("k", {"n": 0, "word": "a"}),
    ("k", "{no json"),
    ("k", {"n": "one", "word": "a"}),
    ("k", None),
    ("k", {"n": 4, "word": "a"}),
]


def words(rows: int, start: int = 0) -> list[tuple[str, dict[str, Any]]]:
    """Give messages: a word as key, a number and the word as value."""
    return [
        (f"w{n * 7919 % 23}", {"n": n, "word": f"w{n * 7919 % 23}"})
        for n in range(start, start + rows)
    ]


def reading(broker: Any, topic: str, **options: Any) -> Any:
    # How long a busy machine takes is nobody's fault.
    options = {"fields": FIELDS, "until": "now", "timeout": 120, **options}
    return tw.kafka(broker.address, topic, **options)


def collected(source: Any, on: Any = None, degree: int = 1, **options: Any) -> list[Any]:
    """Run a source to its end; gives its tuples."""
    found: list[Any] = []
    flow = tw.Flow("collected")
    flow.source("in", source, degree=degree, **options).sink("out", tw.collect(found))
    flow.run(on=on)
    return found


def in_step(broker: Any, partitions: int, times: range) -> str:
    """Make a topic in which each partition has the same times, in their order."""
    topic: str = broker.topic(partitions)
    send_times(broker, topic, partitions, times)
    return topic


def send_times(broker: Any, topic: str, partitions: int, times: range) -> None:
    """Send a number and a word for each time to each partition."""
    for partition in range(partitions):
        messages = [("k", {"n": at, "word": f"p{partition}"}) for at in times]
        broker.send(topic, messages, partition=partition)


def by_minute(source: Any, on: Any, **run: Any) -> tuple[int, int]:
    """Count messages by minute, with numbers as seconds; gives the counted and the late ones."""
    found: list[Any] = []
    flow = tw.Flow("minutes")
    rows = flow.source("in", source, time=tw.event_time("n", delay="10 s"))
    windows = rows.window(tw.tumbling("1 min")).aggregate("w", n=tw.agg.count())
    windows.sink("out", tw.collect(found))
    late = flow.run(on=on, **run).metrics.late
    return sum(t.n for t in found), late
