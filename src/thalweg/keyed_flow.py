"""The fluent API behind ``key_by``: operators with a state per key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic

import pyarrow as pa

from thalweg import groupings
from thalweg.components import AnyBolt
from thalweg.flowing import S
from thalweg.operators import keyed, spreading
from thalweg.operators.calls import Call, Function, bind, result_fields
from thalweg.operators.fielding import beside_key, wide
from thalweg.operators.starting import class_step, starter
from thalweg.schemas import Fields, fields
from thalweg.windowed import Windowed
from thalweg.windows.specs import WindowSpec

_SHUFFLE = groupings.Shuffle()


@dataclass(frozen=True)
class KeyedStream(Generic[S]):
    """A stream with a key, waiting for an operator with state."""

    stream: S
    key: tuple[str, ...]

    def window(self, spec: WindowSpec, **how: Any) -> Windowed[S]:
        """Put the tuples of each key together that belong to a window."""
        return Windowed(self.stream, self.key, spec, **how)

    def count(self, table: str, *, into: str = "count", spread: bool = False, **options: Any) -> S:
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
    ) -> S:
        """Add up a field per key; sends changed sums once per block. ``spread`` as in count."""
        self.stream._check_fields([field], table)
        outputs = self._result(into, wide(self.stream.fields.type_of(field)))
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
    ) -> S:
        """Combine the values of a field per key, two by two; the order must not matter.

        With ``spread`` values are combined wherever they are, and the results by key.
        """
        self.stream._check_fields([field], table)
        outputs = self._result(into or field, wide(self.stream.fields.type_of(field)))
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
    ) -> S:
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

    def running_count(self, *, into: str = "count", **options: Any) -> S:
        """Add to each tuple how many tuples its key has had, in order."""
        call = Call(_add_one, ())
        outputs = self.stream.fields.extend(fields({into: int}))
        return self._running("running_count", keyed.Scan(call, int, outputs, into), options)

    def scan(self, start: Any, function: Function, *, into: str = "value", **options: Any) -> S:
        """Add to each tuple the new value of its key: ``function(value, *fields)``, in order."""
        call = bind(function, self.stream.fields, "scan", skip=1)
        outputs = self.stream.fields.extend(Fields((into,), (None,)))
        made = keyed.Scan(call, starter(start, "scan"), outputs, into)
        return self._running("scan", made, options)

    def stateful(self, logic: Any, *, fields: Any = None, start: Any = None, **options: Any) -> S:
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

    def through(self, name: str, bolt: AnyBolt, **options: Any) -> S:
        """Put a bolt of yours into the chain; each of its tasks gets all tuples of its keys."""
        return self.stream.through(name, bolt, **options)

    def sink(self, name: str, sink: AnyBolt, **options: Any) -> None:
        """End the stream in a sink; each of its tasks gets all tuples of its keys."""
        self.stream.sink(name, sink, **options)

    def _result(self, into: str, type_: pa.DataType | None = None) -> Fields:
        key, value = self.stream.fields.select(self.key), Fields((into,), (type_,))
        return beside_key(key, value, into, "choose another with into=...")

    def _table(self, table: str, bolt: AnyBolt, options: dict[str, Any]) -> S:
        made = self.stream._then(table, bolt, options)
        self.stream.flow._tables[table] = made
        return made

    def _spread(self, table: str, parts: AnyBolt, merged: AnyBolt, options: dict[str, Any]) -> S:
        """Put a table behind its parts."""
        shared = {name: options[name] for name in options if name in ("degree", "on_error")}
        anywhere = self.stream._regrouped(_SHUFFLE)
        partial = anywhere._then(f"{table}.parts", parts, shared)
        by_key = partial._regrouped(groupings.Fields(self.key))
        return KeyedStream(by_key, self.key)._table(table, merged, options)

    def _running(self, wanted: str, bolt: AnyBolt, options: dict[str, Any]) -> S:
        return self.stream._then(self.stream._name(wanted, options), bolt, options)


def _missing() -> Any:
    return keyed.MISSING


def _add_one(value: int) -> int:
    return value + 1
