"""Schedulers: the four heuristics of the ordered multi-core document, and what they measure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.clock import ManualClock
from thalweg.errors import UsageError
from thalweg.runtimes.local.scheduling import (
    Choice,
    Measures,
    Meter,
    OperatorView,
    Scheduling,
    make_scheduler,
    schedulable,
)

POLICIES = ["ct", "lp", "et", "qst"]
#: Runs share few cores with others, so no example is judged by its time.
unhurried = settings(deadline=None)
every_policy = pytest.mark.parametrize("policy", POLICIES)


def view(index: int, **differing: Any) -> OperatorView:
    """Make a view of an operator on which one more worker can work."""
    usual: dict[str, Any] = {
        "waiting": 100,
        "workers": 0,
        "limit": 4,
        "output": 0,
        "bound": 1000,
        "cost": 1e-6,
        "selectivity": 1.0,
        "spent": 0.0,
        "flow": 1.0,
    }
    return OperatorView(index, **{**usual, **differing})


def chosen(policy: str, *views: OperatorView, **options: Any) -> int | None:
    choice = make_scheduler(Scheduling(policy, **options)).choose(views)
    return None if choice is None else choice.index


# --- which operators can be chosen ----------------------------------------------------------------


@pytest.mark.parametrize(
    "reason", [{"waiting": 0}, {"workers": 4}, {"workers": 5}, {"output": 1000}, {"bound": 0}]
)
def test_an_operator_is_not_schedulable_without_work_or_without_room(reason: dict) -> None:
    assert schedulable(view(0))
    assert not schedulable(view(0, **reason))


def test_a_last_operator_has_no_bound() -> None:
    assert schedulable(view(0, output=10**9, bound=None))


@every_policy
def test_there_is_no_choice_where_nothing_is_schedulable(policy: str) -> None:
    assert chosen(policy) is None
    assert chosen(policy, view(0, waiting=0), view(1, workers=4)) is None


@every_policy
def test_an_operator_that_cannot_be_worked_on_is_passed_by(policy: str) -> None:
    assert chosen(policy, view(0, waiting=0), view(1), view(2, output=1000)) == 1


# --- CT -------------------------------------------------------------------------------------------


def test_ct_chooses_the_operator_that_has_coped_with_the_fewest_source_rows() -> None:
    # 10 ms at 1 us a row are 10,000 rows; 15 ms at 2 us a row are 7,500.
    assert chosen("ct", view(0, spent=0.010, cost=1e-6), view(1, spent=0.015, cost=2e-6)) == 1


def test_ct_divides_by_the_rows_that_reach_an_operator_for_each_row_of_the_sources() -> None:
    # Both have done 10,000 rows, but the second gets five for each that enters: 2,000 of those.
    first, second = view(0, spent=0.010), view(1, spent=0.010, flow=5.0)
    assert chosen("ct", first, second) == 1
    # A filter before it: its 10,000 rows stand for 100,000.
    assert chosen("ct", first, view(1, spent=0.010, flow=0.1)) == 0


def test_ct_is_not_troubled_by_a_sink_which_sends_nothing() -> None:
    assert chosen("ct", view(0, spent=0.010), view(1, spent=0.002, selectivity=0.0)) == 1


def test_ct_counts_a_time_slice_for_each_worker_that_is_there() -> None:
    # 0 + 2 workers x 5 ms against 8 ms + none.
    assert chosen("ct", view(0, workers=2), view(1, spent=0.008)) == 1
    assert chosen("ct", view(0, workers=2), view(1, spent=0.008), slice=0.001) == 0


def test_ct_spreads_the_time_so_that_all_cope_with_the_same_number_of_rows() -> None:
    costs, flows = [1e-6, 5e-6, 2e-6], [1.0, 2.0, 0.5]
    spent = [0.0, 0.0, 0.0]
    for _ in range(1200):
        views = [view(i, cost=costs[i], flow=flows[i], spent=spent[i]) for i in range(3)]
        index = chosen("ct", *views)
        assert index is not None
        spent[index] += 0.001
    assert spent == pytest.approx([0.1, 1.0, 0.1], abs=0.002)


# --- LP, ET, QST ----------------------------------------------------------------------------------


def test_lp_chooses_the_last_operator_with_input() -> None:
    assert chosen("lp", view(0), view(1), view(2, waiting=1), view(3, waiting=0)) == 2


def test_et_chooses_the_queue_that_takes_longest() -> None:
    # 100 rows x 3 us against 200 rows x 1 us.
    assert chosen("et", view(0, waiting=200), view(1, waiting=100, cost=3e-6)) == 1


def test_et_shares_the_queue_among_those_who_are_there_and_one_more() -> None:
    # 900 us among three workers against 400 us for one.
    assert chosen("et", view(0, waiting=900, workers=2), view(1, waiting=400)) == 1
    assert chosen("et", view(0, waiting=900, workers=1), view(1, waiting=400)) == 0


def test_qst_fills_queues_from_the_front_up_to_their_thresholds() -> None:
    # cs = 2, 1, 0 and C = 9: thresholds of 6, 3 and, for the last, none.
    def qst(first: int, second: int) -> int | None:
        return chosen(
            "qst",
            view(0, output=first, flow=1.0, selectivity=2.0),
            view(1, output=second, flow=2.0, selectivity=0.5),
            view(2, flow=1.0, selectivity=0.0, bound=None),
            capacity=9,
        )

    assert [qst(5, 0), qst(6, 2), qst(6, 3)] == [0, 1, 2]


def test_qst_chooses_nothing_when_all_readers_have_enough() -> None:
    assert chosen("qst", view(0, output=50), view(1, waiting=0), capacity=20) is None


def test_qst_does_not_give_up_an_operator_that_has_sent_nothing_yet() -> None:
    assert chosen("qst", view(0, selectivity=0.0), view(1, waiting=0)) == 0


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["ct", "et"])
def test_what_was_never_measured_is_tried_first_by_one_worker(policy: str) -> None:
    new = view(1, cost=0.0, flow=0.0)
    scheduler = make_scheduler(Scheduling(policy))
    assert scheduler.choose([view(0), new]) == Choice(1, "not measured yet")
    assert chosen(policy, view(0), view(1, cost=0.0, flow=0.0, workers=1)) == 0
    assert chosen(policy, view(1, cost=0.0, flow=0.0, workers=1)) == 1


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("ct", "least throughput"),
        ("lp", "last with input"),
        ("et", "longest queue in time"),
        ("qst", "first below its threshold"),
    ],
)
def test_a_choice_says_why(policy: str, reason: str) -> None:
    scheduler = make_scheduler(Scheduling(policy))
    assert scheduler.name == policy
    assert scheduler.choose([view(3)]) == Choice(3, reason)


@pytest.mark.parametrize("policy", ["ct", "et", "qst"])
def test_ties_go_to_the_earlier_operator(policy: str) -> None:
    assert chosen(policy, view(0), view(1), view(2)) == 0


@st.composite
def pipelines(draw: st.DrawFn) -> list[OperatorView]:
    small = st.integers(0, 3)
    ratios = st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0, 50.0])
    return [
        OperatorView(
            index,
            waiting=draw(st.integers(0, 5)),
            workers=draw(small),
            limit=draw(small),
            output=draw(st.integers(0, 10)),
            bound=draw(st.none() | st.integers(0, 10)),
            cost=draw(st.sampled_from([0.0, 1e-6, 2e-6, 1e-3])),
            selectivity=draw(ratios),
            spent=draw(st.sampled_from([0.0, 0.001, 0.01, 0.05])),
            flow=draw(ratios),
        )
        for index in range(draw(st.integers(0, 6)))
    ]


@every_policy
@given(views=pipelines())
@unhurried
def test_only_a_schedulable_operator_is_chosen(policy: str, views: list[OperatorView]) -> None:
    index = chosen(policy, *views)
    able = [v.index for v in views if schedulable(v)]
    assert index is None or index in able
    if policy != "qst":
        assert (index is None) == (not able)


@given(views=pipelines())
@unhurried
def test_ct_chooses_by_its_formula(views: list[OperatorView]) -> None:
    able = [v for v in views if schedulable(v) and v.cost * v.flow > 0]
    by_formula = min(
        able,
        key=lambda v: ((v.spent + v.workers * 0.005) / (v.cost * v.flow), v.index),
        default=None,
    )
    assert chosen("ct", *able) == (by_formula.index if by_formula else None)


@given(views=pipelines())
@unhurried
def test_et_chooses_by_its_formula(views: list[OperatorView]) -> None:
    able = [v for v in views if schedulable(v) and v.cost > 0]
    by_formula = max(
        able, key=lambda v: (v.waiting * v.cost / (v.workers + 1), -v.index), default=None
    )
    assert chosen("et", *able) == (by_formula.index if by_formula else None)


@given(views=pipelines())
@unhurried
def test_lp_chooses_the_last_schedulable_one(views: list[OperatorView]) -> None:
    able = [v.index for v in views if schedulable(v)]
    assert chosen("lp", *views) == (able[-1] if able else None)


@given(views=pipelines(), capacity=st.integers(1, 100))
@unhurried
def test_qst_chooses_the_first_below_its_threshold(
    views: list[OperatorView], capacity: int
) -> None:
    total = sum(v.flow * v.selectivity for v in views)
    below = [
        v.index
        for v in views
        if schedulable(v)
        and (
            v.bound is None
            or v.output == 0
            or (total > 0 and v.output < capacity / total * v.flow * v.selectivity)
        )
    ]
    assert chosen("qst", *views, capacity=capacity) == (below[0] if below else None)


# --- settings -------------------------------------------------------------------------------------


def test_ct_is_the_default() -> None:
    assert make_scheduler(Scheduling()).name == "ct"
    assert Scheduling() == Scheduling("ct", slice=0.005, window=0.1, capacity=10_000)


def test_a_policy_has_to_exist() -> None:
    with pytest.raises(UsageError, match="expected one of ct, et, lp, qst, got 'fifo'"):
        Scheduling("fifo")


@pytest.mark.parametrize("name", ["slice", "window", "capacity"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_settings_are_above_zero(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"scheduling {name}: expected a number above 0"):
        Scheduling(**{name: value})


# --- meter ----------------------------------------------------------------------------------------


def metered(operators: int = 2) -> tuple[Meter, ManualClock]:
    clock = ManualClock(start=17.0)
    return Meter(operators, Scheduling(window=0.1), clock), clock


def test_an_operator_without_work_is_unknown() -> None:
    meter, _ = metered()
    assert meter.read(0) == Measures(cost=0.0, selectivity=1.0, spent=0.0, flow=0.0)


def test_cost_selectivity_and_flow_are_ratios_of_what_was_counted() -> None:
    meter, _ = metered()
    meter.enter(100)
    meter.record(0, rows=60, sent=120, seconds=0.003)
    meter.record(0, rows=40, sent=80, seconds=0.001)
    meter.record(1, rows=200, sent=0, seconds=0.002)
    assert meter.read(0) == pytest.approx(Measures(4e-5, 2.0, 0.004, 1.0))
    assert meter.read(1) == pytest.approx(Measures(1e-5, 0.0, 0.002, 2.0))


def test_what_is_measured_completes_a_view() -> None:
    meter, _ = metered()
    meter.enter(100)
    meter.record(0, rows=50, sent=100, seconds=0.001)
    made = OperatorView(0, 7, 1, 2, 0, None, *meter.read(0))
    assert (made.cost, made.selectivity, made.spent, made.flow) == (2e-5, 2.0, 0.001, 0.5)


def test_time_spent_begins_anew_with_each_window() -> None:
    meter, clock = metered()
    meter.record(0, 10, 10, 0.02)
    clock.advance(0.09)
    meter.record(0, 10, 10, 0.03)
    assert meter.read(0).spent == pytest.approx(0.05)
    clock.advance(0.02)
    assert meter.read(0).spent == 0.0
    meter.record(1, 10, 10, 0.01)
    assert (meter.read(0).spent, meter.read(1).spent) == (0.0, 0.01)
    clock.advance(5.0)
    assert meter.read(1).spent == 0.0


def test_measures_follow_a_change_within_some_windows() -> None:
    meter, clock = metered()
    for cost, flow in [(1e-6, 1.0), (9e-6, 0.2)]:
        for _ in range(60):
            clock.advance(0.1)
            meter.enter(1000)
            rows = int(1000 * flow)
            meter.record(0, rows, rows, rows * cost)
        assert meter.read(0).cost == pytest.approx(cost, rel=0.05)
        assert meter.read(0).flow == pytest.approx(flow, rel=0.05)


def test_a_pause_does_not_make_an_operator_unknown() -> None:
    meter, clock = metered()
    meter.enter(10)
    meter.record(0, 10, 5, 0.001)
    clock.advance(3600.0)
    assert meter.read(0) == pytest.approx(Measures(1e-4, 0.5, 0.0, 1.0))
