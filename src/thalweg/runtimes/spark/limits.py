"""Bounds on what a batch may take, and how often it is tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from thalweg.errors import UsageError, explain

STOP, SET_ASIDE = "stop", "set-aside"


@dataclass(frozen=True)
class Limits:
    """Bounds on what a batch may take."""

    #: Bytes of input that a place holds in memory; the rest waits in a file.
    memory: int = 256 << 20
    #: Rows that a task is given at once.
    chunk_rows: int = 131_072
    #: Tuples of fewer bytes than this take part in the exchange also when they are for the same
    #: place: to look up their keys twice, before it and after, would cost more. Not so where keys
    #: have places of their own, since few of them travel then.
    fused_bytes: int = 128
    #: Versions that are kept, to fall back on.
    versions: int = 10
    #: Runs per place; more are merged.
    runs: int = 12
    #: Seconds after which a batch that does not move raises an alarm.
    stall: float = 60.0


@dataclass(frozen=True)
class Retries:
    """What happens to a batch that Spark could not finish.

    >>> list(Retries(attempts=4, backoff=1.0, most=3.0).waits())
    [1.0, 2.0, 3.0]
    """

    #: Attempts in all.
    attempts: int = 4
    #: Seconds before the second attempt; doubled each time.
    backoff: float = 0.5
    most: float = 30.0
    #: What to do when all have failed: "stop", or "set-aside" the input and go on.
    then: str = STOP

    def __post_init__(self) -> None:
        if self.then not in (STOP, SET_ASIDE):
            expected = f"{STOP!r} or {SET_ASIDE!r}"
            raise UsageError(explain("Retries.then", expected=expected, got=repr(self.then)))
        for name in ("backoff", "most"):
            if not getattr(self, name) >= 0:  # also nan
                got = repr(getattr(self, name))
                raise UsageError(explain(f"Retries.{name}", expected="seconds from 0 on", got=got))

    def waits(self) -> Iterator[float]:
        """Give the seconds to wait before each further attempt."""
        for attempt in range(self.attempts - 1):
            yield min(self.backoff * 2**attempt, self.most)
