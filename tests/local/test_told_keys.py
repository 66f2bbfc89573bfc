"""Listeners hear which keys are frequent, by name, and where they are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import thalweg as tw
from thalweg.control.links import Tables
from thalweg.control.rerouting import Seen
from thalweg.events import Event, KeyLink, Keys
from thalweg.runtimes.local.runtime import Local


def test_frequent_keys_are_told_by_name() -> None:
    told: list[Keys] = []
    named = threading.Event()

    def listen(event: Event) -> None:
        if isinstance(event, Keys):
            told.append(event)
            keys = [key.key for link in event.links for key in (*link.left, *link.right)]
            if keys and not any(key.startswith("0x") for key in keys):
                named.set()

    def rows() -> Iterator[Any]:
        number = 0
        while not named.is_set():
            number += 1
            yield f"r{number % 4}", f"t{number % 4}"

    flow = tw.Flow("posts")
    posts = flow.source("posts", tw.items(rows), fields={"region": str, "tag": str})
    by_region = posts.tally("by_region", key="region", degree=2)
    by_region.tally("by_tag", key="tag", degree=2)
    learning = tw.Locality(every=None, sampling=1.0, cost=1.0)
    flow.run(on=Local(locality=learning, workers=2), listen=listen)

    (link,) = told[-1].links
    assert (link.sender, link.reader) == ("by_region", "by_tag")
    assert {key.key for key in link.left} == {"r0", "r1", "r2", "r3"}
    assert {(pair.left, pair.right) for pair in link.pairs} == {
        (f"r{i}", f"t{i}") for i in range(4)
    }
    assert {key.place for key in link.left} <= {0, 1}
    assert sum(pair.count for pair in link.pairs) == link.total
    assert told[-1].listed == {"by_region": 0, "by_tag": 0}


class Counts:
    """Has one tuple of two hundred counted, and moves nothing."""

    sampling = 0.005

    def after(self, seen: Seen, tables: Tables) -> None:
        del seen, tables


def test_neighbours_that_are_counted_at_once_are_one_draw() -> None:
    told: list[KeyLink] = []

    def listen(event: Event) -> None:
        if isinstance(event, Keys):
            told.extend(event.links)

    def rows() -> Iterator[Any]:
        number = 0
        while not told:
            number += 1
            yield f"r{number % 4}", f"t{number % 4}"

    flow = tw.Flow("posts")
    posts = flow.source("posts", tw.items(rows), fields={"region": str, "tag": str})
    posts.tally("by_region", key="region", degree=2).tally("by_tag", key="tag", degree=2)
    flow.run(on=Local(rerouter=Counts(), workers=2), listen=listen)
    draws = max(1.0, told[0].total / 64)
    assert told[0].total > draws
    assert told[0].share_error == pytest.approx((0.995 / draws) ** 0.5)
