"""Many values of a component at once: to bytes and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from thalweg.codecs import Codec, MsgpackCodec
from thalweg.errors import StateError, explain, shorten
from thalweg.keys import UNREADABLE, Key

#: Types of values that cannot be changed in place.
SCALARS = frozenset([str, int, float, bool, bytes, type(None)])
_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True)
class Converter:
    """Applies a component's codec to the values of keys; errors name the key."""

    component: str
    codec: Codec

    def encode(self, keys: Sequence[Key], values: Sequence[Any]) -> list[bytes]:
        """Write the values of these keys."""
        if type(self.codec) is MsgpackCodec and _are_direct(values):
            try:
                return list(map(_encode, values))
            except (OverflowError, UnicodeEncodeError):
                pass  # the codec knows what to do with long numbers, and refuses bad text
        return self._each(self.codec.encode, keys, values)

    def decode(self, keys: Sequence[Key], data: Sequence[bytes]) -> list[Any]:
        """Read the values of these keys."""
        if type(self.codec) is MsgpackCodec:
            try:
                return self.codec.decode_many(data)
            except UNREADABLE:
                pass  # found again below, with the key
        return self._each(self.codec.decode, keys, data)

    def _each(
        self, convert: Callable[[Any], Any], keys: Sequence[Key], values: Sequence[Any]
    ) -> list[Any]:
        done: list[Any] = []
        try:
            for value in values:
                done.append(convert(value))
        except Exception as error:
            subject = f"state of key {shorten(keys[len(done)])}"
            text = explain(subject, f"component {self.component!r}", got=str(error))
            raise StateError(text) from error
        return done


def _are_direct(values: Sequence[Any]) -> bool:
    """Say whether msgspec alone writes all values as MsgpackCodec does."""
    if SCALARS.issuperset(map(type, values)):
        return True
    return all(
        type(value) in SCALARS or (type(value) is list and SCALARS.issuperset(map(type, value)))
        for value in values
    )
