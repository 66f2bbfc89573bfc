"""Windows as people use them: late tuples, early results, silent sources, mistakes."""

from __future__ import annotations

import copy
import datetime as dt
import math
import threading
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.components import Spout
from thalweg.errors import TopologyError, UsageError
from thalweg.events import Noticed
from thalweg.eventtime import NEVER
from thalweg.flow import Stream
from thalweg.testing import ManualClock
from thalweg.watermarks import BatchTimes, Came, Watermarks

FIELDS = {"at": int, "user": str}
V = tw.agg.values("at")


def at(seconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)


def clicks(
    *times: int, delay: int = 0, flow: tw.Flow | None = None, name: str = "clicks"
) -> Stream:
    made = flow or tw.Flow("windows")
    rows = [(time, "u") for time in times]
    time = tw.event_time("at", delay=delay)
    return made.source(name, tw.items(rows), fields=FIELDS, time=time)


def counted(stream: Stream, **how: Any) -> Stream:
    return stream.key_by("user").window(tw.tumbling(10), **how).aggregate("count", n=tw.agg.count())


def run(stream: Stream, on: Any = None, rows: list[Any] | None = None) -> list[Any]:
    found = [] if rows is None else rows
    stream.sink("out", tw.call(lambda t: found.append((t.start, t.n))))
    stream.flow.run(on=on or tw.Inline(block_rows=1))
    return found


def test_a_window_is_told_when_time_has_passed_its_end() -> None:
    assert run(counted(clicks(1, 5, 12, 25))) == [(at(0), 2), (at(10), 1), (at(20), 1)]


def test_a_tuple_behind_the_delay_is_left_out_and_counted() -> None:
    seen: list[Any] = []

    class Consumer:
        def handle(self, info: Any, points: Any) -> None:
            seen.extend((p.name, p.value) for p in points if info.component == "count")

    stream = counted(clicks(5, 25, 3, 26))
    rows: list[Any] = []
    stream.sink("out", tw.call(lambda t: rows.append((t.start, t.n))))
    stream.flow.run(on=tw.Inline(block_rows=1), consumers=[Consumer()])
    assert rows == [(at(0), 1), (at(20), 2)]
    assert ("late", 1) in seen


def test_a_tuple_within_the_delay_is_in_its_window() -> None:
    assert run(counted(clicks(5, 25, 3, 26, delay=30))) == [(at(0), 2), (at(20), 2)]


def test_the_time_of_the_source_may_be_said_again_of_a_window() -> None:
    time = tw.event_time("at", delay=30)
    assert run(counted(clicks(5, 25, 3, 26, delay=30), time=time)) == [(at(0), 2), (at(20), 2)]


def test_late_tuples_can_be_a_stream_of_their_own() -> None:
    stream = counted(clicks(5, 25, 3, 26), late="side")
    late: list[int] = []
    stream.output("late").sink("late", tw.call(lambda t: late.append(t.at)))
    assert run(stream) == [(at(0), 1), (at(20), 2)]
    assert late == [3]


def test_windows_are_told_again_while_late_tuples_are_allowed() -> None:
    assert run(counted(clicks(5, 12, 3, 45, 4), allowed=20)) == [
        (at(0), 1),
        (at(0), 2),
        (at(10), 1),
        (at(40), 1),
    ]


class Waiting(Spout):
    """Gives some clicks, and ends when it is told to."""

    outputs = FIELDS
    slowable = True

    def __init__(self, times: list[int], done: threading.Event) -> None:
        self.times, self.done = times, done

    def __deepcopy__(self, memo: dict[int, Any]) -> Waiting:
        return Waiting(list(self.times), self.done)

    def next_tuple(self) -> None:
        if self.times:
            self.emit(self.times.pop(0), "u")
        elif self.done.is_set():
            self.finish()


@pytest.mark.parametrize("on", ["inline", "local"])
def test_early_results_come_at_ticks_on_a_stream_of_their_own(on: str) -> None:
    flow, done = tw.Flow("early"), threading.Event()
    early: list[int] = []

    def see(t: Any) -> None:
        early.append(t.n)
        if t.n == 2:
            done.set()

    stream = flow.source("clicks", Waiting([1, 2], done), time="at")
    counts = stream.key_by("user").window(tw.tumbling(10)).aggregate(n=tw.agg.count(), early=0.05)
    counts.output("early").sink("seen", tw.call(see))
    final: list[int] = []
    counts.sink("out", tw.call(lambda t: final.append(t.n)))
    flow.run(on=on)
    assert early[-1] == 2
    assert final == [2]


