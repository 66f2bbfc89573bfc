"""Strands that are in order by themselves lose no row, in whatever order they are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from thalweg.eventtime import NEVER, EventTime
from thalweg.strands import Strands, newest_by

DELAY = 5
TIME = EventTime("at", unit="us")


@st.composite
def strands_in_order(draw: st.DrawFn) -> list[list[int]]:
    """Give times: each strand goes on, but a row may come up to the delay behind."""
    steps = st.lists(st.tuples(st.integers(0, 20), st.integers(0, DELAY)), max_size=12)
    made = []
    for start, moves in draw(st.lists(st.tuples(st.integers(0, 50), steps), max_size=5)):
        times = start + np.cumsum([step for step, _ in moves], dtype=np.int64)
        newest = np.maximum.accumulate(times) if len(times) else times
        made.append([int(at) - back for at, (_, back) in zip(newest, moves, strict=True)])
    return made


@given(strands_in_order(), st.data())
def test_no_row_is_late_in_whatever_order_strands_are_read(
    rows: list[list[int]], data: st.DataObject
) -> None:
    strands, left = Strands[int](), {n: list(each) for n, each in enumerate(rows) if each}
    for n, each in left.items():
        known = data.draw(st.booleans())
        strands.opens(n, each[0] if known else NEVER)
    watermark, given_ = NEVER, 0
    while left:
        block: list[tuple[int, int]] = []
        for _ in range(data.draw(st.integers(1, 3))):
            n = data.draw(st.sampled_from(sorted(left)))
            size = data.draw(st.integers(1, len(left[n])))
            block += [(n, at) for at in left[n][:size]]
            del left[n][:size]
            if not left[n]:
                del left[n]
                if not left:
                    break
        assert all(at >= watermark for _, at in block)
        given_ += len(block)
        batch = pa.record_batch({"at": [at for _, at in block]})
        for n, newest in newest_by([n for n, _ in block], batch, TIME).items():
            strands.gave(n, newest)
        for n in range(len(rows)):
            (strands.opens if n in left else strands.ends)(n)
        watermark = max(watermark, strands.reached - DELAY)
    assert given_ == sum(map(len, rows))
    assert strands.reached == max((at for each in rows for at in each), default=NEVER)


def test_a_strand_that_is_read_to_its_end_holds_nothing_and_goes_on_where_it_was() -> None:
    strands = Strands[str]()
    strands.opens("a")
    strands.opens("b")
    strands.gave("a", 100)
    assert strands.reached == NEVER
    strands.gave("b", 30)
    assert strands.reached == 30
    strands.ends("b")
    assert strands.reached == 100
    strands.opens("b")
    assert strands.reached == 30


def test_what_is_forgotten_begins_anew() -> None:
    strands = Strands[str]()
    strands.opens("a")
    strands.gave("a", 100)
    strands.forget("a")
    assert strands.reached == 100
    assert not strands.knows("a")
    strands.opens("a", 7)
    assert strands.reached == 7


def test_many_times_of_a_strand_leave_nothing_behind() -> None:
    strands = Strands[str]()
    strands.opens("slow", 0)
    strands.opens("fast", 0)
    for at in range(10_000):
        strands.gave("fast", at)
    assert strands.reached == 0
    assert len(strands._order) < 100
