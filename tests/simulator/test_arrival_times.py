"""Tuples come when they are due, evenly or at random, and take their streams likewise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.connectors.profiles import constant, ramp, steps
from thalweg.control.scaling.static import Static
from thalweg.placement.values import Machine, Need
from thalweg.runtimes.simulator.arrivals import Arrivals
from thalweg.runtimes.simulator.runtime import Simulator
from thalweg.runtimes.simulator.splitting import AtRandom, InTurns
from thalweg.workloads.stages import Law, Reads, Stage, Staged

EVEN = Simulator((Machine("m0", cores=8),), timeout=1e9, latency=0.0, noise=0.0)
BURSTY = replace(EVEN, bursty=True)


def times_of(profile, world, period=10.0):
    arrivals = Arrivals(profile, Law(), world)
    ends = np.arange(period, profile.end + period, period)
    return np.concatenate([arrivals.between(end - period, end)[0] for end in ends])


def test_even_tuples_are_equally_far_from_each_other():
    times = times_of(constant(4, "1 minute"), EVEN)
    assert np.diff(times) == pytest.approx(0.25)
    assert len(times) == 240


def test_even_tuples_follow_a_rate_that_changes():
    times = times_of(ramp(0, 100, "100 s"), EVEN)
    assert len(times) == 5000
    assert np.searchsorted(times, 50.0) == pytest.approx(1250, abs=1)


@given(
    st.lists(st.tuples(st.floats(0.1, 50), st.integers(5, 40)), min_size=1, max_size=5),
    st.booleans(),
)
def test_times_ascend_within_their_periods(levels, bursty):
    profile = steps([(rate, float(seconds)) for rate, seconds in [*levels, (1.0, 20)]])
    arrivals = Arrivals(profile, Law(), BURSTY if bursty else EVEN)
    made = 0
    for begin in np.arange(0.0, profile.end, 10.0).tolist():
        times, values = arrivals.between(begin, begin + 10.0)
        assert len(times) == len(values)
        assert (np.diff(times) >= 0).all()
        assert ((times >= begin) & (times < begin + 10.0)).all()
        made += len(times)
    assert bursty or abs(made - profile.total) <= 1


def test_noise_changes_the_rate_of_a_period():
    noisy = times_of(constant(100, "10 minutes"), replace(EVEN, noise=0.1, seed=1))
    counts = np.bincount((noisy // 10).astype(int))
    assert 50 < counts.std() < 150


def test_evenly_spaced_tuples_do_not_wait_and_bursts_do():
    stage = Stage("work", (Reads("source"),), (0.018,), Need(0.0))
    topology, profile = Staged("one", (stage,)), constant(50, "10 minutes")
    even = EVEN.run(topology, profile, Law(), Static())
    assert even.latency_mean == pytest.approx(0.018)
    assert BURSTY.run(topology, profile, Law(), Static()).latency_mean > 0.05


# --- streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [InTurns(), AtRandom()])
@pytest.mark.parametrize("part", [0.1, 1 / 3, 0.5])
def test_streams_get_their_part(split, part):
    draws = split.draws("stage", np.arange(100_000))
    assert np.mean(draws < part) == pytest.approx(part, abs=0.01)


def test_a_part_in_turns_comes_evenly():
    taken = np.flatnonzero(InTurns().draws("stage", np.arange(10_000)) < 0.1)
    assert np.diff(taken).max() <= 21


def test_turns_go_on_from_call_to_call_and_are_each_stages_own():
    one, two = InTurns(), InTurns()
    whole = one.draws("a", np.arange(20))
    parts = [two.draws("a", np.arange(7)), two.draws("a", np.arange(7, 20))]
    assert np.concatenate(parts) == pytest.approx(whole)
    assert two.draws("b", np.arange(20)) == pytest.approx(whole)


def test_at_random_the_tuple_decides_not_the_call():
    split = AtRandom()
    whole = split.draws("a", np.arange(20))
    assert (split.draws("a", np.arange(7, 20)) == whole[7:]).all()
    assert (split.draws("b", np.arange(20)) != whole).any()