class Asking(Waiting):
    """Asks windows what they have, as long as it has nothing to give."""

    steering: tw.Steering

    def __deepcopy__(self, memo: dict[int, Any]) -> Asking:
        made = Asking(list(self.times), self.done)
        made.steering = self.steering
        return made

    def next_tuple(self) -> None:
        if not self.times:
            self.steering.tell_early("count")
        super().next_tuple()


@pytest.mark.parametrize("on", ["inline", "local", pytest.param("spark", marks=pytest.mark.spark)])
def test_early_results_can_be_asked_for(on: str) -> None:
    flow, done = tw.Flow("asked"), threading.Event()
    early: list[int] = []
    told: list[str] = []

    def see(t: Any) -> None:
        early.append(t.n)
        if t.n == 2:
            done.set()

    def listen(event: Any) -> None:
        if isinstance(event, Noticed):
            told.append(event.text)

    clicks = Asking([1, 2], done)
    clicks.steering = tw.Steering()
    clicks.steering.tell_early("clicks")
    counted(flow.source("clicks", clicks, time="at")).output("early").sink("out", tw.call(see))
    runtime = tw.Spark(spark_session(), places=2) if on == "spark" else on
    flow.run(on=runtime, steering=clicks.steering, listen=listen)
    assert early[-1] == 2
    assert any("nothing is told: early results in component 'clicks'" in text for text in told)


def test_time_is_that_of_the_slowest_source() -> None:
    flow = tw.Flow("two")
    fast = clicks(1, 50, 51, flow=flow, name="fast")
    slow = clicks(2, 3, flow=flow, name="slow")
    # 50 does not close the window of 0, since the other source is at 2 and 3.
    assert run(counted(fast.merge(slow))) == [(at(0), 3), (at(50), 2)]


@pytest.mark.parametrize("on", ["inline", "local"])
def test_a_silent_source_keeps_nobody_waiting_for_ever(on: str) -> None:
    flow, done = tw.Flow("silent"), threading.Event()
    idle = tw.event_time("at", idle=0.05)
    silent = flow.source("silent", Waiting([], done), time=idle)
    busy = flow.source("busy", Waiting([1, 25], done), time="at")
    rows: list[Any] = []

    def see(t: Any) -> None:
        rows.append((t.start, t.n))
        done.set()

    counted(busy.merge(silent)).sink("out", tw.call(see))
    flow.run(on=on)
    assert rows == [(at(0), 1), (at(20), 1)]


def test_times_may_be_timestamps_and_numbers_of_other_units() -> None:
    for values, type_, unit in (
        ([at(1), at(12)], dt.datetime, "s"),
        ([1000, 12_000], int, "ms"),
        ([1.0, 12.0], float, "s"),
        ([10**9, 12 * 10**9], int, "ns"),
    ):
        flow = tw.Flow("units")
        time = tw.event_time("at", unit=unit)
        fields = {"at": type_, "user": str}
        stream = flow.source("c", tw.items([(v, "u") for v in values]), fields=fields, time=time)
        assert run(counted(stream)) == [(at(0), 1), (at(10), 1)]


def test_a_tuple_without_a_time_is_refused() -> None:
    flow = tw.Flow("none")
    rows = [(1, "u"), (None, "u"), (2, "u")]
    stream = flow.source("clicks", tw.items(rows), fields=FIELDS, time="at")
    counts = (
        stream.key_by("user").window(tw.tumbling(10)).aggregate(n=tw.agg.count(), on_error="skip")
    )
    assert run(counts) == [(at(0), 2)]


def test_a_keyed_bolt_of_yours_can_hear_the_time() -> None:
    heard: list[int] = []

    class Hears(tw.Bolt):
        kind = tw.Kind.GLOBAL
        timed = True
        watermark_step = 10_000_000

        def process(self, t: Any) -> None:
            pass

        def process_watermark(self, now: int) -> None:
            heard.append(now)

    builder = tw.TopologyBuilder("hears")
    builder.add_spout(
        "c", tw.items([(3, "u"), (12, "u"), (13, "u"), (31, "u")]), fields=FIELDS, time="at"
    )
    builder.add_bolt("hears", Hears()).global_("c")
    builder.build().run(on=tw.Inline(block_rows=1))
    assert heard == [3_000_000, 12_000_000, 31_000_000]


