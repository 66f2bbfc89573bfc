"""Any program gives what its serial execution gives, as far as the order of its sinks promises.

The degrees, groupings and sizes of blocks are drawn with the program: none of them may matter.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from property.programs import (
    IN_KEY_ORDER,
    SOURCES,
    Program,
    Row,
    Serial,
    build,
    programs,
    run_serially,
)
from thalweg.connectors.memory import items
from thalweg.flow import Flow
from thalweg.runtimes.inline import Inline
from thalweg.testing import ManualClock, Outcome, run_inline

BLOCK_ROWS = st.integers(1, 12)


def run(program: Program, order: str, rows: list[Row], block_rows: int) -> Outcome:
    runtime = Inline(block_rows=block_rows, clock=ManualClock())
    return run_inline(build(program, order), {"source": rows}, runtime=runtime)


def sent(outcome: Outcome, end: int) -> list[Row]:
    return [(k, n) for k, n in outcome.outputs[f"end-{end}"]]


def check_tables(outcome: Outcome, serial: Serial) -> None:
    for name, counts in serial.tables.items():
        assert outcome.table(name) == counts


def by_key(rows: list[Row]) -> dict[str, list[int]]:
    sequences: dict[str, list[int]] = {}
    for k, n in rows:
        sequences.setdefault(k, []).append(n)
    return sequences


@settings(max_examples=150)
@given(programs(), SOURCES, BLOCK_ROWS)
def test_under_total_order_every_sink_gets_the_serial_output(
    program: Program, rows: list[Row], block_rows: int
) -> None:
    serial = run_serially(program, rows)
    outcome = run(program, "total", rows, block_rows)
    check_tables(outcome, serial)
    for end, expected in serial.ends.items():
        assert sent(outcome, end) == expected


@settings(max_examples=150)
@given(programs(), SOURCES, BLOCK_ROWS)
def test_without_it_every_sink_gets_the_same_tuples_and_running_values_in_key_order(
    program: Program, rows: list[Row], block_rows: int
) -> None:
    serial = run_serially(program, rows)
    outcome = run(program, "sender", rows, block_rows)
    check_tables(outcome, serial)
    for end, expected in serial.ends.items():
        found = sent(outcome, end)
        assert Counter(found) == Counter(expected)
        if end and program.steps[end - 1].operator in IN_KEY_ORDER:
            assert by_key(found) == by_key(expected)


@given(SOURCES, st.integers(1, 5), BLOCK_ROWS)
def test_a_tally_is_a_counter(rows: list[Row], degree: int, block_rows: int) -> None:
    flow = Flow("tally")
    source = flow.source("source", items(rows), fields={"k": str, "n": int})
    source.tally("k", key="k", degree=degree).tally("pairs", key=("k", "n"), degree=degree)
    result = Inline(block_rows=block_rows, clock=ManualClock()).run(flow.build())
    assert result.table("k") == Counter(k for k, _ in rows)
    assert result.table("pairs") == Counter(rows)


@settings(max_examples=40)
@given(programs(), SOURCES, BLOCK_ROWS)
def test_a_run_can_be_repeated(program: Program, rows: list[Row], block_rows: int) -> None:
    first, second = (run(program, "sender", rows, block_rows) for _ in range(2))
    assert {end: sent(first, end) for end in program.ends} == {
        end: sent(second, end) for end in program.ends
    }
