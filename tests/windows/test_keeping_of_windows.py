"""What is kept of windows, against going through all tuples again and again."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.codecs import MsgpackCodec
from thalweg.errors import SchemaError
from thalweg.eventtime import ALWAYS, NEVER
from thalweg.windows import agg
from thalweg.windows.aggregates import Aggregate, Count, combined, merged, results
from thalweg.windows.grouping import codes, grouped, pieces
from thalweg.windows.keeping import Keeping, Piece, Told, keeping
from thalweg.windows.specs import (
    LandmarkWindow,
    SessionWindow,
    TimeSpec,
    TimeWindow,
    landmark,
    rows,
    session,
    sliding,
    tumbling,
)

INF, NAN = float("inf"), float("nan")
AGGREGATES = (agg.count(), agg.sum("x"), agg.values("x"))
#: Blocks of tuples (time, value), each with how far time has come behind it.
streams = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 60), st.integers(-5, 5)), min_size=1, max_size=6),
        st.integers(0, 15),
    ),
    max_size=8,
)
time_windows = st.builds(
    lambda every, times, offset: TimeWindow(every * times, every, offset % every),
    st.integers(1, 7),
    st.integers(1, 4),
    st.integers(0, 6),
)
#: Windows of many panes, and streams that go on for long enough.
long_windows = st.builds(TimeWindow, st.integers(17, 40), st.just(1), st.just(0))
long_streams = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 25), st.integers(-5, 5)), min_size=5, max_size=30),
        st.integers(0, 8),
    ),
    max_size=6,
).map(
    lambda blocks: [
        ([(12 * at + time, x) for time, x in block], step)
        for at, (block, step) in enumerate(blocks)
    ]
)


class Came(NamedTuple):
    """A tuple, and how far time had come when it came."""

    time: int
    x: int
    now: int
    #: The number of its block.
    block: int = 0


class Played(NamedTuple):
    told: list[Told]
    #: Tuples in the order in which they came: those that came in time, and late ones.
    good: list[Came]
    late: list[Came]


def played(
    spec: TimeSpec, stream: Any, allowed: int = 0, restarts: frozenset[int] = frozenset()
) -> Played:
    """Play a stream of one key; gives what was told, and which tuples came in time, or late.

    Behind some blocks it goes on with what was written down.
    """
    rules: Keeping = keeping(spec, AGGREGATES, allowed)
    kept, now = None, NEVER
    found = Played([], [], [])
    for at, (block, step) in enumerate(stream):
        times = np.array([time for time, _ in block])
        stretches = rules.stretches(times)
        gap = spec.gap if isinstance(spec, SessionWindow) else None
        groups = grouped(np.zeros(len(block), dtype=np.int64), stretches[0], gap)
        column = pa.array([x for _, x in block])
        made = pieces(groups, stretches, rules.parts, [None, column, column])
        added = rules.add(kept, made, now)
        kept = added.kept
        found.told.extend(added.again)
        ends = [*groups.starts.tolist()[1:], len(block)]
        bounds = list(zip(groups.starts.tolist(), ends, strict=True))
        late = {row for n in added.late for row in groups.order[slice(*bounds[n])].tolist()}
        for row, (time, x) in enumerate(block):
            (found.late if row in late else found.good).append(Came(time, x, now, at))
        now = max(now, max(tuple_.time for tuple_ in (*found.good, *found.late)) - step)
        if kept is not None:
            kept, windows = rules.due(kept, now)
            found.told.extend(windows)
        if kept is not None:
            check_next(rules, written(kept), now)
            kept = written(kept) if at in restarts else kept
    if kept is not None:
        found.told.extend(rules.due(kept, ALWAYS)[1])
    return found


def written(kept: Any) -> Any:
    """Write down what is kept, and read it again."""
    return MsgpackCodec().decode(MsgpackCodec().encode(kept))


def check_next(rules: Keeping, kept: Any, now: int) -> None:
    """Nothing changes before the next time, and something does then."""
    after = rules.next(kept)
    assert after > now
    assert rules.due(kept, after - 1) == (kept, [])
    assert after == ALWAYS or rules.due(kept, after)[0] is not kept


def seen(told: list[Told]) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Give the last word on each window: number, sum, and the values."""
    return {
        (window.start, window.end): tuple(results(AGGREGATES, window.partials)) for window in told
    }


