"""Code of the user travels by value, whatever it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from thalweg.codecs import MsgpackCodec
from thalweg.runtimes.shipping import pack, unpack


class Total(msgspec.Struct):
    """A struct with all that a struct can have."""

    name: str
    n: int = 0
    seen: list[int] = []
    tags: dict[str, int] = msgspec.field(default_factory=dict)

    def plus(self, n: int) -> Total:
        return Total(self.name, self.n + n, [*self.seen, n], self.tags)


@dataclass
class Mean:
    total: int = 0
    seen: list[int] = field(default_factory=list)


def test_a_struct_arrives_with_its_fields_defaults_and_methods() -> None:
    arrived = unpack(pack(Total))
    assert arrived is not Total
    made = arrived("a").plus(2)
    assert (made.name, made.n, made.seen, made.tags) == ("a", 2, [2], {})
    assert arrived("b").seen is not arrived("b").seen


def test_a_struct_that_arrived_can_be_written_and_read() -> None:
    arrived = unpack(pack(Total))
    codec = MsgpackCodec(arrived)
    assert codec.decode(codec.encode(arrived("a", 3))) == arrived("a", 3)


def test_a_dataclass_travels_also_after_msgspec_has_looked_at_it() -> None:
    MsgpackCodec(Mean).encode(Mean())
    arrived = unpack(pack(Mean))
    assert arrived(3).total == 3


def test_functions_bring_the_globals_they_use() -> None:
    arrived = unpack(pack(lambda n: Total("x").plus(n).n))
    assert arrived(4) == 4
