"""What arrives at a place: bounded in memory, and in the order of a serial execution."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from thalweg.blocks import Block, Origin
from thalweg.runtimes.spark.arrivals import Spool, in_any_order, in_order

#: (input, serial, path of two levels), told apart by a number.
ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 2), st.integers(0, 2)),
    unique=True,
    max_size=40,
)


def arrivals(rows: list[tuple[int, ...]], cuts: list[int]) -> list[tuple[int, Block]]:
    """Scatter rows over blocks: by input, and by where the cuts fall."""
    blocks: dict[tuple[int, int], list[int]] = {}
    for number, row in enumerate(rows):
        blocks.setdefault((row[0], cuts[number % len(cuts)]), []).append(number)
    made = []
    for (index, _), numbers in blocks.items():
        columns = np.array([rows[n] for n in numbers], dtype=np.int64)
        batch = pa.record_batch({"number": numbers})
        path = columns[:, 2], columns[:, 3]
        made.append((index, Block(batch, Origin(f"o{index}"), columns[:, 1], path=path)))
    return made


@given(ROWS, st.lists(st.integers(0, 3), min_size=1, max_size=9), st.integers(1, 50))
def test_rows_come_by_serial_then_input_then_path(rows, cuts, chunk) -> None:
    given_ = arrivals(rows, cuts)
    found = list(in_order(given_, chunk)) if given_ else []
    numbers = [n for _, block in found for n in block.batch.column("number").to_pylist()]
    wanted = sorted(range(len(rows)), key=lambda n: (rows[n][1], rows[n][0], *rows[n][2:]))
    assert numbers == wanted
    for index, block in found:
        taken = block.batch.column("number").to_pylist()
        assert {rows[n][0] for n in taken} == {index}
        assert block.serials.tolist() == [rows[n][1] for n in taken]
        assert [level.tolist() for level in block.path] == [
            [rows[n][2] for n in taken],
            [rows[n][3] for n in taken],
        ]
        assert len(block) <= chunk


@given(ROWS, st.lists(st.integers(0, 3), min_size=1, max_size=9), st.integers(1, 50))
def test_without_order_nothing_is_lost_and_senders_keep_theirs(rows, cuts, chunk) -> None:
    given_ = arrivals(rows, cuts)
    found = list(in_any_order(given_, chunk))
    for wanted in range(3):
        before = [n for i, b in given_ if i == wanted for n in b.batch.column("number").to_pylist()]
        after = [n for i, b in found if i == wanted for n in b.batch.column("number").to_pylist()]
        assert before == after
    assert all(len(block) <= chunk for _, block in found)


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=30), st.integers(0, 200))
def test_a_spool_gives_back_what_it_took_in_memory_or_not(payloads, limit) -> None:
    with Spool(limit) as spool:
        for payload in payloads:
            spool.add(payload)
        found = [bytes(memoryview(buffer)) for buffer in spool.payloads()]
        kept = sum(map(len, payloads)) - spool.spilled
    assert sorted(found) == sorted(payloads)
    assert kept <= limit
