"""Operators with a state per key, tables and their changes, and rankings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec

from conformance.harness import (
    CLOCK,
    AnyOrder,
    Case,
    EndsWith,
    Exactly,
    InKeyOrder,
    LastOfEachKey,
    TableIs,
    built,
    nowhere,
    running,
    to_sink,
)
from thalweg.connectors.memory import items
from thalweg.expressions import col
from thalweg.flow import Flow, Stream
from thalweg.testing import PAUSE
from thalweg.topology import Topology

# (region, hashtag, likes): regions and tags correlate, likes differ.
POSTS = [
    (("eu", "us", "asia")[i % 3], f"tag{i * i % 5}", i * 7 % 11)
    for i in range(50)
]  # fmt: skip
REGIONS = Counter(region for region, _, _ in POSTS)
TAGS = Counter(tag for _, tag, _ in POSTS)


def posts(order: str = "sender") -> Stream:
    fields = {"region": str, "tag": str, "likes": int}
    return Flow("posts", order).source("posts", items([]), fields=fields)


def totals(rows: list[tuple[Any, ...]], key: int, value: int) -> dict[Any, int]:
    made: dict[Any, int] = {}
    for row in rows:
        made[row[key]] = made.get(row[key], 0) + row[value]
    return made


def likes_so_far() -> list[tuple[Any, ...]]:
    made, sums = [], dict.fromkeys(REGIONS, 0)
    for region, tag, likes in POSTS:
        sums[region] += likes
        made.append((region, tag, likes, sums[region]))
    return made


def previous_tags() -> list[tuple[Any, ...]]:
    made, last = [], dict.fromkeys(REGIONS, None)
    for region, tag, _ in POSTS:
        made.append((region, last[region], tag))
        last[region] = tag
    return made


def mean_likes() -> list[tuple[Any, ...]]:
    made, seen = [], {tag: [] for tag in TAGS}
    for _, tag, likes in POSTS:
        seen[tag].append(likes)
        made.append((tag, sum(seen[tag]) / len(seen[tag])))
    return made


def previous(state: str | None, region: str, tag: str) -> tuple[str, tuple[Any, ...]]:
    return tag, (region, state, tag)


@dataclass
class Mean:
    total: int = 0
    count: int = 0

    def process(self, tag: str, likes: int) -> tuple[str, float]:
        self.total += likes
        self.count += 1
        return tag, self.total / self.count


class MeanStruct(msgspec.Struct):
    total: int = 0
    count: int = 0

    def process(self, tag: str, likes: int) -> tuple[str, float]:
        self.total += likes
        self.count += 1
        return tag, self.total / self.count


def two_tallies(degree: int = 3) -> Topology:
    stream = posts().tally("regions", key="region", degree=degree)
    return to_sink(stream.tally("tags", key="tag", degree=degree))


def changes_of_a_tally() -> Topology:
    stream = posts()
    stream.tally("regions", key="region", degree=2).select("tag").sink("passed", nowhere())
    return to_sink(stream.flow.table("regions"))


def table_of_a_table() -> Topology:
    """Sum of the changes of a running count: each post adds one, whatever the blocks."""
    counts = posts().key_by("region", "tag").running_count(degree=2)
    counts.key_by("tag").reduce("highest", "count", max, degree=2)
    return counts.flow.build()


def ranked(k: int, **options: Any) -> Topology:
    stream = posts()
    stream.tally("tags", key="tag", degree=3)
    return to_sink(stream.flow.table("tags").top(k, **options))


def ranking(counts: Counter[str], k: int) -> list[tuple[int, str, int]]:
    best = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
    return [(rank, tag, count) for rank, (tag, count) in enumerate(best, 1)]


def rankings_at_ticks() -> Topology:
    stream = posts()
    stream.tally("tags", key="tag")
    return to_sink(stream.flow.table("tags").top(2, every="10 s"))


def counted_twice() -> Topology:
    """Two running counts in a row; the second replaces the field of the first."""
    first = posts("total").key_by("region").running_count(degree=2)
    extended = first.extend(before=lambda count: count - 1)
    return to_sink(extended.key_by("tag").running_count(degree=3))


def expected_counted_twice() -> list[tuple[Any, ...]]:
    first = running(POSTS, 0)
    second = running([row[:3] for row in first], 1)
    return [(*b[:3], b[3], a[3] - 1) for a, b in zip(first, second, strict=True)]


CASES = [
    Case(
        "tally counts and passes the tuples on",
        lambda: to_sink(posts().tally("regions", key="region", degree=3)),
        {"posts": POSTS},
        (TableIs("regions", REGIONS), AnyOrder("out", POSTS)),
    ),
    Case(
        "tally with a key of two fields",
        lambda: to_sink(posts().tally("pairs", key=("region", "tag"), degree=3)),
        {"posts": POSTS},
        (TableIs("pairs", Counter(row[:2] for row in POSTS)), AnyOrder("out", POSTS)),
    ),
    Case(
        "two keyed components in a row",
        two_tallies,
        {"posts": POSTS},
        (TableIs("regions", REGIONS), TableIs("tags", TAGS), AnyOrder("out", POSTS)),
    ),
    Case(
        "the last change of each key is its value in the table",
        changes_of_a_tally,
        {"posts": POSTS},
        (
            LastOfEachKey("out", 0, list(REGIONS.items())),
            AnyOrder("passed", [tag for _, tag, _ in POSTS]),
        ),
    ),
    Case(
        "count keeps a table and sends changes",
        lambda: to_sink(posts().key_by("tag").count("tags", into="posts", degree=3)),
        {"posts": POSTS},
        (TableIs("tags", TAGS), LastOfEachKey("out", 0, list(TAGS.items()))),
    ),
    Case(
        "count with a key of two fields",
        lambda: built(posts().key_by("tag", "region").count("pairs", degree=2)),
        {"posts": POSTS},
        (TableIs("pairs", Counter((tag, region) for region, tag, _ in POSTS)),),
    ),
    Case(
        "sum adds up a field",
        lambda: to_sink(posts().key_by("region").sum("likes", "likes", degree=2)),
        {"posts": POSTS},
        (
            TableIs("likes", totals(POSTS, 0, 2)),
            LastOfEachKey("out", 0, list(totals(POSTS, 0, 2).items())),
        ),
    ),
    Case(
        "sum leaves missing values out",
        lambda: built(posts().key_by("region").sum("likes", "likes", degree=2)),
        {"posts": [("eu", "x", 1), ("us", "x", None), ("eu", "x", None), ("eu", "x", 5)]},
        (TableIs("likes", {"eu": 6, "us": None}),),
    ),
    Case(
        "reduce combines two by two",
        lambda: to_sink(posts().key_by("tag").reduce("best", "likes", max, degree=3)),
        {"posts": POSTS},
        (
            TableIs("best", {t: max(n for _, u, n in POSTS if t == u) for t in TAGS}),
            LastOfEachKey("out", 0, [(t, max(n for _, u, n in POSTS if t == u)) for t in TAGS]),
        ),
    ),
    Case(
        "fold keeps any value per key",
        lambda: built(
            posts()
            .key_by("region")
            .fold("seen", list, lambda seen, tag: sorted({*seen, tag}), degree=2)
        ),
        {"posts": POSTS},
        (TableIs("seen", {r: sorted({t for q, t, _ in POSTS if q == r}) for r in REGIONS}),),
    ),
    Case(
        "fold takes several fields",
        lambda: built(
            posts()
            .key_by("region")
            .fold("score", 0, lambda score, likes, tag: score + likes * len(tag), into="score")
        ),
        {"posts": POSTS},
        (TableIs("score", {r: 4 * n for r, n in totals(POSTS, 0, 2).items()}),),
    ),
    Case(
        "running_count numbers the tuples of each key in order",
        lambda: to_sink(posts().key_by("region").running_count(into="nth", degree=3)),
        {"posts": POSTS},
        (InKeyOrder("out", 0, running(POSTS, 0)),),
    ),
    Case(
        "running_count under total order is the serial one",
        lambda: to_sink(posts("total").key_by("tag").running_count(degree=3)),
        {"posts": POSTS},
        (Exactly("out", running(POSTS, 1)),),
    ),
    Case(
        "running_count puts its field where a field of that name was",
        counted_twice,
        {"posts": POSTS},
        (Exactly("out", expected_counted_twice()),),
    ),
    Case(
        "scan adds the new value to each tuple",
        lambda: to_sink(
            posts().key_by("region").scan(0, lambda sum_, likes: sum_ + likes, degree=2)
        ),
        {"posts": POSTS},
        (InKeyOrder("out", 0, likes_so_far()),),
    ),
    Case(
        "scan under total order is the serial one",
        lambda: to_sink(
            posts("total").key_by("region").scan(int, lambda sum_, likes: sum_ + likes, degree=3)
        ),
        {"posts": POSTS},
        (Exactly("out", likes_so_far()),),
    ),
    Case(
        "stateful with a function",
        lambda: to_sink(
            posts().key_by("region").stateful(previous, fields=["region", "before", "now"])
        ),
        {"posts": POSTS},
        (InKeyOrder("out", 0, previous_tags()),),
    ),
    Case(
        "stateful with a dataclass",
        lambda: to_sink(
            posts().key_by("tag").stateful(Mean, fields={"tag": str, "mean": float}, degree=2)
        ),
        {"posts": POSTS},
        (InKeyOrder("out", 0, mean_likes()),),
    ),
    Case(
        "stateful with a struct under total order",
        lambda: to_sink(
            posts("total")
            .key_by("tag")
            .stateful(MeanStruct, fields={"tag": str, "mean": float}, degree=3)
        ),
        {"posts": POSTS},
        (Exactly("out", mean_likes()),),
    ),
    Case(
        "a table over a running count",
        table_of_a_table,
        {"posts": POSTS},
        (
            TableIs(
                "highest",
                {t: max(Counter(row[:2] for row in POSTS if row[1] == t).values()) for t in TAGS},
            ),
        ),
    ),
    Case(
        "changes of a table are a stream like any other",
        lambda: to_sink(
            posts().key_by("region").count("regions", degree=2).filter(col("count") >= 16)
        ),
        {"posts": POSTS},
        (LastOfEachKey("out", 0, [(r, n) for r, n in REGIONS.items() if n >= 16]),),
    ),
    Case(
        "top ends with the final ranking",
        lambda: ranked(2),
        {"posts": POSTS},
        (EndsWith("out", ranking(TAGS, 2)),),
    ),
    Case(
        "top with more places than rows, equal values by key",
        lambda: ranked(100),
        {"posts": [("eu", tag, 1) for tag in ("b", "a", "c", "c", "a", "b", "d")]},
        (EndsWith("out", [(1, "a", 2), (2, "b", 2), (3, "c", 2), (4, "d", 1)]),),
    ),
    Case(
        "top by another field than the last",
        lambda: to_sink(
            posts().key_by("region").sum("likes", "likes").select("sum", "region").top(1, by="sum")
        ),
        {"posts": POSTS},
        (EndsWith("out", [(1, *max((n, r) for r, n in totals(POSTS, 0, 2).items()))]),),
    ),
    Case(
        "top at ticks sends each ranking that changed, and the last one",
        rankings_at_ticks,
        {
            "posts": [
                *(("eu", tag, 1) for tag in "aab"),
                PAUSE("11 s"),  # a tick at 10 s
                *(("eu", tag, 1) for tag in "bbc"),
                PAUSE("24 s"),  # ticks at 20 s and 30 s, the second without a change
                *(("eu", tag, 1) for tag in "ccccc"),
            ]
        },
        (
            Exactly(
                "out",
                [(1, "a", 2), (2, "b", 1), (1, "b", 3), (2, "a", 2), (1, "c", 6), (2, "b", 3)],
            ),
        ),
        needs=frozenset([CLOCK]),
    ),
    Case(
        "top forgets a row whose value is gone",
        lambda: to_sink(
            Flow("scores").source("s", items([]), fields={"who": str, "points": int}).top(2)
        ),
        {"s": [("ann", 5), ("bob", 7), ("bob", None)]},
        (EndsWith("out", [(1, "ann", 5)]),),
    ),
    Case(
        "top survives that no row is left",
        lambda: to_sink(
            Flow("scores").source("s", items([]), fields={"who": str, "points": int}).top(2)
        ),
        {"s": [("ann", 5), ("ann", None), ("bob", 3)]},
        (EndsWith("out", [(1, "bob", 3)]),),
    ),
    Case(
        "keyed operators without input have empty tables",
        two_tallies,
        {"posts": []},
        (TableIs("regions", {}), TableIs("tags", {}), AnyOrder("out", [])),
    ),
    Case(
        "keyed operators with one tuple",
        two_tallies,
        {"posts": [("eu", "x", 1)]},
        (
            TableIs("regions", {"eu": 1}),
            TableIs("tags", {"x": 1}),
            AnyOrder("out", [("eu", "x", 1)]),
        ),
    ),
]