def odd(stream: Stream) -> Any:
    """Give windows of values that have no order."""
    struct = pa.struct({"a": pa.int64()})
    fields = {
        "at": int,
        "any": tw.anything,
        "struct": struct,
        "list": pa.list_(pa.int64()),
        "structs": pa.list_(struct),
        "large": pa.large_list(pa.int64()),
        "pair": pa.list_(pa.int64(), 2),
        "map": pa.map_(pa.string(), pa.int64()),
    }
    more = stream.flow.source("odd", tw.items([]), fields=fields, time="at")
    return more.window(tw.tumbling(1))


@pytest.mark.parametrize(
    ("wrong", "tells"),
    [
        (lambda s: s.key_by("user").window("1 h"), "tumbling"),
        (lambda s: s.key_by("user").window(tw.tumbling(1), late="keep"), "late"),
        (lambda s: s.key_by("user").window(tw.tumbling(1)).aggregate(), r"count\(\), got none"),
        (lambda s: s.window(tw.tumbling(1)).aggregate(n=3), r"n=agg.count\(\), got n=3"),
        (lambda s: s.window(tw.tumbling(1)).aggregate(n=tw.agg.sum("price")), "price"),
        (lambda s: s.window(tw.tumbling(1)).aggregate(n=tw.agg.sum("user")), "numbers"),
        (lambda s: s.window(tw.tumbling(1), time="when").aggregate(n=tw.agg.count()), "when"),
        (lambda s: s.window(tw.tumbling(1)).aggregate(end=tw.agg.count()), "end"),
        (lambda s: tw.sliding(1, every=2), "every <= size"),
        (lambda s: tw.rows(0), "1 or more"),
        (lambda s: tw.event_time("at", unit="h"), "unit"),
        (lambda s: s.key_by("user").window(tw.rows(2), late="side"), "window of rows"),
        (lambda s: s.key_by("user").window(tw.rows(2), allowed=5), "window of rows"),
        (lambda s: s.window(tw.rows(2)).aggregate(n=tw.agg.count(), early=1), "no early results"),
        (lambda s: s.window(tw.tumbling(1)).aggregate(q=tw.agg.quantiles("user")), "numbers"),
        (lambda s: tw.agg.quantiles("at", [0.5, 2.0]), "shares of 0 to 1"),
        *(
            (lambda s, f=field, a=aggregate: odd(s).aggregate(x=a(f)), tells)
            for aggregate in (tw.agg.min, tw.agg.max, tw.agg.top)
            for field, tells in (
                ("any", "an order for 'x', got values of any"),
                ("struct", "for 'x', got struct"),
                ("list", "for 'x', got list<item: int64>"),
                ("structs", "for 'x', got list<item: struct<"),
                ("large", "for 'x', got large_list"),
                ("pair", "for 'x', got fixed_size_list"),
                ("map", "for 'x', got map<string, int64>"),
            )
        ),
        (lambda s: tw.agg.quantiles("at", []), "shares of 0 to 1"),
        (lambda s: tw.agg.top("at", 0), "k >= 1"),
        (lambda s: tw.agg.top("at", 1.5), "whole number k >= 1, got 1.5"),
        (lambda s: tw.rows(1.5), "whole numbers, 1 or more"),
        (lambda s: tw.rows(4, every=2.0), "whole numbers, 1 or more"),
        (lambda s: tw.agg.quantiles("at", 0.5), r"a list of shares .* such as \[0.5\], got 0.5"),
        (lambda s: tw.agg.quantiles("at", "0.5"), r"a list of shares"),
        (lambda s: tw.agg.fold("at", 0, max), "start of fold .* such as lambda: 0, got 0"),
        (lambda s: tw.agg.fold("at", int, "+"), "step of fold .* expected a function"),
        (lambda s: tw.agg.fold("at", dict, max, dict), "type <class 'dict'>: expected str, int"),
        *(
            (
                lambda s, how=how: counted(s, time=tw.event_time("at", **how)),
                "time of 'count': expected a field, .* got delay or idle .*where the stream begins",
            )
            for how in ({"delay": "1 min"}, {"idle": 5}, {"delay": 5, "idle": 5, "unit": "ms"})
        ),
        *(
            (
                lambda s, call=call: call(s.key_by("user").window(tw.tumbling(1))),
                rf"window: expected \.aggregate\(.*, got \.{name} .*\(n=tw\.agg\.count\(\)",
            )
            for name, call in {
                "sink": lambda w: w.sink("out", tw.stdout()),
                "count": lambda w: w.count("n"),
                "reduce": lambda w: w.reduce("n", "at", max),
            }.items()
        ),
        *(
            (
                lambda s, of=of: s.join(of(s), "user"),
                "table of 'join-1': expected a table, got a stream .*join_within.*join_asof",
            )
            for of in (
                lambda s: s,
                lambda s: s.key_by("user"),
                lambda s: s.window(tw.tumbling(1)),
            )
        ),
        (lambda s: tw.landmark(10, since=math.inf), "since of a landmark"),
        (lambda s: tw.landmark(10, since=1e12), "a time of the years 1 to 9999, got"),
        (lambda s: tw.tumbling(1e13), "duration: expected at most 9999 years, got 1000"),
        (lambda s: tw.session(1e13), "at most 9999 years"),
        (lambda s: tw.event_time("at", delay=1e14), "at most 9999 years"),
        (lambda s: s.window(tw.tumbling(1), allowed=1e14).aggregate(n=V), "at most 9999 years"),
        (lambda s: tw.tumbling(10, offset="soon"), "duration"),
        (
            lambda s: s.key_by("user").window(tw.rows(2)).aggregate(n=V, user=V),
            "field 'user' of .* a name that no key field has.*give it another name",
        ),
    ],
)
def test_mistakes_are_explained(wrong: Any, tells: str) -> None:
    with pytest.raises((TopologyError, UsageError, tw.SchemaError), match=tells):
        wrong(clicks(1))


