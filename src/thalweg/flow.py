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
from thalweg.eventtime import EventTime, as_event_time, one_time
from thalweg.execution import Result, Validator
from thalweg.expressions import Expression
from thalweg.groupings import Grouping
from thalweg.joined import JoinOptions, join_streams
from thalweg.keyed_flow import KeyedStream
from thalweg.operators import keyed, stateless
from thalweg.operators.calls import Call, Function, bind, result_fields
from thalweg.operators.fielding import agreed, beside_key
from thalweg.operators.joining import How, TableJoin
from thalweg.operators.purity import Pure, extending, filtering, plain
from thalweg.operators.ranking import Top
from thalweg.operators.stream_joins import JoinName
from thalweg.schemas import Fields, fields
from thalweg.topology import Topology
from thalweg.validation import unknown
from thalweg.windowed import Windowed
from thalweg.windows.specs import WindowSpec

_SHUFFLE = groupings.Shuffle()


class Flow:
    """A topology under construction; ``order="total"`` makes every sink's output the serial one.

    ``quality`` says how soon results have to come, and what may be given up; ``validator`` looks at
    what is built, and gives None, or what is wrong with it.
    """

    def __init__(
        self,
        name: str,
        order: OrderName | None = None,
        quality: Quality | None = None,
        validator: Validator | None = None,
    ) -> None:
        if order not in (None, *ORDERS):
            raise TopologyError(explain(f"order of {name!r}", "", f"one of {ORDERS}", repr(order)))
        self.name = name
        self._order = order
        self._builder = TopologyBuilder(name, quality=quality, validator=validator)
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
        time = options.get("time")
        return Stream(
            self, ((name, DEFAULT_STREAM),), given, time=as_event_time(time) if time else None
        )

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
    #: Which field says when something happened, where that is known.
    time: EventTime | None = None
    #: The times of merged streams, in words, where they are not the same.
    apart: tuple[str, ...] = ()

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
        outputs = self.fields.extend(stateless.added_fields(bound, self.fields))
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

    def join(
        self,
        table: Any,
        on: Any,
        *,
        how: How = "inner",
        fields: Any = None,
        prefix: str | None = None,
        **options: Any,
    ) -> Stream:
        """Put fields of a table behind each tuple, once for each row that belongs to it.

        ``on`` is a field of both, several, ``{"of the stream": "of the table"}``, or a condition:
        an expression of :func:`col` and :func:`row`, or a function of a tuple and a row.
        """
        name = self._name("join", options)
        if isinstance(table, Stream | KeyedStream | Windowed):
            hint = "streams are joined by key and time: .join_within(...) or .join_asof(...)"
            raise TopologyError(explain(f"table of {name!r}", "", "a table", "a stream", hint))
        made = TableJoin(self.fields, table, on, how=how, fields=fields, prefix=prefix)
        return self._then(name, made, options)

    def join_within(
        self,
        other: Stream,
        on: Any,
        *,
        within: float | str,
        how: JoinName = "inner",
        prefix: str = "",
        **options: Any,
    ) -> Stream:
        """Bring tuples of two streams together that have a key in common and happened near."""
        return join_streams(self, other, on, JoinOptions(how, prefix, within), options)

    def join_asof(
        self,
        other: Stream,
        on: Any,
        *,
        within: float | str | None = None,
        how: JoinName = "inner",
        prefix: str = "",
        **options: Any,
    ) -> Stream:
        """Give each tuple the last one of another stream with its key that was not later."""
        given = JoinOptions(how, prefix, within, as_of=True)
        return join_streams(self, other, on, given, options)

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
        common = Fields(self.fields.names, tuple(map(agreed, types)))
        # What a bolt of yours sends has no field of time, but its sources may tell the time.
        told = [s for s in (self, *others) if not s.apart and (s.time or not s._tells_time)]
        time, apart = one_time([stream.time for stream in told])
        known = (each for stream in (self, *others) for each in stream.apart)
        apart = tuple(dict.fromkeys([*known, *apart]))
        time = None if apart else time
        return replace(self, origins=origins, fields=common, time=time, apart=apart)

    def output(self, stream: str) -> Stream:
        """Read another stream of the component that this one comes from: ``late``, say."""
        ((name, _),) = self.origins
        known = self.flow._builder.outputs(name)
        if stream not in known:
            raise unknown(stream, "stream", f"outputs of {name!r}", sorted(known))
        return Stream(self.flow, ((name, stream),), known[stream])

    # --- keyed -------------------------------------------------------------------------------

    def key_by(self, *names: str) -> KeyedStream[Stream]:
        """Choose the fields that are the key of the next operator."""
        if not names:
            raise TopologyError(explain("key_by", expected="the names of the key fields"))
        self._check_fields(names, "key_by")
        return KeyedStream(replace(self, grouping=groupings.Fields(names)), names)

    def tally(self, name: str, *, key: str | tuple[str, ...], **options: Any) -> Stream:
        """Count the tuples of each key in a table, and pass the tuples on."""
        names = (key,) if isinstance(key, str) else tuple(key)
        keyed_stream = self.key_by(*names).stream
        changes = beside_key(self.fields.select(names), fields({"count": int}), name)
        passed = keyed_stream._then(name, keyed.Tally(name, self.fields, changes), options)
        self.flow._tables[name] = Stream(self.flow, ((name, keyed.CHANGES_STREAM),), changes)
        return passed

    def window(self, spec: WindowSpec, **how: Any) -> Windowed[Stream]:
        """Put all tuples together that belong to a window (:mod:`thalweg.windowed`)."""
        return Windowed(replace(self, grouping=groupings.Global()), (), spec, **how)

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
        time = self.time if self.time and self.time.field in bolt.outputs else None
        origins = ((name, DEFAULT_STREAM),)
        return Stream(self.flow, origins, bolt.outputs, time=time, apart=self.apart)

    @property
    def _tells_time(self) -> bool:
        return any(self.flow._builder.tells_time(name) for name, _ in self.origins)

    def _regrouped(self, grouping: Grouping) -> Stream:
        return replace(self, grouping=grouping)

    def _made(self, name: str, outputs: Fields, time: EventTime | None) -> Stream:
        return Stream(self.flow, ((name, DEFAULT_STREAM),), outputs, time=time)

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


def _takes(column: Call | Expression) -> Collection[str] | None:
    """Name the fields that something is called with; None for whole tuples."""
    return column.fields if isinstance(column, Expression) else column.names
