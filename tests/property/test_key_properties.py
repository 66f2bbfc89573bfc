"""Keys: when two are the same, and that dictionaries, stores and hashes agree on it."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from property.strategies import (
    KEY_COLUMNS,
    KEYS,
    SCALAR_KEYS,
    ZONES,
    arrays,
    plain,
)
from thalweg.errors import StateError
from thalweg.hashing import hash_columns, hash_key, key_groups
from thalweg.keys import canonical, decode_key, encode_key, key_arrays, key_values


def kind(key: Any) -> str:
    """Name the kind of a key; keys of different kinds are never the same."""
    if isinstance(key, int | float):
        return "number"
    if isinstance(key, dt.datetime):
        return "instant" if key.tzinfo else "datetime"
    return type(key).__name__


def same(a: Any, b: Any) -> bool:
    """Decide by the documented rule, which this function is a second reading of."""
    if kind(a) != kind(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    # NumPy would make a whole number a float first, and lose its last digit.
    return bool(getattr(a, "item", lambda: a)() == getattr(b, "item", lambda: b)())


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """Draw two keys, often the same one in another guise."""
    key = draw(KEYS)
    return key, draw(st.just(guise(key, draw)) | KEYS)


def guise(key: Any, draw: st.DrawFn) -> Any:
    if isinstance(key, tuple):
        return tuple(guise(part, draw) for part in key)
    if isinstance(key, float) and key.is_integer():
        return int(key)
    if isinstance(key, int):
        return draw(st.sampled_from([key, float(key), bool(key), np.float64(key)]))
    if isinstance(key, dt.datetime) and key.tzinfo:
        return key.astimezone(draw(ZONES))
    return float("nan") if isinstance(key, float) and math.isnan(key) else key


@given(pairs())
@example((2**63, 2.0**63))
@example((2**64 - 2048, 2.0**64 - 2048))
@example((-(2**63), -(2.0**63)))
@example((2**53 + 1, float(2**53 + 1)))
@example((0, -0.0))
@example((("a", 1), ("a", True)))
def test_same_keys_have_one_form_one_encoding_and_one_hash(pair: tuple[Any, Any]) -> None:
    try:
        forms = [canonical(key) for key in pair]
    except StateError:  # a number of more than 64 bits
        return
    a, b = pair
    assert (plain(forms[0]) == plain(forms[1])) == same(a, b)
    assert (encode_key(a) == encode_key(b)) == same(a, b)
    assert ({forms[0]: 1} == {forms[1]: 1}) == same(a, b)
    if same(a, b):
        assert hash_key(a) == hash_key(b)


@given(KEYS)
def test_a_stored_key_comes_back_in_canonical_form(key: Any) -> None:
    assert plain(decode_key(encode_key(key))) == plain(canonical(key))
    assert plain(canonical(canonical(key))) == plain(canonical(key))
    assert same(canonical(key), key) or (isinstance(key, float) and math.isnan(key))


@pytest.mark.parametrize(
    "key",
    [
        2**64,
        -(2**63) - 1,
        [1, 2],
        {"a": 1},
        {1},
        object(),
        ("a", [1]),
        1j,
        dt.time(12, tzinfo=dt.UTC),
        dt.timedelta.max,
        dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_a_key_is_refused(key: Any) -> None:
    with pytest.raises(StateError):
        encode_key(key)
    with pytest.raises(StateError):
        hash_key(key)


def test_text_that_no_encoding_knows_is_refused_by_stores() -> None:
    with pytest.raises(StateError, match="surrogates"):
        encode_key(("a", "\ud800"))


@given(st.binary(max_size=20))
def test_bytes_that_are_no_key_are_refused_or_read(data: bytes) -> None:
    try:
        key = decode_key(data)
    except StateError:
        return
    assert plain(decode_key(encode_key(key))) == plain(canonical(key))


# --- hashes ------------------------------------------------------------------------------------

#: Hashes decide where state is: they must never change. Computed once, and frozen.
HASHES: list[tuple[Any, int]] = [
    (None, 0xE220A8397B1DCDAF),
    (0, 0x06C45D188009454F),
    (1, 0x382FF84CB27281E9),
    (-1, 0x8F33834013B31F7C),
    (2**63 - 1, 0x0C5C4838E036754F),
    (2**64 - 1, 0x8F33834013B31F7C),
    (1.5, 0xB4A7240C63983592),
    (float("nan"), 0x069645E1C62C562B),
    (float("inf"), 0xEF08A21642205132),
    (2.0**70, 0x2DA1AACAE9D6C8D9),
    ("", 0x2C829ABE1F4532E1),
    ("a", 0x122DB2DAD55B0753),
    ("ä", 0x5D071BE93E854E22),
    ("日本 🌊", 0x2C446D8B42F563D3),
    ("eight ch", 0xF6DBE292883ABEB4),
    ("nine char", 0x92D274FFDEA1E3E7),
    ("x" * 257, 0x55F531A590CF689F),
    (b"", 0x3EE5789041C98AC3),
    (b"a", 0x993A45AB9D7D53A6),
    (b"\x00" * 9, 0xDDC2B665838CFB31),
    (dt.date(2024, 2, 29), 0x8473D8A0FC588714),
    (dt.datetime(2024, 2, 29, 12, 30, 0, 5), 0xCD05911764473842),
    (dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC), 0xD766130A560A2950),
    (dt.time(23, 59, 59, 999999), 0xC530363F1A43ECD8),
    (dt.timedelta(days=-1, microseconds=7), 0x24788D7BE7371FB9),
    ((), 0xDB01602B100B9ED7),
    (("eu", 3), 0x130CCB3DFF20A5CF),
    (("eu", None, 2.5), 0x4DC44BA1133776A1),
    (("a", ("b",)), 0x80C8E2BAC1C80717),
]


@pytest.mark.parametrize(("key", "expected"), HASHES, ids=repr)
def test_hashes_are_frozen(key: Any, expected: int) -> None:
    assert hash_key(key) == expected


_PRINT_HASHES = """
import sys, json
from property.test_key_properties import HASHES
from thalweg.hashing import hash_key
print(json.dumps([hash_key(key) for key, _ in HASHES]))
"""


@pytest.mark.parametrize("seed", ["1", "31337"])
def test_hashes_do_not_depend_on_pythons_hash_seed(seed: str) -> None:
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(  # noqa: S603 (our own interpreter)
        [sys.executable, "-c", _PRINT_HASHES],
        env=environment,
        capture_output=True,
        check=True,
    )
    assert json.loads(found.stdout) == [expected for _, expected in HASHES]


@st.composite
def key_columns(draw: st.DrawFn, most: int = 3) -> list[pa.Array]:
    rows = draw(st.integers(0, 10))
    return draw(st.lists(arrays(KEY_COLUMNS, rows), min_size=1, max_size=most))


def rows_of(columns: list[pa.Array]) -> list[Any]:
    """Give the key of each row, read by Arrow."""
    values = [column.to_pylist() for column in columns]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True))


@given(key_columns())
def test_columns_hash_as_scalars_do(columns: list[pa.Array]) -> None:
    assert hash_columns(columns).tolist() == [hash_key(key) for key in rows_of(columns)]


@given(key_columns(most=2), st.data())
def test_chunks_and_slices_hash_as_the_whole_column(
    columns: list[pa.Array], data: st.DataObject
) -> None:
    whole = hash_columns(columns).tolist()
    cut = data.draw(st.integers(0, len(whole)), "cut")
    chunked = [pa.chunked_array([column[:cut], column[cut:]]) for column in columns]
    assert hash_columns(chunked).tolist() == whole
    assert hash_columns([column[cut:] for column in columns]).tolist() == whole[cut:]


@given(key_columns())
def test_keys_of_columns_are_told_apart_by_a_dictionary_as_by_the_rule(
    columns: list[pa.Array],
) -> None:
    keys, rows = key_values(columns), rows_of(columns)
    numbers: dict[Any, int] = {}
    found = [numbers.setdefault(key, row) for row, key in enumerate(keys)]
    expected = [next(i for i, b in enumerate(rows) if same(a, b)) for a in rows]
    assert found == expected


@given(key_columns())
def test_keys_go_back_into_columns(columns: list[pa.Array]) -> None:
    keys = key_values(columns)
    again = key_arrays(keys, [column.type for column in columns])
    assert [column.type for column in again] == [column.type for column in columns]
    assert all(map(same, rows_of(again), rows_of(columns)))


@given(st.lists(SCALAR_KEYS, max_size=20), st.integers(1, 2000))
def test_every_hash_has_one_key_group(keys: list[Any], groups: int) -> None:
    hashes = np.array([hash_key(key) for key in keys], dtype=np.uint64)
    found = key_groups(hashes, groups).tolist()
    assert found == [hash_key(key) % groups for key in keys]