def test_windows_have_nothing_but_what_can_be_made_of_them() -> None:
    windows = clicks(1).window(tw.tumbling(1))
    assert not hasattr(windows, "sink")
    assert copy.copy(windows) == windows


@pytest.mark.parametrize("block_rows", [1, 10])
def test_values_of_any_kind_are_collected(block_rows: int) -> None:
    flow = tw.Flow("any")
    rows = [(1, 1), (2, "x"), (3, None), (4, b"y"), (5, [1.5])]
    stream = flow.source("s", tw.items(rows), fields={"at": int, "x": tw.anything}, time="at")
    made = stream.window(tw.tumbling(10)).aggregate(x=tw.agg.values("x"))
    found: list[Any] = []
    made.sink("out", tw.call(lambda t: found.append(t.x)))
    flow.run(on=tw.Inline(block_rows=block_rows))
    assert found == [[1, "x", b"y", [1.5]]]


@pytest.mark.parametrize("block_rows", [1, 10])
def test_a_dictionary_that_a_function_makes_of_a_window_needs_a_type(block_rows: int) -> None:
    def ends(type_: Any) -> list[Any]:
        flow, found = tw.Flow("folded"), list[Any]()
        stream = flow.source("s", tw.items([(1, "a"), (20, "b")]), fields=FIELDS, time="at")
        fold = tw.agg.fold("user", dict, lambda last, user: last | {user: 1}, type_)
        stream.window(tw.tumbling(10)).aggregate(last=fold).sink(
            "out", tw.call(lambda t: found.append(t.last))
        )
        flow.run(on=tw.Inline(block_rows=block_rows))
        return found

    both = pa.struct({"a": pa.int64(), "b": pa.int64()})
    assert ends(tw.anything) == [{"a": 1}, {"b": 1}]
    assert ends(both) == [{"a": 1, "b": None}, {"a": None, "b": 1}]
    with pytest.raises(tw.SchemaError, match=r"of field 'user': .*say fold\(.*type=tw"):
        ends(None)


def test_windows_may_begin_before_1970() -> None:
    assert tw.tumbling(10, offset=-3) == tw.tumbling(10, offset=7)
    assert tw.tumbling(10, offset="-3 s") == tw.tumbling(10, offset="7 s")
    stream = clicks(-40, -25, -12, 3)
    since = stream.key_by("user").window(tw.landmark(20, since=-30))
    assert run(since.aggregate(n=tw.agg.count())) == [(at(-30), 2), (at(-30), 3)]


def told_again() -> Stream:
    return counted(clicks(5, 25, 3, 26), allowed=60)


