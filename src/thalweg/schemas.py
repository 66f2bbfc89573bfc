"""Fields of a stream: names, and types that are declared or learnt from the first values.

>>> fields(["word"])
Fields(word)
>>> fields({"word": str, "n": int})
Fields(word: string, n: int64)
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import keyword
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from thalweg import columns
from thalweg.columns import Column, Misfit
from thalweg.errors import SchemaError, TopologyError, explain, shorten

_ARROW_TYPES: dict[Any, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    dt.datetime: pa.timestamp("us"),
    dt.date: pa.date32(),
    dt.time: pa.time64("us"),
    dt.timedelta: pa.duration("us"),
    type(None): pa.null(),
}


@dataclasses.dataclass(frozen=True)
class Fields:
    """Names of a stream's fields and their Arrow types; a type is None until values show it."""

    names: tuple[str, ...]
    types: tuple[pa.DataType | None, ...]

    def __post_init__(self) -> None:
        for name in self.names:
            _check_name(name, self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __repr__(self) -> str:
        return f"Fields({self.describe()})"

    def describe(self) -> str:
        """Write the fields as people do: ``word: string, n: int64``."""
        pairs = zip(self.names, self.types, strict=True)
        return ", ".join(name if type_ is None else f"{name}: {type_}" for name, type_ in pairs)

    def type_of(self, name: str) -> pa.DataType | None:
        """Give the type of a field, None while it is not known."""
        return self.types[self.names.index(name)]

    def select(self, names: Sequence[str]) -> Fields:
        """Keep these fields, in this order."""
        return Fields(tuple(names), tuple(self.type_of(name) for name in names))

    def extend(self, other: Fields) -> Fields:
        """Put other fields behind these; a name that exists already takes its new type in place."""
        merged = dict(zip(self.names, self.types, strict=True))
        merged.update(zip(other.names, other.types, strict=True))
        return Fields(tuple(merged), tuple(merged.values()))


NO_FIELDS = Fields((), ())


def fields(spec: Any) -> Fields:
    """Make fields from names, a mapping of names to types, an Arrow schema or a record class."""
    if spec is None:
        return NO_FIELDS
    if isinstance(spec, Fields):
        return spec
    if isinstance(spec, str):
        return Fields((spec,), (None,))
    if isinstance(spec, pa.Schema):
        return Fields(tuple(spec.names), tuple(map(arrow_type, spec.types)))
    if isinstance(spec, Mapping):
        return Fields(tuple(spec), tuple(arrow_type(type_) for type_ in spec.values()))
    if isinstance(spec, type):
        return _record_fields(spec)
    if isinstance(spec, Iterable):
        names = tuple(spec)
        return Fields(names, (None,) * len(names))
    raise TopologyError(
        explain("fields", expected="names, {name: type} or an Arrow schema", got=shorten(spec))
    )


def record_fields(annotation: Any) -> Fields | None:
    """Read the fields of a NamedTuple, dataclass or msgspec.Struct; None for any other type."""
    is_record = isinstance(annotation, type) and (
        hasattr(annotation, "_fields")
        or dataclasses.is_dataclass(annotation)
        or hasattr(annotation, "__struct_fields__")
    )
    return _record_fields(annotation) if is_record else None


def _record_fields(record: type) -> Fields:
    hints = typing.get_type_hints(record)
    if not hints:
        raise TopologyError(
            explain(f"fields {record.__name__}", expected="a class with annotated fields")
        )
    return Fields(tuple(hints), tuple(arrow_type(hint) for hint in hints.values()))


def arrow_type(annotation: Any) -> pa.DataType | None:
    """Translate a Python type to Arrow's; None (learn it) for Any and object.

    >>> arrow_type(list[int])
    ListType(list<item: int64>)
    >>> arrow_type(str | None)
    DataType(string)
    """
    if isinstance(annotation, pa.DataType):
        return columns.plain_type(annotation)
    if annotation in (Any, object, None):
        return None
    if annotation in _ARROW_TYPES:
        return _ARROW_TYPES[annotation]
    return _generic_type(annotation)


def _generic_type(annotation: Any) -> pa.DataType:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        chosen = [arg for arg in args if arg is not type(None)]
        if len(chosen) == 1:
            return arrow_type(chosen[0])
    if origin in (list, tuple, set, frozenset, Sequence) and args:
        inner = arrow_type(args[0])
        if inner is not None:
            return pa.list_(inner)
    if origin is dict and len(args) == 2:
        return pa.map_(arrow_type(args[0]), arrow_type(args[1]))
    raise TopologyError(
        explain(
            f"type {annotation!r}",
            expected="str, int, float, bool, bytes, date, datetime, list[...] or an Arrow type",
            hint="give a pyarrow type, or only the name to have the type learnt from the values",
        )
    )


def _check_name(name: str, names: tuple[str, ...]) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise TopologyError(
            explain(
                f"field {name!r}",
                expected="a name that Python accepts, as in t.name",
                hint="rename it where the stream begins",
            )
        )
    if name.startswith("_"):
        raise TopologyError(explain(f"field {name!r}", expected="a name without leading '_'"))
    if names.count(name) > 1:
        raise TopologyError(explain(f"field {name!r}", expected="each name once", got=str(names)))


class Shape:
    """The fields of one stream in a running topology: turns columns into record batches.

    Types that were not declared are fixed by the first block that shows them, so that a stream
    has one schema for its whole life. One Shape is shared by all tasks of a component.
    """

    def __init__(
        self, declared: Fields, subject: str = "stream", read: frozenset[str] | None = None
    ) -> None:
        self.names = declared.names
        #: Columns that somebody looks at, None for all; lists for others are checked, not kept.
        self._read = read
        self.types: list[pa.DataType | None] = list(declared.types)
        self.subject = subject
        #: A schema that needs no change.
        self._fitting: pa.Schema | None = None

    @property
    def fields(self) -> Fields:
        """What is known of the fields by now."""
        return Fields(self.names, tuple(self.types))

    def batch(self, given: Sequence[Any]) -> pa.RecordBatch:
        """Make a record batch of columns: lists of Python values, or Arrow arrays."""
        return self.make(given)[0]

    def make(self, given: Sequence[Any]) -> tuple[pa.RecordBatch, dict[str, list[Any]]]:
        """Make a record batch, and name the lists whose very values Arrow gives back."""
        lists: dict[str, list[Any]] = {}
        arrays = []
        for index, (name, column) in enumerate(zip(self.names, given, strict=True)):
            if self._read is not None and name not in self._read:
                arrays.append(self._unread(index, column))
                continue
            array, same = self._array(index, column)
            arrays.append(array)
            if same and type(column) is list:
                lists[name] = column
        return pa.RecordBatch.from_arrays(arrays, names=self.names), lists

    def misfits(
        self, given: Sequence[Any], start: int = 0, stop: int | None = None
    ) -> dict[int, SchemaError]:
        """Find the rows that do not fit, by halves because there are few, with the reasons."""
        stop = len(given[0]) if stop is None else stop
        try:
            self.make([column[start:stop] for column in given])
        except SchemaError as error:
            if stop - start == 1:
                return {start: error}
            middle = (start + stop) // 2
            return self.misfits(given, start, middle) | self.misfits(given, middle, stop)
        return {}

    def conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Check a record batch that a user returned; cast where that loses nothing."""
        if not isinstance(batch, pa.RecordBatch):
            raise SchemaError(
                explain(self.subject, expected="a pyarrow.RecordBatch", got=shorten(batch, 80))
            )
        if self._fitting is not None and batch.schema.equals(self._fitting):
            return batch
        if set(batch.schema.names) != set(self.names) or batch.num_columns != len(self.names):
            raise SchemaError(
                explain(
                    f"record batch of {self.subject}",
                    expected=f"fields {list(self.names)}",
                    got=str(batch.schema.names),
                    hint="declare the fields that are returned: fields=[...] or outputs = [...]",
                )
            )
        if batch.schema.types == self.types and batch.schema.names == list(self.names):
            self._fitting = batch.schema
            return batch
        return self.batch([batch.column(name) for name in self.names])

    def _array(self, index: int, column: Any) -> Column:
        wanted = self.types[index]
        try:
            made = self._converted(column, wanted)
        except Misfit as misfit:
            raise self._refused(index, misfit) from misfit
        if wanted is None and len(made.array) and _is_settled(made.array.type):
            self.types[index] = made.array.type
        return made

    def _unread(self, index: int, column: Any) -> pa.Array:
        """Give nulls for a column that nobody looks at, if its values are seen to fit."""
        wanted = self.types[index]
        if wanted is None or type(column) is not list or not columns.fit(column, wanted):
            return self._array(index, column).array
        return pa.nulls(len(column), wanted)

    def _converted(self, column: Any, wanted: pa.DataType | None) -> Column:
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if not isinstance(column, pa.Array):
            return columns.column(column, wanted)
        return Column(columns.cast(column, wanted or columns.plain_type(column.type)), False)

    def _refused(self, index: int, misfit: Misfit) -> SchemaError:
        name, wanted = self.names[index], self.types[index]
        return SchemaError(
            explain(
                f"field {name!r} of {self.subject}",
                expected="values of one type" if wanted is None else str(wanted),
                got=str(misfit),
                hint=_hint(name, wanted),
            ),
            misfit.row,
        )


def column_rows(column: Any, rows: Any) -> Any:
    """Take some rows of a column, a list of values or an Arrow array."""
    if isinstance(column, pa.Array):
        return column.take(pa.array(rows, pa.int64()))
    return [column[row] for row in rows]


def _hint(name: str, wanted: pa.DataType | None) -> str:
    if wanted is not None and pa.types.is_timestamp(wanted):
        zone = "pa.timestamp('us')" if wanted.tz else "pa.timestamp('us', 'UTC')"
        which = f"times {'without' if wanted.tz else 'with'} a zone"
        option = f"--types {name}:timestamp{'' if wanted.tz else 'tz'}"
        return f"for {which} declare {{{name!r}: {zone}}}, or {option} for a query"
    return f"convert the value, or declare the type, for example {{{name!r}: float}}"


def _is_settled(type_: pa.DataType) -> bool:
    """Say whether values have shown a type completely: an empty list does not show its parts."""
    if pa.types.is_nested(type_) and not pa.types.is_dictionary(type_):
        return all(_is_settled(type_.field(i).type) for i in range(type_.num_fields))
    return not pa.types.is_null(type_)
