"""Finding keys among those of a table: by hash, or by comparing with each of them.

Both give, for each row of a column, the position of its key, or -1. Nothing equals null or NaN.

>>> keys = pa.array(["a", "b"])
>>> hashed(keys, pa.array(["b", None, "x", "a"])).tolist()
[1, -1, -1, 0]
>>> looped(keys, pa.array(["b", None, "x", "a"])).tolist()
[1, -1, -1, 0]
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.blocks import Rows
from thalweg.columns import Misfit, cast
from thalweg.errors import SchemaError, explain
from thalweg.hashing import Hashes, hash_columns
from thalweg.keys import refusal

#: Arrow makes its hash table anew for each block, which is quicker up to so many keys: twice the
#: rows of the block, and as many as go by while NumPy gets going.
_ANEW_PER_ROW, _ANEW = 2, 3000


# --- one form for all keys -----------------------------------------------------------------------


def key_type(type_: pa.DataType) -> pa.DataType | None:
    """Give the type that keys of a type are compared in; None if they cannot be.

    >>> key_type(pa.int16()), key_type(pa.list_(pa.int64()))
    (DataType(int64), None)
    """
    types = pa.types
    if types.is_dictionary(type_):
        return key_type(type_.value_type)
    if types.is_integer(type_):
        return pa.uint64() if types.is_uint64(type_) else pa.int64()
    if types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz and "UTC")
    same = (types.is_boolean, types.is_decimal, types.is_null)
    if any(check(type_) for check in same):
        return type_
    return next((wanted for check, wanted in _FORMS if check(type_)), None)


_FORMS = (
    (pa.types.is_floating, pa.float64()),
    (pa.types.is_string, pa.string()),
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_binary, pa.binary()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_date, pa.date32()),
    (pa.types.is_time, pa.time64("us")),
    (pa.types.is_duration, pa.duration("us")),
)


def normal(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Bring keys into one form; NaN becomes null, and -0.0 is 0.0."""
    if pa.types.is_floating(column.type) and not pa.types.is_floating(wanted):
        column = pc.if_else(pc.is_nan(column), None, column)
    if column.type != wanted:
        column = cast(column, wanted)
    if not pa.types.is_floating(wanted):
        return column
    return pc.if_else(pc.is_nan(column), None, pc.add(column, 0.0))


def table_keys(column: pa.Array, wanted: pa.DataType, name: str) -> pa.Array:
    """Bring the keys of a table into the form of those of the stream."""
    try:
        return normal(column, wanted)
    except Misfit as misfit:
        raise SchemaError(
            explain(
                f"field {name!r} of the table",
                expected=f"keys of type {wanted}, as in the stream",
                got=str(misfit),
                hint="declare one type for both",
            )
        ) from misfit


# --- one column ----------------------------------------------------------------------------------


def hashed(keys: pa.Array, column: pa.Array) -> Rows:
    """Find rows by a hash table that Arrow makes for this call."""
    found = pc.index_in(column, value_set=keys, skip_nulls=True)
    return found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)


def looped(keys: pa.Array, column: pa.Array) -> Rows:
    """Compare all rows with each key."""
    found = np.full(len(column), -1, np.int64)
    numbers = _numbers(column)
    others = _numbers(keys) if numbers is not None else None
    for at in range(len(keys)):
        if numbers is not None and others is not None:
            found[numbers == others[at]] = at
        else:
            same = pc.fill_null(pc.equal(column, keys[at]), False)
            found[same.to_numpy(zero_copy_only=False)] = at
    return found


def _numbers(column: pa.Array) -> npt.NDArray[np.int64] | None:
    """View a column of whole numbers without nulls as an array."""
    plain = pa.types.is_integer(column.type) and not column.null_count
    return column.to_numpy() if plain else None


class Keys:
    """Different values of one column, which rows are looked for among."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def positions(self, column: pa.Array, by_hash: bool) -> Rows:
        """Give the position of each row's value, -1 where it is none of these."""
        if not by_hash:
            return looped(self._values, column)
        if len(self) <= _ANEW_PER_ROW * len(column) + _ANEW or self._buckets is None:
            return hashed(self._values, column)
        return self._buckets.positions(column)

    @cached_property
    def _buckets(self) -> _Buckets | None:
        if refusal(self._values.type):
            return None
        made = _Buckets(self._values, hash_columns([self._values]))
        # Two keys of one hash: next to impossible, and then not worth more than Arrow's table.
        return None if made.twice else made


