"""Rerouting: only when it pays on pairs that the tables were not made from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from localities import A_TO_B, even, groups_of_keys, hashes, observations, observed, pair_counts
from localities import tables as drawn_tables

from thalweg.control.links import KeyBytes, Observed
from thalweg.control.locality import NoChange, Reroute, decide, next_rate
from thalweg.control.measures import heavy_keys, locality, outlook
from thalweg.control.settings import LocalitySettings
from thalweg.sketches.pairs import PairCounts, merged

FIT = {A_TO_B: groups_of_keys(groups=6, size=30, seed=1)}
LATER = {A_TO_B: groups_of_keys(groups=6, size=30, seed=2)}


def test_correlated_keys_are_brought_together() -> None:
    decision = decide(observed(FIT, LATER), even(6))
    assert isinstance(decision, Reroute)
    assert decision.present.locality.overall < 0.25
    assert decision.predicted.locality.overall > 0.8
    assert locality(LATER, decision.tables).overall == pytest.approx(
        decision.predicted.locality.overall, abs=0.05
    )
    assert {table.epoch for table in decision.tables.values()} == {1}
    assert decision.keys > 0
    assert decision.state_bytes == decision.keys * 100
    assert decision.reason.startswith("it pays: locality ")


def test_before_and_predicted_are_measured_as_what_comes_of_it_will_be() -> None:
    """Keys that nobody knew go by hash until they join their partners, before and after."""
    rows = [(key % 30, ("new", key), 3) for key in range(200)]
    later = {A_TO_B: merged([LATER[A_TO_B], pair_counts(*rows)], 10_000)}
    decision = decide(observed(FIT, later), even(6))
    assert isinstance(decision, Reroute)
    assert decision.present == outlook(later, even(6))
    without = decide(observed(FIT, later), even(6), LocalitySettings(adopts=False))
    assert isinstance(without, Reroute)
    assert (decision.present, decision.predicted) == (without.present, without.predicted)
    assert "once new keys have joined their partners" in decision.reason
    assert "partners" not in without.reason


def test_the_second_time_nothing_is_left_to_improve() -> None:
    first = decide(observed(FIT, LATER), even(6))
    assert isinstance(first, Reroute)
    second = decide(observed(FIT, LATER), first.tables)
    assert isinstance(second, NoChange)
    assert second.reason.startswith("no better tables were found")


def test_correlations_that_did_not_last_are_no_reason() -> None:
    """The tables fit what they were made from, and only that."""
    noise = PairCounts.of(*(np.random.default_rng(1).permutation(_numbers()) for _ in "ab"))
    later = PairCounts.of(*(np.random.default_rng(i).permutation(_numbers()) for i in (2, 3)))
    decision = decide(observed({A_TO_B: noise}, {A_TO_B: later}), even(6))
    assert isinstance(decision, NoChange)
    assert decision.predicted is not None
    assert decision.predicted.locality.overall < 0.25


def _numbers() -> np.ndarray:
    return hashes(*(i % 300 for i in range(900)))


def test_state_that_costs_more_than_it_saves_stays() -> None:
    keys = np.sort(np.union1d(FIT[A_TO_B].left, FIT[A_TO_B].right))
    large = KeyBytes(keys, np.full(len(keys), 1e9))
    seen = replace(observed(FIT, LATER), state={"a": large, "b": large})
    decision = decide(seen, even(6))
    assert isinstance(decision, NoChange)
    assert decision.reason.startswith("it does not pay")
    assert isinstance(decide(seen, even(6), LocalitySettings(horizon=1e9)), Reroute)
    assert isinstance(decide(seen, even(6), LocalitySettings(gain=0.0)), Reroute)


def test_a_place_with_too_much_is_reason_enough() -> None:
    rows = [(key, key, 10) for key in range(60)]
    seen = {A_TO_B: pair_counts(*rows)}
    crowded = {
        name: table.with_keys({key: min(key // 10, 2) for key in range(60)})
        for name, table in even(6).items()
    }
    decision = decide(observed(seen, rate=1e-9), crowded)
    assert isinstance(decision, Reroute)
    assert decision.present.worst == pytest.approx(4.0)
    assert decision.predicted.worst <= 1.1
    assert decision.reason == (
        "more even: locality 100.0 % now, 100.0 % predicted on held-out pairs; imbalance 4.00 now, "
        f"{decision.predicted.worst:.2f} predicted; "
        f"{decision.state_bytes:,.0f} bytes of state to move ({decision.keys} keys)"
    )


def test_little_evidence_decides_nothing() -> None:
    few = {A_TO_B: pair_counts((1, 2, 99))}
    assert decide(observed(few, LATER), even(6)) == NoChange(
        "too little was seen: 99 pairs, 100 are needed"
    )
    assert "99 held-out pairs" in decide(observed(FIT, few), even(6)).reason
    assert decide(observed(FIT, LATER), even(1)) == NoChange("all keys are at one place already")


def test_keys_too_heavy_for_a_place_are_reported() -> None:
    rows = [(0, key, 1) for key in range(400)] + [(key, key, 1) for key in range(1, 600)]
    seen = {A_TO_B: pair_counts(*rows)}
    decision = decide(observed(seen), even(6))
    assert [(key.component, key.key_hash) for key in decision.heavy] == [
        ("a", int(hashes(0)[0])),
    ]
    assert decision.heavy[0].share == pytest.approx(400 / 999)
    assert len(heavy_keys({"a": (hashes(1, 2), np.array([1.0, 1.0]))}, 0.1, number=1)) == 1


@settings(max_examples=60, deadline=None)
@given(observations(), st.integers(1, 4).flatmap(drawn_tables))
def test_a_decision_is_always_usable(seen: Observed, now: dict) -> None:
    decision = decide(seen, now, LocalitySettings(evidence=1))
    assert decision.reason
    if isinstance(decision, Reroute):
        places = now["a"].places
        assert decision.tables.keys() == now.keys()
        for name, table in decision.tables.items():
            assert (table.epoch, table.places) == (now[name].epoch + 1, places)
            assert not len(table.key_places) or table.key_places.min() >= 0
            assert not len(table.key_places) or table.key_places.max() < places


@given(st.floats(0.001, 1), st.floats(0, 1), st.floats(0.001, 0.5))
def test_the_sampling_rate_keeps_to_its_budget(rate: float, share: float, budget: float) -> None:
    following = next_rate(rate, share, budget)
    assert 0.001 <= following <= 1
    assert following <= 2 * rate
    if following > 0.001:
        assert share * following / rate <= budget * 1.0001 or share == 0