def other_counts(flow: tw.Flow) -> Stream:
    more = clicks(1, flow=flow, name="more").key_by("user")
    return more.window(tw.tumbling(10)).aggregate(n=tw.agg.count())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda s: s.window(tw.tumbling(10)).aggregate(m=tw.agg.max("n")),
        lambda s: s.filter(lambda n: n > 0).window(tw.session(5)).aggregate(m=tw.agg.max("n")),
        lambda s: (
            s.merge(other_counts(s.flow)).window(tw.tumbling(10)).aggregate(m=tw.agg.max("n"))
        ),
        lambda s: s.join_asof(clicks(1, flow=s.flow, name="more"), "user", prefix="r_"),
    ],
)
def test_results_that_are_told_again_are_not_left_out_unseen(wrong: Any) -> None:
    with pytest.raises(TopologyError, match=r"results that are told once.*leave allowed out"):
        wrong(told_again())


def test_a_window_behind_may_say_what_becomes_of_results_that_are_told_again() -> None:
    most = {"n": tw.agg.max("n")}
    assert run(told_again().window(tw.tumbling(10), allowed=60).aggregate(**most)) == [
        (at(0), 1),
        (at(0), 2),
        (at(20), 2),
    ]
    aside = told_again().window(tw.tumbling(10), late="side").aggregate(**most)
    late: list[int] = []
    aside.output("late").sink("late", tw.call(lambda t: late.append(t.n)))
    assert run(aside) == [(at(0), 1), (at(20), 2)]
    assert late == [2]


@pytest.mark.parametrize("on", ["inline", "local"])
def test_a_stream_can_be_joined_with_itself(on: str) -> None:
    flow, found = tw.Flow("itself"), list[Any]()
    rows = [(1, "a"), (3, "b"), (4, "a"), (9, "a")]
    stream = flow.source("clicks", tw.items(rows), fields=FIELDS, time="at")
    pairs = stream.join_within(stream, "user", within=5, prefix="r_")
    pairs.sink("out", tw.call(lambda t: found.append((t.at, t.r_at))))
    flow.run(on=on)
    near = [(a, b) for a, u in rows for b, v in rows if u == v and abs(a - b) <= 5]
    assert sorted(found) == sorted(near)


def test_a_window_needs_to_know_the_time() -> None:
    flow = tw.Flow("timeless")
    stream = flow.source("clicks", tw.items([(1, "u")]), fields=FIELDS)
    with pytest.raises(TopologyError, match='say time="FIELD"'):
        counted(stream)
    flow.source("more", tw.items([(1, "u")]), fields=FIELDS, time="when").sink("x", tw.stdout())
    with pytest.raises(TopologyError, match="'when'"):
        flow.build()


def test_lists_cannot_be_told_apart_as_keys_are() -> None:
    fields = {"at": pa.int64(), "tags": pa.list_(pa.string())}
    stream = tw.Flow("tagged").source("posts", tw.items([]), fields=fields, time="at")
    for aggregate in (tw.agg.top("tags"), tw.agg.distinct("tags")):
        with pytest.raises(tw.SchemaError, match="single values"):
            stream.window(tw.tumbling(1)).aggregate(result=aggregate)


def test_quantiles_of_nothing_but_nan_are_none() -> None:
    flow, seen = tw.Flow("nan"), list[Any]()
    rows = [(1, "a", math.nan), (2, "b", 1.0), (3, "b", math.nan)]
    stream = flow.source("x", tw.items(rows), fields={"at": int, "k": str, "x": float}, time="at")
    windows = stream.key_by("k").window(tw.tumbling(10))
    windows.aggregate(q=tw.agg.quantiles("x")).sink(
        "out", tw.call(lambda t: seen.append((t.k, t.q)))
    )
    flow.run(on="inline")
    assert sorted(seen) == [("a", None), ("b", [1.0])]


def test_numbers_that_state_cannot_hold_are_refused_beforehand() -> None:
    fields = {"at": pa.int64(), "price": pa.decimal128(10, 2)}
    stream = tw.Flow("money").source("sales", tw.items([]), fields=fields, time="at")
    for aggregate in (tw.agg.sum("price"), tw.agg.max("price"), tw.agg.values("price")):
        with pytest.raises(tw.SchemaError, match="turn it into whole or floating numbers"):
            stream.window(tw.tumbling(1)).aggregate(result=aggregate)
    assert stream.window(tw.tumbling(1)).aggregate(n=tw.agg.count("price")).fields.names[-1] == "n"


