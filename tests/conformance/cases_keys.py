"""Keys of every kind: which are the same, and that each is counted once, at one task."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import pyarrow as pa

from conformance.harness import AnyOrder, Case, InKeyOrder, TableIs, nowhere
from thalweg.connectors.memory import items
from thalweg.flow import Flow
from thalweg.topology import Topology

NAN = float("nan")
BERLIN = dt.timezone(dt.timedelta(hours=2))
DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 5)
LONG = "ä" * 300  # longer than what is hashed word by word


def tallied(*types: Any) -> Topology:
    flow = Flow("keys")
    names = [f"k{i}" for i in range(len(types))]
    source = flow.source("keys", items([]), fields=dict(zip(names, types, strict=True)))
    source.tally("counts", key=tuple(names), degree=3).sink("out", nowhere())
    return flow.build()


def numbered(type_: Any) -> Topology:
    flow = Flow("keys")
    source = flow.source("keys", items([]), fields={"k": type_, "i": int})
    source.key_by("k").running_count(degree=3).sink("out", nowhere())
    return flow.build()


def counting(name: str, type_: Any, keys: Sequence[Any]) -> Case:
    """Keys whose sameness is Python's: the expected table is a Counter."""
    counts: Counter[Hashable] = Counter(keys)
    expect = TableIs("counts", counts), AnyOrder("out", keys)
    return Case(f"{name} as keys", lambda: tallied(type_), {"keys": keys}, expect)


def running(keys: Sequence[Any]) -> list[tuple[Any, ...]]:
    seen: Counter[Any] = Counter()
    made = []
    for i, key in enumerate(keys):
        seen[key] += 1
        made.append((key, i, seen[key]))
    return made


FLOATS = [0.0, -0.0, 1.5, NAN, -NAN, NAN, 1.5, float("inf"), -float("inf"), 0.0, 2.0, 1e300, 5e-324]
FLOAT_COUNTS = {0: 3, 1.5: 2, NAN: 3, float("inf"): 1, -float("inf"): 1, 2: 1, 1e300: 1, 5e-324: 1}
TEXTS = ["", "a", "ä", "日本", "🌊", "a\0b", "a\0", LONG, LONG + "x", "ä", "", "🌊", LONG]
PAIRS = [("a", 1), ("a", None), (None, 1), (None, None), ("a", 1), (None, None), ("1", 1)]

CASES = [
    counting("unicode texts", str, TEXTS),
    counting("texts with nulls", str, ["a", None, "", None, "a", "None", None]),
    counting("whole numbers", int, [0, 1, -1, 2**63 - 1, -(2**63), 1, 0, None, -1]),
    counting("unsigned numbers", pa.uint64(), [0, 2**64 - 1, 2**63, 2**64 - 1, 1]),
    counting("small numbers", pa.int8(), [1, -1, 127, -128, 1, None]),
    counting("bytes", bytes, [b"", b"a", b"\x00", b"a\x00", b"a", b"\xff" * 300, None, b""]),
    counting("dates", dt.date, [DAY, dt.date(1, 1, 1), dt.date(9999, 12, 31), DAY, None]),
    counting(
        "datetimes", dt.datetime, [NOON, NOON.replace(year=4), NOON, NOON.replace(hour=0), None]
    ),
    counting("times", dt.time, [dt.time(0), dt.time(23, 59, 59, 999999), dt.time(0), None]),
    counting("durations", dt.timedelta, [dt.timedelta(0), dt.timedelta(-1), dt.timedelta(0)]),
    counting("large texts", pa.large_string(), TEXTS),
    counting("texts in a dictionary", pa.dictionary(pa.int32(), pa.string()), TEXTS),
    counting("booleans", bool, [True, False, True, None, True]),
    *(
        Case(
            f"all NaNs are one key, and -0.0 is 0, of type {type_}",
            lambda type_=type_: tallied(type_),
            {"keys": FLOATS},
            (TableIs("counts", FLOAT_COUNTS), AnyOrder("out", FLOATS)),
        )
        for type_ in (pa.float64(), pa.dictionary(pa.int32(), pa.float64()))
    ),
    counting(
        "instants in different time zones",
        pa.timestamp("us", "+02:00"),
        [
            dt.datetime(2024, 7, 1, 12, tzinfo=BERLIN),
            dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC),
            dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC),
        ],
    ),
    Case(
        "keys of two fields, with nulls",
        lambda: tallied(str, int),
        {"keys": PAIRS},
        (TableIs("counts", Counter(PAIRS)), AnyOrder("out", PAIRS)),
    ),
    Case(
        "keys of three fields, with floats",
        lambda: tallied(str, float, bool),
        {"keys": [("a", NAN, True), ("a", -0.0, True), ("a", NAN, True), ("a", 0.0, True)]},
        (TableIs("counts", {("a", NAN, 1): 2, ("a", 0, 1): 2}),),
    ),
    Case(
        "only nulls, of a type that was not declared",
        lambda: tallied(None),
        {"keys": [None, None, None]},
        (TableIs("counts", {None: 3}),),
    ),
    Case(
        "a type that shows only after some nulls",
        lambda: tallied(None),
        {"keys": [None, None, "a", None, "b", "a"]},
        (TableIs("counts", {None: 3, "a": 2, "b": 1}),),
    ),
    Case(
        "running counts of floats",
        lambda: numbered(float),
        {"keys": [(key, i) for i, key in enumerate([1.0, NAN, 1.0, NAN, None, 2.5, None])]},
        (
            InKeyOrder(
                "out",
                0,
                [
                    (1.0, 0, 1),
                    (NAN, 1, 1),
                    (1.0, 2, 2),
                    (NAN, 3, 2),
                    (None, 4, 1),
                    (2.5, 5, 1),
                    (None, 6, 2),
                ],
            ),
        ),
    ),
    Case(
        "running counts of unicode texts",
        lambda: numbered(str),
        {"keys": [(key, i) for i, key in enumerate(TEXTS * 2)]},
        (InKeyOrder("out", 0, running(TEXTS * 2)),),
    ),
]
