"""Results that come and go: what a stream of changes says of the relation that it stands for."""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from conformance.moving import Restless
from thalweg.errors import TopologyError
from thalweg.operators.relations import RelationName

FIELDS = {"at": int, "user": str, "x": int}
Click = tuple[int, str, int]
#: A moment, a user and a result: a row, and when it was told.
Change = tuple[int, str, Any]

clicks_in_any_order = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from("abc"), st.integers(0, 2)), max_size=25
)
#: How long windows are, how far apart they begin, and when the first one does.
sizes = st.tuples(st.integers(1, 6), st.integers(0, 12), st.integers(0, 5)).map(
    lambda drawn: (drawn[0] + drawn[1], drawn[0], drawn[2] % drawn[0])
)


def told(
    clicks: list[Click], window: Any, relation: str, on: Any = None, **how: Any
) -> list[Change]:
    """Run clicks that may come in any order, up to a minute late."""
    flow, seen = tw.Flow("changes"), list[Change]()
    time = tw.event_time("at", delay=how.pop("delay", 60))
    stream = flow.source("clicks", tw.items(clicks), fields=FIELDS, time=time)
    cut = stream.key_by("user").window(window, relation=relation)
    result = cut.aggregate(total=tw.agg.sum("x"), **how)
    result.sink("out", tw.call(lambda t: seen.append((seconds(t.end), t.user, t.total))))
    flow.run(on=on or tw.Inline(block_rows=2))
    return seen


def seconds(moment: dt.datetime) -> int:
    return round((moment - dt.datetime(1970, 1, 1)).total_seconds())


def relations(clicks: list[Click], size: int, every: int, offset: int) -> dict[int, dict[str, int]]:
    """Give the relation at the end of every window by going through all clicks."""
    found: dict[int, dict[str, int]] = defaultdict(dict)
    for end in range(offset - 10 * every, 60 + size, every):
        for when, user, x in clicks:
            if end - size <= when < end:
                found[end][user] = found[end].get(user, 0) + x
    return found


def changes(now: dict[int, dict[str, int]], relation: str, every: int) -> Counter[Change]:
    """Compare each relation with the one before."""
    made: Counter[Change] = Counter()
    for end in {*now, *(end + every for end in now)}:
        new, old = now.get(end, {}).items(), now.get(end - every, {}).items()
        rows = {"rstream": new, "istream": new - old, "dstream": old - new}[relation]
        made.update((end, user, total) for user, total in rows)
    return made


@pytest.mark.parametrize("relation", ["rstream", "istream", "dstream"])
@settings(max_examples=50)
@given(clicks=clicks_in_any_order, shape=sizes)
def test_a_stream_tells_what_two_relations_do_not_share(
    relation: RelationName, clicks: list[Click], shape: tuple[int, int, int]
) -> None:
    size, every, offset = shape
    window = tw.sliding(size, every=every, offset=offset)
    ends = relations(clicks, size, every, (offset + size) % every)
    assert Counter(told(clicks, window, relation)) == changes(ends, relation, every)


@settings(max_examples=50)
@given(clicks=clicks_in_any_order, shape=sizes, rows=st.integers(1, 5))
def test_when_time_goes_on_nothing_else_is_told(
    clicks: list[Click], shape: tuple[int, int, int], rows: int
) -> None:
    size, every, offset = shape
    window, on = tw.sliding(size, every=every, offset=offset), tw.Inline(block_rows=rows)
    ends = relations(clicks, size, every, (offset + size) % every)
    for relation in ("istream", "dstream"):
        seen = told(sorted(clicks), window, relation, on, delay=0)
        assert Counter(seen) == changes(ends, relation, every)


@settings(max_examples=50)
@given(clicks=clicks_in_any_order, shape=sizes)
def test_what_came_less_what_went_is_what_is_there(
    clicks: list[Click], shape: tuple[int, int, int]
) -> None:
    size, every, offset = shape
    window = tw.sliding(size, every=every, offset=offset)
    came, went = (told(sorted(clicks), window, name, delay=0) for name in ("istream", "dstream"))
    for end, there in relations(clicks, size, every, (offset + size) % every).items():
        left = Counter((user, total) for moment, user, total in came if moment <= end)
        left.subtract((user, total) for moment, user, total in went if moment <= end)
        assert +left == Counter(there.items())


def test_results_that_come_and_go_are_told_apart() -> None:
    clicks = [(1, "a", 1), (2, "b", 1), (11, "a", 1), (21, "a", 1), (22, "a", 1), (61, "z", 1)]
    on = tw.Inline(block_rows=1)
    # a: 1, 1, 2 in its first three windows; b: 1 in the first.
    assert told(clicks, tw.tumbling(10), "istream", on, delay=0) == [
        (10, "a", 1),
        (10, "b", 1),
        (30, "a", 2),
        (70, "z", 1),
    ]
    assert told(clicks, tw.tumbling(10), "dstream", on, delay=0) == [
        (20, "b", 1),
        (30, "a", 1),
        (40, "a", 2),
        (80, "z", 1),
    ]


def test_what_would_go_after_the_year_9999_stays() -> None:
    last = seconds(dt.datetime(9999, 12, 31, 22, 30))
    clicks = [(1, "b", 1), (last, "a", 1)]
    window, on = tw.tumbling("1 h"), tw.Inline(block_rows=1)
    assert told(clicks, window, "istream", on, delay=0)[-1] == (last + 1800, "a", 1)
    assert told(clicks, window, "dstream", on, delay=0) == [(7200, "b", 1)]


