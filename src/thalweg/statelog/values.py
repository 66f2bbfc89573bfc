"""Many values of a component at once: to bytes and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from thalweg.codecs import Codec, MsgpackCodec
from thalweg.errors import StateError, explain, shorten
from thalweg.keys import Key

#: Values of these types cannot be changed in place, and msgspec writes them as MsgpackCodec does.
SCALARS = frozenset([str, int, float, bool, bytes, type(None)])
_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True)
class Converter:
    """Applies a component's codec to pairs of key and value; errors name both."""

    component: str
    codec: Codec

    def encode(self, items: Sequence[tuple[Key, Any]]) -> list[bytes]:
        """Write the values."""
        if type(self.codec) is MsgpackCodec and SCALARS.issuperset(type(v) for _, v in items):
            try:
                return [_encode(value) for _, value in items]
            except (OverflowError, UnicodeEncodeError):
                pass  # the codec knows what to do with long numbers, and refuses bad text
        return self._each(self.codec.encode, items)

    def decode(self, items: Sequence[tuple[Key, bytes | None]]) -> list[Any]:
        """Read the values."""
        return self._each(self.codec.decode, items)

    def _each(self, convert: Callable[[Any], Any], items: Sequence[tuple[Key, Any]]) -> list[Any]:
        done: list[Any] = []
        try:
            for _, value in items:
                done.append(convert(value))
        except Exception as error:
            subject = f"state of key {shorten(items[len(done)][0])}"
            text = explain(subject, f"component {self.component!r}", got=str(error))
            raise StateError(text) from error
        return done
