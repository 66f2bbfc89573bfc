"""Keys that no table knows yet: with their partners, as long as places stay balanced."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from localities import A_TO_B, even, hashes, pair_counts, pairs
from localities import tables as drawn_tables

from thalweg.control.adopting import Adopter, adopt
from thalweg.control.links import Link, key_weights
from thalweg.control.measures import imbalance, locality
from thalweg.hashing import hash_key
from thalweg.routing.table import RoutingTable
from thalweg.sketches.pairs import merged

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


@settings(deadline=None)
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


# --- batch by batch ----------------------------------------------------------------------------

BATCHES = st.lists(pairs(), min_size=1, max_size=5)


def place(table: RoutingTable, key: object) -> int:
    return int(table.places_of(hashes(key))[0])


def test_balance_is_that_of_all_that_was_seen() -> None:
    """A single tuple is all of its batch; it may join its partner nevertheless."""
    made_from = {A_TO_B: pair_counts(*spread("x"))}
    now = {name: table.with_keys({"x1": 0, "x2": 1}) for name, table in even(2).items()}
    adopter = Adopter.since(made_from, now)
    for partner in ("x1", "x2"):
        port = f"port of {partner}"
        now = adopter.after({A_TO_B: pair_counts((partner, port, 1.0))}, now) or now
        assert place(now["b"], port) == place(now["a"], partner)
    elsewhere = next(n for n in range(99) if place(even(2)["b"], n) == 1)
    alone = adopt({A_TO_B: pair_counts(("x1", elsewhere, 1.0))}, known_places(x1=0), {})
    assert alone is None or place(alone["b"], elsewhere) == 1


def test_a_key_moves_on_when_it_has_met_more_partners_elsewhere() -> None:
    now = known_places(x1=0, x2=1)
    adopter = Adopter.since({A_TO_B: pair_counts(*spread("x"))}, now)
    where = []
    for partner in ("x1", "x2", "x2", "x1"):
        now = adopter.after({A_TO_B: pair_counts((partner, "port", 1.0))}, now) or now
        where.append(place(now["b"], "port"))
    assert where == [0, 0, 1, 1]


def test_a_key_that_the_tables_hardly_saw_may_still_follow_but_its_past_counts() -> None:
    now = known_places(x1=0, x2=1, port=0, busy=0)
    seen = pair_counts(("x1", "port", 2.0), ("x1", "busy", 5.0), *spread("x"))
    adopter = Adopter.since({A_TO_B: seen}, now)
    where = []
    for _ in range(3):
        batch = pair_counts(("x2", "port", 1.0), ("x2", "busy", 9.0))
        now = adopter.after({A_TO_B: batch}, now) or now
        where.append((place(now["b"], "port"), place(now["b"], "busy")))
    assert where == [(0, 0), (0, 0), (1, 0)]


def test_where_the_best_place_is_full_the_next_one_will_do() -> None:
    now = {name: t.with_keys({"one": 0, "two": 1, "full": 0}) for name, t in even(3).items()}
    new = next(n for n in range(99) if place(now["b"], n) == 2)
    rows = [("full", "full", 50.0), ("one", new, 3.0), ("two", new, 2.0)]
    known = {"a": hashes(*sorted(("one", "two", "full"), key=hash_key)), "b": hashes("full")}
    made = adopt({A_TO_B: pair_counts(*rows)}, now, known, alpha=1.3)
    assert made is not None
    assert place(made["b"], new) == 1


def test_what_is_remembered_is_bounded() -> None:
    now = known_places(one=0, two=1)
    adopter = Adopter({"a": hashes("one", "two")}, alpha=100.0, capacity=10)
    for start in range(0, 60, 20):
        rows = [("one", key, 1.0) for key in range(start, start + 20)]
        now = adopter.after({A_TO_B: pair_counts(*rows)}, now) or now
    assert {place(now["b"], key) for key in range(60)} == {0}
    # They have become known: other partners do not move them any more.
    rows = [("two", key, 9.0) for key in range(60)]
    assert adopter.after({A_TO_B: pair_counts(*rows)}, now) is None


@settings(max_examples=60, deadline=None)
@given(pairs(), BATCHES, drawn_tables(PLACES), st.sampled_from([1.0, 1.3, 2.0]))
def test_known_keys_stay_and_balance_is_kept_over_any_batches(
    seen: dict, batches: list, now: dict, alpha: float
) -> None:
    begun, adopter = now, Adopter.since(seen, now, alpha, few=1)
    known = {name: keys for name, (keys, _) in key_weights(seen).items()}
    for number, batch in enumerate(batches):
        so_far = _together([seen, *batches[: number + 1]])
        before = imbalance(key_weights(so_far), now)
        made = adopter.after(batch, now)
        now = now if made is None else made
        after = imbalance(key_weights(so_far), now)
        if len(so_far) == 1:  # where links share a component, its weight is the largest of theirs
            assert all(after[name] <= max(before[name], alpha) + 1e-9 for name in after)
    for name, keys in known.items():
        assert now[name].places_of(keys).tolist() == begun[name].places_of(keys).tolist()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=40),
    st.integers(1, 40),
)
def test_with_room_keys_are_where_most_partners_are_however_batches_are_cut(
    rows: list, size: int
) -> None:
    now = {name: t.with_keys({k: k % PLACES for k in range(6)}) for name, t in even(PLACES).items()}
    now["b"] = even(PLACES)["b"]
    known = {"a": now["a"].hashes}
    adopter, everything = Adopter(known, alpha=100.0), pair_counts(*((*row, 1.0) for row in rows))
    for start in range(0, len(rows), size):
        batch = pair_counts(*((*row, 1.0) for row in rows[start : start + size]))
        now = adopter.after({A_TO_B: batch}, now) or now
    at_once = adopt({A_TO_B: everything}, dict(now, b=even(PLACES)["b"]), known, alpha=100.0)
    assert at_once is not None
    found = [locality({A_TO_B: everything}, tables).overall for tables in (now, at_once)]
    assert found[0] == found[1]
    assert adopt({A_TO_B: everything}, now, known, alpha=100.0) is None


def _together(parts: list) -> dict:
    links = {link for part in parts for link in part}
    return {link: merged([p[link] for p in parts if link in p], 10**6) for link in sorted(links)}


def test_with_another_number_of_places_it_begins_anew() -> None:
    recent = {A_TO_B: pair_counts(("author", "port", 3), *spread("x"))}
    adopter = Adopter({})
    adopter.after(recent, known_places(author=1))
    for places in (3, 1):
        now = {name: table.with_keys({"author": 0}) for name, table in even(places).items()}
        made = adopter.after(recent, now) or now
        assert made["b"].places_of(hashes("port")).tolist() == [0]