def test_without_a_key_the_relation_is_the_one_result() -> None:
    flow, seen = tw.Flow("whole"), list[Any]()
    rows = [(1, "a", 1), (12, "b", 1), (21, "a", 2)]
    stream = flow.source("clicks", tw.items(rows), fields=FIELDS, time="at")
    result = stream.window(tw.tumbling(10), relation="istream").aggregate(n=tw.agg.sum("x"))
    result.sink("out", tw.call(lambda t: seen.append((seconds(t.end), t.n))))
    flow.run(on=tw.Inline(block_rows=1))
    assert seen == [(10, 1), (30, 2)]


def test_a_mean_of_nothing_equals_itself() -> None:
    flow, seen = tw.Flow("means"), list[Any]()
    rows = [(1, "a", float("nan")), (12, "a", float("nan")), (21, "a", 3.0)]
    fields = {"at": int, "user": str, "x": float}
    stream = flow.source("clicks", tw.items(rows), fields=fields, time="at")
    cut = stream.key_by("user").window(tw.tumbling(10), relation="istream")
    cut.aggregate(x=tw.agg.mean("x")).sink("out", tw.call(lambda t: seen.append(seconds(t.end))))
    flow.run(on=tw.Inline(block_rows=1))
    assert seen == [10, 30]


def test_changes_are_windows_themselves() -> None:
    flow, seen = tw.Flow("often"), list[Any]()
    rows = [(second, "ab"[second // 20 % 2], 1) for second in range(100)]
    stream = flow.source("clicks", tw.items(rows), fields=FIELDS, time="at")
    gone = stream.key_by("user").window(tw.tumbling(10), relation="dstream")
    often = gone.aggregate(n=tw.agg.count()).key_by("user").window(tw.tumbling(100))
    often.aggregate(times=tw.agg.count()).sink(
        "out", tw.call(lambda t: seen.append((t.user, seconds(t.end), t.times)))
    )
    flow.run(on=tw.Inline(block_rows=1))
    # a is there until 20, 60, 100, so it is gone with the windows that end at 30, 70, 110.
    assert sorted(seen) == [("a", 100, 2), ("a", 200, 1), ("b", 100, 2)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("relation", ["istream", "dstream"])
def test_degrees_may_change_in_between(relation: str, seed: int) -> None:
    clicks = [(at, f"u{at * 7 % 5}", at % 3) for at in range(0, 40, 1 + seed % 2)]
    flow, seen = tw.Flow("restless"), list[Change]()
    stream = flow.source("clicks", tw.items(clicks), fields=FIELDS, time="at")
    cut = stream.key_by("user").window(tw.sliding(6, every=2), relation=relation)
    result = cut.aggregate(total=tw.agg.sum("x"))
    result.sink("out", tw.call(lambda t: seen.append((seconds(t.end), t.user, t.total))))
    made = flow.build()
    narrow = tw.Local(block_rows=1, most_block_rows=1, window=8, workers=3)
    made.run(on=narrow, steering=Restless(made, seed))
    assert Counter(seen) == changes(relations(clicks, 6, 2, 0), relation, 2)


@pytest.mark.parametrize("relation", ["istream", "dstream"])
def test_what_was_there_outlives_the_process(relation: str, tmp_path: Path) -> None:
    clicks = [(at, "ab"[at // 7 % 2], at % 2) for at in range(40)]

    def run(stop: threading.Event | None) -> list[Change]:
        flow, seen = tw.Flow("restarted"), list[Change]()
        stream = flow.source("clicks", tw.items(clicks), fields=FIELDS, time="at")
        cut = stream.key_by("user").window(tw.tumbling(2), relation=relation)

        def see(t: Any) -> None:
            seen.append((seconds(t.end), t.user, t.total))
            if stop is not None and len(seen) == 4:
                stop.set()

        cut.aggregate("sums", total=tw.agg.sum("x")).sink("out", tw.call(see))
        settings = {"block_rows": 1, "most_block_rows": 1, "window": 2, "workers": 1}
        on = tw.Local(checkpoint=str(tmp_path), **settings)
        flow.run(on=on, stop=stop or threading.Event())
        return seen

    first = run(threading.Event())
    rest = run(None)
    assert first
    assert rest
    assert Counter(first + rest) == changes(relations(clicks, 2, 2, 0), relation, 2)


@pytest.mark.parametrize(
    ("how", "tells"),
    [
        ({"relation": "changes"}, "rstream"),
        ({"relation": "istream", "allowed": 5}, "without allowed"),
        ({"relation": "dstream", "late": "side"}, "without allowed and late"),
        ({"relation": "istream", "spec": tw.session(5)}, "sliding"),
        ({"relation": "istream", "spec": tw.rows(5)}, "sliding"),
    ],
)
def test_mistakes_with_relations_are_explained(how: dict[str, Any], tells: str) -> None:
    flow = tw.Flow("mistakes")
    stream = flow.source("clicks", tw.items([]), fields=FIELDS, time="at")
    with pytest.raises(TopologyError, match=tells):
        stream.key_by("user").window(**({"spec": tw.tumbling(5)} | how))


def test_early_results_are_not_those_of_a_moment() -> None:
    flow = tw.Flow("early")
    stream = flow.source("clicks", tw.items([]), fields=FIELDS, time="at")
    cut = stream.key_by("user").window(tw.tumbling(5), relation="istream")
    with pytest.raises(TopologyError, match="no early results"):
        cut.aggregate(n=tw.agg.count(), early=1)