def summed(values: list[int]) -> tuple[Any, ...]:
    return len(values), sum(values), values


def by_hand(spec: TimeWindow, tuples: list[Came], allowed: int) -> Any:
    """Put tuples into the windows that may still be told, by pane, and then as they came."""
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    pane = spec.pane
    for time, x, now, _ in sorted(tuples, key=lambda each: (each.time - spec.offset) // pane):
        start = (time - spec.offset) // spec.every * spec.every + spec.offset
        while start > time - spec.size:
            if start + spec.size + allowed > now:
                found[start, start + spec.size].append(x)
            start -= spec.every
    return {window: summed(values) for window, values in found.items()}


@given(time_windows, streams)
def test_tuples_in_time_are_in_all_their_windows(spec: TimeWindow, stream: Any) -> None:
    told, good, late = played(spec, [(block, 100) for block, _ in stream])
    expected = by_hand(spec, good, 0)
    assert seen(told) == expected
    assert not late
    assert len(told) == len(expected)


@given(time_windows, streams)
def test_a_window_is_told_once_and_holds_what_came_before_its_end(
    spec: TimeWindow, stream: Any
) -> None:
    told, good, late = played(spec, stream)
    assert seen(told) == by_hand(spec, good, 0)
    assert len({(window.start, window.end) for window in told}) == len(told)
    assert [w.end for w in told] == sorted(w.end for w in told)
    assert sum(len(block) for block, _ in stream) == len(good) + len(late)
    assert not by_hand(spec, late, 0)


@given(time_windows, streams, st.integers(0, 30) | st.just(1000))
def test_with_room_for_late_tuples_the_last_word_holds_them_too(
    spec: TimeWindow, stream: Any, allowed: int
) -> None:
    told, good, late = played(spec, stream, allowed)
    assert seen(told) == by_hand(spec, good, allowed)
    assert not by_hand(spec, late, allowed)


@settings(deadline=None)
@given(
    long_windows,
    long_streams,
    st.integers(0, 30) | st.just(1000),
    st.frozensets(st.integers(0, 5)),
)
def test_windows_of_many_panes_hold_late_tuples_and_go_on_after_restarts(
    spec: TimeWindow, stream: Any, allowed: int, restarts: frozenset[int]
) -> None:
    told, good, late = played(spec, stream, allowed, restarts)
    assert seen(told) == by_hand(spec, good, allowed)
    assert not by_hand(spec, late, allowed)


def test_a_late_tuple_counts_in_the_windows_of_many_panes_that_are_still_to_come() -> None:
    rules = keeping(TimeWindow(30, 1), (agg.sum("x"),), 0)
    kept, _, _ = rules.add(None, [Piece(at, at + 1, [1]) for at in range(60)], NEVER)
    for now in (40, 45):
        kept, _ = rules.due(kept, now)
    kept, _, late = rules.add(kept, [Piece(20, 21, [100]), Piece(12, 13, [7])], 45)
    assert late == [1]
    _, told = rules.due(kept, 52)
    assert {window.end: window.partials for window in told} == {
        end: [130 if end <= 50 else 30] for end in range(46, 53)
    }


REAL = (agg.sum("x"), agg.mean("x"), agg.deviation("x"), agg.min("x"), agg.max("x"), agg.count())
reals = st.floats(-1e20, 1e20) | st.sampled_from([0.1, 1e308, -1e308, 1e-300, INF, -INF, NAN])


def one_by_one(values: list[float], size: int, steps: list[int]) -> list[Any]:
    """Give what windows of so many rows have, each row a pane, told after so many of them."""
    rules = keeping(TimeWindow(size, 1), REAL, 0)
    parts = [a.partials(pa.array(values), np.arange(len(values)), len(values)) for a in REAL]
    made = []
    kept: Any = None
    now = 0
    for step in steps:
        new = [
            Piece(at, at + 1, [part[at] for part in parts])
            for at in range(now, min(len(values), now + abs(step)))
        ]
        now += abs(step)
        kept, told = rules.due(rules.add(kept, new, NEVER).kept or [NEVER, []], now)
        made += told
        kept = written(kept) if step < 0 else kept
    return [(window.end, repr(results(REAL, window.partials))) for window in made]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(reals, min_size=20, max_size=70),
    st.integers(17, 30),
    st.lists(st.integers(-30, 30).filter(bool), min_size=70, max_size=70),
)
def test_floating_results_do_not_depend_on_when_windows_are_told(
    values: list[float], size: int, steps: list[int]
) -> None:
    at_once = one_by_one(values, size, [200])
    told = one_by_one(values, size, [*steps, 200])
    assert told[: len(values)] == at_once[: len(values)]


