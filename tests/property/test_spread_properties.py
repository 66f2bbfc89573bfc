"""A spread aggregate has the table that it has when it is not spread."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.connectors.memory import items
from thalweg.flow import Flow, KeyedStream
from thalweg.runtimes.inline import Inline
from thalweg.testing import ManualClock, Outcome, run_inline

Row = tuple[Any, Any, int | None]

#: 0.0 and -0.0 are one key, and so are all NaN.
KEYS = st.sampled_from([0.0, -0.0, 1.5, float("nan"), -float("nan"), None])
ROWS = st.lists(
    st.tuples(st.sampled_from("abbbb"), KEYS, st.none() | st.integers(-(10**12), 10**12)),
    max_size=25,
)
TABLES = ("counts", "sums", "highest", "seen")


def larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def noted(value: list[int | None], number: int | None) -> list[int | None]:
    """Collect numbers; multiples of seven are refused."""
    if number is not None and number % 7 == 0:
        raise ValueError(number)
    return united(value, [number])


def united(a: list[int | None], b: list[int | None]) -> list[int | None]:
    return sorted([*a, *b], key=lambda n: (n is None, n or 0))


def aggregated(keyed: KeyedStream, spread: bool, **options: Any) -> None:
    keyed.count("counts", spread=spread, **options)
    keyed.sum("sums", "number", spread=spread, **options)
    keyed.reduce("highest", "number", larger, into="most", spread=spread, **options)
    keyed.fold("seen", list, noted, merge=united, spread=spread, on_error="skip", **options)


def run(
    rows: list[Row], key: tuple[str, ...], spread: bool, blocks: int, **options: Any
) -> Outcome:
    flow = Flow("spreading")
    fields = {"name": str, "part": float, "number": int}
    aggregated(flow.source("rows", items([]), fields=fields).key_by(*key), spread, **options)
    runtime = Inline(block_rows=blocks, clock=ManualClock())
    return run_inline(flow.build(), {"rows": rows}, runtime=runtime)


def tables(outcome: Outcome) -> dict[str, list[tuple[str, Any]]]:
    """Give what can be compared: NaN is not equal to itself."""
    return {t: sorted((repr(k), v) for k, v in outcome.table(t).items()) for t in TABLES}


@settings(max_examples=25)
@given(
    rows=ROWS,
    key=st.sampled_from([("name",), ("part",), ("part", "name")]),
    blocks=st.integers(1, 12),
    degree=st.integers(1, 3),
)
def test_the_table_does_not_tell_whether_it_was_spread(
    rows: list[Row], key: tuple[str, ...], blocks: int, degree: int
) -> None:
    plain = run(rows, key, spread=False, blocks=5)
    spread = run(rows, key, spread=True, blocks=blocks, degree=degree)
    assert tables(spread) == tables(plain)
    refused = spread.result.metrics.component("seen.parts").errors
    assert refused == plain.result.metrics.component("seen").errors
