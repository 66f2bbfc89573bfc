"""What a run is asked while it goes on: left as an object beside its state, taken between batches.

Whoever may write the state may ask; no port is open for it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from thalweg.errors import StateError, UsageError, explain
from thalweg.statelog.location import Location, MissingObject

_NAME, _ANSWER = "requests/places", "requests/answer"
#: Seconds between two looks for a request.
_EVERY = 1.0


class Request(msgspec.Struct, frozen=True):
    """What a run is asked."""

    #: Another number of places; None for the one it has.
    places: int | None = None
    #: Hosts that are to hold no place from now on; None for those it avoids already.
    avoid: tuple[str, ...] | None = None
    #: Whether to decide now which keys belong together: "if it pays", or "always".
    reroute: Literal["if it pays", "always"] | None = None
    #: Names the request, for its answer.
    id: str = ""
    #: Other numbers of tasks, by component; only the local runtime can do so.
    degrees: dict[str, int] | None = None

    def __post_init__(self) -> None:
        if self.places is not None and self.places < 1:
            raise UsageError(explain("places", expected="at least 1", got=str(self.places)))


class Answer(msgspec.Struct, frozen=True):
    """What came of a request; not ``ok`` where it was refused."""

    id: str
    text: str
    ok: bool = True


class Requests:
    """The requests to the run that uses a state location."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._next = float("-inf")

    def ask(self, request: Request) -> None:
        """Leave a request; one that still waits is replaced."""
        self._location.write(_NAME, msgspec.json.encode(request))

    def take(self, now: float) -> Request | None:
        """Take the request, if there is one; looks once a second at most."""
        if now < self._next:
            return None
        self._next = now + _EVERY
        try:
            data = self._location.read(_NAME).to_pybytes()
        except MissingObject:
            return None
        self._location.delete(_NAME)
        try:
            return msgspec.json.decode(data, type=Request)
        except msgspec.MsgspecError as error:
            text = explain(f"request {_NAME!r} at {self._location}", got=str(error))
            raise StateError(text) from error

    def answer(self, request: Request, text: str, ok: bool = True) -> None:
        """Say what came of a request."""
        self._location.write(_ANSWER, msgspec.json.encode(Answer(request.id, text, ok)))

    def answer_to(self, request: Request) -> Answer | None:
        """Give what came of a request, once it is known."""
        try:
            data = self._location.read(_ANSWER).to_pybytes()
            found = msgspec.json.decode(data, type=Answer)
        except (MissingObject, msgspec.MsgspecError):
            return None
        return found if found.id == request.id else None

    def wait_to_be_taken(self) -> bool:
        """Say whether a request has not been taken yet."""
        return self._location.exists(_NAME)
