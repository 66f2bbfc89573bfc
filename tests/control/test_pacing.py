"""Rows and intervals of batches, from what batches were like; degrees of those who share places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.control.loop import Plan
from thalweg.control.scaling.foreseeing import foreseen
from thalweg.control.scaling.monitor import Monitor
from thalweg.control.scaling.pacing import Model, Pacing, Ran
from thalweg.control.scaling.values import Decision, Node, Sample, Stream, Timing
from thalweg.control.together import Together


def learnt(*batches: Ran) -> Model:
    pacing = Pacing()
    for ran in batches:
        pacing.add(ran)
    model = pacing.model
    assert model is not None
    return model


def batch(rows: int, places: int, overhead: float, per_row: float, moving: float = 0.0) -> Ran:
    work = per_row * rows / places
    return Ran(rows, places, overhead + work + moving * rows / places, work)


def test_nothing_is_known_before_the_first_batch_with_rows() -> None:
    pacing = Pacing()
    assert pacing.model is None
    pacing.add(Ran(rows=0, places=2, seconds=0.4, work=0.0))
    assert pacing.model is None


def test_overhead_and_cost_of_a_row_are_learnt() -> None:
    model = learnt(*(batch(rows, 2, overhead=0.5, per_row=0.02) for rows in (40, 60, 50)))
    assert model.overhead == pytest.approx(0.5)
    assert model.per_row == pytest.approx(0.02)


def test_a_batch_gets_the_rows_that_fit_into_the_wanted_time() -> None:
    model = learnt(batch(50, 2, overhead=0.5, per_row=0.02))
    assert model.rows(places=2, seconds=2.0) == 150  # 2 places for 1.5 s
    assert model.rows(places=4, seconds=2.0) == 300


def test_a_wanted_time_that_hardly_holds_the_overhead_is_stretched() -> None:
    assert Model(overhead=1.0, per_row=0.02).rows(places=1, seconds=0.1) == 50  # of 2 s


def test_rows_that_cost_nothing_have_no_bound() -> None:
    model = learnt(Ran(rows=10, places=1, seconds=0.3, work=0.0))
    assert model.rows(places=1, seconds=1.0) > 1_000_000
    assert model.interval(places=1, rate=1e6, seconds=1.0) == pytest.approx(0.3)


def test_the_first_batch_says_what_rows_cost_but_not_what_batches_do() -> None:
    model = learnt(Ran(rows=10, places=1, seconds=9.0, work=0.2, usual=False))
    assert (model.overhead, model.per_row) == (0.0, pytest.approx(0.02))


def test_a_batch_that_was_held_up_does_not_make_others_longer() -> None:
    held_up = Ran(rows=50, places=2, seconds=12.0, work=0.5)
    model = learnt(held_up, *(batch(50, 2, overhead=0.5, per_row=0.02) for _ in range(2)))
    assert model.overhead == pytest.approx(0.5)


def test_what_rows_take_besides_work_counts_where_it_is_plain() -> None:
    sizes = (100, 400, 200, 800, 300, 100, 600, 500)
    model = learnt(*(batch(rows, 2, 0.3, per_row=0.001, moving=0.002) for rows in sizes))
    assert model.overhead == pytest.approx(0.3)
    assert model.per_row == pytest.approx(0.003)


def test_work_is_charged_with_the_time_that_batches_lose() -> None:
    model, ran = Model(overhead=0.5, per_row=0.02), batch(100, 2, 0.5, 0.02)
    assert model.charge(ran, seconds=2.0) == pytest.approx(2 * 1.0 / 0.75)


@given(
    overhead=st.floats(0.01, 5),
    per_row=st.floats(1e-6, 1),
    places=st.integers(1, 64),
    wanted=st.floats(0.1, 60),
)
def test_a_batch_of_so_many_rows_takes_no_longer_than_wanted(
    overhead: float, per_row: float, places: int, wanted: float
) -> None:
    model = Model(overhead, per_row)
    rows = model.rows(places, wanted)
    took = overhead + per_row * rows / places
    assert rows == 1 or took <= model.wanted(wanted) * (1 + 1e-6)


@given(
    overhead=st.floats(0.01, 5),
    per_row=st.floats(1e-6, 1),
    places=st.integers(1, 64),
    rate=st.floats(0, 1e4),
)
def test_with_the_interval_places_keep_up_unless_they_cannot(
    overhead: float, per_row: float, places: int, rate: float
) -> None:
    interval = Model(overhead, per_row).interval(places, rate, seconds=1e9)
    use = rate * per_row / places
    if use < 0.999:
        took = overhead + rate * interval * per_row / places
        assert took <= interval * (1 + 1e-6)


# --- one degree for all -----------------------------------------------------------------------


def together(*made: Decision) -> dict[str, int]:
    nodes = [Node(each.component) for each in made]
    view = Monitor(nodes).view(0.0, {each.component: each.before for each in made})
    plan = Plan(made)
    sharing = {each.component for each in made if each.component != "sink"}
    plan = Plan(plan.made + tuple(Together(sharing).decide(view, plan)))
    return {each.component: each.degree for each in plan.degrees}


def test_the_largest_wish_counts() -> None:
    made = Decision("split", 3, 2, ""), Decision("count", 5, 2, "")
    assert together(*made) == {"split": 5, "count": 5}


def test_places_stay_while_anybody_needs_them() -> None:
    made = Decision("split", 1, 4, ""), Decision("count", 4, 4, "")
    assert together(*made) == {"split": 4, "count": 4}


def test_who_has_a_degree_of_its_own_keeps_it() -> None:
    made = Decision("split", 1, 4, ""), Decision("sink", 7, 7, "")
    assert together(*made) == {"split": 1, "sink": 7}


# --- what has to be asked for early -----------------------------------------------------------


def rising(step: int) -> Monitor:
    """A component that one task can give 10 tuples/s, on a stream that rises with every sample."""
    nodes = [Node("source"), Node("count", (Stream("source", "default"),), most=8)]
    monitor = Monitor(nodes, Timing(30, 10, 30))
    for k in range(1, 13):
        rows = 100 + step * k
        monitor.add(Sample("count", 10.0 * k, 4, rows, rows, busy=rows / 10))
    return monitor


def test_what_a_rise_will_need_is_foreseen() -> None:
    view = rising(20).view(120.0, {"source": 1, "count": 4})
    assert foreseen(view, seconds=10.0) == 4  # 36 tuples/s
    assert foreseen(view, seconds=60.0) == 5  # 46 tuples/s


def test_a_steady_stream_needs_no_more_later() -> None:
    view = rising(0).view(120.0, {"source": 1, "count": 4})
    assert foreseen(view, seconds=10.0) == foreseen(view, seconds=120.0) == 1


def test_nothing_is_foreseen_from_a_gap() -> None:
    assert foreseen(rising(0).view(150.0, {"source": 1, "count": 4}), seconds=10.0) == 0
