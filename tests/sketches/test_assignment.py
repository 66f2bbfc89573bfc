"""The assignment problem, against trying everything."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from thalweg.errors import UsageError
from thalweg.sketches.assignment import assign

MATRICES = st.integers(0, 6).flatmap(
    lambda n: arrays.arrays(np.int64, (n, n), elements=st.integers(0, 3) | st.integers(0, 2**40))
)


@given(MATRICES)
def test_nothing_better_exists(kept: np.ndarray) -> None:
    chosen = assign(kept)
    rows = range(len(kept))
    assert sorted(chosen) == list(rows)
    best = max(
        sum(kept[i, j] for i, j in zip(rows, way, strict=True)) for way in permutations(rows)
    )
    assert sum(kept[i, j] for i, j in zip(rows, chosen, strict=True)) == best


@given(MATRICES)
def test_what_is_as_good_where_it_is_stays_there(kept: np.ndarray) -> None:
    chosen = assign(kept)
    if sum(kept[i, j] for i, j in enumerate(chosen)) == np.trace(kept):
        assert chosen.tolist() == list(range(len(kept)))


def test_hundreds_of_places_are_found_their_own_parts() -> None:
    hidden = np.random.default_rng(1).permutation(200)
    kept = np.random.default_rng(2).integers(0, 50, (200, 200))
    kept[np.arange(200), hidden] += 100
    assert assign(kept).tolist() == hidden.tolist()


@pytest.mark.parametrize("wrong", [[[1, 2]], [1, 2], [[float("nan")]]])
def test_only_square_matrices_of_numbers(wrong: list[float]) -> None:
    with pytest.raises(UsageError, match="a square matrix of numbers"):
        assign(wrong)
