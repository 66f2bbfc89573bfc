"""The simulator obeys the laws of queues, loses no tuple, and does what policies decide."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.connectors.profiles import constant, steps
from thalweg.control.scaling.autoscale import Autoscale
from thalweg.control.scaling.ours import Thalweg
from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Decision, Timing
from thalweg.errors import UsageError
from thalweg.groupings import Fields, LoadAware, Shuffle
from thalweg.placement.values import Machine, Need
from thalweg.runtimes.simulator.runtime import Simulator
from thalweg.workloads.stages import Law, Reads, Stage, Staged

#: Nobody is late, and nothing travels: a queue as in a book.
QUIET = Simulator(
    (Machine("m0", cores=8),), timeout=1e9, pause=5.0, latency=0.0, noise=0.0, bursty=True
)


NOTHING, IN_TURN = Need(0.0), Shuffle()


def one_stage(seconds, *, most=8, need=NOTHING, grouping=IN_TURN, values=1):
    stage = Stage("work", (Reads("source"),), seconds, need, 1, most, grouping)
    return Staged("one", (stage,), values=values)


@dataclass(frozen=True)
class Timetable:
    """A policy that decides by the clock."""

    degrees: dict[float, dict[str, int]]
    timing: Timing = field(default_factory=Timing)
    name: str = "timetable"

    def decide(self, view):
        wanted = self.degrees.get(view.now, {})
        return tuple(
            Decision(name, degree, view.degrees[name], "it is time")
            for name, degree in wanted.items()
        )


# --- queues ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_the_mean_wait_is_that_of_an_m_d_1_queue(load):
    """Pollaczek and Khinchine: load / (2 (1 - load)) services."""
    rate, seconds = 50.0, load / 50.0
    outcome = QUIET.run(one_stage((seconds,)), constant(rate, "2 hours"), Law(), Static())
    wait = outcome.latency_mean - seconds
    assert wait == pytest.approx(seconds * load / (2 * (1 - load)), rel=0.05)


def test_the_mean_wait_depends_on_the_spread_of_the_cost():
    """Two costs with the same mean: the wait is 1 + the squared coefficient of variation."""
    uneven = replace(QUIET, seed=3)
    topology = one_stage((0.002, 0.018), values=2)
    outcome = uneven.run(topology, constant(50, "2 hours"), Law(2), Static())
    mean, square = 0.010, (0.002**2 + 0.018**2) / 2
    wait = 50 * square / (2 * (1 - 50 * mean))
    assert outcome.latency_mean - mean == pytest.approx(wait, rel=0.05)


def test_a_task_processes_what_it_can_and_no_more():
    profile = constant(100, "10 minutes")
    outcome = QUIET.run(one_stage((0.1,)), profile, Law(), Static(), {"work": 4})
    done = sum(moment.done for moment in outcome.course)
    assert done == pytest.approx(600 / 0.1 * 4, rel=0.01)
    assert outcome.course[-1].pending == pytest.approx(outcome.emitted - done, abs=8)


def test_tasks_on_one_core_slow_each_other():
    both = Staged(
        "two",
        (
            Stage("a", (Reads("source"),), (0.010,), Need(1.0)),
            Stage("b", (Reads("a"),), (0.010,), Need(1.0)),
        ),
    )
    alone = replace(QUIET, machines=(Machine("m0", cores=2),))
    crowded = replace(QUIET, machines=(Machine("m0", cores=1),))
    profile = constant(90, "10 minutes")
    assert alone.run(both, profile, Law(), Static()).latency_mean < 0.2
    done = sum(m.done for m in crowded.run(both, profile, Law(), Static()).course)
    assert done == pytest.approx(600 / 0.020, rel=0.05)


def test_a_narrow_link_limits_a_stream():
    slow = Machine("m0", bandwidth=5_000.0)
    two = Staged(
        "far",
        (
            Stage("a", (Reads("source"),), (0.001,), Need(1.0, 3000.0)),
            Stage("b", (Reads("a", size=100.0),), (0.001,), Need(1.0, 3000.0)),
        ),
    )
    world = replace(QUIET, machines=(slow, replace(slow, name="m1")))
    outcome = world.run(two, constant(100, "10 minutes"), Law(), Static())
    assert sum(m.done for m in outcome.course) == pytest.approx(50 * 600, rel=0.02)
    assert outcome.links["a -> b"] > 0.95
    wide = replace(QUIET, machines=(Machine("m0", cores=1), Machine("m1", cores=1)))
    assert wide.run(two, constant(100, "1 minute"), Law(), Static()).latency_mean < 0.01


# --- no tuple is lost or made ---------------------------------------------------------------------

GROUPINGS = st.sampled_from([Shuffle(), LoadAware(), Fields(("value",))])


@st.composite
def worlds(draw):
    """A topology with a diamond in it, a stream that overloads it now and then, and a timetable."""
    grouping, values = draw(GROUPINGS), draw(st.integers(1, 5))
    cost = st.floats(0.001, 0.2)
    seconds = tuple(draw(st.lists(cost, min_size=values, max_size=values)))
    cut = draw(st.floats(0.1, 0.9))
    stages = (
        Stage("a", (Reads("source"),), (draw(cost),)),
        Stage("b", (Reads("a", (0.0, cut)),), seconds, grouping=grouping),
        Stage("c", (Reads("a"),), (draw(cost),)),
        Stage("d", (Reads("b"), Reads("c", (cut, 1.0))), (draw(cost),)),
    )
    degrees = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 8), max_size=3)
    timetable = draw(st.dictionaries(st.sampled_from([30.0, 60.0, 120.0]), degrees))
    rates = draw(st.lists(st.integers(1, 60), min_size=2, max_size=4))
    world = Simulator(
        tuple(Machine(f"m{i}") for i in range(draw(st.integers(1, 6)))),
        timeout=draw(st.sampled_from([5.0, 30.0])),
        replays=draw(st.integers(0, 2)),
        queue=draw(st.sampled_from([None, 5, 50])),
        skip=draw(st.sampled_from([None, 4.0])),
        spread=draw(st.booleans()),
        bursty=draw(st.booleans()),
        seed=draw(st.integers(0, 99)),
    )
    topology = Staged("drawn", stages, values=values)
    return world, topology, steps([(r, "60 s") for r in rates]), Law(values), Timetable(timetable)


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_every_tuple_is_in_time_or_late_or_under_way(world):
    simulator, topology, profile, law, policy = world
    outcome = simulator.run(topology, profile, law, policy)
    assert outcome.emitted == outcome.in_time + outcome.late + outcome.pending
    assert outcome.emitted == sum(moment.emitted for moment in outcome.course)
    assert all(1 <= d <= 8 for moment in outcome.course for d in moment.degrees.values())


@settings(max_examples=25, deadline=None)
@given(worlds())
def test_the_same_seed_gives_the_same_outcome(world):
    simulator, topology, profile, law, policy = world
    runs = [simulator.run(topology, profile, law, policy) for _ in range(2)]
    assert runs[0] == runs[1]


# --- what policies see and do ---------------------------------------------------------------------


@dataclass(frozen=True)
class Watching(Static):
    """Keeps what it is shown."""

    seen: tuple[list, ...] = ([],)

    def decide(self, view):
        self.seen[0].append(view)
        return ()


@settings(max_examples=25, deadline=None)
@given(worlds())
def test_samples_add_up(world):
    """What a stage got was processed, dropped, or waits; what was sent arrives or is on its way."""
    simulator, topology, profile, law, _ = world
    watching = Watching(seen=([],))
    simulator.run(topology, profile, law, watching)
    history = watching.seen[0][-1].history
    for stage in topology:
        samples = history[stage.name]
        got = sum(sample.received for sample in samples)
        gone = sum(sample.processed + sample.lost for sample in samples)
        assert got == gone + samples[-1].pending
        sent = sum(s.emitted[stage.name] for r in stage.reads for s in history[r.sender])
        assert 0 <= sent - got <= max(50, 0.2 * sent)


def test_a_change_is_made_at_the_sample_and_costs_a_pause():
    policy = Timetable({60.0: {"work": 4}})
    outcome = QUIET.run(one_stage((0.05,)), constant(10, "2 minutes"), Law(), policy)
    by_time = {moment.time: moment for moment in outcome.course}
    assert by_time[60.0].degrees == {"work": 1}
    assert by_time[70.0].degrees == {"work": 4}
    assert by_time[70.0].latency > 1.0 > by_time[60.0].latency
    assert outcome.reconfigurations == 1
    assert outcome.applied[0].decision.degree == 4


def test_a_backlog_is_shared_with_new_tasks():
    policy = Timetable({60.0: {"work": 8}})
    outcome = QUIET.run(one_stage((0.1,)), constant(20, "3 minutes"), Law(), policy)
    assert outcome.course[5].pending > 500
    assert outcome.course[-1].pending < 10


@pytest.mark.parametrize("grouping", [Shuffle(), LoadAware()])
def test_a_backlog_that_stays_is_left_to_the_tasks_that_have_it(grouping):
    policy = Timetable({60.0: {"work": 8}})
    world, topology = replace(QUIET, spread=False), one_stage((0.1,), grouping=grouping)
    outcome = world.run(topology, constant(20, "3 minutes"), Law(), policy)
    # 700 wait for one task, which does 10 per second; what comes later does not wait behind them.
    left = {moment.time: moment.pending for moment in outcome.course}
    assert left[60.0] > 500
    assert left[120.0] > left[60.0] - 600
    balanced = isinstance(grouping, LoadAware)
    # With shuffle the task with the backlog gets an eighth of what comes all the same.
    assert left[100.0] == pytest.approx(left[70.0] - (300 if balanced else 300 - 75), abs=40)


def test_of_tasks_that_go_the_backlog_goes_to_the_others():
    policy = Timetable({60.0: {"work": 1}})
    world = replace(QUIET, spread=False)
    profile = steps([(60, "60 s"), (0.1, "10 minutes")])
    outcome = world.run(one_stage((0.1,)), profile, Law(), policy, {"work": 4})
    assert outcome.course[5].pending > 500
    assert outcome.course[-1].pending < 5
    assert outcome.emitted == outcome.in_time + outcome.pending


def test_what_has_no_unit_is_refused_with_the_reason():
    world = replace(QUIET, machines=(Machine("m0", cores=3),))
    policy = Timetable({30.0: {"work": 8}, 60.0: {"work": 7}})
    outcome = world.run(one_stage((0.01,)), constant(10, "2 minutes"), Law(), policy)
    assert outcome.course[-1].degrees == {"work": 3}
    first, second = outcome.applied
    assert (first.decision.degree, first.refused) == (3, "")
    assert "each of the 3 units has a task of 'work' already" in second.refused


def windowed(seconds: float) -> Staged:
    """A stage with a window of 30 s, and one behind it."""
    stages = (
        Stage("sums", (Reads("source"),), (0.001,), window=30.0),
        Stage("store", (Reads("sums"),), (seconds,)),
    )
    return Staged("windowed", stages)


def test_a_stage_with_a_window_sends_when_it_ends_and_holds_nothing_that_is_pending():
    watching = Watching(seen=([],))
    outcome = QUIET.run(windowed(0.001), constant(10, "2 minutes"), Law(), watching)
    history = watching.seen[0][-1].history
    arrived = {sample.time: sample.received for sample in history["store"]}
    bursts = {time: n for time, n in arrived.items() if n}
    assert list(bursts) == [40.0, 70.0, 100.0]  # of the periods behind the ends at 30, 60 and 90
    assert sum(bursts.values()) == pytest.approx(900, rel=0.1)
    assert all(sample.pending <= 1 for sample in history["sums"])
    assert 10 < outcome.latency_mean < 20  # half of a window
    assert outcome.emitted == outcome.in_time + outcome.pending


def test_delta_is_longer_than_the_window_of_a_stage():
    seen: tuple[list, ...] = ([],)
    watching = replace(Watching(seen=seen), timing=Timing(30.0, 10.0, 30.0))
    QUIET.run(windowed(0.001), constant(10, "1 minute"), Law(), watching)
    assert {view.delta for view in seen[0]} == {40.0}


def test_what_waits_behind_a_window_until_the_next_burst_is_no_backlog():
    """A burst of 300 tuples takes 24 s, and the next one comes after 30."""
    outcome = QUIET.run(windowed(0.08), constant(10, "10 minutes"), Law(), Thalweg())
    assert {moment.degrees["store"] for moment in outcome.course} == {1}


def competing(valuable: float, *, memory: float = 0.0) -> Staged:
    """Two stages that need five to six tasks each at 60 tuples per second."""
    stages = (
        Stage("chart", (Reads("source"),), (0.08,), Need(0.1, memory)),
        Stage("bill", (Reads("source"),), (0.08,), Need(0.1, memory), priority=valuable),
    )
    return Staged("competing", stages)


def test_where_there_are_too_few_units_the_more_valuable_stage_gets_its_tasks():
    """With an equal priority both fall behind."""
    world = replace(QUIET, bursty=False, slots="units")  # eight of them
    profile = steps([(5, "5 minutes"), (60, "20 minutes")])
    outcome = world.run(competing(2.0), profile, Law(), Autoscale())
    last = outcome.course[-1].degrees
    assert last["bill"] >= 5
    assert sum(last.values()) == 8
    assert outcome.queued["bill"] < 0.1 * outcome.queued["chart"]
    reasons = [each.decision.reason for each in outcome.applied if "scarce" in each.decision.reason]
    assert reasons
    assert all(m.degrees["chart"] + m.degrees["bill"] <= 8 for m in outcome.course)
    equal = world.run(competing(1.0), profile, Law(), Autoscale())
    assert equal.course[-1].degrees == {"chart": 4, "bill": 4}


def test_a_number_of_slots_bounds_the_tasks_of_all_stages():
    policy = Timetable({30.0: {"chart": 4, "bill": 4}})
    world = replace(QUIET, slots=5)
    outcome = world.run(competing(2.0), constant(10, "1 minute"), Law(), policy)
    assert outcome.course[-1].degrees == {"chart": 1, "bill": 4}
    (lacks,) = [each.refused for each in outcome.applied if each.refused]
    assert "1 of 4 tasks, because slots are scarce" in lacks


def test_where_memory_is_scarce_the_more_valuable_stage_is_placed_first():
    policy = Timetable({30.0: {"chart": 4, "bill": 4}})
    topology = competing(2.0, memory=800.0)  # of 4096
    outcome = QUIET.run(topology, constant(10, "1 minute"), Law(), policy)
    assert outcome.course[-1].degrees == {"chart": 1, "bill": 4}


@pytest.mark.parametrize(("learns", "degree"), [(False, 1), (True, 4)])
def test_tasks_are_placed_by_the_memory_that_they_use_once_that_is_learnt(learns, degree):
    """One task of 3000 MB fits a machine of 4096, and four that use 500 do."""
    stage = Stage("work", (Reads("source"),), (0.01,), Need(0.1, 3000.0), uses=Need(0.1, 500.0))
    policy = Timetable({400.0: {"work": 4}})
    world = replace(QUIET, learns=learns)
    outcome = world.run(Staged("one", (stage,)), constant(10, "10 minutes"), Law(), policy)
    assert outcome.course[-1].degrees == {"work": degree}


def test_policies_see_the_cores_that_tasks_use_where_they_are_learnt():
    stage = Stage("work", (Reads("source"),), (0.05,), Need(0.2), uses=Need(0.8))
    topology, found = Staged("one", (stage,)), {}
    for learns in (False, True):
        seen: tuple[list, ...] = ([],)
        world = replace(QUIET, learns=learns, bursty=False)
        world.run(topology, constant(10, "10 minutes"), Law(), Watching(seen=seen))
        found[learns] = seen[0][-1].node("work").reserved
    assert found[False] == 0.2
    assert found[True] == pytest.approx(0.4, rel=0.05)  # half of the time, 0.8 of a core


def test_tasks_that_use_more_than_they_reserve_slow_each_other():
    """Two stages on one core that use 0.8 of it, whatever they have reserved."""
    stages = [
        Stage(name, (Reads(reads),), (0.01,), Need(0.1), uses=Need(0.8))
        for name, reads in (("a", "source"), ("b", "a"))
    ]
    crowded = replace(QUIET, machines=(Machine("m0", cores=1),))
    outcome = crowded.run(Staged("two", tuple(stages)), constant(90, "10 minutes"), Law(), Static())
    assert sum(m.done for m in outcome.course) == pytest.approx(600 / 0.016, rel=0.05)


def test_late_tuples_can_be_skipped():
    """Then a task that is overloaded does useful work all the same."""
    patient = replace(QUIET, timeout=10.0)
    profile = constant(20, "10 minutes")
    all_done = patient.run(one_stage((0.1,)), profile, Law(), Static())
    skipping = replace(patient, skip=9.0).run(one_stage((0.1,)), profile, Law(), Static())
    assert all_done.lost > 0.9
    assert skipping.lost == pytest.approx(0.5, abs=0.05)
    assert skipping.latency_p99 < 10.2


def test_late_tuples_are_replayed_as_often_as_told():
    stuck = replace(QUIET, timeout=20.0, replays=2)
    profile = steps([(10, "60 s"), (0, "240 s")])
    outcome = stuck.run(one_stage((1000.0,)), profile, Law(), Static())
    fresh = sum(moment.emitted for moment in outcome.course[:2])
    born = sum(moment.emitted for moment in outcome.course)
    once = replace(stuck, replays=0).run(one_stage((1000.0,)), profile, Law(), Static())
    assert born == 3 * once.emitted
    assert 0 < fresh < born
    assert outcome.lost == 1.0


def test_resources_are_counted_by_the_second():
    topology = one_stage((0.01,), need=Need(0.5))
    policy = Timetable({60.0: {"work": 3}})
    world = replace(QUIET, machines=(Machine("m0", cores=1), Machine("m1", 1), Machine("m2", 1)))
    outcome = world.run(topology, constant(10, "2 minutes"), Law(), policy)
    assert outcome.resource_seconds == pytest.approx(60 * 0.5 + 60 * 1.5)
    assert outcome.machine_seconds == pytest.approx(60 * 1 + 60 * 3)


def test_equal_values_go_to_one_task():
    topology = one_stage((0.001,), grouping=Fields(("value",)), values=1)
    outcome = QUIET.run(topology, constant(100, "1 minute"), Law(), Static(), {"work": 4})
    assert outcome.deviation["work"] == 0.0  # nothing burns CPU here
    burning = replace(topology, stages=(replace(topology.stages[0], need=Need(1.0)),))
    outcome = QUIET.run(burning, constant(100, "1 minute"), Law(), Static(), {"work": 4})
    assert outcome.deviation["work"] == pytest.approx(np.std([0.1, 0, 0, 0]), rel=0.1)


def test_a_stream_without_end_is_refused():
    with pytest.raises(UsageError, match="a profile that ends"):
        QUIET.run(one_stage((0.1,)), constant(5), Law(), Static())


def test_ten_thousand_machines():
    world = Simulator(tuple(Machine(f"m{i}", cores=1) for i in range(10_000)), noise=0.0)
    topology = one_stage((0.5,), most=10_000, need=Need(0.5))
    policy = Timetable({20.0: {"work": 3_000}})
    profile = constant(4_000, "40 s")
    outcome = world.run(topology, profile, Law(), policy, {"work": 2_500})
    assert outcome.course[-1].degrees == {"work": 3_000}
    assert outcome.lost == 0.0
