"""What a run is asked while it goes on: left as an object beside its state, taken between batches.

Whoever may write the state may ask; no port is open for it.
"""

from __future__ import annotations

import msgspec

from thalweg.errors import StateError, UsageError, explain
from thalweg.statelog.location import Location, MissingObject

_PLACES = "requests/places"
#: Seconds between two looks for a request.
_EVERY = 1.0


class _Asked(msgspec.Struct, frozen=True):
    places: int


class Requests:
    """The requests to the run that uses a state location."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._next = float("-inf")

    def ask_places(self, places: int) -> None:
        """Ask for another number of places; a request that still waits is replaced."""
        if places < 1:
            raise UsageError(explain("places", expected="at least 1", got=str(places)))
        self._location.write(_PLACES, msgspec.json.encode(_Asked(places)))

    def places(self, now: float) -> int | None:
        """Take the number of places that is asked for, if any; looks once a second at most."""
        if now < self._next:
            return None
        self._next = now + _EVERY
        try:
            data = self._location.read(_PLACES).to_pybytes()
        except MissingObject:
            return None
        self._location.delete(_PLACES)
        try:
            return msgspec.json.decode(data, type=_Asked).places
        except msgspec.MsgspecError as error:
            text = explain(f"request {_PLACES!r} at {self._location}", got=str(error))
            raise StateError(text) from error

    def wait_to_be_taken(self) -> bool:
        """Say whether a request has not been taken yet."""
        return self._location.exists(_PLACES)
