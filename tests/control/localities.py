"""What tests of locality share: pairs, tables and observations, drawn or made."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from thalweg.control.links import KeyBytes, Link, Observed, Pairs
from thalweg.hashing import Hashes, hash_key
from thalweg.routing.table import RoutingTable
from thalweg.sketches.pairs import PairCounts

A_TO_B = Link("a", "b")


def hashes(*keys: object) -> Hashes:
    return np.array([hash_key(key) for key in keys], np.uint64)


def pair_counts(*rows: tuple[object, object, float]) -> PairCounts:
    left, right = (hashes(*(row[i] for row in rows)) for i in (0, 1))
    return PairCounts.of(left, right, [row[2] for row in rows])


def even(places: int, *components: str) -> dict[str, RoutingTable]:
    return {name: RoutingTable.even(places) for name in components or ("a", "b")}


def observed(fit: Pairs, held_out: Pairs | None = None, rate: float = 1000.0) -> Observed:
    """Give an observation in which traffic is worth more than state."""
    return Observed(
        fit,
        fit if held_out is None else held_out,
        rates=dict.fromkeys(fit, rate),
        tuple_bytes=dict.fromkeys(fit, 1000.0),
    )


def groups_of_keys(groups: int, size: int, seed: int, strength: float = 0.9) -> PairCounts:
    """Give pairs of numbers of which most belong to the same of some groups."""
    rng = np.random.default_rng(seed)
    keys, rows = groups * size, 20 * groups * size
    left = rng.integers(0, keys, rows)
    same = left % groups + groups * rng.integers(0, size, rows)
    right = np.where(rng.random(rows) < strength, same, rng.integers(0, keys, rows))
    numbers = np.array([hash_key(key) for key in range(keys)], np.uint64)
    return PairCounts.of(numbers[left], numbers[right])


#: Chains, fan-out, joins and sources.
LINKS = st.sets(
    st.sampled_from(
        [Link("@s", "a"), Link("a", "b"), Link("b", "c"), Link("a", "c"), Link("@s", "c")]
    ),
    min_size=1,
)
KEYS = st.integers(0, 12)
ROWS = st.lists(st.tuples(KEYS, KEYS, st.integers(1, 50)), max_size=30)


@st.composite
def pairs(draw: st.DrawFn) -> dict[Link, PairCounts]:
    return {link: pair_counts(*draw(ROWS)) for link in sorted(draw(LINKS))}


@st.composite
def tables(draw: st.DrawFn, places: int) -> dict[str, RoutingTable]:
    at = st.dictionaries(KEYS, st.integers(0, places - 1), max_size=8)
    return {name: RoutingTable.even(places).with_keys(draw(at)) for name in ("a", "b", "c")}


@st.composite
def observations(draw: st.DrawFn) -> Observed:
    fit, held_out = draw(pairs()), draw(pairs())
    links = sorted({*fit, *held_out})
    sizes = draw(st.dictionaries(KEYS, st.integers(0, 10_000), max_size=10))
    keys = hashes(*sizes)
    order = np.argsort(keys)
    state = KeyBytes(keys[order], np.array(list(sizes.values()), np.float64)[order])
    return Observed(
        fit,
        held_out,
        rates={link: draw(st.sampled_from([0.0, 1.0, 1e6])) for link in links},
        tuple_bytes={link: draw(st.sampled_from([0.0, 1.0, 4000.0])) for link in links},
        state={"a": state} if draw(st.booleans()) else {},
    )
