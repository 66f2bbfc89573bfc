"""AUTOSCALE and AUTOSCALE+: every formula against values worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from scaling_views import bolt, samples, source, view

from thalweg.control.scaling.autoscale import Activity, Autoscale
from thalweg.control.scaling.autoscale_plus import AutoscalePlus, usable_cpu
from thalweg.control.scaling.values import Change, Node, Policy, Sample, TaskLoad, View

SIX = [100] * 6


def one(policy: Policy, seen: View) -> int:
    (made,) = policy.decide(seen)
    return made.degree


def alone(received: Sequence[int], degree: int = 1, pending: int = 0, cost: float = 0.1) -> View:
    nodes = [Node("posts"), bolt("work", "posts")]
    work = samples("work", received, cost=cost, degree=degree, pending=pending)
    return view(nodes, {"posts": source("posts", received), "work": work})


def activity(policy: Autoscale, seen: View) -> Activity:
    found = policy.estimate(seen, seen.node("work"))
    assert isinstance(found, Activity)
    return found


# --- local activity -------------------------------------------------------------------------------


def test_input_capacity_and_level_are_those_of_the_document() -> None:
    # The line is 90 + 10 x; at 7 to 12 it gives 160 to 210, 1110 in all, and 40 wait.
    # Two tasks of 60 s / 0.1 s can do 1200.
    found = activity(Autoscale(), alone([100, 110, 120, 130, 140, 150], degree=2, pending=40))
    assert found.received == 1110
    assert found.input == 1150
    assert found.capacity == pytest.approx(1200)
    assert found.level == pytest.approx(1150 / 1200)
    assert found.rising


RISE = (-5, -3, -1, 1, 3, 5)
MATRIX = [
    # Four tasks can do 2400. Constant input of 100 a sample: 600, level 0.25, 4 x 0.25 = 1.
    ("low", [100] * 6, 1),
    ("medium", [200] * 6, 4),
    ("high", [360] * 6, 4),
    # 3000 are expected, level 1.25, 4 x 1.25 = 5.
    ("critical", [500] * 6, 5),
    # Rising by 2 a sample: the next six are 12 larger on average, 72 in all.
    ("low", [100 + r for r in RISE], 4),
    ("medium", [200 + r for r in RISE], 4),
    ("high", [360 + r for r in RISE], 5),
    # 3072 are expected, level 1.28, 4 x 1.28 = 5.12.
    ("critical", [500 + r for r in RISE], 6),
]


@pytest.mark.parametrize(("state", "received", "degree"), MATRIX)
def test_the_decision_matrix(state: str, received: list[int], degree: int) -> None:
    (made,) = Autoscale().decide(alone(received, degree=4))
    assert made.degree == degree
    assert made.reason.startswith(f"{state} activity")


def faster(steps: Sequence[float]) -> View:
    """One task that can do 600 more or less in a minute, sample by sample."""
    work = samples("work", SIX)
    changed = [
        replace(s, latency_mean=60 / (600 + step), latency_max=60 / (600 + step))
        for s, step in zip(work, steps, strict=True)
    ]
    nodes = [Node("posts"), bolt("work", "posts")]
    return view(nodes, {"posts": source("posts", SIX), "work": changed})


def test_the_trend_of_the_capacity_is_read_on_for_delta() -> None:
    # 6 more with every sample, six samples to come: 36 more.
    assert activity(Autoscale(), faster([0, 6, 12, 18, 24, 30])).trend == pytest.approx(36)


def test_the_trend_begins_anew_with_every_reconfiguration_and_is_clipped() -> None:
    seen = faster([300, 300, 0, 0, 0, 0])
    assert activity(Autoscale(), seen).trend < 0
    since = replace(seen, changes=(Change(20.0, "work", 2, 1),))
    assert activity(Autoscale(), since).trend == pytest.approx(0)
    falling = activity(Autoscale(), faster([0, -100, -200, -300, -400, -500]))
    assert falling.trend == pytest.approx(-0.5 * falling.per_task)


def test_literally_the_trend_is_a_covariance() -> None:
    # 599 and 601 in turn, each with the one before: (-0.8 x 0.8 x 3 - 1.2 x 1.2 x 2) / 5.
    found = activity(Autoscale(literal=True), faster([-1, 1, -1, 1, -1, 1]))
    assert found.trend == pytest.approx(-0.96)


def test_the_slowest_task_counts() -> None:
    seen = alone(SIX)
    slow = [replace(s, latency_max=0.2) for s in seen.windows["work"].samples]
    nodes = [Node("posts"), bolt("work", "posts")]
    seen = view(nodes, {"posts": source("posts", SIX), "work": slow})
    assert activity(Autoscale(), seen).per_task == pytest.approx(300)


def test_an_idle_component_keeps_the_latency_that_it_had_and_comes_down() -> None:
    assert one(Autoscale(), alone([100] * 4 + [0] * 6, degree=4)) == 1


def test_nothing_is_decided_about_a_component_that_never_worked() -> None:
    (made,) = Autoscale().decide(alone([0] * 6))
    assert made.reason == "it has not processed anything yet"


# --- consistency ----------------------------------------------------------------------------------


def fed(cost: float, degree: int, pending: int = 0, most: int = 8) -> View:
    """A critical parent, and a child that gets 100 a sample from it.

    The parent gets 500 a sample, 2400 wait, its one task can do 600: level 5400 / 600 = 9, so it
    gets 8 tasks, which can do 4800; all of that is passed on.
    """
    nodes = [Node("posts"), bolt("parent", "posts"), bolt("child", "parent", most=most)]
    history = {
        "posts": source("posts", [500] * 6),
        "parent": samples("parent", [500] * 6, pending=2400),
        "child": samples("child", SIX, cost=cost, degree=degree, pending=pending),
    }
    return view(nodes, history)


CASES = [
    # Scale-in locally: 600 of 4800, 4 x 0.125. With 4800 coming the level is 1: nothing.
    ("scale-in", fed(0.05, 4), 1, 4, 4),
    # Nothing locally: 600 of 1200. With 4800 coming the level is 4: 2 x 4. By factor: 2 x 8.
    ("nothing", fed(0.1, 2), 2, 8, 8),
    # Scale-out locally: 900 of 600, 1.5. With 4800 + 300 coming it is 8.5.
    ("scale-out", fed(0.1, 1, 300, 16), 2, 9, 2),
]


@pytest.mark.parametrize(("case", "seen", "local", "gal", "straight"), CASES)
def test_the_three_inconsistent_cases(
    case: str, seen: View, local: int, gal: int, straight: int
) -> None:
    for consistency, expected in (("local", local), ("gal", gal), ("straight", straight)):
        parent, child = Autoscale(consistency).decide(seen)  # type: ignore[arg-type] # one of three
        assert parent.degree == 8
        assert child.degree == expected, consistency


def test_with_the_present_degree_the_scale_out_would_be_hidden() -> None:
    # Literally, what is passed on has no bound: all 5400 that are expected.
    _, child = Autoscale(literal=True).decide(fed(0.1, 1, most=16))
    assert child.numbers["input"] == 5400
    _, child = Autoscale().decide(fed(0.1, 1, most=16))
    assert child.numbers["input"] == 4800


def test_combine_min_favours_resources() -> None:
    _, child = Autoscale(combine="min").decide(fed(0.1, 2))
    assert child.degree == 2


def diamond(b_degree: int = 1) -> View:
    """posts -> a -> {b, c} -> d, with a as critical as above."""
    nodes = [Node("posts"), bolt("a", "posts"), bolt("b", "a"), bolt("c", "a"), bolt("d", "b", "c")]
    history = {
        "posts": source("posts", [500] * 6),
        "a": samples("a", [500] * 6, pending=2400),
        "b": samples("b", SIX, degree=b_degree, ratio=0.5),
        "c": samples("c", SIX, cost=0.001, ratio=0.25),
        "d": samples("d", [75] * 6),
    }
    return view(nodes, history)


def test_in_a_diamond_the_outputs_of_all_parents_are_added() -> None:
    # b: 4800 of 600, critical, 8 tasks, passes 2400 on. c: 4800 of 60000, low, passes 1200 on.
    # d has one critical parent: (2400 + 1200) / 600 = 6. Alone it would see 450 / 600.
    made = {m.component: m for m in Autoscale().decide(diamond())}
    assert {name: m.degree for name, m in made.items()} == {"a": 8, "b": 8, "c": 1, "d": 6}
    assert made["d"].numbers["input"] == 3600
    assert [m.degree for m in Autoscale("local").decide(diamond())] == [8, 1, 1, 1]


def test_what_congestion_does_is_passed_on_by_those_that_can_bear_it() -> None:
    # b has eight tasks already and is not critical any more: 4800 of 4800. d hears of it as before.
    made = {m.component: m for m in Autoscale().decide(diamond(b_degree=8))}
    assert made["b"].degree == 8
    assert made["d"].numbers["input"] == 3600


def test_where_nothing_upstream_is_critical_a_component_is_left_to_itself() -> None:
    seen = diamond()
    calm = samples("a", [50] * 6)
    made = Autoscale().decide(view(seen.nodes, {**seen.history, "a": calm}))
    assert [m.numbers["input"] for m in made] == [300, 600, 600, 450]


def test_of_several_parents_scale_out_prevails() -> None:
    # c would scale in; b scales out by 8 after a did; d follows b.
    seen = diamond()
    low = samples("c", SIX, cost=0.001, degree=4, ratio=0.25)
    seen = view(seen.nodes, {**seen.history, "c": low})
    made = {m.component: m.degree for m in Autoscale("straight").decide(seen)}
    assert made == {"a": 8, "b": 8, "c": 4, "d": 8}


def test_straight_reconfigures_a_fast_filter_needlessly_and_gal_does_not() -> None:
    nodes = [
        Node("posts"),
        bolt("fast", "posts"),
        bolt("mid", "fast", most=14),
        bolt("filter", "mid", most=14),
        bolt("end", "filter", most=14),
    ]
    history = {
        "posts": source("posts", [500] * 6),
        "fast": samples("fast", [500] * 6, cost=0.001),
        "mid": samples("mid", [500] * 6, cost=0.1, pending=2400),
        "filter": samples("filter", SIX, cost=0.001, ratio=0.1),
        "end": samples("end", [10] * 6, cost=0.1),
    }
    seen = view(nodes, history)
    # mid: 5400 of 600, 9 tasks. filter: 5400 of 60000. end: 540 of 600, high but not rising.
    made = Autoscale("gal").decide(seen)
    assert [m.degree for m in made] == [1, 9, 1, 1]
    assert made[-1].numbers["input"] == 540
    # Literally, filter is not critical itself, so end looks at itself.
    assert Autoscale("gal", literal=True).decide(seen)[-1].numbers["input"] == 60
    assert [m.degree for m in Autoscale("straight").decide(seen)] == [1, 9, 9, 9]


# --- AUTOSCALE+ -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "usable"),
    [
        (TaskLoad(0.9, 0.2), 1.0),  # alone on its core
        (TaskLoad(0.5, 0.2, 2, 0.4), 0.45),  # 0.3 x 0.5 + (1 - 0.4) / 2
        (TaskLoad(0.1, 0.8, 1, 0.9), 0.34),  # 0.3 x 0.8 + 0.1
        (TaskLoad(1.0, 1.0, 1, 0.1), 1.0),  # 0.3 + 0.9 is more than there is
        (TaskLoad(0.0, 0.0, 1, 1.2), 0.0),  # others use more than the core has
    ],
)
def test_usable_cpu(task: TaskLoad, usable: float) -> None:
    assert usable_cpu(task, 0.3) == pytest.approx(usable)


def shared(k: int, received: Sequence[int] = SIX, pending: int = 60) -> View:
    """Tasks that can use half a core: 300 each. 600 + 60 are expected: 2.2 tasks."""
    half = TaskLoad(0.5, 0.8, 2, 0.48)  # 0.3 x 0.8 + 0.26 = 0.5
    full = TaskLoad(0.9, 0.8)
    tasks = (full, half)
    nodes = [Node("posts"), bolt("work", "posts", reserved=0.8)]
    work = samples("work", received, degree=k, pending=pending, tasks=tasks)
    return view(nodes, {"posts": source("posts", received), "work": work})


@pytest.mark.parametrize(
    ("k", "corrected", "literal"),
    [
        # Too few: 2.2 rounded up; literally 1.1 cores / (0.8 x 0.3) = 4.6.
        (2, 3, 5),
        # Above the interval [2.25, 3]: 2.2 rounded up is 3. Literally 5 would be the wrong way.
        (3, 3, 3),
        # Far above it: down to 3; literally to 5.
        (8, 3, 5),
    ],
)
def test_a_degree_outside_its_working_interval_is_sized_again(
    k: int, corrected: int, literal: int
) -> None:
    (made,) = AutoscalePlus().decide(shared(k))
    assert made.numbers["usable_cpu"] == pytest.approx(0.5)
    assert made.numbers["ideal"] == pytest.approx(2.2)
    assert made.degree == corrected
    assert one(AutoscalePlus(sizing="literal"), shared(k)) == literal


def test_within_its_working_interval_a_degree_stays() -> None:
    # 2.2 tasks are within [0.7 x 3, 3].
    assert one(AutoscalePlus(beta=0.7), shared(3)) == 3


def test_an_underloaded_single_task_does_not_become_two() -> None:
    # 150 of 600 are needed: 0.25 tasks. Literally 0.25 / (0.8 x 0.3) = 1.04 tasks.
    nodes = [Node("posts"), bolt("work", "posts", reserved=0.8)]
    seen = view(nodes, {"posts": source("posts", [25] * 6), "work": samples("work", [25] * 6)})
    assert one(AutoscalePlus(sizing="literal"), seen) == 1


def test_the_best_regression_model_is_used() -> None:
    # It doubles: 64 + 128 + ... + 2048 come next. A line would have it otherwise.
    (made,) = AutoscalePlus().decide(alone([1, 2, 4, 8, 16, 32]))
    assert made.numbers["input"] == 4032
    (made,) = AutoscalePlus(models=("linear",)).decide(alone([1, 2, 4, 8, 16, 32]))
    assert made.numbers["input"] < 500


def test_every_component_hears_of_its_parents_critical_or_not() -> None:
    # a: (3000 + 2400) / 600 = 9, 8 tasks, passes 4800 on; b passes 2400 on, c 1200.
    made = {m.component: m for m in AutoscalePlus().decide(diamond())}
    assert made["a"].degree == 8
    assert made["b"].numbers["input"] == 4800
    assert made["c"].numbers["input"] == 4800
    assert made["d"].numbers["input"] == 3600
    assert made["d"].degree == 6


def test_a_component_beside_a_source_adds_what_the_source_sends() -> None:
    nodes = [Node("posts"), bolt("a", "posts"), bolt("both", "posts", "a")]
    history = {
        "posts": source("posts", SIX),
        "a": samples("a", SIX, cost=0.01),
        "both": samples("both", [150] * 6, cost=0.01),
    }
    *_, made = AutoscalePlus().decide(view(nodes, history))
    assert made.numbers["input"] == 1200


def test_samples_without_cpu_are_taken_as_a_core_for_each() -> None:
    made: tuple[Sample, ...] = samples("work", SIX)
    assert made[0].tasks == ()
    (decided,) = AutoscalePlus().decide(alone(SIX))
    assert decided.numbers["usable_cpu"] == 1.0


def test_straight_leaves_a_component_alone_whose_samples_are_missing() -> None:
    nodes = [Node("posts"), bolt("parent", "posts"), bolt("child", "parent")]
    seen = {
        "posts": source("posts", [500] * 6),
        "parent": samples("parent", [500] * 6, pending=2400),
        "child": samples("child", [100] * 6, degree=2)[:-2],
    }
    parent, child = Autoscale("straight").decide(view(nodes, seen))
    assert parent.degree > parent.before
    assert (child.degree, child.before) == (2, 2)
    assert child.reason == "samples are missing: 4 of 6"
