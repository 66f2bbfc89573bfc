"""Times cut off at the beginning of an hour, a day and so on.

>>> import pyarrow as pa
>>> import datetime as dt
>>> cut(pa.scalar(dt.datetime(2026, 1, 31, 12, 34, 56)), "hour").as_py().isoformat()
'2026-01-31T12:00:00'
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_WITHIN_A_DAY = ("second", "minute", "hour")
#: What times can be cut to.
UNITS = (*_WITHIN_A_DAY, "day", "week", "month", "quarter", "year")


def cut(times: Any, unit: str) -> Any:
    """Give the beginning of the hour, the day ... in which times are, by their own clock.

    With finer units than microseconds nothing would be gained, and they could be no keys.
    """
    type_ = times.type
    if not pa.types.is_timestamp(type_):
        return pc.floor_temporal(times, unit=unit)
    zone = type_.tz
    local = times if zone is None else pc.local_timestamp(times)
    begun = pc.floor_temporal(local, unit=unit)
    if zone is not None:
        begun = _moment(begun, zone, times if unit in _WITHIN_A_DAY else None)
    return begun.cast(pa.timestamp("us", zone)) if type_.unit == "ns" else begun


def _moment(local: Any, zone: str, times: Any) -> Any:
    """Give the moments of local times, where clocks go on and back: the last one before a time."""
    first = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest")
    if times is None:
        return first
    second = pc.assume_timezone(local, zone, ambiguous="latest", nonexistent="latest")
    return pc.if_else(pc.greater_equal(times, second), second, first)
