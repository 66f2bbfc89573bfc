"""Calls from phone to phone, in the order of time, some of them from phones that were copied.

A number says where its owner is at home: ``01-00024`` is of area 01. People call from six to
midnight, from one city a day, and travel by night. The copy of a phone is far away, and calls as
often as its owner does. The calls depend on the settings alone.

>>> source = phone_calls(CallSettings(calls=3, seed=7))
>>> source.chunk(0).to_pylist() == phone_calls(CallSettings(calls=3, seed=7)).chunk(0).to_pylist()
True
>>> source.chunk(0).schema.names
['at', 'seconds', 'caller', 'callee', 'caller_city', 'callee_city']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.workloads.chunks import Chunked, Numbers, rows_of, scatter
from thalweg.workloads.cities import CITIES
from thalweg.workloads.settings import check_setting, read_settings

_SCHEMA = pa.schema(
    {
        "at": pa.timestamp("us"),
        "seconds": pa.int64(),
        "caller": pa.string(),
        "callee": pa.string(),
        "caller_city": pa.string(),
        "callee_city": pa.string(),
    }
)
_NAMES = pa.array(list(CITIES))
# The first Monday in March 2026, and hours of a day, in milliseconds.
_START = np.datetime64("2026-03-02", "ms").astype(np.int64)
_DAY, _MORNING, _AWAKE = 86_400_000, 21_600_000, 64_800_000
_MEAN_SECONDS = 120.0
# Shares: days that people spend elsewhere, and calls of a copied phone that its copy makes.
_AWAY, _BY_COPY = 0.15, 0.5


@dataclass(frozen=True)
class CallSettings:
    """What the stream of calls looks like."""

    #: How many calls there are, and how many days they take.
    calls: int = 200_000
    days: int = 3
    #: How many phones, spread over all areas, and which share of them was copied, 0 to 1.
    phones: int = 10_000
    copied: float = 0.02
    seed: int = 1

    def __post_init__(self) -> None:
        for name, least in (("calls", 0), ("days", 1), ("phones", 2), ("seed", 0)):
            value = getattr(self, name)
            check_setting("calls", name, value, value >= least, f"at least {least}")
        check_setting("calls", "copied", self.copied, 0 <= self.copied <= 1, "0 to 1")

    @classmethod
    def read(cls, values: Mapping[str, str]) -> CallSettings:
        """Read settings given as text, as with ``--set calls=1000``."""
        return read_settings(cls, values)


class Calls(Chunked):
    """The source. Its calls are in the order of time if it has one task."""

    outputs = _SCHEMA

    def __init__(self, settings: CallSettings) -> None:
        self.settings = settings
        self._numbers = pa.array([phone_number(phone) for phone in range(settings.phones)])

    def chunk(self, number: int) -> pa.RecordBatch:
        """Make one chunk of calls; an empty one behind the last."""
        settings, positions = self.settings, rows_of(number, self.settings.calls)
        rows = len(positions)
        rng = np.random.default_rng((settings.seed, number))
        awake = positions * (settings.days * _AWAKE) // max(1, settings.calls)
        days = awake // _AWAKE
        at = _START + days * _DAY + _MORNING + awake % _AWAKE
        callers = rng.integers(settings.phones, size=rows)
        others = rng.integers(1, settings.phones, size=rows)
        callees = (callers + others) % settings.phones  # nobody calls himself
        by_copy = self._copied(callers) & (rng.random(rows) < _BY_COPY)
        places = np.where(by_copy, self._copy_city(callers), self._city(callers, days))
        columns = [
            pa.array(at).cast(pa.timestamp("ms")).cast(_SCHEMA.field("at").type),
            pa.array(1 + rng.exponential(_MEAN_SECONDS, rows).astype(np.int64)),
            self._numbers.take(pa.array(callers)),
            self._numbers.take(pa.array(callees)),
            _NAMES.take(pa.array(places)),
            _NAMES.take(pa.array(self._city(callees, days))),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    def _city(self, phones: Numbers, days: Numbers) -> Numbers:
        """Say in which city owners are on a day: at home, or somewhere else."""
        drawn = scatter(phones * 1_000_003 + days, self.settings.seed)
        return np.where(_share(drawn) < _AWAY, drawn % len(CITIES), phones % len(CITIES))

    def _copied(self, phones: Numbers) -> npt.NDArray[np.bool_]:
        return _share(scatter(phones, self.settings.seed + 1)) < self.settings.copied

    def _copy_city(self, phones: Numbers) -> Numbers:
        """Say where the copies of phones are: never where their owners are at home."""
        away = 1 + scatter(phones, self.settings.seed + 2) % (len(CITIES) - 1)
        return (phones + away) % len(CITIES)


def phone_calls(settings: CallSettings | None = None) -> Calls:
    """Make a source of calls."""
    return Calls(settings or CallSettings())


def phone_number(phone: int) -> str:
    """Give the number of a phone.

    >>> phone_number(24), area_of(phone_number(24))
    ('01-00024', 'Lisbon')
    """
    return f"{phone % len(CITIES) + 1:02}-{phone:05}"


def area_of(number: str) -> str:
    """Name the city that a number, or the code of an area, belongs to."""
    known = [f"{area:02}" for area in range(1, len(CITIES) + 1)]
    good = number[:2] in known
    check_setting("calls", "area", number, good, f"two digits, {known[0]} to {known[-1]}")
    return list(CITIES)[known.index(number[:2])]


def _share(drawn: Numbers) -> npt.NDArray[np.float64]:
    return drawn / 2.0**63
