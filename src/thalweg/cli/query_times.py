"""Times of the streams of a query: what ``--time`` and the options beside it say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.cli.query_fields import check_name
from thalweg.errors import UsageError, explain
from thalweg.eventtime import A_TIME, EventTime, event_time, is_time
from thalweg.schemas import Fields


@dataclass(frozen=True)
class Timing:
    """What options say of time; what is empty was not said."""

    time: Sequence[str]
    unit: str = ""
    delay: str = ""
    idle: str = ""


def source_times(how: Timing, known: Mapping[str, Fields]) -> dict[str, EventTime]:
    """Give the times of sources: what is said of each, or of all that have the field."""
    _check_beside(how)
    said = _said(how.time)
    for source, field in said.items():
        check_name("--time", source, field, known)
    found = {name: said.get(name, said.get("", "")) for name in known}
    return {
        name: _time(how, name, field, known[name])
        for name, field in found.items()
        if field in known[name]
    }


def _check_beside(how: Timing) -> None:
    """Refuse what says something of a time that there is not."""
    if not how.time:
        for option in ("unit", "delay", "idle"):
            if getattr(how, option):
                raise UsageError(explain(f"--{option}", "", "--time FIELD beside it", "none"))


def _said(given: Sequence[str]) -> dict[str, str]:
    """Read fields by source, or "" for all."""
    said: dict[str, str] = {}
    for text in given:
        source, _, field = text.rpartition("=")
        if source in said:
            of = f"for {source!r}" if source else "for all sources"
            raise UsageError(explain("--time", "", f"one field {of}", f"{said[source]}, {field}"))
        said[source] = field
    return said


def _time(how: Timing, source: str, field: str, fields: Fields) -> EventTime:
    type_ = fields.type_of(field)
    if not is_time(type_):
        subject, hint = f"field {field!r} of {source!r}", f"--types {field}:timestamp reads text"
        raise UsageError(explain(subject, "--time", A_TIME, str(type_), hint))
    unit: Any = how.unit or "s"
    return event_time(field, delay=how.delay or 0, idle=how.idle or None, unit=unit)
