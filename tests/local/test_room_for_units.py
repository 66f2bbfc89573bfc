"""A unit may end while a buffer is still sending it: then there is room for the next one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.blocks import Block, Origin
from thalweg.execution import Run
from thalweg.runtimes.local.building import build
from thalweg.runtimes.local.flights import Flights
from thalweg.runtimes.local.links import Wiring
from thalweg.runtimes.local.settings import Settings


@pytest.mark.parametrize("window", [1, 2, 5])
def test_the_next_unit_comes_as_soon_as_one_has_ended(window: int) -> None:
    """Each unit is sent by the thread that ends another one, before that comes to its own end."""
    seen: list[Any] = []
    builder = tw.TopologyBuilder("numbers")
    builder.add_spout("numbers", tw.items([]), fields={"n": int})
    builder.add_bolt("out", tw.collect(seen), order="total").global_("numbers")
    waiting = list(range(4 * window))

    def send_if_there_is_room() -> None:
        while waiting and flights.open:
            number, n = flights.begin(0.0), waiting.pop(0)
            (link,) = built.sources["numbers"]["default"]
            block = Block(pa.record_batch({"n": [n]}), Origin("numbers"), np.array([n]))
            link.reader.arrive(number, link, [block])
            flights.release(number, 0.0)
            work()

    def work() -> None:
        (operator,) = built.operators
        while (taken := operator.worklist.take(0, 1)) is not None:
            operator.worklist.release(taken.bucket)  # as if another worker came at once
            operator.work(taken, 0)

    flights = Flights(window, lambda _number, _seconds: send_if_there_is_room())
    wiring = Wiring(
        flights=flights,
        specials={},
        woken=lambda _operator: None,
        delivered=lambda _link, _block: None,
        processed=lambda _task, _block: None,
        now=lambda: 0.0,
    )
    built = build(Settings(), builder.build(), Run(), wiring)
    for task in built.tasks_backwards():
        task.prepare()
    send_if_there_is_room()
    assert [t.n for t in seen] == list(range(4 * window))
    assert not len(flights)
