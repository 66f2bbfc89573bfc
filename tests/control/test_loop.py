"""The ORACL loop: what each step sees, what is refused, and when nothing is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st
from scaling_views import bolt

from thalweg.control.assigning import Moved, Triggers, Trouble
from thalweg.control.loop import Loop, Made, Plan
from thalweg.control.scaling.monitor import Monitor
from thalweg.control.scaling.values import Decision, Node, Sample, Timing, View
from thalweg.control.steps import Assign, Replicate, Share
from thalweg.placement.values import Task, Unit

NODES = (Node("posts"), bolt("count", "posts"))
TIMING = Timing(10.0, 10.0, 20.0)


@dataclass
class World:
    """A runtime that does what it is told, at once or when it is told to have finished."""

    degree: int = 1
    busy: bool = False
    slow: bool = False
    refuses: bool = False
    plans: list[Plan] = field(default_factory=list)

    @property
    def degrees(self) -> Mapping[str, int]:
        return {"posts": 1, "count": self.degree}

    def realise(self, plan: Plan) -> Plan:
        self.plans.append(plan)
        if self.refuses:
            return Plan(tuple(replace(m, degree=m.before, reason="no") for m in plan.degrees))
        (made,) = plan.degrees
        self.degree, self.busy = made.degree, self.slow
        return plan


@dataclass
class Wants:
    """A policy that wants a degree, unless there is grace."""

    degree: int
    timing: Timing = TIMING
    name: str = "wants"
    seen: list[View] = field(default_factory=list)

    def decide(self, view: View) -> tuple[Decision, ...]:
        self.seen.append(view)
        wanted = view.degrees["count"] if view.in_grace else self.degree
        return (Decision("count", wanted, view.degrees["count"], "because"),)


@dataclass
class Look:
    """A step that decides nothing and notes what it sees."""

    seen: list[tuple[View, Plan]] = field(default_factory=list)

    def decide(self, view: View, above: Plan) -> Sequence[Made]:
        self.seen.append((view, above))
        return ()

    def revised(self, view: View, _made: Sequence[Made]) -> View:
        return view


def sample(time: float, degree: int) -> Sample:
    return Sample("count", time, degree, 10, 10)


def turn(loop: Loop, now: float, world: World) -> Plan:
    return loop.turn(now, [sample(now, world.degree)], world)


def test_one_turn_collects_decides_and_realises() -> None:
    world, policy = World(), Wants(3)
    plan = turn(Loop(Monitor(NODES, TIMING), [Replicate(policy)]), 10.0, world)
    assert world.degree == 3
    assert [(m.component, m.before, m.degree, m.reason) for m in plan.degrees] == [
        ("count", 1, 3, "because")
    ]
    assert policy.seen[0].windows["count"].received == 10


def test_no_change_is_a_decision_and_nothing_is_realised() -> None:
    world = World(degree=3)
    plan = turn(Loop(Monitor(NODES, TIMING), [Replicate(Wants(3))]), 10.0, world)
    assert [made.reason for made in plan.degrees] == ["because"]
    assert world.plans == []


def test_a_step_sees_what_those_above_it_have_changed() -> None:
    above, below = Look(), Look()
    loop = Loop(Monitor(NODES, TIMING), [above, Replicate(Wants(4)), below])
    turn(loop, 10.0, World())
    (view, plan) = above.seen[0]
    assert (view.degrees["count"], plan.made) == (1, ())
    (view, plan) = below.seen[0]
    assert (view.degrees["count"], plan.changes) == (4, True)


def test_assign_takes_back_what_there_is_no_room_for() -> None:
    asked: list[Mapping[str, int]] = []

    def place(wanted: Mapping[str, int]) -> tuple[dict[str, int], dict[str, str]]:
        asked.append(wanted)
        return {**wanted, "count": min(2, wanted["count"])}, {"count": "two units"}

    world, below = World(), Look()
    loop = Loop(Monitor(NODES, TIMING), [Replicate(Wants(4)), Assign(place), below])
    plan = turn(loop, 10.0, world)
    assert world.degree == 2
    assert [made.reason for made in plan.degrees] == ["because; 2 of 4 tasks: two units"]
    assert below.seen[0][0].degrees["count"] == 2
    turn(loop, 100.0, World(degree=4))
    assert len(asked) == 1  # nothing changed above it


def test_share_takes_back_what_there_are_no_slots_for() -> None:
    world, below = World(), Look()
    monitor = Monitor(NODES, TIMING, slots=4)  # one of them for the source
    plan = turn(Loop(monitor, [Replicate(Wants(6)), Share(), below]), 10.0, world)
    assert world.degree == 3
    (made,) = plan.degrees
    assert made.reason.startswith("because; 3 of 6 tasks, because slots are scarce")
    assert below.seen[0][0].degrees["count"] == 3


def test_degrees_beyond_the_slots_come_down_though_the_policy_would_keep_them() -> None:
    world = World(degree=5)
    turn(Loop(Monitor(NODES, TIMING, slots=4), [Replicate(Wants(5)), Share()]), 10.0, world)
    assert world.degree == 3


def test_where_nobody_says_how_many_slots_there_are_all_wishes_are_granted() -> None:
    world = World()
    turn(Loop(Monitor(NODES, TIMING), [Replicate(Wants(6)), Share()]), 10.0, world)
    assert world.degree == 6


def test_nothing_is_decided_while_something_is_under_way() -> None:
    world, policy = World(slow=True), Wants(3)
    loop = Loop(Monitor(NODES, TIMING), [Replicate(policy)])
    turn(loop, 10.0, world)
    assert turn(loop, 20.0, world) == Plan()
    assert len(policy.seen) == 1


def test_grace_begins_when_a_change_is_in_force() -> None:
    world, policy = World(slow=True), Wants(3)
    loop = Loop(Monitor(NODES, TIMING), [Replicate(policy)])
    turn(loop, 10.0, world)
    turn(loop, 20.0, world)
    world.busy = False
    turn(loop, 30.0, world)
    assert [(c.time, c.before, c.after) for c in policy.seen[-1].changes] == [(30.0, 1, 3)]
    assert policy.seen[-1].in_grace
    turn(loop, 50.0, world)
    assert not policy.seen[-1].in_grace


def test_a_refusal_is_in_the_plan_and_no_change_is_noted() -> None:
    world, policy = World(refuses=True), Wants(3)
    loop = Loop(Monitor(NODES, TIMING), [Replicate(policy)])
    plan = turn(loop, 10.0, world)
    assert [(m.changes, m.reason) for m in plan.degrees] == [(False, "no")]
    turn(loop, 20.0, world)
    assert policy.seen[-1].changes == ()
    assert len(world.plans) == 2  # it asks again


def full(now: float, use: float) -> list[Sample]:
    posts = Sample("posts", now, 1, 10, 10, {"out": 10}, links={"out": use})
    return [posts, sample(now, 1)]


def test_a_full_link_moves_tasks_and_then_there_is_grace() -> None:
    asked: list[str] = []

    def move(found: Trouble) -> Mapping[Task, Unit]:
        asked.append(found.reason)
        return {Task("count", 0): Unit(1, 0)}

    world, policy = World(), Wants(1)
    assign = Assign(lambda wanted: (wanted, {}), move, Triggers(link=0.8))
    loop = Loop(Monitor(NODES, TIMING), [Replicate(policy), assign])
    plans = [loop.turn(10.0 * at, full(10.0 * at, use), world) for at, use in enumerate([0.7, 0.9])]
    assert plans[0].of(Moved) == []
    assert [made.components for made in plans[1].of(Moved)] == [("count",)]
    assert asked == ["the link of 'posts' -> 'out' is 90 % full"]
    loop.turn(20.0, full(20.0, 0.9), world)
    assert policy.seen[-1].in_grace
    assert len(asked) == 1
    loop.turn(30.0, full(30.0, 0.9), world)
    assert len(asked) == 2


def test_a_full_link_does_not_stand_in_the_way_of_tasks_that_are_busy_themselves() -> None:
    for busy, degree in ((2.0, 1), (10.0, 3)):
        world = World()
        loop = Loop(Monitor(NODES, TIMING), [Replicate(Wants(3))])
        posts, count = full(10.0, 1.0)
        plan = loop.turn(10.0, [posts, replace(count, busy=busy)], world)
        assert plan.degrees[-1].degree == degree


@given(st.lists(st.tuples(st.integers(1, 8), st.booleans(), st.integers(1, 8)), max_size=12))
def test_what_is_in_force_is_what_the_last_plan_said(
    turns: list[tuple[int, bool, int]],
) -> None:
    """Whatever policies want, runtimes refuse and machines have room for."""
    world, policy = World(), Wants(1, replace(TIMING, grace=0.0))
    room = [8]
    place = Assign(lambda w: ({**w, "count": min(w["count"], room[0])}, {}))
    loop = Loop(Monitor(NODES, policy.timing), [Replicate(policy), place])
    for number, (wanted, refuses, units) in enumerate(turns, 1):
        before = world.degree
        policy.degree, world.refuses, room[0] = wanted, refuses, max(units, before)
        plan = turn(loop, 10.0 * number, world)
        (made,) = plan.degrees
        assert world.degree == made.degree
        assert made.degree == (before if refuses else min(wanted, room[0]))
