"""The simpler policies, the sharing of scarce slots, and what holds for all policies."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scaling_views import PERIOD, bolt, drive, samples, source, view

from thalweg.control.scaling.ds2 import Ds2
from thalweg.control.scaling.incremental import Incremental
from thalweg.control.scaling.learning import Learning, Lesson, Reward, Table, learnt, train
from thalweg.control.scaling.needs import learnt_memory
from thalweg.control.scaling.policies import NAMES, POLICIES, named
from thalweg.control.scaling.sharing import Shortfall, share
from thalweg.control.scaling.values import (
    Change,
    Decision,
    Node,
    Policy,
    Sample,
    TaskLoad,
    View,
)
from thalweg.errors import UsageError

SIX = [100] * 6


def alone(*work: Sample, most: int = 8) -> View:
    return view([Node("posts"), bolt("work", "posts", most=most)], {"work": work})


def one(policy: Policy, seen: View) -> int:
    (made,) = policy.decide(seen)
    return made.degree


# --- incremental ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("received", "processed", "degree"),
    [(100, 80, 4), (100, 100, 3), (80, 100, 3), (79, 100, 2), (100, 0, 4), (0, 0, 3)],
)
def test_incremental_takes_steps_of_one(received: int, processed: int, degree: int) -> None:
    work = [Sample("work", PERIOD * k, 3, received, processed) for k in range(1, 7)]
    assert one(Incremental(), alone(*work)) == degree


def test_incremental_may_compare_with_what_could_have_been_processed() -> None:
    # Three tasks could have done 1800; 600 arrived.
    work = samples("work", SIX, degree=3)
    assert one(Incremental(), alone(*work)) == 3
    assert one(Incremental(against="capacity"), alone(*work)) == 2


# --- ds2 ------------------------------------------------------------------------------------------


def test_ds2_follows_the_rates_of_the_sources_in_one_step() -> None:
    # 100 tuples/s arrive. A task of a does 10/s: 10 of them. a sends two for each: 200/s to b,
    # of which a task does 50/s: 4. All of that although a processed only a tenth so far.
    nodes = [Node("posts"), bolt("a", "posts", most=16), bolt("b", "a", most=16)]
    history = {
        "posts": source("posts", [1000] * 6),
        "a": samples("a", [1000] * 6, cost=0.1, ratio=2.0),
        "b": samples("b", [200] * 6, cost=0.02),
    }
    assert [m.degree for m in Ds2().decide(view(nodes, history))] == [10, 4]
    assert [m.degree for m in Ds2(utilisation=0.8).decide(view(nodes, history))] == [13, 5]


def test_ds2_decides_nothing_below_a_component_of_which_nothing_is_known() -> None:
    nodes = [Node("posts"), bolt("a", "posts"), bolt("b", "a")]
    history = {"posts": source("posts", SIX), "a": samples("a", [0] * 6), "b": samples("b", SIX)}
    assert all(not made.changes for made in Ds2().decide(view(nodes, history)))


# --- learning -------------------------------------------------------------------------------------


def test_the_least_degree_that_keeps_up_is_learnt() -> None:
    # 12.5 tuples/s per task.
    table = train([Lesson("work", [12, 24, 36, 99], cost=0.08, most=8)])
    assert [table.best("work", rate) for rate in (12, 24, 36, 99)] == [1, 2, 3, 8]


def test_hundreds_of_tasks_are_learnt_like_a_few() -> None:
    table = train([Lesson("work", [12, 1200, 6000], cost=0.08, most=500)])
    assert [table.best("work", rate) for rate in (12, 1200, 6000)] == [1, 96, 480]


def test_an_unknown_rate_is_taken_as_the_nearest_known_and_of_two_the_higher() -> None:
    table = learnt([Sample("work", 0.0, 2, 100, 100), Sample("work", 0.0, 5, 156, 156)])
    assert [table.band(10.0), table.band(15.6)] == [10, 12]
    assert table.best("work", 12.5) == 5
    assert table.best("work", 1.0) == 2
    assert table.best("other", 1.0) is None


def test_rewards_are_averaged_over_runs() -> None:
    good, bad = Sample("work", 0.0, 1, 100, 100), Sample("work", 0.0, 1, 100, 0, pending=100)
    table = learnt([bad], learnt([good]))
    assert table.rewards["work"][10][1].value == 0.0
    assert table.rewards["work"][10][1].count == 2


def test_a_table_is_saved_and_loaded(tmp_path: Path) -> None:
    table = train([Lesson("work", [10, 90], cost=0.08, most=8)], reward=Reward(waiting=0.5))
    table.save(tmp_path / "table.json")
    assert Table.load(tmp_path / "table.json") == table
    (tmp_path / "broken.json").write_text('{"growth": "much"}')
    for name in ("broken.json", "none.json"):
        with pytest.raises(UsageError, match="expected a table"):
            Table.load(tmp_path / name)


def test_learning_takes_what_was_best_at_the_mean_rate() -> None:
    table = train([Lesson("work", range(1, 100), cost=0.08, most=8)])
    received = [0, 0, 0, 500, 500, 500]  # 25 tuples/s on the average
    assert one(Learning(table), alone(*samples("work", received))) == table.best("work", 25)
    assert one(Learning(Table()), alone(*samples("work", received, degree=3))) == 3


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ds2", "433,123 tuples/s are to be processed, a task can do 100,000/s"),
        ("thalweg", "433,123 tuples/s expected (last), 433 % of what the tasks can do; 12,345 tup"),
        ("autoscale", "25,999,725 tuples expected, capacity 6,000,000"),
        ("learning", "tasks were best at about 433,123 tuples/s"),
    ],
)
def test_reasons_have_numbers_that_can_be_read(name: str, said: str) -> None:
    learning = Learning(train([Lesson("work", [433_123], cost=0.00001, most=8)]))
    policy = learning if name == "learning" else named(name)
    nodes = [Node("posts"), bolt("work", "posts")]
    work = samples("work", [4_331_230] * 12, cost=0.00001, pending=12_345)
    seen = view(nodes, {"posts": source("posts", [4_331_230] * 12), "work": work}, delta=60.0)
    (made,) = policy.decide(seen)
    assert said in made.reason


# --- scarce slots ---------------------------------------------------------------------------------


def wishes(*degrees: int) -> list[Decision]:
    return [Decision(name, d, 1, "more") for name, d in zip("abc", degrees, strict=False)]


def scarce(slots: int | None, *priorities: float) -> View:
    nodes = [bolt(name, "posts", priority=p) for name, p in zip("abc", priorities, strict=False)]
    work = {name: samples(name, SIX) for name in "abc"[: len(priorities)]}
    posts = {"posts": source("posts", SIX)}
    return view([Node("posts"), *nodes], posts | work, slots=slots)


def test_where_everything_fits_nothing_is_changed() -> None:
    for slots in (None, 11):
        shared = share(scarce(slots, 1, 1, 1), wishes(4, 4, 2))
        assert [made.degree for made in shared.decisions] == [4, 4, 2]
        assert shared.lacking == ()


def test_the_most_valuable_component_is_served_first_and_all_keep_the_least() -> None:
    # Ten slots, one of them for the source: each gets one, b all it wants, a the rest.
    shared = share(scarce(10, 2, 3, 1), wishes(6, 5, 4))
    assert [made.degree for made in shared.decisions] == [3, 5, 1]
    assert shared.lacking == (Shortfall("a", 6, 3), Shortfall("c", 4, 1))
    assert [lacks.share for lacks in shared.lacking] == [0.5, 0.75]
    text = "more; 3 of 6 tasks, because slots are scarce: 50 % of its work cannot be done"
    assert shared.decisions[0].reason == text
    assert shared.decisions[0].numbers == {"lacks": 0.5}


def test_equal_components_get_the_same_part() -> None:
    shared = share(scarce(7, 1, 1), wishes(4, 8))
    assert [made.degree for made in shared.decisions] == [2, 4]


@given(st.lists(st.integers(1, 8), min_size=3, max_size=3), st.integers(0, 30), st.data())
def test_shared_degrees_fit_and_nobody_gets_more_than_wanted(
    wanted: list[int], slots: int, data: st.DataObject
) -> None:
    priorities = data.draw(st.lists(st.floats(0, 10), min_size=3, max_size=3))
    shared = share(scarce(slots, *priorities), wishes(*wanted))
    given_ = [made.degree for made in shared.decisions]
    assert all(1 <= got <= want for got, want in zip(given_, wanted, strict=True))
    assert sum(given_) == max(3, min(slots - 1, sum(wanted)))


def test_memory_is_learnt_from_the_largest_task() -> None:
    tasks = (TaskLoad(0.1, memory=100.0), TaskLoad(0.1, memory=300.0))
    seen = [Sample("work", float(k), 2, 1, 1, tasks=tasks) for k in range(40)]
    assert learnt_memory(seen, declared=512.0) == 300.0
    assert learnt_memory([], declared=512.0) == 512.0


# --- all policies ---------------------------------------------------------------------------------

COUNTS = st.integers(0, 10**6)


@st.composite
def any_samples(draw: st.DrawFn, name: str) -> list[Sample]:
    made = []
    for at in range(draw(st.integers(0, 14))):
        if draw(st.integers(0, 20)) == 0:
            continue  # missing
        processed = draw(COUNTS)
        seconds = draw(st.floats(1e-6, 100)) if processed else None
        tasks = draw(st.lists(st.builds(TaskLoad, *[st.floats(0, 2)] * 2), max_size=2))
        made.append(
            Sample(
                name,
                PERIOD * (at + 1),
                draw(st.integers(1, 12)),
                draw(COUNTS),
                processed,
                {"out": draw(COUNTS)},
                draw(COUNTS),
                seconds,
                seconds,
                processed * (seconds or 0),
                tuple(tasks),
            )
        )
    return made


@st.composite
def any_view(draw: st.DrawFn) -> View:
    least = draw(st.integers(1, 3))
    most = draw(st.integers(least, 10))
    parents = {"a": ["posts"], "b": ["a"], "c": ["posts", "a"], "d": ["b", "c"]}
    bolts = []
    for name, reads in parents.items():
        window = draw(st.sampled_from([0.0, 25.0]))
        made = bolt(name, *reads, most=most, window=window)
        bolts.append(Node(name, made.inputs, least, most, 0.5, 1.0, window))
    history = {name: draw(any_samples(name)) for name in ("posts", *parents)}
    delta = draw(st.sampled_from([30.0, 60.0]))
    changed = [Change(draw(st.floats(0, 140)), "a", 1, 2)] if draw(st.booleans()) else []
    return view([Node("posts"), *bolts], history, delta=delta, grace=10.0, changes=changed)


@pytest.mark.parametrize("name", [*POLICIES, "thalweg:performance", "thalweg:economy", "trained"])
@settings(max_examples=30, deadline=None)
@given(seen=any_view())
def test_degrees_stay_within_bounds_whatever_was_seen(name: str, seen: View) -> None:
    table = train([Lesson("a", [1, 10, 100], 0.1, 20)])
    policy = Learning(table) if name == "trained" else named(name)
    decided = policy.decide(seen)
    assert [made.component for made in decided] == ["a", "b", "c", "d"]
    for made in decided:
        node = seen.node(made.component)
        assert node.least <= made.degree <= node.most
        assert made.reason
        assert all(math.isfinite(value) for value in made.numbers.values())
    assert policy.decide(seen) == decided


BURSTS = [0, 0, 90, 20, 0, 0, 0, 70, 0, 95, 95, 5, 0, 0, 40, 0] * 3
STEPS = [10] * 20 + [60] * 30 + [90] * 10 + [15] * 30


@pytest.mark.parametrize("rates", [BURSTS, STEPS], ids=["bursts", "steps"])
@pytest.mark.parametrize("name", NAMES)
def test_a_policy_decides_the_same_about_a_stream_that_is_so_much_faster(
    name: str, rates: list[int]
) -> None:
    """No second is left that a speed does not divide; a power of 2 divides without rounding."""
    slow = [one.degree for one in drive(named(name), rates, degree=6)]
    quick = [one.degree for one in drive(named(name), rates, degree=6, speed=16)]
    assert quick == slow
