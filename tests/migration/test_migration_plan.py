"""The steps from one set of tables to another: complete, in bounds, hot before cold."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from thalweg.errors import UsageError
from thalweg.migration.plan import Held, Moves, Plan, plan_moves
from thalweg.routing.table import RoutingTable

GROUPS = 5
#: Every hash that can occur; keys of the tables and keys that they do not know.
ALL = np.arange(40, dtype=np.uint64)
Case = tuple[dict[str, RoutingTable], dict[str, RoutingTable], dict[str, Held], int]


@st.composite
def tables(draw: st.DrawFn, epoch: int) -> RoutingTable:
    places = draw(st.integers(1, 4))
    place = st.integers(0, places - 1)
    keys = draw(st.dictionaries(st.integers(0, 39), place, max_size=15))
    return RoutingTable(
        epoch,
        places,
        np.array(draw(st.lists(place, min_size=GROUPS, max_size=GROUPS))),
        np.array(sorted(keys), dtype=np.uint64),
        np.array([keys[key] for key in sorted(keys)], dtype=np.int64),
    )


@st.composite
def holdings(draw: st.DrawFn) -> Held:
    hashes = draw(st.lists(st.integers(0, 39), unique=True, max_size=25))
    sizes = arrays.arrays(np.int64, len(hashes), elements=st.integers(0, 100))
    heat = arrays.arrays(np.float64, len(hashes), elements=st.integers(0, 9))
    return Held(np.array(hashes, dtype=np.uint64), draw(sizes), draw(heat))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = draw(st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"]]))
    old, new = ({name: draw(tables(epoch)) for name in names} for epoch in (4, 5))
    held = {name: draw(holdings()) for name in names if draw(st.booleans())}
    return old, new, held, draw(st.integers(1, 300))


def steps(plan: Plan) -> list[Mapping[str, Moves]]:
    return [plan.step(number) for number in range(plan.steps)]


def units(moves: Moves) -> list[tuple[str, int]]:
    keys = [("key", key) for key in moves.hashes.tolist()]
    return keys + [("group", group) for group in moves.groups.tolist()]


def unit_of(key: int, old: RoutingTable, new: RoutingTable) -> tuple[str, int]:
    alone = key in old.hashes.tolist() or key in new.hashes.tolist()
    return ("key", key) if alone else ("group", key % GROUPS)


@settings(deadline=None, max_examples=60)
@given(cases())
def test_after_the_last_step_every_key_is_where_the_new_tables_say(case: Case) -> None:
    old, new, held, budget = case
    plan = plan_moves(old, new, held, budget)
    for name, table in plan.tables_after(plan.steps).items():
        assert table.places_of(ALL).tolist() == new[name].places_of(ALL).tolist()
        assert table.hashes.tolist() == new[name].hashes.tolist()
        assert table.places == new[name].places


@settings(deadline=None, max_examples=60)
@given(cases())
def test_between_steps_state_is_at_its_old_place_until_it_moves(case: Case) -> None:
    old, new, held, budget = case
    plan = plan_moves(old, new, held, budget)
    all_steps = steps(plan)
    for done in range(plan.steps + 1):
        for name, table in plan.tables_after(done).items():
            later = [step[name] for step in all_steps[done:] if name in step]
            waits = {unit for moves in later for unit in units(moves)}
            places = table.places_of(ALL).tolist()
            before, after = old[name].places_of(ALL), new[name].places_of(ALL)
            for key, place in enumerate(places):
                waiting = unit_of(key, old[name], new[name]) in waits
                assert place == (before[key] if waiting else after[key])
            assert max(places) < table.places


@settings(deadline=None, max_examples=60)
@given(cases())
def test_all_state_whose_place_changes_moves_once_and_nothing_else(case: Case) -> None:
    old, new, held, budget = case
    plan = plan_moves(old, new, held, budget)
    all_steps, keys, total = steps(plan), 0, 0
    for name in old:
        found = [unit for step in all_steps if name in step for unit in units(step[name])]
        of = held.get(name, Held.nothing())
        moving = of.hashes[old[name].places_of(of.hashes) != new[name].places_of(of.hashes)]
        wanted = {unit_of(key, old[name], new[name]) for key in moving.tolist()}
        assert sorted(found) == sorted(wanted)
        keys += len(moving)
        total += int(of.sizes[np.isin(of.hashes, moving)].sum())
    assert (plan.keys, plan.bytes) == (keys, total)


@settings(deadline=None, max_examples=60)
@given(cases())
def test_moves_say_from_where_to_where_and_how_much(case: Case) -> None:
    old, new, held, budget = case
    plan = plan_moves(old, new, held, budget)
    for step in steps(plan):
        for name, moves in step.items():
            assert moves.sources.tolist() == old[name].places_of(moves.hashes).tolist()
            assert moves.targets.tolist() == new[name].places_of(moves.hashes).tolist()
            assert moves.group_sources.tolist() == old[name].groups[moves.groups].tolist()
            assert moves.group_targets.tolist() == new[name].groups[moves.groups].tolist()
    assert sum(moves.bytes for step in steps(plan) for moves in step.values()) == plan.bytes


@settings(deadline=None, max_examples=60)
@given(cases())
def test_a_step_is_within_the_budget_or_a_single_unit(case: Case) -> None:
    old, new, held, budget = case
    for step in steps(plan_moves(old, new, held, budget)):
        count = sum(len(units(moves)) for moves in step.values())
        assert count == 1 or sum(moves.bytes for moves in step.values()) <= budget
        assert count > 0


@settings(deadline=None, max_examples=60)
@given(cases())
def test_hot_moves_before_cold(case: Case) -> None:
    old, new, held, budget = case
    plan = plan_moves(old, new, held, budget)
    coldest = float("inf")
    for step in steps(plan):
        heats = []
        for name, moves in step.items():
            of = held[name]
            heat: dict[Any, float] = {}
            for key, each in zip(of.hashes.tolist(), of.heat.tolist(), strict=True):
                unit = unit_of(key, old[name], new[name])
                heat[unit] = heat.get(unit, 0.0) + each
            heats += [heat[unit] for unit in units(moves)]
        assert max(heats) <= coldest
        coldest = min(heats)


@settings(deadline=None, max_examples=60)
@given(tables(1), holdings())
def test_nothing_moves_when_the_tables_agree(table: RoutingTable, held: Held) -> None:
    plan = plan_moves({"a": table}, {"a": table}, {"a": held}, budget=1)
    assert (plan.steps, plan.keys, plan.bytes) == (0, 0, 0)
    assert plan.tables_after(0)["a"].places_of(ALL).tolist() == table.places_of(ALL).tolist()


@settings(deadline=None, max_examples=60)
@given(cases())
def test_every_set_of_tables_has_an_epoch_of_its_own(case: Case) -> None:
    old, new, held, budget = case
    plan = plan_moves(old, new, held, budget)
    epochs = [plan.tables_after(done)["a"].epoch for done in range(plan.steps + 1)]
    assert epochs == list(range(5, 6 + plan.steps))


def test_no_components_need_no_steps() -> None:
    assert plan_moves({}, {}, {}, budget=1).steps == 0


def test_a_million_keys_are_planned_without_a_loop_over_keys() -> None:
    random = np.random.default_rng(1)
    # An odd factor keeps them apart, modulo 2**64.
    hashes = np.sort(np.arange(1_000_000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    groups = RoutingTable.even(6).groups
    old, new = (
        RoutingTable(epoch, 6, groups, hashes, random.integers(0, 6, len(hashes)))
        for epoch in range(2)
    )
    held = Held(hashes, np.full(len(hashes), 100), random.random(len(hashes)))
    begun = time.process_time()
    plan = plan_moves({"a": old}, {"a": new}, {"a": held}, budget=8_000_000)
    moved = sum(len(moves.hashes) for step in steps(plan) for moves in step.values())
    # A loop over the keys would take several seconds.
    assert time.process_time() - begun < 5
    assert moved == plan.keys == int((old.key_places != new.key_places).sum())


@pytest.mark.parametrize(
    ("new", "budget", "text"),
    [
        ({"b": RoutingTable.even(1)}, 1, "components of the new tables: expected a, got b"),
        ({"a": RoutingTable.even(1)}, 0, "bytes in a step: expected at least 1, got 0"),
        ({"a": RoutingTable.even(1, 7)}, 1, "expected 1024 key groups, as before, got 7"),
    ],
)
def test_tables_that_do_not_fit_are_refused(new: Any, budget: int, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        plan_moves({"a": RoutingTable.even(1)}, new, {}, budget)


def test_a_step_that_is_not_there_is_refused() -> None:
    plan = plan_moves({}, {}, {}, budget=1)
    with pytest.raises(UsageError, match="step: expected below 0, got 0"):
        plan.step(0)
    with pytest.raises(UsageError, match="steps: expected 0 to 0, got 1"):
        plan.tables_after(1)
