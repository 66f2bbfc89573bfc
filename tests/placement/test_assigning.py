"""Placements are complete, exclusive, within memory, and keep what is placed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import UsageError
from thalweg.placement.greedy import STRATEGIES, place
from thalweg.placement.relocating import (
    emptied,
    fullest_link,
    moved,
    nearer,
    overload,
    relieved,
)
from thalweg.placement.values import Demand, Machine, Need, Placement, Task, Traffic, Unit

NAMES = ("a", "b", "c")
CHAIN = (Traffic("a", "b", 900.0), Traffic("b", "c", 100.0))


@st.composite
def demands(draw):
    degrees = {name: draw(st.integers(1, 6)) for name in NAMES}
    need = st.builds(Need, st.sampled_from([0.2, 0.3, 0.8, 1.0]), st.sampled_from([256.0, 512.0]))
    return Demand(degrees, {name: draw(need) for name in NAMES}, CHAIN)


MACHINES = st.lists(
    st.builds(Machine, st.just("m"), st.integers(1, 4), st.sampled_from([1024.0, 4096.0])),
    min_size=1,
    max_size=6,
)


def check(placed: Placement, demand: Demand, machines: list[Machine]) -> None:
    assert set(placed.units) | set(placed.refused) == set(demand.tasks)
    assert not set(placed.units) & set(placed.refused)
    at = [(task.component, unit) for task, unit in placed.units.items()]
    assert len(set(at)) == len(at), "two tasks of a component on one unit"
    for number, machine in enumerate(machines):
        there = [task for task, unit in placed.units.items() if unit.machine == number]
        assert sum(demand.needs[task.component].memory for task in there) <= machine.memory
    for unit in placed.units.values():
        assert 0 <= unit.core < machines[unit.machine].cores


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(demand=demands(), machines=MACHINES)
def test_every_task_has_one_unit_or_a_reason(strategy, demand, machines):
    placed = place(demand, machines, strategy)
    check(placed, demand, machines)
    assert all(placed.refused.values())


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(demand=demands(), machines=MACHINES, more=st.integers(0, 3))
def test_tasks_that_have_a_unit_keep_it(strategy, demand, machines, more):
    before = place(demand, machines, strategy)
    larger = Demand(
        {name: degree + more for name, degree in demand.degrees.items()}, demand.needs, CHAIN
    )
    after = place(larger, machines, strategy, before.units)
    check(after, larger, machines)
    assert {task: after.units[task] for task in before.units} == dict(before.units)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(demand=demands())
def test_cpu_is_not_promised_twice_where_there_is_enough(strategy, demand):
    machines = [Machine(f"m{i}", cores=2, memory=1e6) for i in range(9)]
    placed = place(demand, machines, strategy)
    promised: dict[Unit, float] = {}
    for task, unit in placed.units.items():
        promised[unit] = promised.get(unit, 0.0) + demand.needs[task.component].cpu
    assert max(promised.values()) <= 1.0 + 1e-9


def test_equal_uses_all_machines_and_resource_few():
    demand = Demand({"a": 1, "b": 4}, {"a": Need(0.2), "b": Need(0.8)})
    machines = [Machine(f"m{i}", cores=4) for i in range(4)]
    assert place(demand, machines, "equal").machines == 4
    assert place(demand, machines, "resource").machines == 1


def test_traffic_puts_the_heaviest_stream_on_one_machine():
    demand = Demand({"a": 1, "b": 1, "c": 1}, {name: Need(0.9, 1500.0) for name in NAMES}, CHAIN)
    machines = [Machine("m0"), Machine("m1")]
    placed = place(demand, machines, "traffic")
    assert placed.units[Task("a", 0)].machine == placed.units[Task("b", 0)].machine
    assert placed.remote(CHAIN) == 100.0
    assert place(demand, machines, "equal").remote(CHAIN) >= 900.0


def test_resource_stays_in_the_rack():
    demand = Demand({"a": 3}, {"a": Need(1.0)})
    far = [Machine(f"m{i}", 1, rack="east" if i % 2 else "west") for i in range(6)]
    placed = place(demand, far, "resource")
    assert {far[unit.machine].rack for unit in placed.units.values()} == {"west"}


def test_what_does_not_fit_is_refused():
    demand = Demand({"a": 3}, {"a": Need(0.1, 3000.0)})
    placed = place(demand, [Machine("m0", cores=8)])
    assert list(placed.refused) == [Task("a", 1), Task("a", 2)]
    assert placed.refused[Task("a", 1)] == "no unit without 'a' has 3000 MB left"


def test_nonsense_is_refused():
    demand = Demand({"a": 1}, {"a": Need()})
    with pytest.raises(UsageError, match="expected a machine"):
        place(demand, [])
    with pytest.raises(UsageError, match="units of the machines"):
        place(demand, [Machine("m0")], kept={Task("a", 0): Unit(7, 0)})
    with pytest.raises(UsageError, match="one of"):
        place(demand, [Machine("m0")], "best")


@given(demand=demands(), machines=MACHINES, idle=st.permutations(range(6)))
def test_whoever_moves_finds_a_unit_of_its_own_and_nothing_becomes_worse(demand, machines, idle):
    narrow = [replace(machine, bandwidth=100.0) for machine in machines]
    before = place(demand, narrow, "equal")
    if before.refused:
        return
    near = nearer(before, demand, narrow, {"a", "b"})
    easier = relieved(before, demand, narrow, "resource")
    fewer = emptied(before, demand, narrow, "resource", [m for m in idle if m < len(narrow)])
    for after in (near, easier, fewer):
        check(after, demand, narrow)
        assert not after.refused
        assert overload(after, demand.needs) <= overload(before, demand.needs) + 1e-9
        for task in moved(before, after):
            assert after.units[task] not in {
                before.units[other]
                for other in demand.tasks
                if other.component == task.component and other not in moved(before, after)
            }
    assert fullest_link(near, CHAIN, narrow) <= fullest_link(before, CHAIN, narrow)
    assert fewer.machines <= before.machines
    if easier != before:
        assert overload(easier, demand.needs) < overload(before, demand.needs)
