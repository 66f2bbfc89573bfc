"""Windows of so many tuples, against letting tuples come one by one."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw

clicks = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=90)
#: So many rows, after every so many of them; the larger ones have many panes.
shapes = st.tuples(st.integers(1, 30), st.integers(1, 5)).map(lambda pair: (max(pair), min(pair)))


def one_by_one(rows: list[Any], size: int, every: int) -> list[Any]:
    came: dict[str, list[int]] = defaultdict(list)
    made = []
    for user, price in rows:
        own = came[user]
        own.append(price)
        if len(own) % every == 0:
            last = own[-size:]
            made.append((user, max(0, len(own) - size), len(own), last, sum(last), max(last)))
    return made


@settings(max_examples=60)
@given(rows=clicks, shape=shapes, block_rows=st.integers(1, 91), degree=st.integers(1, 3))
def test_in_total_order_windows_are_those_of_a_serial_run(
    rows: list[Any], shape: tuple[int, int], block_rows: int, degree: int
) -> None:
    size, every = shape
    flow = tw.Flow("rows", "total")
    source = flow.source("clicks", tw.items(rows), fields={"user": str, "price": int})
    windows = source.key_by("user").window(tw.rows(size, every=every))
    found: list[Any] = []
    price = {"prices": tw.agg.values, "all": tw.agg.sum, "most": tw.agg.max}
    into = {name: aggregate("price") for name, aggregate in price.items()}
    made = windows.aggregate(**into, degree=degree)

    def note(t: Any) -> None:
        found.append((t.user, t.start, t.end, list(t.prices), t.all, t.most))

    made.sink("out", tw.call(note))
    flow.run(on=tw.Inline(block_rows=block_rows))
    assert found == one_by_one(rows, size, every)
