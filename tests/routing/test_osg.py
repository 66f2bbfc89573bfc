"""Load-aware grouping: what values are thought to cost, and where tuples go for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import UsageError
from thalweg.routing.load_aware import (
    Correction,
    OsgSettings,
    Report,
    Scheduler,
    State,
    TaskCosts,
)
from thalweg.sketches.costs import CostSketch

HASHES = np.random.default_rng(7).integers(0, 2**64, 4096, np.uint64)
SOME = st.lists(st.integers(0, 200), min_size=1, max_size=80).map(lambda rows: HASHES[rows])


def report(task: int, costs: dict[int, float]) -> Report:
    rows, seconds = list(costs), list(costs.values())
    return Report(task, CostSketch.empty(0.001).plus(HASHES[rows], np.array(seconds)))


def running(tasks: int, costs: dict[int, float], literal: bool = False) -> Scheduler:
    """Make a scheduler that has heard of every task what values cost."""
    scheduler = Scheduler(tasks, OsgSettings(literal=literal))
    for task in range(tasks):
        scheduler.hear(report(task, costs))
    return scheduler


# --- what values cost -----------------------------------------------------------------------------


def test_the_matrices_have_the_size_of_the_formula():
    """r = ceil(ln 1/delta) rows, c = ceil(e/eps) columns."""
    assert CostSketch.empty(0.05, 0.1).counts.shape == (3, 55)
    assert CostSketch.empty(0.01, 0.01).counts.shape == (5, 272)
    with pytest.raises(UsageError, match="shares between 0 and 1"):
        CostSketch.empty(0.0)


def test_few_values_are_known_exactly():
    rows = np.repeat([3, 5, 9], [10, 20, 30])
    seconds = np.select([rows == 3, rows == 5], [0.01, 0.05], 0.09)
    sketch = CostSketch.empty().plus(HASHES[rows], seconds)
    assert sketch.estimates(HASHES[[3, 5, 9]]) == pytest.approx([0.01, 0.05, 0.09])
    assert sketch.mean == pytest.approx(seconds.mean())


def test_a_value_that_never_came_costs_the_mean():
    sketch = CostSketch.empty(0.001).plus(HASHES[[1, 2]], np.array([1.0, 3.0]))
    assert sketch.estimates(HASHES[[77]]).tolist() == [2.0]
    assert CostSketch.empty().estimates(HASHES[[77]]).tolist() == [0.0]


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0.001, 1.0)), min_size=1, max_size=200))
def test_an_estimate_is_between_the_least_and_the_highest_cost(tuples):
    rows, seconds = map(np.array, zip(*tuples, strict=True))
    found = CostSketch.empty().plus(HASHES[rows], seconds).estimates(HASHES[rows])
    assert (found >= seconds.min() - 1e-9).all()
    assert (found <= seconds.max() + 1e-9).all()


def test_cells_hold_few_tuples_of_other_values():
    """Count-min: at most epsilon of all tuples more than the true count, for 1 - delta of them."""
    epsilon, delta = 0.05, 0.1
    rows = np.minimum(np.random.default_rng(1).zipf(1.5, 20_000) - 1, 4095)
    sketch = CostSketch.empty(epsilon, delta).plus(HASHES[rows], np.ones(len(rows)))
    cells = sketch._cells(HASHES)
    least = np.min([sketch.counts[row, cells[row]] for row in range(len(cells))], axis=0)
    true = np.bincount(rows, minlength=4096)
    assert (least >= true).all()
    assert (least - true <= epsilon * len(rows)).mean() >= 1 - delta


@given(SOME, SOME)
def test_sketches_add_up(first, second):
    costs = np.arange(1.0, 1.0 + len(first)), np.arange(5.0, 5.0 + len(second))
    parts = [CostSketch.empty().plus(*each) for each in zip((first, second), costs, strict=True)]
    whole = parts[0].plus(second, costs[1])
    together = CostSketch.total(parts)
    assert np.allclose(together.counts, whole.counts)
    assert np.allclose(together.seconds, whole.seconds)


# --- the task -------------------------------------------------------------------------------------


def executed(costs: TaskCosts, rows: list[int], seconds: list[float]) -> list:
    return costs.executed(HASHES[rows], np.array(seconds))


def test_a_task_reports_when_costs_are_stable_and_begins_anew():
    costs = TaskCosts(2, OsgSettings(every=4))
    assert executed(costs, [1, 1, 1, 1], [0.1] * 4) == []  # the first look has nothing to compare
    assert executed(costs, [1, 1, 1, 1], [0.5] * 4) == []  # 0.3 instead of 0.1
    assert executed(costs, [1, 1, 1, 1], [0.3] * 4) != []
    assert executed(costs, [1, 1, 1, 1], [0.3] * 4) == []
    (answer,) = executed(costs, [1, 1, 1, 1], [0.3] * 4)
    assert (answer.task, answer.sketch.counts[0].sum()) == (2, 8)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20), st.integers(1, 10))
def test_it_does_not_matter_how_tuples_are_cut_into_blocks(sizes, every):
    """Reports depend on the tuples, not on how many come at once."""
    rows = np.arange(sum(sizes)) % 7
    seconds = 0.01 + rows * 0.01
    whole, cut = TaskCosts(0, OsgSettings(every=every)), TaskCosts(0, OsgSettings(every=every))
    expected = whole.executed(HASHES[rows], seconds)
    ends = np.cumsum(sizes)
    found = []
    for stop, size in zip(ends, sizes, strict=True):
        part = slice(stop - size, stop)
        found += cut.executed(HASHES[rows[part]], seconds[part])
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert np.allclose(a.sketch.seconds, b.sketch.seconds)


def test_a_marker_is_answered_behind_the_tuples_before_it():
    scheduler = running(1, {1: 0.1, 2: 0.1})
    costs = TaskCosts(0, OsgSettings(every=100))
    (marker,) = scheduler.assign(HASHES[[1, 2, 1]]).markers
    assert (marker.after, marker.estimate) == (3, pytest.approx(0.3))
    costs.mark(marker)
    assert executed(costs, [1, 2], [0.2, 0.2]) == []
    (answer,) = executed(costs, [1, 1], [0.2, 9.0])
    assert answer == Correction(0, marker.turn, pytest.approx(0.6 - 0.3))


# --- the sender -----------------------------------------------------------------------------------


def test_it_goes_in_turn_until_every_task_has_reported():
    scheduler = Scheduler(3)
    assert scheduler.assign(HASHES[:4]).tasks.tolist() == [0, 1, 2, 0]
    scheduler.hear(report(0, {1: 1.0}))
    scheduler.hear(report(2, {1: 1.0}))
    assert scheduler.state is State.ROUND_ROBIN
    assert scheduler.assign(HASHES[:3]).tasks.tolist() == [1, 2, 0]
    scheduler.hear(report(1, {1: 1.0}))
    assert scheduler.state is State.SEND_ALL


def test_markers_go_once_to_each_task_and_answers_correct_the_estimates():
    scheduler = running(2, {1: 1.0}, literal=True)
    first = scheduler.assign(HASHES[[1]])
    assert [marker.task for marker in first.markers] == [0]
    assert scheduler.state is State.SEND_ALL
    second = scheduler.assign(HASHES[[1]])
    assert [marker.task for marker in second.markers] == [1]
    assert scheduler.state is State.WAIT_ALL
    turn = second.markers[0].turn
    scheduler.hear(Correction(0, turn, 5.0))
    scheduler.hear(Correction(1, turn, -0.5))
    assert scheduler.state is State.RUN
    assert scheduler.loads == (6.0, 0.5)
    assert scheduler.assign(HASHES[[1]]).markers == ()


def test_what_a_task_did_before_estimates_were_used_does_not_count():
    """The first answer says where it stands; only what is wrong since then is corrected."""
    scheduler = running(1, {1: 1.0})
    (marker,) = scheduler.assign(HASHES[[1]]).markers
    scheduler.hear(Correction(0, marker.turn, 50.0))
    assert scheduler.loads == (1.0,)
    scheduler.hear(report(0, {1: 1.0}))
    (marker,) = scheduler.assign(HASHES[[1]]).markers
    assert marker.estimate == 2.0
    scheduler.hear(Correction(0, marker.turn, 50.5))
    assert scheduler.loads == (2.5,)


def test_answers_of_an_earlier_turn_are_not_counted():
    """The estimate that they correct was corrected by a later report already, or will be."""
    scheduler = running(1, {1: 1.0})
    (marker,) = scheduler.assign(HASHES[[1]]).markers
    scheduler.hear(report(0, {1: 2.0}))
    scheduler.hear(Correction(0, marker.turn, 100.0))
    assert scheduler.loads == (1.0,)
    assert scheduler.state is State.SEND_ALL


@given(SOME, st.integers(1, 9))
def test_each_tuple_goes_to_the_task_with_the_least_estimated_work(hashes, tasks):
    """Greedy: the loads of two tasks differ by no more than one tuple."""
    costs = {row: 0.01 + row / 100 for row in range(201)}
    scheduler = running(tasks, costs)
    assigned = scheduler.assign(hashes)
    assert len(assigned.tasks) == len(hashes)
    assert set(assigned.tasks.tolist()) <= set(range(tasks))
    estimates = report(0, costs).sketch.estimates(hashes)
    sums = np.bincount(assigned.tasks, estimates, tasks)
    assert scheduler.loads == pytest.approx(sums.tolist())
    assert sums.max() - sums.min() <= estimates.max() + 1e-9


@given(SOME, st.integers(2, 6), st.integers(1, 6))
def test_what_is_taken_back_and_sent_again_is_counted_once(hashes, tasks, wanted):
    scheduler = running(tasks, {row: 0.01 + row / 100 for row in range(201)})
    before = scheduler.loads
    assigned = scheduler.assign(hashes)
    scheduler.take_back(assigned.tasks, hashes)
    assert scheduler.loads == pytest.approx(before)
    scheduler.resize(wanted)
    assert scheduler.assign(hashes).tasks.max() < wanted
    assert scheduler.state in (State.SEND_ALL, State.WAIT_ALL)


def test_what_is_left_where_it_was_counts_and_new_tasks_get_what_comes_first():
    scheduler = running(2, {1: 1.0, 2: 3.0})
    sent = scheduler.assign(HASHES[[1, 2, 1, 2]]).tasks
    scheduler.take_back(sent, HASHES[[1, 2, 1, 2]])
    scheduler.resize(3)
    assert scheduler.loads == (0.0, 0.0, 0.0)
    scheduler.put(sent, HASHES[[1, 2, 1, 2]])
    assert sorted(scheduler.loads) == [0.0, 3.0, 5.0]
    assert scheduler.assign(HASHES[[1, 1, 1]]).tasks.tolist() == [2, 2, 2]


def test_a_new_task_joins_with_the_least_work_and_the_costs_of_the_others():
    scheduler = running(2, {1: 1.0, 2: 3.0})
    scheduler.assign(HASHES[[1, 2]])
    scheduler.resize(3)
    assert scheduler.loads == (1.0, 3.0, 1.0)
    assert scheduler.assign(HASHES[[2, 2, 2]]).tasks.tolist() == [0, 2, 1]
    assert scheduler.loads[2] == 4.0


def test_all_tasks_that_have_reported_may_leave():
    scheduler = running(2, {1: 2.0})
    scheduler.resize(4)
    scheduler.hear(Correction(3, 99, 1.0))
    scheduler.resize(1)
    scheduler.hear(Correction(3, 99, 1.0))  # a task that is no more
    scheduler.assign(HASHES[[1]])
    assert scheduler.loads == (2.0,)


def run(scheduler: Scheduler, costs: np.ndarray, rows: np.ndarray, tasks: int) -> np.ndarray:
    """Send values block by block, let tasks execute them, and give each block's work by task."""
    receivers = [TaskCosts(task, scheduler.settings) for task in range(tasks)]
    work = []
    for block in np.array_split(rows, 100):
        assigned = scheduler.assign(HASHES[block])
        for marker in assigned.markers:
            receivers[marker.task].mark(marker)
        for task in range(tasks):
            own = block[assigned.tasks == task]
            for answer in receivers[task].executed(HASHES[own], costs[own]):
                scheduler.hear(answer)
        work.append(np.bincount(assigned.tasks, costs[block], tasks))
    return np.array(work)


