"""Joins of two streams in the fluent API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from thalweg import groupings
from thalweg.errors import TopologyError, explain
from thalweg.eventtime import EventTime, no_time, span, told_again
from thalweg.flowing import AnyStream, S
from thalweg.operators.stateless import Select
from thalweg.operators.stream_joins import (
    AsOfJoin,
    Joining,
    JoinName,
    Side,
    StreamJoin,
    WithinJoin,
)
from thalweg.schemas import Fields
from thalweg.validation import unknown


@dataclass(frozen=True)
class JoinOptions:
    """How two streams are joined."""

    how: JoinName = "inner"
    #: Put before the names of the right stream's fields.
    prefix: str = ""
    #: How far apart tuples may be.
    within: float | str | None = None
    #: Whether each tuple of the left is to find the last one of the right before it.
    as_of: bool = False


def join_streams(left: S, right: S, on: Any, given: JoinOptions, options: dict[str, Any]) -> S:
    """Join two streams by key and time; within a time of each other, or with the last before."""
    name = left._name("join", options)
    if right.flow is not left.flow:
        raise TopologyError(explain(f"join {name!r}", expected="two streams of one flow"))
    if given.how not in get_args(JoinName):
        expected = f"how as one of {get_args(JoinName)}"
        raise TopologyError(explain(f"join {name!r}", "", expected, repr(given.how)))
    keys = _keys(on, name)
    if set(left.origins) & set(right.origins):  # a tuple has to come from one side
        right = right._then(f"{name}.right", Select(right.fields), {})
    pairs = ((left, tuple(keys)), (right, tuple(keys.values())))
    for stream, names in pairs:
        for field in names:
            if field not in stream.fields:
                raise unknown(field, "field", f"join {name!r}", stream.fields.names)
    kept = [field for field in right.fields.names if field not in keys.values()]
    renamed = {field: f"{given.prefix}{field}" for field in kept}
    _check_names(left.fields, renamed, name)
    taken = right.fields.select(kept)
    outputs = left.fields.extend(Fields(tuple(renamed.values()), taken.types))
    what = Joining(
        _side(left, left.fields.names, name),
        _side(right, tuple(kept), name),
        given.how,
        # 0 is the same moment.
        None if given.within is None else span(given.within, f"within of join {name!r}", zero=True),
    )
    kind: type[StreamJoin] = AsOfJoin if given.as_of else WithinJoin
    reads = left.flow._builder.add_bolt(name, kind(what, outputs), **options)
    for stream, names in pairs:
        for component, output in stream.origins:
            reads.grouping(component, groupings.Fields(names), output)
    return left._made(name, outputs, left.time)


def _keys(on: Any, name: str) -> dict[str, str]:
    if isinstance(on, str):
        return {on: on}
    if isinstance(on, Mapping) and on:
        return dict(on)
    if isinstance(on, Sequence) and on:
        return {field: field for field in on}
    expected = "the field that both have, several, or {'of the left': 'of the right'}"
    raise TopologyError(explain(f"on of join {name!r}", "", expected, repr(on)))


def _side(stream: AnyStream, fields: tuple[str, ...], name: str) -> Side:
    time: EventTime | None = stream.time
    if time is None:
        raise no_time(name, stream.apart)
    if time.again:
        raise told_again(name)
    return Side(frozenset(stream.origins), time, fields)


def _check_names(left: Fields, added: Mapping[str, str], name: str) -> None:
    clash = [field for field in added.values() if field in left]
    if clash:
        hint = 'give prefix="right_", or rename it before'
        expected = f"names that the left stream does not have: {clash[0]!r}"
        raise TopologyError(explain(f"fields of join {name!r}", "", expected, hint=hint))
