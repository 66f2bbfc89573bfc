"""How a user's function meets the fields of a stream.

The names of its parameters are names of fields. A function with one parameter that is no field
takes the value when the stream has one field, and the whole tuple otherwise.

>>> stream = fields(["region", "hashtag"])
>>> bind(lambda hashtag: hashtag, stream, "map").names
('hashtag',)
>>> bind(lambda post: post.region, stream, "map").names is None
True
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyarrow as pa

from thalweg.errors import RAISED, SchemaError, TopologyError, as_error, explain, locate, shorten
from thalweg.schemas import Fields, fields, record_fields
from thalweg.tuples import Tuple, Values, tuples_of

Function = Callable[..., Any]
Refuse = Callable[[int, Exception], None]


@dataclass(frozen=True)
class Call:
    """A function together with the fields that it takes; ``names`` is None for the whole tuple."""

    function: Function
    names: tuple[str, ...] | None

    def columns(self, batch: pa.RecordBatch, values: Values) -> list[Any]:
        """Give the arguments for all rows: one sequence per parameter."""
        if self.names is None:
            return [tuples_of(batch, values)]
        return [values(name) for name in self.names]

    def over(
        self, batch: pa.RecordBatch, values: Values, refuse: Refuse
    ) -> tuple[list[Any], list[int]]:
        """Call it on each row; give the results, and the rows that were refused."""
        results: list[Any] = []
        refused: list[int] = []
        # The same iterator goes on behind a row that raised: no row is ever called twice.
        calls = map(self.function, *self.columns(batch, values)) if batch.num_rows else iter(())
        while len(results) + len(refused) < batch.num_rows:
            try:
                results.extend(calls)
                if len(results) + len(refused) == batch.num_rows:
                    break
                raise RuntimeError(_STOPPED)
            except RAISED as error:
                row = len(results) + len(refused)
                refuse(row, as_error(error))
                refused.append(row)
        return results, refused


_STOPPED = "the function raised StopIteration; let it return a value or raise another exception"


def bind(function: Function, available: Fields, where: str, skip: int = 0) -> Call:
    """Match a function's parameters with fields; ``skip`` leading ones are not fields (a state)."""
    if not callable(function):
        raise TopologyError(explain(where, expected="a function", got=shorten(function)))
    wanted = _parameters(function)
    if wanted is None:  # a built-in without a signature takes one argument
        return Call(function, available.names if len(available) == 1 else None)
    required, optional, takes_all = wanted
    fields_wanted = required[skip:]
    if takes_all and not fields_wanted:
        return Call(function, available.names)
    if len(required) >= skip and all(name in available for name in fields_wanted):
        # Optional parameters are filled as far as they are fields, without a gap.
        filled = tuple(itertools.takewhile(lambda name: name in available, optional))
        if fields_wanted or filled or skip:
            return Call(function, (*fields_wanted, *filled))
    if len(fields_wanted) == 1:
        return Call(function, available.names if len(available) == 1 else None)
    raise _mismatch(function, available, where, skip, required)


def _parameters(function: Function) -> tuple[list[str], list[str], bool] | None:
    """Give required and optional positional parameters and whether *args; None if unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    plain = [p for p in parameters if p.kind in positional]
    required = [p.name for p in plain if p.default is p.empty]
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if named:
        raise TopologyError(
            explain(
                f"function {locate(function)}",
                expected="parameters that can be given by position",
                got=f"keyword-only {named}",
                hint="remove the '*' from its signature",
            )
        )
    optional = [p.name for p in plain if p.default is not p.empty]
    return required, optional, any(p.kind is p.VAR_POSITIONAL for p in parameters)


def _mismatch(
    function: Function, available: Fields, where: str, skip: int, required: Sequence[str]
) -> TopologyError:
    states = "the state first, then " if skip else ""
    return TopologyError(
        explain(
            f"function {locate(function)}",
            where,
            expected=f"{states}parameters among the fields {list(available.names)}",
            got=f"({', '.join(required)})",
            hint="name the parameters as the fields, or take one parameter for the whole tuple",
        )
    )


def result_fields(function: Function, given: Any, default: Fields | None) -> Fields:
    """Decide the fields that a function returns: as given, as annotated, or the default."""
    if given is not None:
        return fields(given)
    annotated = record_fields(_return_annotation(function))
    if annotated is not None:
        return annotated
    if default is None:
        raise TopologyError(
            explain(f"function {locate(function)}", expected="fields=[...] for what it returns")
        )
    return default


def _return_annotation(function: Function) -> Any:
    try:
        return inspect.get_annotations(function, eval_str=True).get("return")
    except (NameError, TypeError, SyntaxError):
        return None


def unpack(results: Sequence[Any], names: Sequence[str]) -> list[list[Any]]:
    """Turn results, one per tuple, into columns.

    >>> unpack([("a", 1), ("b", 2)], ["word", "n"])
    [['a', 'b'], [1, 2]]
    >>> unpack([{"word": "a", "n": 1}], ["word", "n"])
    [['a'], [1]]
    """
    if not results:
        return [[] for _ in names]
    try:
        return _unpack_alike(results, names)
    except (TypeError, KeyError, AttributeError, IndexError):
        rows = [_unpack_one(result, names) for result in results]
        return [[row[i] for row in rows] for i in range(len(names))]


def _unpack_alike(results: Sequence[Any], names: Sequence[str]) -> list[list[Any]]:
    """Take all results for what the first one is; raises where one is something else."""
    first = results[0]
    if len(names) == 1 and not _is_record_of(first, names[0]) and not isinstance(first, Mapping):
        return [results if type(results) is list else list(results)]
    if isinstance(first, Mapping):
        return [[result[name] for result in results] for name in names]
    if isinstance(first, tuple | list | Tuple):
        if set(map(len, results)) != {len(names)}:
            raise TypeError
        return [list(map(itemgetter(i), results)) for i in range(len(names))]
    return [[getattr(result, name) for result in results] for name in names]


def _unpack_one(result: Any, names: Sequence[str]) -> list[Any]:
    try:
        return [column[0] for column in _unpack_alike([result], names)]
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise SchemaError(
            explain(
                "result or item",
                expected=f"one value for each of {list(names)}",
                got=shorten(result, 80),
                hint="give a tuple, or say which fields there are with fields=[...]",
            )
        ) from error


def _is_record_of(value: Any, name: str) -> bool:
    """Say whether it is a NamedTuple, Struct or dataclass with this one field."""
    made_by = type(value)
    if dataclasses.is_dataclass(made_by):
        return [field.name for field in dataclasses.fields(made_by)] == [name]
    is_named_tuple = isinstance(value, tuple) and hasattr(made_by, "_fields")
    names = getattr(made_by, "_fields" if is_named_tuple else "__struct_fields__", ())
    return tuple(names) == (name,)
