"""Windows in the fluent API: which tuples, then what is made of them.

>>> import thalweg as tw
>>> flow = tw.Flow("clicks")
>>> clicks = flow.source(
...     "clicks",
...     tw.items([(1, "a"), (2, "b"), (61, "a")]),
...     fields={"at": int, "user": str},
...     time="at",
... )
>>> per_minute = clicks.key_by("user").window(tw.tumbling("1 min")).aggregate(n=tw.agg.count())
>>> per_minute.fields
Fields(user: string, start: timestamp[us], end: timestamp[us], n: int64)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, get_args

import pyarrow as pa

from thalweg import groupings
from thalweg.errors import TopologyError, UsageError, explain, shorten
from thalweg.eventtime import (
    A_TIME,
    EventTime,
    as_event_time,
    is_time,
    no_time,
    span,
    told_again,
)
from thalweg.flowing import S
from thalweg.noticing import LATE_STREAM
from thalweg.operators.fielding import beside_key
from thalweg.operators.relations import Changes, RelationName
from thalweg.operators.row_windows import RowWindows
from thalweg.operators.windowing import (
    EARLY_STREAM,
    LateName,
    TimeWindows,
    Windowing,
)
from thalweg.schemas import Fields
from thalweg.validation import unknown
from thalweg.windows.aggregates import Aggregate, check_field
from thalweg.windows.specs import (
    CountWindow,
    LandmarkWindow,
    SessionWindow,
    TimeWindow,
    WindowSpec,
    whole,
)

_BOUNDS = Fields(("start", "end"), (pa.timestamp("us"), pa.timestamp("us")))
_NUMBERS = Fields(("start", "end"), (pa.int64(), pa.int64()))
_KINDS = (TimeWindow, SessionWindow, LandmarkWindow, CountWindow)


class _NothingMade(UsageError, AttributeError):
    """Something that windows do not have, since nothing has been made of them yet."""


@dataclass(frozen=True)
class Windowed(Generic[S]):
    """A stream cut into windows, waiting for what is to be made of them."""

    stream: S
    key: tuple[str, ...]
    spec: WindowSpec
    #: The field with the time of a tuple, where it is not the one of the source.
    time: EventTime | str | None = None
    #: How long windows are told again when tuples have come late.
    allowed: float | str = 0
    #: What happens to tuples that come later: ``"drop"``, counted, or ``"side"``, a stream of them.
    late: LateName = "drop"
    #: Which results are sent: all of them, those that have come, or those that have gone (CQL).
    relation: RelationName = "rstream"

    def __post_init__(self) -> None:
        if not isinstance(self.spec, _KINDS):
            expected = "tumbling(...), sliding(...), session(...), landmark(...) or rows(...)"
            raise UsageError(explain("window", expected=expected, got=repr(self.spec)))
        if self.late not in get_args(LateName):
            expected = f"one of {get_args(LateName)}"
            raise TopologyError(explain("late", "", expected, repr(self.late)))
        if self.relation not in get_args(RelationName):
            expected = f"one of {get_args(RelationName)}"
            raise TopologyError(explain("relation", "", expected, repr(self.relation)))
        if isinstance(self.spec, CountWindow) and (self._allowed or self.late != "drop"):
            expected, hint = "no allowed and no late", "by their number tuples are never late"
            raise TopologyError(explain("window of rows", "", expected, hint=hint))
        simple = isinstance(self.spec, TimeWindow) and not self._allowed and self.late == "drop"
        if self.relation != "rstream" and not simple:
            expected = "tumbling(...) or sliding(...), without allowed and late"
            raise TopologyError(explain(f"relation {self.relation!r}", "", expected))

    if not TYPE_CHECKING:  # or else any name would do

        def __getattr__(self: object, name: str) -> NoReturn:
            """Say what is missing where windows are taken for a stream."""
            if name.startswith("_"):
                raise AttributeError(name)
            hint = "say .aggregate(n=tw.agg.count()), which gives a stream"
            text = explain("window", expected=".aggregate(...)", got=f".{name}", hint=hint)
            raise _NothingMade(text)

    @property
    def _allowed(self) -> int:
        """How long windows are told again, as microseconds."""
        return span(self.allowed or 0, "allowed of a window", zero=True)

    def aggregate(self, name: str | None = None, /, **into: Any) -> S:
        """Give a tuple for each window: key, ``start``, ``end``, and results by name.

        Options of the component go with the results: ``degree=2``, ``early="10 s"`` tells every
        ten seconds, on stream ``early``, what windows have by then.
        """
        made = {key: value for key, value in into.items() if isinstance(value, Aggregate)}
        options = {key: value for key, value in into.items() if key not in made}
        early = options.pop("early", None)
        if early is not None:
            self._check_early()
            options["tick"] = early
        if not made:
            expected = "results by name, for example n=agg.count()"
            got = ", ".join(f"{key}={shorten(value)}" for key, value in into.items())
            raise TopologyError(explain("aggregate", "", expected, got or "none"))
        wanted = name or self.stream._name("window", options)
        bolt = self._bolt(wanted, made)
        self.stream.flow._bolt(self.stream, wanted, bolt, options)
        by_time = isinstance(bolt, TimeWindows)
        result = EventTime("end", shift=-1, again=self._allowed > 0) if by_time else None
        made_stream = self.stream._made(wanted, bolt.outputs, result)
        return made_stream if self.relation == "rstream" else self._changes(made_stream, options)

    def _check_early(self) -> None:
        """Refuse early results where there are none."""
        if self.relation != "rstream":
            expected = "no early results, which are not those of a moment"
            raise TopologyError(explain(f"relation {self.relation!r}", "", expected))
        if isinstance(self.spec, CountWindow):
            raise TopologyError(explain("window of rows", expected="no early results"))

    def _changes(self, results: S, options: Mapping[str, Any]) -> S:
        """Compare the results of each key with those of the window before."""
        assert isinstance(self.spec, TimeWindow)  # noqa: S101 (checked at the beginning)
        ((window, _),) = results.origins
        bolt = Changes(self.relation, self.spec, self.key, results.fields)
        grouping = groupings.Fields(self.key) if self.key else groupings.Global()
        name, degree = f"{window}.{self.relation}", options.get("degree")
        own = {} if degree is None else {"degree": degree}
        results.flow._bolt(results._regrouped(grouping), name, bolt, own)
        return results._made(name, results.fields, results.time)

    def _bolt(self, name: str, made: dict[str, Aggregate]) -> TimeWindows | RowWindows:
        fields = self.stream.fields
        for into, aggregate in made.items():
            if aggregate.field is not None:
                if aggregate.field not in fields:
                    raise unknown(aggregate.field, "field", f"{into!r} of {name!r}", fields.names)
                check_field(aggregate, fields.type_of(aggregate.field), into)
        types = tuple(
            a.type(None if a.field is None else fields.type_of(a.field)) for a in made.values()
        )
        results = Fields(tuple(made), types)
        by_rows = isinstance(self.spec, CountWindow)
        key = beside_key(fields.select(self.key), _NUMBERS if by_rows else _BOUNDS, name)
        outputs = beside_key(key, results, name)
        if isinstance(self.spec, CountWindow):
            return RowWindows(self.spec, tuple(made.values()), self.key, outputs)
        what = Windowing(
            self.spec,
            self._time(name),
            tuple(made),
            tuple(made.values()),
            self._allowed,
            self.late,
        )
        streams = {EARLY_STREAM: outputs} | ({LATE_STREAM: fields} if self.late == "side" else {})
        return TimeWindows(what, self.key, outputs, streams)

    def _time(self, name: str) -> EventTime:
        given = self.stream.time if self.time is None else as_event_time(self.time)
        if self.spec == whole():
            return EventTime("")
        if given is None:
            raise no_time(name, self.stream.apart)
        if given.again and not self._allowed and self.late == "drop":
            raise told_again(name)
        if given != self.stream.time and (given.delay or given.idle is not None):
            expected, got = "a field, and what its numbers count", "delay or idle"
            hint = "say these where the stream begins: source(..., time=event_time(...))"
            raise TopologyError(explain(f"time of {name!r}", "", expected, got, hint))
        if given.field not in self.stream.fields:
            raise unknown(given.field, "field", f"time of {name!r}", self.stream.fields.names)
        type_ = self.stream.fields.type_of(given.field)
        if not is_time(type_):
            where = f"time of {name!r}"
            raise TopologyError(explain(f"field {given.field!r}", where, A_TIME, str(type_)))
        return given
