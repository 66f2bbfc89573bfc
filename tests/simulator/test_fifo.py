"""The queues of the simulator against a plain loop."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thalweg.runtimes.simulator.fifo import admitted, in_time, overflowing, shares, starts

#: Eighths: sums of them are exact, so that "at the same time" means just that.
TIMES = st.integers(0, 8000).map(lambda eighths: eighths / 8)
SECONDS = st.integers(0, 400).map(lambda eighths: eighths / 8)
TUPLES = st.lists(st.tuples(st.integers(0, 4), TIMES, SECONDS), min_size=1, max_size=60)


def one_by_one(rows, free, limit=None):
    """The definition: (start, admitted) of each tuple of one server."""
    found, begun = [], []
    for arrival, seconds in rows:
        if limit is not None and sum(begin > arrival for begin in begun) >= limit:
            found.append((None, False))
            continue
        begin = max(arrival, free)
        begun.append(begin)
        found.append((begin, True))
        free = begin + seconds
    return found


def columns(tuples):
    rows = sorted(tuples, key=lambda row: row[:2])
    servers, arrivals, service = (list(column) for column in zip(*rows, strict=True))
    return np.array(servers), np.array(arrivals), np.array(service)


@given(TUPLES, st.lists(TIMES, min_size=5, max_size=5))
def test_starts_are_those_of_a_loop(tuples, free):
    servers, arrivals, service = columns(tuples)
    found = starts(servers, arrivals, service, np.array(free))
    for server in set(servers.tolist()):
        own = servers == server
        expected = one_by_one(zip(arrivals[own], service[own], strict=True), free[server])
        assert np.allclose(found[own], [begin for begin, _ in expected], atol=1e-6)


@given(TUPLES, st.integers(1, 4))
def test_a_full_queue_turns_tuples_away(tuples, limit):
    servers, arrivals, service = columns(tuples)
    for server in set(servers.tolist()):
        own = servers == server
        expected = one_by_one(zip(arrivals[own], service[own], strict=True), 0.0, limit)
        kept = admitted(arrivals[own], service[own], 0.0, limit)
        assert kept.tolist() == [fits for _, fits in expected]


@given(TUPLES, st.integers(1, 4))
def test_a_queue_overflows_where_somebody_is_turned_away(tuples, limit):
    servers, arrivals, service = columns(tuples)
    begin = starts(servers, arrivals, service, np.zeros(5))
    some = overflowing(servers, arrivals, begin, limit)
    for server in set(servers.tolist()):
        own = servers == server
        kept = admitted(arrivals[own], service[own], 0.0, limit)
        assert some[own].any() == (~kept).any()


@given(TUPLES, st.integers(1, 30), st.integers(0, 100))
def test_what_would_start_too_late_is_skipped(tuples, patience, end):
    _, arrivals, service = columns([(0, arrival, seconds) for _, arrival, seconds in tuples])
    kept = in_time(arrivals, service, arrivals + patience, 0.0, float(end))
    begin = starts(np.zeros(kept.sum(), np.int64), arrivals[kept], service[kept], np.zeros(1))
    started = begin < end
    assert (begin <= arrivals[kept] + patience)[started].all()
    free = float((begin + service[kept])[started].max(initial=0.0))
    assert (np.maximum(arrivals, free) > arrivals + patience)[~kept].all() or not (~kept).any()


def test_nothing_is_served_when_nothing_comes():
    empty = np.empty(0, np.int64)
    assert len(starts(empty, np.empty(0), np.empty(0), np.zeros(3))) == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=1, max_size=12))
def test_a_share_is_what_others_leave_and_no_less_than_an_equal_part(tasks):
    units = np.array([unit for unit, _ in tasks])
    demand = np.array([asked for _, asked in tasks])
    for unit, asked, share in zip(units, demand, shares(demand, units, 4), strict=True):
        there = demand[units == unit]
        left = 1.0 - (there.sum() - asked)
        assert share >= left - 1e-9
        assert share * max((there > 0).sum(), 1) >= 1.0 - 1e-9
