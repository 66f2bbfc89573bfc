"""Under any interleaving and any restart the protocol keeps its promises; mutants break them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from migration.mutants import MANAGERS, TASKS, find_violation
from migration.scenarios import Scenario, make_scenario
from migration.world import World
from thalweg.migration.plan import Held, plan_moves
from thalweg.migration.protocol import Manager, Task


class Scripted(Random):
    """Chance that follows a script as long as it goes, and a seed afterwards."""

    def __init__(self, seed: int, script: list[float]) -> None:
        super().__init__(seed)
        self.script = iter(script)

    def random(self) -> float:
        scripted = next(self.script, None)
        return super().random() if scripted is None else scripted


@st.composite
def chances(draw: st.DrawFn) -> Random:
    numbers = st.lists(st.floats(0, 1, exclude_max=True), max_size=80)
    return Scripted(draw(st.integers(0, 2**32)), draw(numbers))


scenarios = st.integers(0, 2**32).map(lambda seed: make_scenario(Random(seed)))


def run(world: World) -> None:
    try:
        world.run()
    except Exception:
        note("\n".join(" ".join(map(str, event)) for event in world.story))
        raise


@settings(deadline=None, max_examples=60)
@given(scenarios, chances())
def test_promises_are_kept_whatever_comes_when(scenario: Scenario, chance: Random) -> None:
    run(World(scenario, chance))


@settings(deadline=None, max_examples=100)
@given(scenarios, chances())
def test_promises_are_kept_when_one_task_restarts(scenario: Scenario, chance: Random) -> None:
    run(World(scenario, chance, restarts=1))


@settings(deadline=None, max_examples=100)
@given(scenarios, chances(), st.integers(1, 5))
def test_promises_are_kept_when_many_things_go_wrong(
    scenario: Scenario, chance: Random, troubles: int
) -> None:
    run(World(scenario, chance, restarts=troubles, duplicates=troubles))


@settings(deadline=None, max_examples=30)
@given(scenarios, chances(), st.integers(1, 4))
def test_the_steps_of_a_plan_are_rounds_of_the_protocol(
    scenario: Scenario, chance: Random, budget: int
) -> None:
    old, new = scenario.tables[:2]
    keys = np.arange(10, dtype=np.uint64)
    held = {name: Held(keys, np.ones(10, dtype=np.int64), np.arange(10.0)) for name in old}
    plan = plan_moves(old, new, held, budget)
    steps = [plan.tables_after(done) for done in range(1, plan.steps + 1)]
    run(World(replace(scenario, tables=(old, *steps)), chance, restarts=1))


@pytest.mark.parametrize("mutant", TASKS)
def test_a_task_with_a_mistake_breaks_a_promise(mutant: type[Task]) -> None:
    assert find_violation(task=mutant)


@pytest.mark.parametrize("mutant", MANAGERS)
def test_a_manager_with_a_mistake_breaks_a_promise(mutant: type[Manager]) -> None:
    assert find_violation(manager=mutant)
