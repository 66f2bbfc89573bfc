"""Event time: when something happened, as the tuple itself says, in microseconds since 1970.

>>> import pyarrow as pa
>>> micros(pa.array([1.5, 2]), "s").tolist()
[1500000, 2000000]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.clock import seconds
from thalweg.errors import SchemaError, TopologyError, UsageError, explain
from thalweg.foreign import cell_shown

Micros = npt.NDArray[np.int64]
UnitName = Literal["s", "ms", "us", "ns"]
#: Before everything, and after it.
NEVER, ALWAYS = -(2**62), 2**62
SECOND = 1_000_000
#: What a field of times holds, in words.
A_TIME = "a timestamp, a date or a number"
_PER_UNIT = {"s": SECOND, "ms": 1000, "us": 1}
#: Times are from the year 1 to the year 9999, as those of Python are.
FIRST, LAST = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1
YEAR = 365 * 86_400 * SECOND


class Times(NamedTuple):
    """When tuples happened, 0 where that is unknown, and whether it is known."""

    micros: Micros
    known: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class EventTime:
    """Which field of a source says when something happened, and how late tuples may come."""

    field: str
    #: Microseconds that a tuple may come behind the newest one.
    delay: int = 0
    #: Seconds without a tuple after which a source keeps nobody waiting; None for never.
    idle: float | None = None
    #: What numbers count.
    unit: UnitName = "s"
    #: Microseconds to add: the result of a window belongs to it, though it is told at its end.
    shift: int = 0
    #: Whether tuples may come behind time on purpose: results that are told again.
    again: bool = False

    def read(self, column: pa.Array) -> Times:
        """Give the times of a column: nulls, NaN and what no calendar knows are none."""
        found = read(column, self.unit)
        return Times(np.where(found.known, found.micros + self.shift, 0), found.known)

    def refusal(self, column: pa.Array, row: int, of: str) -> SchemaError:
        """Say why a value is no time, or not one that is wanted."""
        value = cell_shown(column, row)
        got = "none" if value is None else str(value)
        hint = f"the numbers are of another unit, see event_time({self.field!r}, unit=...)"
        expected = f"a time in field {self.field!r}, {of}"
        is_number = isinstance(value, int | float) and isfinite(value)
        return SchemaError(explain("tuple", "", expected, got, hint if is_number else ""))


def event_time(
    field: str,
    *,
    delay: float | str = 0,
    idle: float | str | None = None,
    unit: UnitName = "s",
) -> EventTime:
    """Say which field holds the time of a tuple.

    Tuples may come up to ``delay`` behind the newest one. A source that gives nothing for ``idle``
    keeps nobody waiting. ``unit`` is what numbers count; timestamps know it themselves.

    >>> event_time("at", delay="10 s").delay
    10000000
    """
    if unit not in get_args(UnitName):
        expected = f"one of {get_args(UnitName)}"
        raise TopologyError(explain(f"unit of time field {field!r}", "", expected, repr(unit)))
    of = f"of time field {field!r}"
    late = span(delay or 0, f"delay {of}", zero=True)
    return EventTime(field, late, seconds(idle, f"idle {of}") if idle else None, unit)


def as_event_time(given: Any) -> EventTime:
    """Take a field's name, or what :func:`event_time` made."""
    if isinstance(given, EventTime):
        return given
    if isinstance(given, str):
        return EventTime(given)
    raise TopologyError(
        explain("time", expected="a field's name or event_time(...)", got=repr(given))
    )


def one_time(times: Sequence[EventTime | None]) -> tuple[EventTime | None, tuple[str, ...]]:
    """Give the time that all streams of a merge have, or else the times they have, in words.

    >>> one_time([EventTime("at"), None, EventTime("at", unit="ms")])
    (None, ("'at' in s", "'at' in ms", 'none'))
    >>> one_time([None, None])
    (None, ())
    """
    known = {(t.field, t.unit, t.shift): t for t in times if t is not None}
    if len(known) + (None in times) < 2 or not known:
        again = any(t is not None and t.again for t in times)
        return next((replace(t, again=again) for t in known.values()), None), ()
    shown = [
        f"{t.field!r}{' (of windows)' if t.shift else f' in {t.unit}'}" for t in known.values()
    ]
    return None, (*shown, *(["none"] if None in times else []))


