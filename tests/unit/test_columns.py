"""Columns from Python values: nothing is changed in silence."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.columns import Misfit, cast, column, plain_type

UTC = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NAIVE = dt.datetime(2026, 1, 1, 5)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([1, 2.5], pa.int64()),
        ([1, 2.0], pa.int64()),
        ([1, True], pa.int64()),
        ([1, decimal.Decimal("1.5")], pa.int64()),
        ([1, np.float64(2.5)], pa.int64()),
        ([1, 2**63], pa.int64()),
        ([1, 300], pa.int8()),
        ([0.5, True], pa.float64()),
        ([0.5, 2**60 + 1], pa.float64()),
        (["a", b"b"], pa.string()),
        (["a", 1], pa.string()),
        (["a", "\ud800"], pa.string()),
        ([b"a", "b"], pa.binary()),
        ([True, 1], pa.bool_()),
        ([dt.date(2026, 1, 1), NAIVE], pa.date32()),
        ([NAIVE, dt.date(2026, 1, 1)], pa.timestamp("us")),
        ([NAIVE, UTC], pa.timestamp("us")),
        ([UTC, NAIVE], pa.timestamp("us", "UTC")),
        ([NAIVE, 5], pa.timestamp("us")),
        ([[1], [2.5]], pa.list_(pa.int64())),
        ([[1], ["5"]], pa.list_(pa.int64())),
        ([[dt.date(2026, 1, 1)], [dt.date(2026, 1, 1), NAIVE]], None),
        ([{"a": 1}, {"b": 2}], pa.struct([("a", pa.int64())])),
        ([{"a": 1}, {"a": 1.5}], pa.map_(pa.string(), pa.int64())),
        ([dt.timedelta(0), dt.timedelta(microseconds=1)], pa.duration("s")),
        ([NAIVE, NAIVE.replace(microsecond=5)], pa.timestamp("s")),
        ([dt.time(1), dt.time(1, tzinfo=dt.UTC)], pa.time64("us")),
        (["a", b"b"], None),
        ([dt.date(2026, 1, 1), NAIVE], None),
        ([UTC, NAIVE], None),
        ([1, "a"], None),
        ([1, 2**70], None),
    ],
)
def test_a_value_that_would_change_is_refused(values, wanted):
    with pytest.raises(Misfit, match="row 1"):
        column(values, wanted)


@pytest.mark.parametrize(
    ("values", "wanted", "same"),
    [
        (["a", None], pa.string(), True),
        (["a", None], None, True),
        ([1, None], None, True),
        ([1, 2], pa.int8(), False),
        ([1, 2.5], pa.float64(), False),
        ([1, 2.5], None, False),
        ([0.5], None, True),
        ([True, None], None, True),
        ([b"a"], None, True),
        ([np.int64(3)], pa.int64(), False),
        ([NAIVE], None, False),
        ([[1, None]], pa.list_(pa.int64()), False),
        ([], pa.list_(pa.int64()), True),
        ([{"a": 1}], None, False),
        ([None, None], None, False),
        ([None], pa.string(), True),
    ],
)
def test_values_go_in_and_come_back(values, wanted, same):
    made = column(values, wanted)
    assert made.array.to_pylist() == values
    assert made.same is same
    if wanted is not None:
        assert made.array.type == wanted


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([5]), pa.bool_()),
        (pa.array(["5"]), pa.int64()),
        (pa.array([5]), pa.string()),
        (pa.array([0.5]), pa.int64()),
        (pa.array([1e300]), pa.float32()),
        (pa.array([NAIVE]), pa.date32()),
        (pa.array([UTC]), pa.timestamp("us")),
        (pa.array([5]), pa.timestamp("us")),
        (pa.array([300]), pa.int8()),
        (pa.array([2**60 + 1]), pa.float64()),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([[5]]), pa.list_(pa.string())),
        (pa.array([{"a": 1}]), pa.struct([("b", pa.int64())])),
    ],
)
def test_a_column_that_would_change_is_refused(array, wanted):
    with pytest.raises(Misfit, match="a column of"):
        cast(array, wanted)


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([5], pa.int8()), pa.int64()),
        (pa.array([5]), pa.int8()),
        (pa.array([5]), pa.float64()),
        (pa.array(["a"], pa.large_string()), pa.string()),
        (pa.array(["a", "a"]).dictionary_encode(), pa.string()),
        (pa.array([None]), pa.string()),
        (pa.array([1000], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([UTC]), pa.timestamp("us", "Europe/Paris")),
        (pa.array([[5]]), pa.list_(pa.int8())),
        (pa.array([{"a": 5}]), pa.struct([("a", pa.float64())])),
    ],
)
def test_a_column_becomes_another_type_when_nothing_changes(array, wanted):
    made = cast(array, wanted)
    assert made.type == wanted
    assert made.to_pylist() == array.to_pylist()


def test_streams_have_neither_views_nor_nanoseconds():
    nested = pa.list_(pa.struct([("at", pa.timestamp("ns", "UTC"))]))
    assert plain_type(nested) == pa.list_(pa.struct([("at", pa.timestamp("us", "UTC"))]))
    assert plain_type(pa.string_view()) == pa.string()
    assert plain_type(pa.duration("ns")) == pa.duration("us")
    assert plain_type(pa.time64("ns")) == pa.time64("us")
    assert plain_type(pa.int8()) == pa.int8()


def test_text_and_bytes_do_not_mix_in_lists_either():
    with pytest.raises(Misfit):
        column([["a"], [b"b"]])


def test_maps_are_kept():
    made = column([{"a": 1}], pa.map_(pa.string(), pa.int64()))
    assert made.array.to_pylist() == [[("a", 1)]]


@given(st.lists(st.binary(max_size=600), min_size=1, max_size=20), st.booleans())
def test_long_bytes_go_in_and_come_back(values, declared):
    values = [b"x" * 300, *values]
    made = column(values, pa.binary() if declared else None)
    assert made.same
    assert made.array.type == pa.binary()
    made.array.validate(full=True)
    assert made.array.to_pylist() == values