@pytest.mark.parametrize("name", ["sum", "mean", "variance", "min", "max", "count of values"])
@given(st.lists(st.floats(-1e6, 1e6), min_size=20, max_size=60))
def test_opened_parts_make_the_same_in_any_groups(name: str, values: list[float]) -> None:
    aggregate, _ = CASES[name]
    parts = aggregate.partials(pa.array(values), np.arange(len(values)), len(values))
    opened = [aggregate.opened(part) for part in parts]
    from_the_left = aggregate.closed(reduce(aggregate.joined, opened))
    from_the_right = aggregate.closed(reduce(lambda b, a: aggregate.joined(a, b), opened[::-1]))
    assert from_the_left == from_the_right
    whole = aggregate.result(aggregate.combine(parts))
    assert aggregate.result(from_the_left) == pytest.approx(whole, rel=1e-6, abs=1e-3)


@dataclass(frozen=True)
class Counted(Count):
    """Counts how often it has put something together."""

    times: list[int] = field(default_factory=list)

    def add(self, one: int, other: int) -> int:
        """Add."""
        self.times.append(1)
        return one + other

    def combine(self, partials: list[int]) -> int:
        """Add."""
        self.times.extend([1] * len(partials))
        return sum(partials)


@pytest.mark.parametrize("step", [1, 7, 600])
def test_a_window_of_many_panes_costs_a_few_additions(step: int) -> None:
    counted = Counted()
    rules = keeping(TimeWindow(200, 1), (counted,), 0)
    kept, windows = None, 0
    for now in range(0, 600, step):
        new = [Piece(at, at + 1, [1]) for at in range(now, min(600, now + step))]
        kept, told = rules.due(rules.add(kept, new, NEVER).kept or [NEVER, []], now + step)
        windows += len(told)
        assert written(kept) == kept
    assert windows >= 600
    assert len(counted.times) < 5 * windows