def no_time(name: str, apart: Sequence[str]) -> TopologyError:
    """Say that a window or join cannot know when the tuples of its stream happened."""
    subject = f"window or join {name!r}"
    if apart:
        expected, got = "one time of all streams that were merged", " and ".join(apart)
        hint = "give them one field and unit where they begin, or window(..., time=...)"
        return TopologyError(explain(subject, "", expected, got, hint))
    hint = 'say time="FIELD" where the stream begins'
    return TopologyError(explain(subject, "", "to know when something happened", hint=hint))


def told_again(name: str) -> TopologyError:
    """Say that a window or join reads results that come again when time has passed them."""
    hint = "leave allowed out there; a window may say late='side' or allowed itself"
    expected, got = "results that are told once", "those of a window with allowed=..."
    return TopologyError(explain(f"window or join {name!r}", "", expected, got, hint))


def span(duration: float | str, what: str = "duration", zero: bool = False) -> int:
    """Read a length of time, as microseconds; one above 0, or also 0 itself."""
    length = seconds(duration, what, zero)
    if length * SECOND > LAST - FIRST:
        raise UsageError(explain(what, "", "at most 9999 years", repr(duration)))
    return max(1, round(length * SECOND)) if length else 0


def micros(column: pa.Array, unit: UnitName = "s") -> Micros:
    """Turn a column of times, without nulls, into microseconds."""
    return read(column, unit).micros


def read(column: pa.Array, unit: UnitName = "s") -> Times:
    """Turn a column of times into microseconds, and say which of them are times."""
    type_, types = column.type, pa.types
    if types.is_timestamp(type_):
        return _scaled(column.cast(pa.int64()), type_.unit)
    if types.is_date(type_):
        exact = column.cast(pa.timestamp("s"))
        return _scaled(exact.cast(pa.int64()), "s")
    if types.is_integer(type_):
        return _scaled(column, unit)
    if types.is_floating(type_):
        scale = 0.001 if unit == "ns" else float(_PER_UNIT[unit])
        moments = column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False) * scale
        known = (moments >= FIRST) & (moments <= LAST)
        return Times(np.rint(np.where(known, moments, 0.0)).astype(np.int64), known)
    raise SchemaError(explain("time of a tuple", "", A_TIME, str(type_)))


def _scaled(column: pa.Array, unit: str) -> Times:
    """Turn whole numbers of a unit into microseconds, where these are times."""
    numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
    bounds = FIRST, LAST
    first, last = ((bound * 1000 if unit == "ns" else bound // _PER_UNIT[unit]) for bound in bounds)
    info = np.iinfo(numbers.dtype)
    known = (numbers >= max(first, info.min)) & (numbers <= min(last, info.max))
    if column.null_count:
        known &= column.is_valid().to_numpy(zero_copy_only=False)
    fitting = np.where(known, numbers, 0).astype(np.int64)
    return Times(fitting // 1000 if unit == "ns" else fitting * _PER_UNIT[unit], known)


def is_time(type_: pa.DataType | None) -> bool:
    """Say whether values of a type can be times; an unknown type may turn out to be one."""
    types = pa.types
    kinds = (types.is_timestamp, types.is_date, types.is_integer, types.is_floating)
    return type_ is None or any(kind(type_) for kind in kinds)


def moments(column: pa.Array, unit: UnitName = "s") -> Times:
    """Give the times of a column by which time may go on.

    Those of the last year say "never": windows refuse them, and others must not be late for them.
    """
    found = read(column, unit)
    return Times(found.micros, found.known & (found.micros <= LAST - YEAR))


def newest(column: pa.Array, unit: UnitName = "s") -> int | None:
    """Give the newest time in a column; None where there is none."""
    found = moments(column, unit)
    return int(found.micros[found.known].max()) if found.known.any() else None
