"""The fluent API: a topology as a chain of verbs.

>>> from thalweg import items
>>> flow = Flow("trending")
>>> posts = flow.source("posts", items([("eu", "jazz")]), fields={"region": str, "hashtag": str})
>>> _ = posts.filter(lambda hashtag: hashtag != "").tally("by_tag", key="hashtag")
>>> flow.table("by_tag").fields
Fields(hashtag: string, count: int64)
>>> [component.name for component in flow.build()]
['posts', 'filter-1', 'by_tag']
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from thalweg import groupings
from thalweg.blocks import DEFAULT_STREAM
from thalweg.builder import TopologyBuilder, body_outputs
from thalweg.components import AnyBody, AnyBolt, BlockBolt, Bolt
from thalweg.config import ORDERS, OrderName, Quality
from thalweg.errors import TopologyError, explain, shorten
from thalweg.execution import Result
from thalweg.expressions import Expression
from thalweg.groupings import Grouping
from thalweg.operators import keyed, spreading, stateless
from thalweg.operators.calls import Call, Function, bind, result_fields
from thalweg.operators.purity import Pure, extending, filtering, plain
from thalweg.operators.ranking import Top
from thalweg.operators.starting import class_step, starter
from thalweg.schemas import Fields, fields
from thalweg.topology import Topology
from thalweg.validation import unknown

_SHUFFLE = groupings.Shuffle()


class Flow:
    """A topology under construction; ``order="total"`` makes every sink's output the serial one.

    ``quality`` says what a run may give up when it cannot do all.
    """

    def __init__(
        self, name: str, order: OrderName | None = None, quality: Quality | None = None
    ) -> None:
        if order not in (None, *ORDERS):
            raise TopologyError(explain(f"order of {name!r}", "", f"one of {ORDERS}", repr(order)))
        self.name = name
        self._order = order
        self._builder = TopologyBuilder(name, quality=quality)
        self._tables: dict[str, Stream] = {}

    def source(self, name: str, source: Any, fields: Any = None, **options: Any) -> Stream:
        """Begin a stream; ``source`` is a spout, or a source value such as ``files(...)``.

        ``fields`` says what it gives where the source itself does not know.
        """
        self._builder.add_spout(name, source, fields=fields, **options)
        given = self._builder.outputs(name).get(DEFAULT_STREAM)
        if given is None:
            raise TopologyError(
                explain(
                    f"source {name!r}",
                    expected="to know its fields",
                    got=f"{type(source).__name__} without outputs",
                    hint='say them: fields=["a", "b"] or fields={"a": str}',
                )
            )
        return Stream(self, ((name, DEFAULT_STREAM),), given)

    def table(self, name: str) -> Stream:
        """Give the changed values of a table, once per block, as a stream."""
        if name not in self._tables:
            raise unknown(name, "table", f"flow {self.name!r}", sorted(self._tables))
        return self._tables[name]

    def build(self) -> Topology:
        """Check everything and freeze the topology."""
        return self._builder.build()

    def run(self, on: Any = None, **arguments: Any) -> Result:
        """Build and run it."""
        return self.build().run(on, **arguments)

    def _bolt(self, stream: Stream, name: str, bolt: AnyBody, options: dict[str, Any]) -> None:
        is_sink = isinstance(bolt, Bolt | BlockBolt) and not body_outputs(bolt)
        wanted = {"order": self._order} if is_sink and self._order else {}
        reads = self._builder.add_bolt(name, bolt, **(wanted | options))
        for component, output in stream.origins:
            reads.grouping(component, stream.grouping, output)


@dataclass(frozen=True)
class Stream:
    """The output of a component, on which the next operator is put."""

    flow: Flow
    #: The (component, stream) pairs it consists of; more than one after a merge.
    origins: tuple[tuple[str, str], ...]
    fields: Fields
    grouping: Grouping = _SHUFFLE

    # --- stateless ---------------------------------------------------------------------------

    def map(self, function: Function, *, fields: Any = None, **options: Any) -> Stream:
        """Replace each tuple by what the function makes of it.

        Without ``fields`` the result has the fields of its return annotation (a NamedTuple,
        dataclass or Struct), or else the names of the input.
        """
        name = self._name("map", options)
        call = bind(function, self.fields, name)
        default = Fields(self.fields.names, (None,) * len(self.fields))
        return self._then(
            name, stateless.Map(call, result_fields(function, fields, default)), options
        )

    def flat_map(self, function: Function, *, fields: Any = None, **options: Any) -> Stream:
        """Replace each tuple by any number of others: the function returns an iterable."""
        name = self._name("flat_map", options)
        call = bind(function, self.fields, name)
        default = Fields(self.fields.names, (None,) * len(self.fields))
        made = stateless.FlatMap(call, result_fields(function, fields, default))
        return self._then(name, made, options)

    def filter(self, condition: Function | Expression | Pure, **options: Any) -> Stream:
        """Keep the tuples for which a function or an expression on columns is true."""
        name = self._name("filter", options)
        column = self._column(condition, name)
        touches = filtering(condition, _takes(column))
        if isinstance(column, Expression):
            made = stateless.FilterExpression(column, self.fields, touches)
            return self._then(name, made, options)
        return self._then(name, stateless.Filter(column, self.fields, touches), options)

    def extend(self, **columns: Function | Expression | Pure) -> Stream:
        """Add fields, or replace some: each a function of fields, or an expression on columns."""
        name = self._name("extend", {})
        if not columns:
            raise TopologyError(explain(name, expected="name=function or name=expression"))
        bound = {field: self._column(value, name) for field, value in columns.items()}
        touches = extending(columns, {field: _takes(value) for field, value in bound.items()})
        outputs = self.fields.extend(Fields(tuple(columns), (None,) * len(columns)))
        return self._then(name, stateless.Extend(bound, outputs, touches), {})

    def select(self, *names: str) -> Stream:
        """Keep these fields, in this order."""
        name = self._name("select", {})
        self._check_fields(names, name)
        return self._then(name, stateless.Select(self.fields.select(names)), {})

    def map_block(
        self,
        function: Callable[[pa.RecordBatch], pa.RecordBatch | None],
        *,
        fields: Any = None,
        **options: Any,
    ) -> Stream:
        """Replace each block by what the function makes of its record batch."""
        name = self._name("map_block", options)
        if not callable(function):
            raise TopologyError(explain(name, expected="a function", got=shorten(function)))
        made = stateless.MapBlock(function, result_fields(function, fields, self.fields))
        return self._then(name, made, options)

    def tap(self, function: Function, **options: Any) -> Stream:
        """Call a function on each tuple for its effect; the stream stays as it is."""
        name = self._name("tap", options)
        call = bind(function, self.fields, name)
        return self._then(name, stateless.Tap(call, self.fields), options)

    def branch(self, condition: Function, **options: Any) -> tuple[Stream, Stream]:
        """Split in two: the tuples for which the function is true, and the others."""
        name = self._name("branch", options)
        call = bind(condition, self.fields, name)
        chosen = self._then(name, stateless.Branch(call, self.fields), options)
        return chosen, replace(chosen, origins=((name, stateless.REST_STREAM),))

    def merge(self, *others: Stream) -> Stream:
        """Put streams with the same fields together."""
        for other in others:
            if other.flow is not self.flow:
                raise TopologyError(explain("merge", expected="streams of one flow"))
            if other.fields.names != self.fields.names:
                raise TopologyError(
                    explain(
                        "merge",
                        expected=f"the fields {list(self.fields.names)}",
                        got=str(list(other.fields.names)),
                        hint="bring them into one shape with map or select",
                    )
                )
        origins = self.origins + tuple(origin for other in others for origin in other.origins)
        types = zip(*(stream.fields.types for stream in (self, *others)), strict=True)
        agreed = tuple(map(_agreed, types))
        return replace(self, origins=origins, fields=Fields(self.fields.names, agreed))

    # --- keyed -------------------------------------------------------------------------------

    def key_by(self, *names: str) -> KeyedStream:
        """Choose the fields that are the key of the next operator."""
        if not names:
            raise TopologyError(explain("key_by", expected="the names of the key fields"))
        self._check_fields(names, "key_by")
        return KeyedStream(replace(self, grouping=groupings.Fields(names)), names)

    def tally(self, name: str, *, key: str | tuple[str, ...], **options: Any) -> Stream:
        """Count the tuples of each key in a table, and pass the tuples on."""
        names = (key,) if isinstance(key, str) else tuple(key)
        keyed_stream = self.key_by(*names).stream
        changes = _beside_key(self.fields.select(names), fields({"count": int}), name)
        passed = keyed_stream._then(name, keyed.Tally(name, self.fields, changes), options)
        self.flow._tables[name] = Stream(self.flow, ((name, keyed.CHANGES_STREAM),), changes)
        return passed

    # --- global, end, and how tuples get there -------------------------------------------------

    def top(
        self, k: int, *, by: str | None = None, every: float | str | None = None, **options: Any
    ) -> Stream:
        """Rank the latest rows by a field (the last one), at ticks or whenever that changes."""
        name = self._name("top", options)
        if not isinstance(k, int) or k < 1:
            raise TopologyError(explain(name, expected="k of at least 1", got=repr(k)))
        by = self.fields.names[-1] if by is None else by
        self._check_fields([by], name)
        outputs = Fields(("rank", *self.fields.names), (pa.int64(), *self.fields.types))
        if every is not None:
            options["tick"] = every
        stream = replace(self, grouping=groupings.Global())
        return stream._then(name, Top(k, by, outputs, every is not None), options)

    def through(self, name: str, bolt: AnyBolt, **options: Any) -> Stream:
        """Put a bolt of yours into the chain."""
        outputs = body_outputs(bolt)
        self.flow._bolt(self, name, bolt, options)
        given = outputs.get(DEFAULT_STREAM, fields(None))
        return Stream(self.flow, ((name, DEFAULT_STREAM),), given)

    def sink(self, name: str, sink: AnyBolt, **options: Any) -> None:
        """End the stream in a sink."""
        self.flow._bolt(self, name, sink, options)

    def grouped(self, grouping: Grouping) -> Stream:
        """Say how the tuples are spread over the tasks of the next operator.

        ``grouping`` is a value of :mod:`thalweg.groupings`, for example ``groupings.All()``.
        """
        if not isinstance(grouping, Grouping):
            raise TopologyError(
                explain(
                    "grouped",
                    expected="a value of thalweg.groupings",
                    got=shorten(grouping),
                    hint="groupings.Custom(rule) for an object of yours",
                )
            )
        return replace(self, grouping=grouping)

    # --- helpers -----------------------------------------------------------------------------

    def _then(self, name: str, bolt: AnyBolt, options: dict[str, Any]) -> Stream:
        self.flow._bolt(self, name, bolt, options)
        return Stream(self.flow, ((name, DEFAULT_STREAM),), bolt.outputs)

    def _name(self, wanted: str, options: dict[str, Any]) -> str:
        return str(options.pop("name", None) or self.flow._builder.free_name(wanted))

    def _column(self, value: Any, where: str) -> Call | Expression:
        if isinstance(value, Pure):
            self._check_fields(value.reads or (), where)
            value = plain(value)
        if isinstance(value, Expression):
            self._check_fields(value.fields, where)
            return value
        return bind(value, self.fields, where)

    def _check_fields(self, names: Any, where: str) -> None:
        for name in sorted(names):
            if name not in self.fields:
                raise unknown(name, "field", where, self.fields.names)


@dataclass(frozen=True)
class KeyedStream:
    """A stream with a key, waiting for an operator with state."""

    stream: Stream
    key: tuple[str, ...]

    def count(
        self, table: str, *, into: str = "count", spread: bool = False, **options: Any
    ) -> Stream:
        """Count the tuples of each key; sends changed counts once per block.

        With ``spread`` blocks are counted wherever they are, and the counts added up by key.
        """
        outputs = self._result(into, pa.int64())
        if spread:
            parts = spreading.CountParts(self.key, outputs)
            return self._spread(table, parts, keyed.Sum(table, into, outputs), options)
        return self._table(table, keyed.Count(table, outputs), options)

    def sum(
        self, table: str, field: str, *, into: str = "sum", spread: bool = False, **options: Any
    ) -> Stream:
        """Add up a field per key; sends changed sums once per block. ``spread`` as in count."""
        self.stream._check_fields([field], table)
        outputs = self._result(into, _wide(self.stream.fields.type_of(field)))
        if spread:
            parts = spreading.SumParts(self.key, field, outputs)
            return self._spread(table, parts, keyed.Sum(table, into, outputs), options)
        return self._table(table, keyed.Sum(table, field, outputs), options)

    def reduce(
        self,
        table: str,
        field: str,
        function: Function,
        *,
        into: str | None = None,
        spread: bool = False,
        **options: Any,
    ) -> Stream:
        """Combine the values of a field per key, two by two; the order must not matter.

        With ``spread`` values are combined wherever they are, and the results by key.
        """
        self.stream._check_fields([field], table)
        outputs = self._result(into or field, _wide(self.stream.fields.type_of(field)))
        call = Call(function, (field,))
        if spread:
            partial = self._result(into or field, spreading.PARTIAL)
            parts = spreading.ReduceParts(self.key, call, _missing, partial)
            return self._spread(table, parts, spreading.Merged(table, function, outputs), options)
        return self._table(table, keyed.Reduce(table, call, _missing, outputs), options)

    def fold(
        self,
        table: str,
        start: Any,
        function: Function,
        *,
        into: str = "value",
        merge: Function | None = None,
        spread: bool = False,
        **options: Any,
    ) -> Stream:
        """Keep one value per key: ``function(value, *fields)``; the order must not matter.

        With ``spread`` blocks are folded wherever they are, each from the start, and
        ``merge(value, value)`` makes one value of two.
        """
        call, begin = bind(function, self.stream.fields, table, skip=1), starter(start, table)
        outputs = self._result(into)
        if spread:
            merged = spreading.Merged(table, spreading.checked_merge(merge, table), outputs)
            partial = self._result(into, spreading.PARTIAL)
            parts = spreading.FoldParts(self.key, call, begin, partial)
            return self._spread(table, parts, merged, options)
        return self._table(table, keyed.Fold(table, call, begin, outputs), options)

    def running_count(self, *, into: str = "count", **options: Any) -> Stream:
        """Add to each tuple how many tuples its key has had, in order."""
        call = Call(_add_one, ())
        outputs = self.stream.fields.extend(fields({into: int}))
        return self._running("running_count", keyed.Scan(call, int, outputs, into), options)

    def scan(
        self, start: Any, function: Function, *, into: str = "value", **options: Any
    ) -> Stream:
        """Add to each tuple the new value of its key: ``function(value, *fields)``, in order."""
        call = bind(function, self.stream.fields, "scan", skip=1)
        outputs = self.stream.fields.extend(Fields((into,), (None,)))
        made = keyed.Scan(call, starter(start, "scan"), outputs, into)
        return self._running("scan", made, options)

    def stateful(
        self, logic: Any, *, fields: Any = None, start: Any = None, **options: Any
    ) -> Stream:
        """Turn each tuple into one output with the help of its key's state, in order.

        ``logic`` is a function ``(state, *fields) -> (state, output)``, or a class with a method
        ``process(*fields)`` whose objects, one per key, are the state (a dataclass or Struct).
        """
        step, begin = (class_step(logic), logic) if isinstance(logic, type) else (logic, start)
        taken = getattr(logic, "process", logic)
        call = bind(taken, self.stream.fields, "stateful", skip=1)
        outputs = result_fields(taken, fields, None)
        made = keyed.Stateful(replace(call, function=step), starter(begin, "stateful"), outputs)
        if isinstance(logic, type):
            made.state_type = logic
        return self._running("stateful", made, options)

    def through(self, name: str, bolt: AnyBolt, **options: Any) -> Stream:
        """Put a bolt of yours into the chain; each of its tasks gets all tuples of its keys."""
        return self.stream.through(name, bolt, **options)

    def sink(self, name: str, sink: AnyBolt, **options: Any) -> None:
        """End the stream in a sink; each of its tasks gets all tuples of its keys."""
        self.stream.sink(name, sink, **options)

    def _result(self, into: str, type_: pa.DataType | None = None) -> Fields:
        return _beside_key(self.stream.fields.select(self.key), Fields((into,), (type_,)), into)

    def _table(self, table: str, bolt: AnyBolt, options: dict[str, Any]) -> Stream:
        made = self.stream._then(table, bolt, options)
        self.stream.flow._tables[table] = made
        return made

    def _spread(
        self, table: str, parts: AnyBolt, merged: AnyBolt, options: dict[str, Any]
    ) -> Stream:
        """Put a table behind its parts."""
        shared = {name: options[name] for name in options if name in ("degree", "on_error")}
        anywhere = replace(self.stream, grouping=_SHUFFLE)
        partial = anywhere._then(f"{table}.parts", parts, shared)
        return partial.key_by(*self.key)._table(table, merged, options)

    def _running(self, wanted: str, bolt: AnyBolt, options: dict[str, Any]) -> Stream:
        return self.stream._then(self.stream._name(wanted, options), bolt, options)


def _beside_key(key: Fields, value: Fields, where: str) -> Fields:
    if set(key.names) & set(value.names):
        raise TopologyError(
            explain(
                f"field {value.names[0]!r} of {where!r}",
                expected="a name that no key field has",
                got=f"key {list(key.names)}",
                hint="choose another with into=..., or rename the key field",
            )
        )
    return key.extend(value)


def _takes(column: Call | Expression) -> Collection[str] | None:
    """Name the fields that something is called with; None for whole tuples."""
    return column.fields if isinstance(column, Expression) else column.names


def _missing() -> Any:
    return keyed.MISSING


def _add_one(value: int) -> int:
    return value + 1


def _agreed(types: tuple[pa.DataType | None, ...]) -> pa.DataType | None:
    """Give the type that all of these fit into; None when that is to be learnt."""
    if len(set(types)) == 1:
        return types[0]
    return pa.int64() if all(t is not None and pa.types.is_integer(t) for t in types) else None


def _wide(type_: pa.DataType | None) -> pa.DataType | None:
    """Give the type that holds sums of many values of a type."""
    if type_ is None or pa.types.is_decimal(type_):
        return None
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(type_) else type_
