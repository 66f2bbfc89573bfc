"""Tables for another number of places: even, with as few moves as can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.errors import UsageError
from thalweg.routing.table import RoutingTable

GROUPS = 64
places = st.integers(1, 9)


@given(st.lists(places, min_size=1, max_size=6))
def test_groups_are_even_and_no_more_of_them_move_than_have_to(degrees: list[int]) -> None:
    table = RoutingTable.even(degrees[0], GROUPS)
    for count in degrees[1:]:
        new = table.resized(count)
        has = np.bincount(new.groups, minlength=count)
        assert (len(has), has.max() - has.min() <= 1, new.epoch) == (count, True, table.epoch + 1)
        before = np.bincount(table.groups, minlength=max(count, table.places))
        # What a place may keep at most, and it keeps as much.
        bound = -(-GROUPS // count)
        kept = int((new.groups == table.groups).sum())
        assert kept >= int(np.minimum(before[:count], bound - 1).sum())
        table = new


@given(st.dictionaries(st.text(max_size=5), st.integers(0, 3)), places)
def test_single_keys_keep_the_places_that_remain(keys: dict[str, int], count: int) -> None:
    table = RoutingTable.even(4, GROUPS).with_keys(keys)
    new = table.resized(count, sharing=False)
    stays = table.key_places < count
    assert new.hashes.tolist() == table.hashes[stays].tolist()
    assert new.key_places.tolist() == table.key_places[stays].tolist()
    assert new.places_of(table.hashes).max(initial=0) < count


@pytest.mark.parametrize(("before", "count"), [(2, 3), (1, 4), (5, 6)])
def test_new_places_get_their_share_of_the_single_keys_and_no_others_move(
    before: int, count: int
) -> None:
    keys = {f"key {n}": n % before for n in range(3000)}
    table = RoutingTable.even(before).with_keys(keys)
    now, then = (each.places_of(table.hashes) for each in (table, table.resized(count)))
    share = np.bincount(then, minlength=count) / len(keys)
    assert share == pytest.approx(1 / count, rel=0.15)
    assert (then[then != now] >= before).all()


@given(st.dictionaries(st.text(max_size=5), st.integers(0, 3)), st.integers(1, 4))
def test_where_no_place_is_new_single_keys_stay(keys: dict[str, int], count: int) -> None:
    table = RoutingTable.even(4, GROUPS).with_keys(keys)
    new, kept = table.resized(count), table.resized(count, sharing=False)
    assert new.hashes.tolist() == kept.hashes.tolist()


def test_the_same_number_moves_nothing() -> None:
    table = RoutingTable.even(5, GROUPS)
    assert table.resized(5).groups.tolist() == table.groups.tolist()


@pytest.mark.parametrize("count", [0, -1, GROUPS + 1])
def test_more_places_than_groups_or_none_are_refused(count: int) -> None:
    with pytest.raises(UsageError, match="1 to 64 places"):
        RoutingTable.even(2, GROUPS).resized(count)
