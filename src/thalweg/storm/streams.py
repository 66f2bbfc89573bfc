"""Streams and groupings as streamparse's topologies write them.

>>> Stream(["word"], name="words", direct=True).fields
['word']
>>> Grouping.fields("word").kind, Grouping.GLOBAL.kind
('FIELDS', 'GLOBAL')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

DEFAULT = "default"


class Stream:
    """A stream that a component sends: its fields, its name, whether the sender chooses tasks."""

    def __init__(
        self, fields: Sequence[str] | None = None, name: str = DEFAULT, direct: bool = False
    ) -> None:
        if fields is not None and not isinstance(fields, list | tuple):
            text = f"fields of a stream are a list, a tuple or None, not {fields!r}"
            raise TypeError(text)
        for given, kind, what in (
            *((field, str, "a field of a stream is a string") for field in fields or ()),
            (name, str, "the name of a stream is a string"),
            (direct, bool, "direct is True or False"),
        ):
            if not isinstance(given, kind):
                text = f"{what}, not {given!r}"
                raise TypeError(text)
        self.fields = list(fields or ())
        self.name = name
        self.direct = direct

    def __repr__(self) -> str:
        return f"Stream({self.fields}, {self.name!r}, direct={self.direct})"


@dataclass(frozen=True)
class JavaObject:
    """A Java class with the arguments that make an object of it."""

    full_class_name: str
    args_list: tuple[Any, ...] = ()


@dataclass(frozen=True)
class GroupingValue:
    """One grouping: exactly one of these is set. The names are those of Storm's own type."""

    fields: Sequence[str] | None = None
    shuffle: bool | None = None
    all: bool | None = None
    none: bool | None = None
    direct: bool | None = None
    custom_object: JavaObject | None = None
    custom_serialized: bytes | None = None
    local_or_shuffle: bool | None = None

    @property
    def kind(self) -> str:
        """Storm's name for it."""
        return grouping_kind(self)


def grouping_kind(grouping: Any) -> str:
    """Name a grouping, also one of the real streamparse; fields without any are GLOBAL."""
    name = next(name for name, value in vars(grouping).items() if value is not None)
    return "GLOBAL" if name == "fields" and not grouping.fields else str(name).upper()


class Grouping:
    """How a stream is split among the tasks of its receiver."""

    GLOBAL: ClassVar = GroupingValue(fields=())
    SHUFFLE: ClassVar = GroupingValue(shuffle=True)
    ALL: ClassVar = GroupingValue(all=True)
    NONE: ClassVar = GroupingValue(none=True)
    DIRECT: ClassVar = GroupingValue(direct=True)
    LOCAL_OR_SHUFFLE: ClassVar = GroupingValue(local_or_shuffle=True)

    @classmethod
    def fields(cls, *names: Any) -> GroupingValue:
        """Equal values of these fields go to the same task."""
        flat = names[0] if len(names) == 1 and isinstance(names[0], list) else names
        if not flat:
            text = "Grouping.fields needs the name of at least one field"
            raise ValueError(text)
        return GroupingValue(fields=tuple(flat))

    @classmethod
    def custom_object(cls, java_class_name: str, arg_list: Sequence[Any] = ()) -> GroupingValue:
        """Let a class decide: one of Java cannot run here, one of Python can."""
        return GroupingValue(custom_object=JavaObject(java_class_name, tuple(arg_list)))

    @classmethod
    def custom_serialized(cls, java_serialized: bytes) -> GroupingValue:
        """Let a Java object decide; it cannot run here."""
        if not isinstance(java_serialized, bytes):
            text = f"a serialized Java object is bytes, not {java_serialized!r}"
            raise TypeError(text)
        return GroupingValue(custom_serialized=java_serialized)
