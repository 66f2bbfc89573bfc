"""A log that stays small, whoever writes to it, and reading on where one was."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from thalweg.errors import UsageError, explain

#: Bytes of a log after which it begins anew; the ones before stay beside it.
LOG_BYTES = 4 << 20
#: Bytes of a log that are given at once.
PIECE = 256 << 10
#: Digits of a number of 64 bits, at most.
_DIGITS = 19


class Place(msgspec.Struct, frozen=True):
    """Where somebody is in a log: which of its beginnings, and how far behind it."""

    began: int = 0
    offset: int = 0

    def text(self) -> str:
        """Write it as one word.

        >>> Place.read(Place(7, 12).text())
        Place(began=7, offset=12)
        """
        return f"{self.began}-{self.offset}"

    @classmethod
    def read(cls, text: str) -> Place:
        """Read what :meth:`text` has written."""
        began, dash, offset = text.partition("-")
        fits = max(len(began), len(offset)) <= _DIGITS
        if not (dash and fits and began.isdecimal() and offset.isdecimal()):
            raise UsageError(explain("place in a log", "", "BEGAN-OFFSET", repr(text[:40])))
        return cls(int(began), int(offset))


def rotate(log: Path, most: int = LOG_BYTES) -> bool:
    """Begin a log anew when it has become long; processes go on writing to the same file.

    They have it open to append, so that what they write next is at its new beginning.
    """
    if not log.exists() or log.stat().st_size <= most:
        return False
    new = log.with_name(".log.new")
    with log.open("r+b") as old, new.open("wb") as kept:
        shutil.copyfileobj(old, kept)
        new.replace(_older(log))
        old.truncate(0)
    return True


def read_on(log: Path, place: Place | None) -> tuple[str, Place]:
    """Give what is behind a place, a piece of it, and the place behind that.

    Without a place it is the end of the log that is given.
    """
    began, size = _began(log), log.stat().st_size if log.exists() else 0
    if place is None:
        place = Place(began, max(0, size - PIECE))
    if place.began != began:
        data = _piece(_older(log), place.offset)
        if data:
            return _text(data), Place(place.began, place.offset + len(data))
        place = Place(began, 0)
    data = _piece(log, min(place.offset, size))
    return _text(data), Place(began, place.offset + len(data))


def _older(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")


def _began(log: Path) -> int:
    """Give a number that is another one each time the log begins anew."""
    older = _older(log)
    return older.stat().st_mtime_ns if older.exists() else 0


def _piece(path: Path, offset: int) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        file.seek(min(offset, path.stat().st_size))  # files refuse places far behind their end
        data = file.read(PIECE)
    # Whole lines, as long as there are any.
    cut = data.rfind(b"\n") + 1
    return data[:cut] if cut else data if len(data) == PIECE else b""


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def append(log: Path) -> int:
    """Open a log to append to it; gives a descriptor."""
    return os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
