"""Which way a join goes: a guess, then measured, and changed only for a reason."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.control.joining import Customise
from thalweg.control.loop import Plan
from thalweg.control.scaling.monitor import Monitor
from thalweg.operators.join_ways import Chooser, Seen, Sizes, Way, choose, first_way
from thalweg.runtimes.shipping import pack, unpack

WAYS = ("hash", "loop")
SIZES = Sizes(table=10, block=1000)


def seen(way: str, **costs: float) -> Seen:
    return Seen(way, {name: cost * 1e-9 for name, cost in costs.items()}, SIZES, 1.0)


def go(
    chooser: Chooser, blocks: int, cost: Callable[[str], float], sizes: Sizes = SIZES
) -> tuple[list[str], list[Way]]:
    """Let blocks come that cost so many nanoseconds per tuple; gives ways and changes."""
    ways, changes = [], []
    for _ in range(blocks):
        ways.append(chooser.next(sizes))
        made = chooser.note(ways[-1], sizes, cost(ways[-1]) * 1e-9 * sizes.block, sizes.block)
        changes += [] if made is None else [made]
    return ways, changes


def costing(**costs: float) -> Callable[[str], float]:
    return lambda way: costs[way]


# --- the rule ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "ways", "expected"),
    [
        (0, WAYS, "loop"),
        (1, WAYS, "loop"),
        (2, WAYS, "hash"),
        (100_000, WAYS, "hash"),
        (3, ("range", "loop"), "range"),
        (100_000, ("loop",), "loop"),
    ],
)
def test_the_first_guess_goes_by_the_rows_of_the_table(
    rows: int, ways: tuple[str, ...], expected: str
) -> None:
    assert first_way(Sizes(rows, 1000), ways) == expected


def test_the_cheaper_way_is_taken_with_a_reason() -> None:
    made = choose(seen("loop", hash=20, loop=90))
    assert (made.way, made.before, made.changes) == ("hash", "loop", True)
    assert made.reason == (
        "hash instead of loop: 20 ns instead of 90 ns per tuple; a table of 10 rows, 1 matches each"
    )


@pytest.mark.parametrize("costs", [{}, {"loop": 5}, {"hash": 5}, {"hash": 46, "loop": 50}])
def test_it_stays_where_little_is_known_or_gained(costs: Mapping[str, float]) -> None:
    made = choose(seen("loop", **costs))
    assert (made.way, made.changes) == ("loop", False)


@given(
    costs=st.dictionaries(st.sampled_from(WAYS), st.floats(1.0, 1e6)),
    before=st.sampled_from(WAYS),
)
def test_what_is_chosen_costs_at_most_what_was_before(costs: dict[str, float], before: str) -> None:
    made = choose(seen(before, **costs))
    assert made.way in WAYS
    if made.changes:
        assert costs[made.way] <= 0.9 * costs[before]
        assert not choose(seen(made.way, **costs)).changes  # and it does not go back


# --- measured by a few blocks --------------------------------------------------------------------


def test_few_blocks_go_each_way_and_then_all_go_the_cheaper_one() -> None:
    ways, changes = go(Chooser(WAYS), 50, costing(hash=40, loop=20))
    assert ways[0] == "hash"
    assert (ways[:10].count("hash"), ways[:10].count("loop")) == (5, 5)
    assert set(ways[10:]) == {"loop"}
    assert [(made.before, made.way) for made in changes] == [("hash", "loop")]


def test_a_way_that_cannot_pay_is_not_tried() -> None:
    ways, changes = go(Chooser(WAYS), 50, costing(hash=40, loop=1), Sizes(1000, 1000))
    assert set(ways) == {"hash"}
    assert changes == []


def test_a_way_that_is_far_dearer_is_soon_left() -> None:
    ways, _ = go(Chooser(WAYS), 50, costing(hash=10, loop=1000))
    assert ways.count("loop") == 2


def test_the_other_way_is_tried_again_after_a_while() -> None:
    chooser, costs = Chooser(WAYS), {"hash": 20.0, "loop": 40.0}
    go(chooser, 400, costs.__getitem__)
    costs["loop"] = 10.0
    _, changes = go(chooser, 200, costs.__getitem__)
    assert [(made.before, made.way) for made in changes] == [("hash", "loop")]


def test_a_machine_that_slows_down_is_no_reason_to_change() -> None:
    chooser, slow = Chooser(WAYS), [1.0]
    costs = {"hash": 20.0, "loop": 30.0}
    go(chooser, 20, lambda way: costs[way] * slow[0])
    slow[0] = 5.0
    assert go(chooser, 2000, lambda way: costs[way] * slow[0])[1] == []


def test_each_size_of_tables_has_its_own_way() -> None:
    chooser = Chooser(WAYS)
    go(chooser, 20, costing(hash=40, loop=20), Sizes(4, 1000))
    go(chooser, 20, costing(hash=40, loop=90), Sizes(40, 1000))
    assert chooser.next(Sizes(4, 1000)) == "loop"
    assert chooser.next(Sizes(40, 1000)) == "hash"
    # The last block of a stream is small, and says nothing about the others.
    assert go(chooser, 1, costing(hash=4000, loop=1), Sizes(40, 3))[1] == []
    assert chooser.next(Sizes(40, 1000)) == "hash"


@given(
    hash_=st.floats(10, 1000),
    loop=st.floats(10, 1000),
    seed=st.integers(0, 1000),
)
def test_with_noise_it_changes_once_at_most(hash_: float, loop: float, seed: int) -> None:
    rng, costs = random.Random(seed), {"hash": hash_, "loop": loop}
    chooser = Chooser(WAYS)
    _, changes = go(chooser, 400, lambda way: costs[way] * rng.uniform(0.97, 1.03))
    assert len(changes) <= 1
    best = min(costs, key=costs.__getitem__)
    [known] = chooser.look()
    assert costs[known.way] <= 1.2 * costs[best]


def test_one_way_needs_no_choice() -> None:
    chooser = Chooser(("loop",))
    ways, changes = go(chooser, 5, costing(loop=1))
    assert (set(ways), changes, chooser.look()) == ({"loop"}, [], [])


def test_what_was_measured_in_one_process_does_not_travel() -> None:
    chooser = Chooser(WAYS)
    go(chooser, 20, costing(hash=40, loop=20))
    assert unpack(pack(chooser)).look() == []


# --- through the loop ----------------------------------------------------------------------------


def test_where_somebody_else_decides_it_only_measures() -> None:
    chooser = Chooser(WAYS)
    chooser.steered = True
    ways, changes = go(chooser, 20, costing(hash=40, loop=20))
    assert (ways[-1], changes) == ("hash", [])
    [made] = Customise({"join": chooser.look}).decide(Monitor([]).view(0.0), Plan())
    assert isinstance(made, Way)
    assert (made.component, made.way, made.changes) == ("join", "loop", True)
    chooser.use(made)
    assert chooser.next(SIZES) == "loop"
    [again] = Customise({"join": chooser.look}).decide(Monitor([]).view(1.0), Plan())
    assert not again.changes


def test_nothing_is_decided_before_both_ways_were_measured() -> None:
    chooser = Chooser(WAYS)
    step = Customise({"join": chooser.look})
    assert step.decide(Monitor([]).view(0.0), Plan()) == []
    go(chooser, 5, costing(hash=40, loop=20))
    assert step.decide(Monitor([]).view(0.0), Plan()) == []