class _Buckets:
    """A hash table that is kept: keys in the order of their hashes, and where each bucket begins.

    >>> keys = pa.array([7, 9])
    >>> _Buckets(keys, hash_columns([keys])).positions(pa.array([9, 8])).tolist()
    [1, -1]
    """

    def __init__(self, values: pa.Array, hashes: Hashes) -> None:
        self._values = values
        bits = len(hashes).bit_length() + 1
        self._shift = np.uint64(64 - bits)
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]
        #: Whether two keys have the same hash.
        self.twice = bool((self._hashes[1:] == self._hashes[:-1]).any())
        buckets = (self._hashes >> self._shift).view(np.int64)
        self._starts = np.zeros((1 << bits) + 1, np.int64)
        np.cumsum(np.bincount(buckets, minlength=1 << bits), out=self._starts[1:])

    def positions(self, column: pa.Array) -> Rows:
        """Look into the bucket of each row, one step for all rows at a time."""
        hashes = hash_columns([column])
        buckets = (hashes >> self._shift).view(np.int64)
        at, ends = self._starts[buckets], self._starts[buckets + 1]
        found = np.full(len(column), -1, np.int64)
        rows = np.flatnonzero(at < ends)
        while len(rows):
            places = at[rows]
            same = self._hashes[places] == hashes[rows]
            found[rows[same]] = self._order[places[same]]
            rows = rows[~same]
            at[rows] += 1
            rows = rows[at[rows] < ends[rows]]
        return self._verified(column, found)

    def _verified(self, column: pa.Array, found: Rows) -> Rows:
        rows = np.flatnonzero(found >= 0)
        theirs = self._values.take(pa.array(found[rows]))
        same = pc.fill_null(pc.equal(column.take(pa.array(rows)), theirs), False)
        found[rows[~same.to_numpy(zero_copy_only=False)]] = -1
        return found


# --- several columns -----------------------------------------------------------------------------


class KeyIndex:
    """The rows of a table by key, of one column or of several."""

    def __init__(self, columns: list[pa.Array]) -> None:
        self._columns: list[Keys] = []
        #: For each column but the first: numbers that stand for what it and those before have.
        self._joint: list[Keys] = []
        codes: Rows | None = None
        for column in columns:
            keys = Keys(column.unique().drop_null())
            self._columns.append(keys)
            own = keys.positions(column, by_hash=True)
            codes = own if codes is None else self._joined(codes, own, len(keys))
        assert codes is not None  # noqa: S101 (a key has a column)
        rows = np.flatnonzero(codes >= 0)
        self.rows = rows[np.argsort(codes[rows], kind="stable")]
        self.starts = np.zeros(self.distinct + 1, np.int64)
        np.cumsum(np.bincount(codes[rows], minlength=self.distinct), out=self.starts[1:])
        #: Whether no key is there twice.
        self.unique = len(self.rows) == self.distinct

    @property
    def distinct(self) -> int:
        """How many different keys there are."""
        return len((self._joint or self._columns)[-1])

    def _joined(self, codes: Rows, own: Rows, width: int) -> Rows:
        both = _both(codes, own, width)
        self._joint.append(Keys(both.unique().drop_null()))
        return self._joint[-1].positions(both, by_hash=True)

    def match(self, columns: list[pa.Array], by_hash: bool) -> tuple[Rows, Rows]:
        """Give pairs of rows with equal keys: of the block, and of the table."""
        codes = self._columns[0].positions(columns[0], by_hash)
        for column, keys, joint in zip(columns[1:], self._columns[1:], self._joint, strict=True):
            both = _both(codes, keys.positions(column, by_hash), len(keys))
            codes = joint.positions(both, by_hash)
        rows = np.flatnonzero(codes >= 0)
        found = codes[rows] if len(rows) < len(codes) else codes
        if self.unique:
            return rows, self.rows[found]
        starts = self.starts[found]
        at, places = spread(starts, self.starts[found + 1] - starts)
        return rows[at], self.rows[places]


def _both(codes: Rows, own: Rows, width: int) -> pa.Array:
    """Make one number of two; null where one of them is none."""
    return pa.array(codes * width + own, mask=(codes < 0) | (own < 0))


def spread(starts: Rows, counts: Rows) -> tuple[Rows, Rows]:
    """Go through ranges: gives the number of each place's range, and the place.

    >>> at, places = spread(np.array([5, 0]), np.array([2, 1]))
    >>> at.tolist(), places.tolist()
    ([0, 0, 1], [5, 6, 0])
    """
    at = np.repeat(np.arange(len(starts)), counts)
    before = np.cumsum(counts) - counts
    return at, np.arange(len(at)) + np.repeat(starts - before, counts)