@pytest.mark.parametrize("other", ["unit", "field"])
def test_merged_streams_have_one_time_or_somebody_has_to_say_which(other: str) -> None:
    flow, fields = tw.Flow("merged"), {"at": int, "then": int, "user": str}
    one = flow.source("one", tw.items([(1, 1, "u")]), fields=fields, time="at")
    time = tw.event_time("at", unit="ms") if other == "unit" else "then"
    two = flow.source("two", tw.items([(2000, 2, "u")]), fields=fields, time=time)
    merged = one.merge(two)
    got = "'at' in s and '" + ("at' in ms" if other == "unit" else "then' in s")
    with pytest.raises(TopologyError, match=f"one time of all streams .* got {got}"):
        merged.window(tw.tumbling(10)).aggregate(n=tw.agg.count())
    with pytest.raises(TopologyError, match=f"one time of all streams .* got {got}"):
        merged.join_within(one, "user", within=1, prefix="r_")
    with pytest.raises(TopologyError, match=f"one time of all streams .* got {got}"):
        counted(merged.filter(lambda at: at > 0))
    found: list[Any] = []
    counts = merged.window(tw.tumbling(10), time="then").aggregate(n=tw.agg.count())
    assert run(counts, rows=found) == [(at(0), 2)]


def test_a_stream_with_a_time_and_one_without_are_refused_unless_somebody_says_the_time() -> None:
    flow, fields = tw.Flow("merged"), {"at": int, "user": str}
    one = flow.source("one", tw.items([(1, "u")]), fields=fields, time="at")
    two = flow.source("two", tw.items([(2, "u")]), fields=fields)
    merged = two.merge(one)
    with pytest.raises(TopologyError, match=r"one time of all streams .* got 'at' in s and none"):
        counted(merged)
    with pytest.raises(TopologyError, match=r"one time of all streams .* got 'at' in s and none"):
        counted(merged.merge(one))
    with pytest.raises(TopologyError, match=r"one time of all streams .* got 'at' in s and none"):
        one.join_within(merged.filter(lambda at: at > 0), "user", within=1, prefix="r_")
    assert counted(merged, time="at").fields.names[-1] == "n"


def test_time_of_batches_goes_on_with_the_next_one() -> None:
    stream = counted(clicks(1, delay=5))
    stream.sink("out", tw.stdout())
    times = BatchTimes(stream.flow.build())
    assert times.next(Came({}), {}) == {"count": NEVER}
    assert times.next(Came({"clicks": 18_000_000}), {}) == {"count": 13_000_000}
    # Not far enough to make a difference.
    assert times.next(Came({"clicks": 20_000_000}), {"count": 13_000_000}) == {"count": 13_000_000}
    assert times.next(Came({"clicks": 25_000_000}), {"count": 13_000_000}) == {"count": 20_000_000}


def test_time_never_goes_back() -> None:
    stream = counted(clicks(1))
    stream.sink("out", tw.stdout())
    marks = Watermarks(stream.flow.build(), ManualClock().now())
    marks.saw("clicks", 0, 30_000_000, 0.0)
    assert marks.look(0.0, lambda _: True) == {"count": 30_000_000}
    marks.saw("clicks", 0, 5_000_000, 0.0)
    assert marks.look(0.0, lambda _: True) == {}


def test_time_and_open_windows_outlive_the_process(tmp_path: Any) -> None:
    def run_once(times: list[int], stop: threading.Event | None = None) -> list[Any]:
        seen: list[Any] = []
        stream = clicks(*times)
        session = stream.key_by("user").window(tw.session(10)).aggregate("n", n=tw.agg.count())

        def see(t: Any) -> None:
            seen.append((t.start, t.end, t.n))
            if stop is not None:
                stop.set()

        session.sink("out", tw.call(see))
        settings = {"block_rows": 1, "most_block_rows": 1, "window": 2, "workers": 1}
        on = tw.Local(checkpoint=str(tmp_path), **settings)
        stream.flow.run(on=on, stop=stop or threading.Event())
        return seen

    times = [1, 4, 30, 33, *([36] * 200), 3, 38]
    assert run_once(times, threading.Event()) == [(at(1), at(14), 2)]
    # 3 came when its session had been told, by the process before; the other one goes on.
    assert run_once(times) == [(at(30), at(48), 203)]


def test_nobody_is_told_before_those_that_may_still_send_it_something() -> None:
    stream = (
        counted(clicks(1))
        .key_by("user")
        .window(tw.tumbling(10))
        .aggregate("next", n=tw.agg.sum("n"))
    )
    stream.sink("out", tw.stdout())
    marks = Watermarks(stream.flow.build(), 0.0)
    marks.saw("clicks", 0, 30_000_000, 0.0)
    assert marks.look(0.0, lambda name: name != "count") == {}
    assert marks.look(0.0, lambda _: True) == {"count": 30_000_000, "next": 30_000_000}
