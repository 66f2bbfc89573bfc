"""A topology's latency bound becomes budgets of its components, and its profile the run's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scaling_views import bolt, drive, samples, source, view

from thalweg.config import Quality
from thalweg.control.scaling.budgets import budgets
from thalweg.control.scaling.ours import PROFILES, Thalweg
from thalweg.control.scaling.policies import faster, meeting
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Decision, Node, View

# --- budgets --------------------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    """A source, and components that each read one or more before them."""
    nodes = [Node("n0")]
    for number in range(1, draw(st.integers(2, 8))):
        parents = draw(st.sets(st.integers(0, number - 1), min_size=1, max_size=3))
        nodes.append(bolt(f"n{number}", *(f"n{parent}" for parent in sorted(parents))))
    return nodes


def ways(nodes: list[Node], name: str = "n0") -> Iterator[list[str]]:
    """All ways from the source to an end."""
    children = [node.name for node in nodes if name in node.parents]
    if not children:
        yield [name]
    for child in children:
        yield from ([name, *way] for way in ways(nodes, child))


@given(graphs(), st.data())
def test_on_no_way_waiting_and_processing_take_longer_than_the_bound(
    nodes: list[Node], data: st.DataObject
) -> None:
    takes = {node.name: data.draw(st.floats(0, 1)) for node in nodes[1:]}
    bound = 10.0  # processing takes 7 s at most
    waits = budgets(nodes, bound, takes)
    totals = [sum(waits[n] + takes[n] for n in way[1:]) for way in ways(nodes)]
    assert max(totals) <= bound + 1e-9
    assert min(waits.values()) > 0


def test_of_equal_components_on_one_way_each_gets_the_same() -> None:
    nodes = [Node("posts"), bolt("a", "posts"), bolt("b", "a"), bolt("c", "b"), bolt("d", "posts")]
    assert budgets(nodes, 9.0) == {"a": 3.0, "b": 3.0, "c": 3.0, "d": 9.0}


def test_where_processing_alone_takes_longer_nothing_is_left_for_waiting() -> None:
    nodes = [Node("posts"), bolt("a", "posts")]
    assert budgets(nodes, 1.0, {"a": 2.0}) == {"a": 0.0}


# --- the policy -----------------------------------------------------------------------------------


def waiting(pending: int) -> View:
    """A component whose task does 10 tuples per second, and gets as many."""
    received = [100] * 6
    nodes = [Node("posts"), bolt("work", "posts")]
    work = samples("work", received, cost=0.1, pending=[pending] * 6)
    return view(nodes, {"posts": source("posts", received), "work": work}, delta=30.0)


def decided(policy: Thalweg, seen: View) -> Decision:
    (made,) = policy.decide(seen)
    return made


def test_tuples_wait_no_longer_than_the_bound_allows() -> None:
    seen = waiting(100)  # for 10 s
    assert decided(Thalweg(pause=0.1), seen).degree == 1  # 15 s are all right
    made = decided(Thalweg(pause=0.1, bound=4.0), seen)
    assert made.degree > 1
    assert "100 tuples wait, up to 10.0 s of 3.9 s" in made.reason
    assert made.numbers["wait"] == pytest.approx(3.9)  # less what processing takes


@pytest.mark.parametrize("profile", ["performance", "balanced", "economy"])
def test_a_bound_beyond_the_waits_of_the_profile_changes_nothing(profile: str) -> None:
    policy = Thalweg(profile)  # type: ignore[arg-type] # one of them
    generous, seen = meeting(policy, 1000.0), waiting(100)
    assert isinstance(generous, Thalweg)
    assert generous.use_at(seen, seen.node("work")) == policy.use
    assert decided(generous, seen).degree == decided(policy, seen).degree


def test_bursts_have_to_be_done_within_the_bound_too() -> None:
    seen = waiting(0)
    use = Thalweg("economy", bound=5.0).use_at(seen, seen.node("work"))
    assert (use.wait, use.bursts) == (pytest.approx(4.9), pytest.approx(4.9))


def test_a_bound_that_cannot_be_met_is_no_error() -> None:
    run = drive(Thalweg("economy", bound=0.001), [0.0, 90.0, 5.0, 0.0, 80.0, 90.0] * 4)
    assert run[-1].degree >= 1


def test_with_a_bound_less_waits_after_a_rise() -> None:
    rates = [10.0] * 12 + [14.0] * 60
    most = {
        bound: max(s.pending / (s.degree / 0.08) for s in drive(Thalweg(bound=bound), rates))
        for bound in (None, 5.0)
    }
    assert most[5.0] < most[None]


# --- what a topology asks for ---------------------------------------------------------------------


def leading(scaling: Scaling, quality: Quality | None) -> Thalweg:
    (made, *_) = scaling.policies(quality)
    assert isinstance(made, Thalweg)
    return made


def test_the_profile_of_a_topology_counts_where_the_run_names_none() -> None:
    economy = Quality(profile="economy")
    assert leading(Scaling(), economy).profile == "economy"
    assert leading(Scaling(), None).profile == leading(Scaling(), Quality()).profile == "balanced"
    assert leading(Scaling("thalweg:performance"), economy).profile == "performance"
    assert leading(Scaling("thalweg:balanced"), economy).profile == "balanced"
    assert leading(Scaling(Thalweg()), economy).profile == "balanced"


def test_other_policies_are_as_they_are() -> None:
    quality = Quality(latency="2 s", profile="economy")
    assert Scaling("ds2").policies(quality) == [Scaling("ds2").leading]


def test_policies_beside_the_leading_one_have_the_same_bound_and_profile() -> None:
    quality = Quality(latency="2 s", profile="economy")
    _, beside = Scaling("ds2", beside=("thalweg",)).policies(quality)
    assert isinstance(beside, Thalweg)
    assert (beside.profile, beside.bound) == ("economy", 2.0)


def test_the_smaller_of_two_bounds_counts() -> None:
    assert leading(Scaling(Thalweg(bound=1.0)), Quality(latency=2.0)).bound == 1.0
    assert leading(Scaling(Thalweg(bound=3.0)), Quality(latency=2.0)).bound == 2.0


def test_a_topology_is_as_quick_as_it_says_however_fast_policies_think() -> None:
    made = leading(Scaling(speed=10.0), Quality(latency="2 s", profile="economy"))
    assert (made.bound, made.use.wait) == (2.0, PROFILES["economy"].wait / 10)


def test_bursts_are_sped_up_with_all_other_seconds() -> None:
    quick = faster(Thalweg("economy"), 5.0)
    assert isinstance(quick, Thalweg)
    assert quick.use.bursts == Thalweg("economy").use.bursts / 5  # type: ignore[operator]  # it has some
