"""Keys that no table knows yet: with their partners, as long as places stay balanced."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from localities import A_TO_B, even, hashes, pair_counts, pairs
from localities import tables as drawn_tables

from thalweg.control.adopting import adopt
from thalweg.control.links import Link, key_weights
from thalweg.control.measures import imbalance, locality

PLACES = 3


def known_places(**places: int) -> dict:
    return {name: table.with_keys(places) for name, table in even(2).items()}


def spread(component: str, places: int = 2) -> list[tuple[object, object, float]]:
    """Load on other keys, so that a small one is no burden."""
    return [(f"{component}{i}", f"{component}{i}", 10.0) for i in range(50 * places)]


def test_a_new_key_goes_where_its_partner_is() -> None:
    for place in (0, 1):
        now = known_places(author=place)
        made = adopt({A_TO_B: pair_counts(("author", "port", 3), *spread("x"))}, now, {})
        assert made is not None
        assert made["b"].places_of(hashes("port")).tolist() == [place]
        assert {name: table.epoch for name, table in made.items()} == {"a": 2, "b": 2}


def test_of_several_partners_the_most_frequent_place_counts() -> None:
    now = known_places(one=0, two=1, three=1)
    rows = [("one", "port", 5.0), ("two", "port", 3.0), ("three", "port", 3.0)]
    made = adopt({A_TO_B: pair_counts(*rows, *spread("x"))}, now, {})
    assert made is not None
    assert made["b"].places_of(hashes("port")).tolist() == [1]


def test_senders_follow_readers_and_new_keys_follow_new_keys() -> None:
    now = known_places(old=1)
    rows = [("author", "old", 5.0), ("author", "new port", 2.0)]
    made = adopt({A_TO_B: pair_counts(*rows, *spread("x"))}, now, {})
    assert made is not None
    assert made["a"].places_of(hashes("author")).tolist() == [1]
    assert made["b"].places_of(hashes("new port")).tolist() == [1]


def test_known_keys_stay_where_they_are() -> None:
    now = known_places(author=0)
    recent = {A_TO_B: pair_counts(("author", "port", 3), *spread("x"))}
    known = {"b": hashes("port")}
    made = adopt(recent, now, known)
    assert (
        made is None
        or made["b"].places_of(hashes("port")).tolist()
        == even(2)["b"].places_of(hashes("port")).tolist()
    )


def test_nothing_to_place_is_no_new_epoch() -> None:
    assert adopt({A_TO_B: pair_counts(("nobody", "port", 3))}, even(2), {}) is None
    assert adopt({}, even(2), {}) is None


def test_a_partition_of_a_source_is_a_partner() -> None:
    recent = {Link("@s", "a"): pair_counts((1, "key", 3.0), (7, "far", 3.0))}
    made = adopt(recent, even(2, "a"), {}, alpha=2.0)
    assert made is not None
    assert made["a"].hashes.tolist() == hashes("key").tolist()
    assert made["a"].key_places.tolist() == [1]


def test_a_full_place_adopts_nobody() -> None:
    now = known_places(author=0)
    recent = {A_TO_B: pair_counts(*(("author", f"port{i}", 10.0) for i in range(100)))}
    made = adopt(recent, now, {}, alpha=1.2)
    assert made is not None
    assert imbalance(key_weights(recent), made)["b"] <= 1.2


@settings(max_examples=100, deadline=None)
@given(pairs(), drawn_tables(PLACES), st.sampled_from([1.0, 1.3, 2.0]))
def test_adopting_keeps_balance_and_known_keys(recent: dict, now: dict, alpha: float) -> None:
    known = {name: hashes(*range(6)) for name in now}
    known = {name: keys[keys.argsort()] for name, keys in known.items()}
    made = adopt(recent, now, known, alpha)
    if made is None:
        return
    weights = key_weights(recent)
    before, after = imbalance(weights, now), imbalance(weights, made)
    for name, table in made.items():
        assert table.epoch == now[name].epoch + 1
        assert table.places_of(known[name]).tolist() == now[name].places_of(known[name]).tolist()
        assert table.key_places.max(initial=0) < PLACES
    for name in weights:
        assert after[name] <= max(before[name], alpha) + 1e-9


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 9)), min_size=1))
def test_with_room_new_readers_are_at_least_as_local_as_before(rows: list) -> None:
    now = even(PLACES)
    now["a"] = now["a"].with_keys({key: key % PLACES for key in range(6)})
    now["b"] = now["b"].with_keys({})
    recent = {A_TO_B: pair_counts(*rows)}
    known = {"a": now["a"].hashes}
    made = adopt(recent, now, known, alpha=100.0)
    assert made is not None
    assert locality(recent, made).overall >= locality(recent, now).overall
