"""Places are shared out among hosts by their cores, and stay where they are if that fits."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import UsageError
from thalweg.runtimes.spark.placement import place_on_hosts, share_out

HOSTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 8), min_size=1)
PLACES = st.integers(1, 40)


@given(PLACES, HOSTS)
def test_each_host_has_its_share_to_within_one(places: int, cores: dict[str, int]) -> None:
    found = Counter(share_out(places, cores))
    assert found.total() == places
    for host, own in cores.items():
        assert abs(found[host] - places * own / sum(cores.values())) < 1


@given(PLACES, HOSTS)
def test_nothing_moves_when_nobody_has_come_or_gone(places: int, cores: dict[str, int]) -> None:
    before = share_out(places, cores)
    assert share_out(places, cores, before) == before


@given(PLACES, HOSTS, HOSTS)
def test_only_places_that_must_move_do(
    places: int, old: dict[str, int], new: dict[str, int]
) -> None:
    before = share_out(places, old)
    after = share_out(places, new, before)
    held, share = Counter(before), Counter(after)
    stayed = sum(a == b for a, b in zip(before, after, strict=True))
    assert stayed == sum(min(held[host], share[host]) for host in new)


@given(PLACES, HOSTS, st.data())
def test_a_host_that_comes_back_carries_its_share_again(
    places: int, cores: dict[str, int], data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(sorted(cores)))
    left = {host: own for host, own in cores.items() if host != gone}
    before = share_out(places, cores)
    meanwhile = share_out(places, left, before) if left else before
    after = Counter(share_out(places, cores, meanwhile))
    assert abs(after[gone] - places * cores[gone] / sum(cores.values())) < 1


def test_equal_shares_do_not_look_at_cores() -> None:
    assert Counter(place_on_hosts("equal", 4, {"a": 7, "b": 1})) == {"a": 2, "b": 2}
    assert Counter(place_on_hosts("cores", 4, {"a": 3, "b": 1})) == {"a": 3, "b": 1}


def test_given_hosts_are_kept_while_they_are_there() -> None:
    given_hosts = ("b", "b", "a")
    assert place_on_hosts(given_hosts, 3, {"a": 1, "b": 1}) == given_hosts
    assert set(place_on_hosts(given_hosts, 3, {"a": 1, "c": 1})) == {"a", "c"}


def test_as_many_hosts_as_places_must_be_given() -> None:
    with pytest.raises(UsageError, match="expected 3 hosts, got 1"):
        place_on_hosts(("a",), 3, {"a": 1})


def test_without_hosts_there_is_no_placement() -> None:
    assert place_on_hosts("cores", 3, {}) == ()
