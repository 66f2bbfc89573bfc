"""Tuples of a block by key and stretch of time, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.blocks import Rows
from thalweg.eventtime import Micros
from thalweg.keys import Key, is_mixed, mixed_keys, one_way
from thalweg.windows.aggregates import Aggregate, Numbered
from thalweg.windows.keeping import Piece


class Groups(NamedTuple):
    """Rows in the order of key and time; where each group begins, and where each key does."""

    order: Rows
    starts: Rows
    #: A row of each key, and the number of the first group of each.
    rows: Rows
    firsts: Rows


def codes(columns: Sequence[pa.Array], rows: int) -> Rows:
    """Give rows with the same key the same number (see :mod:`thalweg.keys`)."""
    made: Rows = np.zeros(rows, dtype=np.int64)
    for column in columns:
        numbers, count = _numbered(column)
        _, made = np.unique(made * (count + 1) + numbers, return_inverse=True)
    return made


def _numbered(column: pa.Array) -> tuple[Rows, int]:
    """Give the same values of a column the same number, and how many there are."""
    mixed = is_mixed(column.type)
    encoded = (column.storage if mixed else one_way(column)).dictionary_encode("encode")
    numbers, values = np.asarray(encoded.indices), encoded.dictionary
    if mixed:  # what is written in several ways may be one key
        keys = mixed_keys(pa.ExtensionArray.from_storage(column.type, values).to_pylist())
        first: dict[Key, int] = {}
        same = np.array([first.setdefault(key, at) for at, key in enumerate(keys)], dtype=np.int64)
        numbers = same[numbers]
    return numbers, len(values)


def grouped(keys: Rows, starts: Micros, joins: int | None = None) -> Groups:
    """Put rows together that have the same key and stretch.

    With ``joins`` rows of a key whose starts are less than so far apart are together as well.
    """
    order = np.lexsort((starts, keys))
    key, start = keys[order], starts[order]
    new_key = np.ones(len(order), dtype=bool)
    new_key[1:] = key[1:] != key[:-1]
    new = new_key.copy()
    apart = start[1:] - start[:-1]
    new[1:] |= apart >= joins if joins is not None else apart != 0
    begins = np.flatnonzero(new)
    first_rows = np.flatnonzero(new_key)
    if joins is not None:  # within a group rows stay as they came
        order = order[np.lexsort((order, np.cumsum(new)))]
    return Groups(order, begins, order[first_rows], np.searchsorted(begins, first_rows))


def pieces(
    groups: Groups,
    stretches: tuple[Micros, Micros],
    aggregates: Sequence[Aggregate],
    columns: Sequence[pa.Array | None],
) -> list[Piece]:
    """Make a piece of each group."""
    order, rows = pa.array(groups.order), len(groups.order)
    partials = []
    for aggregate, column in zip(aggregates, columns, strict=True):
        taken = None if column is None else column.take(order)
        if isinstance(aggregate, Numbered):
            partials.append(aggregate.partials_of(taken, groups.order, groups.starts))
        else:
            partials.append(aggregate.partials(taken, groups.starts, rows))
    start, end = (times[groups.order] for times in stretches)
    begin = np.minimum.reduceat(start, groups.starts).tolist()
    finish = np.maximum.reduceat(end, groups.starts).tolist()
    each = zip(*partials, strict=True) if partials else ([] for _ in begin)
    return [Piece(a, b, list(p)) for a, b, p in zip(begin, finish, each, strict=True)]