@pytest.mark.parametrize("skew", [0.0, 1.5])
def test_work_is_spread_more_evenly_than_in_turn(skew):
    random, values, tasks = np.random.default_rng(5), 64, 8
    shares = np.arange(1, values + 1.0) ** -skew
    rows = random.choice(values, 40_000, p=shares / shares.sum())
    costs = np.linspace(0.010, 0.090, values)
    in_turn = [
        np.bincount(np.arange(len(block)) % tasks, costs[block], tasks)
        for block in np.array_split(rows, 100)
    ]
    work = run(Scheduler(tasks, OsgSettings(every=256)), costs, rows, tasks)
    assert work[50:].std(axis=1).mean() < 0.8 * np.array(in_turn)[50:].std(axis=1).mean()


def test_a_task_that_works_slowly_gets_less():
    """Estimates are per task: one that takes twice as long gets half."""
    scheduler = Scheduler(2)
    scheduler.hear(report(0, {1: 1.0}))
    scheduler.hear(report(1, {1: 2.0}))
    counts = np.bincount(scheduler.assign(HASHES[np.full(300, 1)]).tasks)
    assert counts.tolist() == [200, 100]


def test_a_value_that_a_task_has_not_seen_costs_what_it_costs_others():
    scheduler = Scheduler(2)
    scheduler.hear(report(0, {1: 1.0, 2: 9.0}))
    scheduler.hear(report(1, {1: 1.0}))
    scheduler.assign(HASHES[[2, 2]])
    assert scheduler.loads == (9.0, 9.0)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(UsageError, match="positive settings"):
        OsgSettings(every=0)
    with pytest.raises(UsageError, match="1 task or more"):
        Scheduler(0)
