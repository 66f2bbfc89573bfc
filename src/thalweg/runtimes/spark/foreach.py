"""A sink that gives each committed batch to a function, as a DataFrame.

The places write Parquet files before the commit; the function is called beside the driver after
it, and the DataFrame reads those files: using it twice runs nothing of the topology again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
import pyarrow as pa

from thalweg.components import BlockBolt
from thalweg.connectors.parquet_parts import ParquetParts
from thalweg.connectors.table_manifests import schema_of
from thalweg.contexts import TaskContext
from thalweg.errors import (
    RAISED,
    ComponentError,
    SchemaError,
    UsageError,
    as_error,
    explain,
    locate,
    shorten,
)
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import StagedRef
from thalweg.statelog.staged import StagedBatch

#: Spark knows microseconds, and no finer.
_OPTIONS = {"coerce_timestamps": "us", "allow_truncated_timestamps": True}
_SUFFIX = ".parquet"
#: In the metadata of a schema: the names of all fields, also of those without a type.
_FIELDS = b"thalweg.fields"


class ForeachSink(BlockBolt):
    """Gathers the rows of a batch at each place; the function stays with the driver."""

    at_places: ClassVar[bool] = True

    def __init__(self, function: Callable[[Any, int], Any] | None) -> None:
        self.function = function
        self._known: set[pa.Schema] = set()

    def __deepcopy__(self, memo: dict[int, Any]) -> ForeachSink:
        return ForeachSink(self.function)

    def __reduce__(self) -> tuple[Any, ...]:
        return ForeachSink, (None,)

    def prepare(self, context: TaskContext) -> None:
        """Begin a batch; outside Spark there are none."""
        if self.function is not None:  # nobody has sent it to a place
            hint = "run it on tw.Spark(...), or use tw.call, tw.to_table or tw.to_files"
            subject = f"foreach_batch of {context.component!r}"
            raise UsageError(explain(subject, "", "the Spark runtime", "another", hint))
        self._parts = ParquetParts(f"rows for {context.component!r}", _OPTIONS)

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Take rows; fields whose type nobody knows yet are left out, for they are null."""
        if batch.schema not in self._known:
            _spark_schema(batch.schema)
            self._known.add(batch.schema)
        names = {_FIELDS: msgspec.json.encode(batch.schema.names)}
        typed = [field.name for field in batch.schema if not pa.types.is_null(field.type)]
        written = batch.select(typed)
        if not typed:  # a file without columns would have no rows for Spark
            written = pa.record_batch({"": pa.array(np.zeros(len(batch), np.int8))})
        self._parts.add(written.replace_schema_metadata(names))
        if self._parts.is_full:
            self._parts.spill()

    def cleanup(self) -> None:
        """Forget what was not written."""
        if self.function is None:
            self._parts.close()

    def finish_batch(self, batch: StagedBatch) -> list[StagedRef]:
        """Write the files of a batch beside the state."""
        return batch.stage(self.context.component, self._parts.take(), _SUFFIX)

    def commit_batch(self, session: Any, batch: StagedBatch, refs: list[StagedRef]) -> None:
        """Give the batch to the function."""
        names = [ref.name for ref in refs if ref.name.endswith(_SUFFIX)]
        if not names or self.function is None:
            return
        frame = _read(session, batch.location, names)
        try:
            self.function(frame, batch.version)
        except RAISED as raised:
            error, component = as_error(raised), refs[0].component
            subject = f"component {component!r}, batch {batch.version}, in {locate(self.function)}"
            text = f"{subject}: {type(error).__name__}: {error}"
            raise ComponentError(component, 0, text) from raised


def _read(session: Any, location: Location, names: Sequence[str]) -> Any:
    """Make a DataFrame of files; those whose types differ are read apart and then united."""
    by_schema: dict[pa.Schema, list[str]] = {}
    for name in names:
        path = _spark_path(location, name)
        by_schema.setdefault(_whole(schema_of(location, name)), []).append(path)
    try:
        united = pa.unify_schemas(list(by_schema), promote_options="permissive")
    except (pa.ArrowException, ValueError) as error:
        hint = "declare the types of the fields"
        raise SchemaError(
            explain("rows for foreach_batch", "", "one type for each field", str(error), hint)
        ) from error
    frames = [
        session.read.schema(_spark_schema(_completed(schema, united))).parquet(*paths)
        for schema, paths in by_schema.items()
    ]
    return functools.reduce(lambda a, b: a.union(b), frames)


def _whole(schema: pa.Schema) -> pa.Schema:
    """Put the fields back that were left out of a file."""
    names = msgspec.json.decode(schema.metadata[_FIELDS], type=list[str])
    types = {field.name: field.type for field in schema}
    return pa.schema([(name, types.get(name, pa.null())) for name in names])


def _completed(schema: pa.Schema, united: pa.Schema) -> pa.Schema:
    """Give fields without a type the one that they have elsewhere."""
    pairs = zip(schema, united, strict=True)
    return pa.schema([there if pa.types.is_null(own.type) else own for own, there in pairs])


def _spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 (needs pyspark)

    known = [field.with_type(_known(field.type)) for field in schema]
    try:
        return from_arrow_schema(pa.schema(known))
    except Exception as error:  # Spark has several kinds of errors for this
        expected = "types that Spark's DataFrames have"
        raise SchemaError(explain("rows for foreach_batch", "", expected, str(error))) from error


def _known(type_: pa.DataType) -> pa.DataType:
    """Give the type of a column in Spark's eyes; a column without any has text, all null."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    return pa.string() if pa.types.is_null(type_) else type_


def _spark_path(location: Location, name: str) -> str:
    """Name an object as Hadoop does."""
    return f"{location.for_hadoop}/{name}"


def foreach_batch(function: Callable[[Any, int], Any]) -> ForeachSink:
    """Make a sink that calls ``function(dataframe, batch_id)`` after each batch with rows.

    It needs the Spark runtime. The function runs beside the driver, once per batch; after a crash
    the last batch may come again, with the same number.
    """
    if not callable(function):
        raise UsageError(explain("foreach_batch", "", "a function", shorten(function)))
    return ForeachSink(function)
