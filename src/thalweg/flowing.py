"""What operators of the fluent API need of the stream that they are put on."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar

from thalweg.components import AnyBolt
from thalweg.eventtime import EventTime
from thalweg.groupings import Grouping
from thalweg.schemas import Fields


class AnyStream(Protocol):
    """The output of a component, on which the next operator is put."""

    @property
    def flow(self) -> Any:
        """The topology under construction."""

    @property
    def origins(self) -> tuple[tuple[str, str], ...]:
        """The (component, stream) pairs it consists of."""

    @property
    def fields(self) -> Fields:
        """The fields of its tuples."""

    @property
    def time(self) -> EventTime | None:
        """Which field says when something happened."""

    @property
    def apart(self) -> tuple[str, ...]:
        """The times of merged streams, in words, where they are not the same."""

    def through(self, name: str, bolt: AnyBolt, **options: Any) -> Self:
        """Put a bolt of the user's into the chain."""

    def sink(self, name: str, sink: AnyBolt, **options: Any) -> None:
        """End the stream in a sink."""

    def _name(self, wanted: str, options: dict[str, Any]) -> str: ...

    def _check_fields(self, names: Any, where: str) -> None: ...

    def _then(self, name: str, bolt: AnyBolt, options: dict[str, Any]) -> Self:
        """Put a component behind it."""

    def _regrouped(self, grouping: Grouping) -> Self:
        """Spread its tuples in another way."""

    def _made(self, name: str, outputs: Fields, time: EventTime | None) -> Self:
        """Give the stream of a component that was added."""


S = TypeVar("S", bound=AnyStream)