def in_sessions(gap: int, tuples: list[Came]) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Put tuples into sessions by going through them in the order of time; values as they came."""
    runs: list[list[tuple[int, int, int]]] = []
    for time, number, x in sorted((each.time, n, each.x) for n, each in enumerate(tuples)):
        if not runs or time - runs[-1][-1][0] >= gap:
            runs.append([])
        runs[-1].append((time, number, x))
    return {
        (run[0][0], run[-1][0] + gap): summed(
            [x for _, _, x in sorted(run, key=lambda each: each[1])]
        )
        for run in runs
    }


@given(st.integers(1, 12), streams)
def test_sessions_are_those_of_the_sorted_tuples(gap: int, stream: Any) -> None:
    told, good, late = played(SessionWindow(gap), [(block, 100) for block, _ in stream])
    assert not late
    assert seen(told) == in_sessions(gap, good)


@given(st.integers(1, 12), streams)
def test_sessions_that_late_tuples_join_are_told_again_as_one(gap: int, stream: Any) -> None:
    told, good, late = played(SessionWindow(gap), stream, allowed=1000)
    assert not late
    last = seen(told)
    assert {window: last.get(window) for window in in_sessions(gap, good)} == in_sessions(gap, good)


@given(st.integers(1, 12), streams)
def test_every_tuple_is_in_one_session_or_late(gap: int, stream: Any) -> None:
    told, good, late = played(SessionWindow(gap), stream)
    assert sum(results(AGGREGATES, w.partials)[0] for w in told) == len(good)
    assert sum(len(block) for block, _ in stream) == len(good) + len(late)


def steps(call: Callable[[], Any]) -> int:
    """Count the steps of Python that a call takes."""
    taken, before = 0, sys.gettrace()

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal taken
        frame.f_trace_opcodes = True
        taken += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return taken


@pytest.mark.parametrize("allowed", [0, 10**6])
def test_sessions_of_a_block_cost_no_more_however_many_they_are(allowed: int) -> None:
    rules = keeping(SessionWindow(1), (agg.count(),), allowed)
    few, many = (
        steps(lambda n=n: rules.add(None, [Piece(at, at + 1, [1]) for at in range(0, 2 * n, 2)], n))
        for n in (100, 1000)
    )
    assert many < 11 * few


@given(st.integers(1, 10), st.integers(0, 20), streams, st.integers(0, 30) | st.just(1000))
def test_landmark_windows_hold_everything_so_far(
    every: int, since: int, stream: Any, allowed: int
) -> None:
    told, good, late = played(LandmarkWindow(every, since), stream, allowed)
    assert [each for each in late if each.time >= since] == []
    # The first window of each that is behind it, and had not been told for good when it came.
    ends = {
        each: next(
            end
            for end in range(since + every, 1000, every)
            if each.time < end and end + allowed > each.now
        )
        for each in good
    }
    by_stretch = sorted(
        good, key=lambda each: (ends[each], each.block, (each.time - since) // every)
    )
    assert seen(told) == {
        (since, end): summed([each.x for each in by_stretch if ends[each] <= end])
        for end in ends.values()
    }


def test_a_tuple_counts_in_every_landmark_window_that_is_told_after_it_came() -> None:
    # As in a window of 30 seconds that goes on every 10.
    stream = [([(time, time)], 0) for time in (5, 12, 8, 25)]
    told, _, late = played(LandmarkWindow(10, 0), stream)
    values = {window.end: sorted(results(AGGREGATES, window.partials)[2]) for window in told}
    assert values == {10: [5], 20: [5, 8, 12], 30: [5, 8, 12, 25]}
    assert late == []


def test_landmark_windows_leave_out_what_comes_when_all_time_has_passed() -> None:
    rules = keeping(LandmarkWindow(10, 0), (agg.count(),), 0)
    kept, again, late = rules.add(None, [Piece(0, 10, [1])], ALWAYS)
    assert (kept, again, late) == (None, [], [0])


def test_what_nobody_has_to_be_told_of_stays_as_it_is() -> None:
    rules = keeping(LandmarkWindow(10, 0), (agg.count(),), 0)
    kept, told = rules.due([NEVER, [[0, 10, [1]], [20, 30, [1]]]], 10)
    assert [window.end for window in told] == [10]
    assert kept is not None
    assert rules.due(kept, 20) == (kept, [])
    assert rules.due(kept, 20)[0] is kept


# --- aggregates ------------------------------------------------------------------------------

numbers = st.lists(st.none() | st.integers(-1000, 1000), min_size=1, max_size=30)
CASES: dict[str, tuple[Aggregate, Any]] = {
    "count": (agg.count(), lambda all_, _: len(all_)),
    "count of values": (agg.count("x"), lambda _, known: len(known)),
    "sum": (agg.sum("x"), lambda _, known: sum(known) if known else None),
    "min": (agg.min("x"), lambda _, known: min(known, default=None)),
    "max": (agg.max("x"), lambda _, known: max(known, default=None)),
    "mean": (agg.mean("x"), lambda _, k: pytest.approx(np.mean(k), abs=1e-9) if k else None),
    "variance": (
        agg.variance("x"),
        lambda _, k: pytest.approx(np.var(k, ddof=1), abs=1e-6) if len(k) > 1 else None,
    ),
    "deviation": (
        agg.deviation("x"),
        lambda _, k: pytest.approx(np.std(k, ddof=1), abs=1e-6) if len(k) > 1 else None,
    ),
    "values": (agg.values("x"), lambda _, known: known),
    "fold": (agg.fold("x", list, lambda s, x: [*s, x]), lambda _, known: known),
    "top": (
        agg.top("x", 3),
        lambda _, k: sorted(set(k), key=lambda x: (-k.count(x), x))[:3],
    ),
    "distinct": (agg.distinct("x"), lambda _, known: len(set(known))),
}


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_an_aggregate_of_parts_is_that_of_the_whole(name: str, data: Any) -> None:
    aggregate, expected = CASES[name]
    values = data.draw(numbers)
    cuts = data.draw(st.lists(st.integers(1, max(1, len(values) - 1)), max_size=4))
    starts = np.array(sorted({0, *(c for c in cuts if c < len(values))}))
    column = pa.array(values, pa.int64()) if aggregate.field else None
    parts = aggregate.partials(column, starts, len(values))
    whole = [parts[0]]
    for part in parts[1:]:
        whole = merged([aggregate], whole, [part])
    known = [value for value in values if value is not None]
    assert results([aggregate], whole)[0] == expected(values, known)
    at_once = combined([aggregate], [[part] for part in parts])
    assert results([aggregate], at_once)[0] == expected(values, known)


@pytest.mark.parametrize("cuts", [[0], [0, 1], [0, 1, 2], [0, 2]])
@pytest.mark.parametrize("nulls", [[], [None]])
@pytest.mark.parametrize(
    "values", [[1.0, NAN, 5.0], [NAN, 1.0, 5.0], [5.0, 1.0, NAN], [NAN, NAN, NAN]]
)
def test_nan_is_left_out_of_extremes_unless_it_is_alone(
    values: list[Any], nulls: list[Any], cuts: list[int]
) -> None:
    alone = all(math.isnan(value) for value in values)
    for aggregate, expected in (
        (agg.min("x"), NAN if alone else 1.0),
        (agg.max("x"), NAN if alone else 5.0),
        (agg.top("x", 3), [NAN] if alone else [1.0, 5.0, NAN]),
    ):
        column = pa.array([*values, *nulls], pa.float64())
        parts = aggregate.partials(column, np.array(cuts), len(column))
        made = results([aggregate], combined([aggregate], [[part] for part in parts]))[0]
        assert repr(made) == repr(expected)


#: Numbers, and their mean and variance.
GREAT: list[tuple[list[float], float, float]] = [
    ([INF, 1.0], INF, NAN),
    ([1.0, -INF, 5.0], -INF, NAN),
    ([INF, INF], INF, NAN),
    ([INF, 1.0, -INF], NAN, NAN),
    ([1.0, NAN, INF], NAN, NAN),
    ([1e308, -1e308, 1e308], 1e308 / 3, INF),
    ([1e308, 1e308], 1e308, 0.0),
]


@pytest.mark.parametrize(("values", "mean", "variance"), GREAT, ids=str)
def test_means_of_infinity_and_great_numbers_do_not_depend_on_the_parts(
    values: list[float], mean: float, variance: float
) -> None:
    column = pa.array(values)
    for cuts in ([0], list(range(len(values)))):
        parts = agg.mean("x").partials(column, np.array(cuts), len(values))
        made = combined([agg.mean("x")], [[part] for part in parts])
        assert results([agg.mean("x")], made)[0] == pytest.approx(mean, nan_ok=True)
        assert results([agg.variance("x")], made)[0] == pytest.approx(variance, nan_ok=True)


MOMENTS = {"mean": agg.mean("x"), "variance": agg.variance("x"), "deviation": agg.deviation("x")}


def by_fractions(name: str, values: list[int]) -> float | None:
    """Give a mean or variance of whole numbers without losing anything before the end."""
    if len(values) < 2 and name != "mean":
        return None
    mean = Fraction(sum(values), len(values))
    if name == "mean":
        return float(mean)
    variance = float(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return math.sqrt(variance) if name == "deviation" else variance


@pytest.mark.parametrize("name", MOMENTS)
@given(
    st.lists(st.integers(-9, 9) | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40),
    st.frozensets(st.integers(1, 39)),
    st.booleans(),
)
def test_moments_of_whole_numbers_are_exact_in_any_parts(
    name: str, values: list[int], cuts: frozenset[int], nulls: bool
) -> None:
    aggregate = MOMENTS[name]
    starts = np.array([0, *sorted(cut for cut in cuts if cut < len(values))])
    column = pa.array([*values, None] if nulls else values, pa.int64())
    parts = written(aggregate.partials(column, starts, len(column)))
    expected = by_fractions(name, values)
    assert aggregate.result(aggregate.combine(parts)) == expected
    assert aggregate.result(aggregate.whole(parts)) == expected


@pytest.mark.parametrize("name", MOMENTS)
@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=9),
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=9),
    st.booleans(),
)
def test_moments_that_were_written_as_floating_numbers_go_on(
    name: str, old: list[int], new: list[int], first: bool
) -> None:
    aggregate = MOMENTS[name]
    before = [len(old), np.mean(old).item(), np.var(old).item() * len(old)]
    (now,) = aggregate.partials(pa.array(new), np.array([0]), len(new))
    parts = [before, now] if first else [now, before]
    expected = by_fractions(name, old + new)
    for made in (aggregate.combine(parts), aggregate.whole(parts)):
        assert aggregate.result(made) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("type_", [pa.int8(), pa.uint32(), pa.uint64()])
def test_moments_have_room_for_numbers_of_any_width(type_: pa.DataType) -> None:
    most = 2 ** (type_.bit_width - 1) - 1
    column = pa.array([most, 0, most], type_)
    for name, aggregate in MOMENTS.items():
        (partial,) = aggregate.partials(column, np.array([0]), 3)
        assert aggregate.result(partial) == by_fractions(name, [most, 0, most])


@pytest.mark.parametrize("type_", [pa.int8(), pa.int32(), pa.uint16()])
def test_sums_of_small_numbers_have_room(type_: pa.DataType) -> None:
    aggregate = agg.sum("x")
    most = 2 ** (type_.bit_width - 2)
    (partial,) = aggregate.partials(pa.array([most], type_), np.array([0]), 1)
    whole = combined([aggregate], [[partial]] * 2)
    assert results([aggregate], whole) == [2 * most]
    assert aggregate.type(type_) == pa.int64()


def test_sums_without_room_say_so() -> None:
    with pytest.raises(SchemaError, match="sum of field 'x': expected a sum of at most 64 bits"):
        results([agg.sum("x")], [2**63])


def test_sums_of_great_numbers_do_not_wrap_around() -> None:
    most = 2**62
    partials = agg.sum("x").partials(pa.array([most, most, most]), np.array([0]), 3)
    assert partials == [3 * most]


def test_quantiles_are_near() -> None:
    column = pa.array(np.arange(10_000, dtype=np.float64))
    (partial,) = agg.quantiles("x", [0.1, 0.9]).partials(column, np.array([0]), 10_000)
    low, high = agg.quantiles("x", [0.1, 0.9]).result(partial)
    assert low == pytest.approx(1000, abs=300)
    assert high == pytest.approx(9000, abs=300)


def test_the_first_and_the_last_quantile_are_the_smallest_and_the_greatest_value() -> None:
    values = np.random.default_rng(1).permutation(20_000)
    quantiles = agg.quantiles("x", [1.0, 0, 0.5, 1])
    parts = quantiles.partials(pa.array(values), np.arange(0, 20_000, 500), 20_000)
    high, low, _, same = quantiles.result(quantiles.combine(parts))
    assert (low, high, same) == (0, 19_999, 19_999)


@given(st.lists(st.tuples(st.text(max_size=2), st.integers(0, 3)), min_size=1, max_size=30))
def test_rows_have_one_code_if_their_values_are_the_same(pairs: list[tuple[str, int]]) -> None:
    columns = [pa.array([a for a, _ in pairs]), pa.array([b for _, b in pairs])]
    made = codes(columns, len(pairs)).tolist()
    for one, first in zip(pairs, made, strict=True):
        for other, second in zip(pairs, made, strict=True):
            assert (one == other) == (first == second)


def test_windows_say_what_they_are() -> None:
    assert tumbling("1 min") == TimeWindow(60_000_000, 60_000_000)
    assert sliding("1 min", "20 s", offset="30 s").offset == 10_000_000
    assert session("5 s").gap == 5_000_000
    assert landmark("1 h").since == 0
    assert rows(10, every=5).every == 5
