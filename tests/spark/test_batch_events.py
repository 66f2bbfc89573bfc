"""What listeners hear of batches on Spark, and of the keys in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from test_streams import _callbacks, _no_calls_are_left  # noqa: F401 (fixtures for every stream)

import thalweg as tw
from sparksession import spark_session
from thalweg.clock import ManualClock
from thalweg.events import BatchDone, Event, Keys, Progress
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import source

ROWS = [(f"c{n % 3}", f"i{n % 3 if n % 5 else n % 7}") for n in range(600)]


def shop() -> tw.Flow:
    flow = tw.Flow("shop")
    sales = flow.source("sales", source(ROWS), fields={"customer": str, "item": str})
    sales.tally("by_customer", key="customer").tally("by_item", key="item")
    return flow


def test_batches_and_frequent_keys_are_told(tmp_path: Path) -> None:
    heard: list[Any] = []
    clock = ManualClock()

    def listen(event: Event) -> None:
        heard.append(event)
        if isinstance(event, Progress):
            clock.advance(1000.0)  # so that the next batch is looked at again

    pump = PumpSettings(rows=200, block_rows=200)
    learning = tw.Locality(every=None, sampling=1.0, cost=1.0)
    given: dict[str, Any] = {"places": 2, "pump": pump, "shorten": False, "locality": learning}
    on = tw.Spark(spark_session(), state=str(tmp_path), clock=clock, **given)
    result = shop().run(on=on, listen=listen)

    batches = [event for event in heard if isinstance(event, BatchDone)]
    assert [batch.version for batch in batches] == list(range(1, len(batches) + 1))
    assert sum(batch.rows for batch in batches) == len(ROWS)
    components = result.metrics.components
    assert sum(batch.shuffled for batch in batches) == sum(c.shuffled for c in components)
    assert sum(batch.local for batch in batches) == sum(c.local for c in components)
    for batch in batches:
        assert set(batch.phases) == {"job", "commit", "deliver", "rest"}
        assert sum(batch.phases.values()) <= batch.seconds + 1e-6
        assert batch.attempts == 1

    links = [link for event in heard if isinstance(event, Keys) for link in event.links]
    found = [link for link in links if (link.sender, link.reader) == ("by_customer", "by_item")]
    assert all(key.key.startswith("0x") for key in found[0].left + found[0].right)
    assert {key.key for key in found[-1].left} == {"c0", "c1", "c2"}
    assert ("c1", "i1") in {(pair.left, pair.right) for pair in found[-1].pairs}
    assert 0 <= found[-1].locality <= 1
