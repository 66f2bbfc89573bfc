"""The tuple view of a block: one small struct per row, made once per block.

>>> Word = tuple_class(("word", "n"))
>>> t = Word("to", 2)
>>> t.word, t[1], list(t), as_dict(t)
('to', 2, ['to', 2], {'word': 'to', 'n': 2})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, cast

import msgspec
import pyarrow as pa

from thalweg.foreign import listed


class Tuple(msgspec.Struct, gc=False):
    """One row of a block, its fields as attributes; also by position or name in brackets.

    The methods of this class are all double-underscored, so that a field may have any name.
    There is no ``__getattr__`` for a kinder error: it would double the cost of each field access.
    """

    def __getitem__(self, which: int | str) -> Any:
        return getattr(self, self.__struct_fields__[which] if isinstance(which, int) else which)

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self.__struct_fields__)

    def __len__(self) -> int:
        return len(self.__struct_fields__)


@lru_cache(maxsize=1024)
def tuple_class(names: tuple[str, ...]) -> type[Tuple]:
    """Make the tuple type for these field names."""
    # Structs inside containers may form cycles only through the container, so no GC per tuple.
    made = msgspec.defstruct("Tuple", list(names), bases=(Tuple,), gc=False)
    return cast(type[Tuple], made)


def as_dict(t: Tuple) -> dict[str, Any]:
    """Turn a tuple into a dictionary by field name."""
    return msgspec.structs.asdict(t)


Values = Callable[[str], list[Any]]


def values_of(batch: pa.RecordBatch) -> Values:
    """Make a function that gives the Python values of a column."""
    return lambda name: listed(batch.column(name), name)


def tuples_of(batch: pa.RecordBatch, values: Values | None = None) -> Iterator[Tuple]:
    """Iterate over the rows of a record batch as tuples; columns are converted once."""
    names = tuple(batch.schema.names)
    make = tuple_class(names)
    if not names:
        return iter([make() for _ in range(batch.num_rows)])
    return map(make, *map(values or values_of(batch), names))
