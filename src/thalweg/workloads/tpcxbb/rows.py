"""What the rows of both streams have in common: any range of them can be made by itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from thalweg.workloads.tpcxbb.drawing import Bits, Law, Numbers, scatter, shuffled
from thalweg.workloads.tpcxbb.tables import BEGIN_DAY, DAY, Stream


class Rows(ABC):
    """The rows of one stream, by their position."""

    schema: ClassVar[pa.Schema]
    at_scale_1: ClassVar[int]
    #: Rows that may have the time of the first of them.
    tied: ClassVar[int] = 1

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.total = stream.total(self.at_scale_1)
        #: Rows per second of event time.
        self.pace = stream.pace(self.total)
        self._salt = stream.seed * 100
        self._items = Law(stream.items, stream.skew, stream.seed)
        # One second for the rounding of both times, and room for rows with an earlier time.
        spread = min(int((stream.late - 1) * self.pace) - self.tied, self.total // 4)
        self._width = 1 << spread.bit_length() - 1 if spread > 1 else 1

    def make(self, first: int, stop: int) -> pa.RecordBatch:
        """Make the rows from ``first`` to before ``stop``, or to the end."""
        numbers = np.arange(first, max(first, min(stop, self.total)), dtype=np.int64)
        if self._width > 1:
            numbers = shuffled(numbers, self._width, self.total, self._salt)
        return pa.RecordBatch.from_arrays(self._columns(numbers), schema=self.schema)

    @abstractmethod
    def _columns(self, numbers: Numbers) -> Sequence[pa.Array]:
        """Make the columns of rows, whose numbers are in the order of event time."""

    def _chance(self, numbers: Numbers, salt: int) -> Bits:
        return scatter(numbers, self._salt + salt)

    def _moments(self, numbers: Numbers) -> tuple[pa.Array, pa.Array]:
        """Give days and seconds of the day."""
        seconds = (numbers * (1 / self.pace)).astype(np.int64)
        days = seconds // DAY
        return small(days + BEGIN_DAY), small(seconds - days * DAY)


def small(values: Numbers) -> pa.Array:
    """Make a column of 32 bits."""
    return pa.array(values.astype(np.int32))
