"""Checks that a topology can run; every message says what to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import get_args

import pyarrow as pa

from thalweg import keys
from thalweg.blocks import DEFAULT_STREAM
from thalweg.components import BlockBolt, BlockSpout, Bolt, Kind, has_timers
from thalweg.config import ORDERS, OrderName
from thalweg.errors import TopologyError, explain, locate, meant
from thalweg.eventtime import A_TIME, is_time
from thalweg.groupings import (
    Choices,
    Custom,
    CustomGrouping,
    Direct,
    LoadAware,
    PartialKey,
    describe,
)
from thalweg.groupings import Fields as FieldsGrouping
from thalweg.topology import Component, Input

#: What a bolt of each class has to bring along.
_METHODS: dict[type, str] = {Bolt: "process", BlockBolt: "process_block"}


def unknown(name: str, what: str, where: str, known: Sequence[str]) -> TopologyError:
    """Make the error for a name that nobody declared, with the closest one that exists."""
    hint = meant(name, known)
    return TopologyError(
        explain(f"{what} {name!r}", where, f"one of {list(known)}", "a name nobody declared", hint)
    )


def check(name: str, components: Sequence[Component]) -> None:
    """Raise TopologyError at the first thing that would keep these components from running."""
    where = f"topology {name!r}"
    if not any(component.is_spout for component in components):
        raise TopologyError(
            explain(where, expected="at least one source", got="none", hint="add a spout or source")
        )
    by_name = {component.name: component for component in components}
    for component in components:
        _check_component(component)
        for input_ in component.inputs:
            _check_input(component, input_, by_name)
        if component.kind is Kind.KEYED:
            _check_keys(component, by_name)
    _check_direct_readers(components, by_name)
    _check_tables(components)


def _subject(component: Component) -> str:
    """Name a component for a message; finding its class in its file takes a while."""
    return f"component {component.name!r} {locate(type(component.body))}"


def _check_component(component: Component) -> None:
    for base, method in _METHODS.items():
        if isinstance(component.body, base) and getattr(type(component.body), method) is getattr(
            base, method
        ):
            raise TopologyError(
                explain(_subject(component), expected=f"a method {method}", got="none")
            )
    degree = component.degree
    if not isinstance(degree, int) or isinstance(degree, bool) or degree < 1:
        raise TopologyError(
            explain(f"degree of {_subject(component)}", expected="at least 1", got=repr(degree))
        )
    if component.kind is Kind.GLOBAL and degree > 1:
        raise TopologyError(
            explain(
                f"degree of {_subject(component)}",
                expected="1, because it is global (one state)",
                got=str(degree),
                hint="make it keyed to spread it over tasks",
            )
        )
    for stream, fields in component.outputs.items():
        if not len(fields):
            raise TopologyError(
                explain(f"stream {stream!r} of {component.name!r}", expected="at least one field")
            )
    _check_overflow(component)
    _check_time(component)
    _check_timers(component)
    if component.is_spout:
        _check_block_spout(component)
        return
    if not component.inputs:
        raise TopologyError(
            explain(
                _subject(component),
                expected="at least one input",
                got="none",
                hint='say what it reads, for example .shuffle("a")',
            )
        )
    seen = [(input_.component, input_.stream) for input_ in component.inputs]
    for pair in seen:
        if seen.count(pair) > 1:
            raise TopologyError(
                explain(
                    f"input {pair[0]!r} of {_subject(component)}",
                    expected="to be read once",
                    got="twice",
                )
            )


def _check_time(component: Component) -> None:
    time = component.options.time
    if time is None:
        return
    if not component.is_spout:
        hint = "event time begins at a source: say time= there, or give it to window(..., time=)"
        raise TopologyError(
            explain(f"time of {_subject(component)}", "", "a source", "a bolt", hint)
        )
    known = component.outputs.get(DEFAULT_STREAM)
    if known is None or time.field not in known:
        names = () if known is None else known.names
        raise unknown(time.field, "field", f"time of source {component.name!r}", names)
    if not is_time(known.type_of(time.field)):
        subject, where = f"field {time.field!r}", f"time of source {component.name!r}"
        raise TopologyError(explain(subject, where, A_TIME, str(known.type_of(time.field))))


def _check_timers(component: Component) -> None:
    """Timers lie in the state of their key, at the one task that has it."""
    if not has_timers(type(component.body)):
        return
    subject, expected = f"process_timer of {_subject(component)}", "a keyed or global bolt"
    if component.kind is Kind.STATELESS:
        hint = "say kind = Kind.KEYED"
        raise TopologyError(explain(subject, "", expected, "a stateless one", hint))
    if any(isinstance(input_.grouping, PartialKey) for input_ in component.inputs):
        hint = "use .fields(...)"
        raise TopologyError(explain(subject, "", "one task for each key", "partial_key", hint))


def _check_overflow(component: Component) -> None:
    """Only what comes in any case can overflow; of others nearly all would be thrown away."""
    policy = component.options.overflow
    if policy not in (None, "block") and getattr(component.body, "slowable", True):
        raise TopologyError(
            explain(
                f"overflow {policy!r} of {_subject(component)}",
                expected="a source that cannot be slowed",
                got="one that waits" if component.is_spout else "a bolt",
                hint="a spout of yours can say slowable = False" if component.is_spout else "",
            )
        )


def _check_block_spout(component: Component) -> None:
    if isinstance(component.body, BlockSpout) and len(component.outputs) > 1:
        raise TopologyError(
            explain(
                _subject(component),
                expected="one stream, because it is a BlockSpout",
                got=str(list(component.outputs)),
                hint="use a Spout, or one BlockSpout for each stream",
            )
        )


def _check_input(component: Component, input_: Input, by_name: Mapping[str, Component]) -> None:
    where = f"inputs of {component.name!r}"
    if input_.component not in by_name:
        raise unknown(input_.component, "component", where, sorted(by_name))
    source = by_name[input_.component]
    if input_.stream not in source.outputs:
        if not source.outputs:
            raise TopologyError(
                explain(
                    f"component {source.name!r}",
                    where,
                    expected="a component with outputs",
                    got="a sink",
                    hint=f"declare outputs = [...] in {type(source.body).__name__}",
                )
            )
        raise unknown(
            input_.stream, "stream", f"outputs of {source.name!r}", sorted(source.outputs)
        )
    available = source.outputs[input_.stream]
    for field in input_.key:
        if field not in available:
            raise unknown(field, "field", f"{where}, stream {input_}", available.names)
    _check_grouping(component, input_, source)


def _check_grouping(component: Component, input_: Input, source: Component) -> None:
    grouping, where = input_.grouping, f"inputs of {component.name!r}"
    subject = f"grouping {describe(grouping)} on {str(input_)!r}"
    is_direct = input_.stream in source.body.direct_streams
    if isinstance(grouping, Direct) != is_direct:
        stream = "a direct stream" if is_direct else "not a direct stream"
        raise TopologyError(
            explain(
                subject,
                where,
                expected=".direct() for direct streams and for no others",
                got=stream,
                hint=f"direct_streams of {type(source.body).__name__} names the direct ones",
            )
        )
    if isinstance(grouping, PartialKey):
        _check_partial_key(component, grouping, subject, where)
    if isinstance(grouping, LoadAware) and component.kind is not Kind.STATELESS:
        raise TopologyError(
            explain(subject, where, expected="a stateless bolt", got=component.kind.value)
        )
    if isinstance(grouping, FieldsGrouping) and grouping.bounds:
        _check_bounds(grouping, subject, where)
    if isinstance(grouping, Custom) and not isinstance(grouping.rule, CustomGrouping):
        raise TopologyError(
            explain(subject, where, expected="an object with prepare(tasks) and choose(batch)")
        )


def _check_direct_readers(
    components: Sequence[Component], by_name: Mapping[str, Component]
) -> None:
    """Let direct streams have one reader where a chosen task is one of one component."""
    readers: dict[tuple[str, str], list[str]] = {}
    for component in components:
        for input_ in component.inputs:
            if isinstance(input_.grouping, Direct):
                read = input_.component, input_.stream
                readers.setdefault(read, []).append(repr(component.name))
    for (source, stream), names in readers.items():
        if len(names) > 1 and getattr(by_name[source].body, "tasks_by_number", False):
            raise TopologyError(
                explain(
                    f"direct stream {stream!r} of {source!r}",
                    expected="one reader, since a task is chosen by its number",
                    got=" and ".join(names),
                    hint="give each reader a direct stream of its own",
                )
            )


def _check_partial_key(
    component: Component, grouping: PartialKey, subject: str, where: str
) -> None:
    if grouping.choices not in get_args(Choices):
        got = f"choices={grouping.choices!r}"
        hint = "two tasks for each key, or as many as heavy keys need"
        raise TopologyError(explain(subject, where, "choices=2 or choices='heavy'", got, hint))
    if not callable(getattr(component.body, "merge", None)):
        raise TopologyError(
            explain(
                subject,
                where,
                expected="a bolt with a merge(a, b) method, because a key has several tasks",
                hint="use .fields(...), or add merge to the bolt",
            )
        )


def _check_bounds(grouping: FieldsGrouping, subject: str, where: str) -> None:
    try:
        ordered = all(a < b for a, b in zip(grouping.bounds, grouping.bounds[1:], strict=False))
    except TypeError:  # bounds of different types
        ordered = False
    if len(grouping.names) != 1 or not ordered:
        raise TopologyError(
            explain(subject, where, "one field, and bounds that grow", repr(grouping.bounds))
        )


def _check_keys(component: Component, by_name: Mapping[str, Component]) -> None:
    subject = f"keyed component {component.name!r}"
    types = {}
    for input_ in component.inputs:
        if not input_.key:
            raise TopologyError(
                explain(
                    subject,
                    expected="a key for each input",
                    got=f"{describe(input_.grouping)} on {str(input_)!r}",
                    hint=f'use .fields("{input_.component}", "<key field>")',
                )
            )
        fields = by_name[input_.component].outputs[input_.stream].select(input_.key)
        for name, type_ in zip(fields.names, fields.types, strict=True):
            reason = None if type_ is None else keys.refusal(type_)
            if reason:
                raise TopologyError(
                    explain(
                        f"key {name!r} of {component.name!r}",
                        expected="a type that hashes alike everywhere",
                        got=reason,
                        hint="use a number, text, bytes, date or time",
                    )
                )
        types[str(input_)] = fields.types
    _check_same_keys(subject, types)


def _check_same_keys(subject: str, types: Mapping[str, tuple[pa.DataType | None, ...]]) -> None:
    known = {tuple(map(_key_kind, given)) for given in types.values() if None not in given}
    if len(set(map(len, types.values()))) > 1 or len(known) > 1:
        shown = {name: [str(type_) for type_ in given] for name, given in types.items()}
        raise TopologyError(
            explain(subject, expected="keys of the same types on all inputs", got=str(shown))
        )


def _key_kind(type_: pa.DataType) -> object:
    """Give what types whose values can be the same key have in common (see thalweg.keys)."""
    types = pa.types
    if types.is_dictionary(type_):
        return _key_kind(type_.value_type)
    if types.is_boolean(type_) or types.is_integer(type_) or types.is_floating(type_):
        return "number"
    if keys.is_bytes_like(type_):
        return "text" if keys.is_text(type_) else "bytes"
    if types.is_timestamp(type_):
        return "instant" if type_.tz else "timestamp"
    if types.is_date(type_):
        return "date"
    if types.is_time(type_):
        return "time"
    return "duration" if types.is_duration(type_) else type_


def _check_tables(components: Sequence[Component]) -> None:
    names = [component.table for component in components if component.table]
    for name in names:
        if names.count(name) > 1:
            raise TopologyError(explain(f"table {name!r}", expected="each name once", got="twice"))


def arrange(name: str, components: Sequence[Component]) -> tuple[Component, ...]:
    """Sort so that producers come before consumers, otherwise in the order of declaration."""
    by_name = {component.name: component for component in components}
    sorter = TopologicalSorter(
        {c.name: [i.component for i in c.inputs if i.component in by_name] for c in components}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        path = " -> ".join(reversed(error.args[1]))
        raise TopologyError(
            explain(
                f"topology {name!r}",
                expected="streams without a cycle",
                got=path,
                hint="order and the end of a run go from sources to sinks: repeat inside of one"
                " bolt, or let a source read what has to come back",
            )
        ) from error
    position = {component.name: i for i, component in enumerate(components)}
    ready: list[str] = []
    arranged: list[Component] = []
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()], key=position.__getitem__)
        arranged.append(by_name[ready[0]])
        sorter.done(ready.pop(0))
    return tuple(arranged)


def orders(components: Sequence[Component]) -> dict[tuple[str, Input], OrderName]:
    """Decide what each input promises: what its reader needs, or total upstream of a total sink."""
    decided: dict[tuple[str, Input], OrderName] = {}
    total: set[str] = set()
    for component in reversed(components):
        order = _needed(component)
        if order == "total" or component.name in total:
            order = "total"
            total.update(input_.component for input_ in component.inputs)
        decided |= {(component.name, input_): order for input_ in component.inputs}
    return decided


def _needed(component: Component) -> OrderName:
    asked, body = component.options.order or "sender", component.body
    depends = component.kind is not Kind.STATELESS and not getattr(body, "commutative", False)
    # Nobody may hear the time before what was sent to it earlier.
    in_order = depends or getattr(body, "timed", False)
    return max(asked, "key" if in_order else "sender", key=ORDERS.index)
