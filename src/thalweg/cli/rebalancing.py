"""``thalweg rebalance``: ask a run on Spark to go on with another number of places."""

from __future__ import annotations

import time

from thalweg.cli.showing import error_console
from thalweg.errors import UsageError, explain
from thalweg.statelog.location import Location
from thalweg.statelog.reading import manifest_at
from thalweg.statelog.requests import Requests

_POLL = 0.2


def rebalance(state: str, places: int, patience: float) -> None:
    """Leave the request, and wait until a batch with so many places is committed."""
    location = Location.of(state)
    before = manifest_at(location)
    console = error_console()
    if before.places == places:
        console.print(f"{places} places already", markup=False)
        return
    requests = Requests(location)
    requests.ask_places(places)
    until = time.monotonic() + patience
    with console.status(f"{before.places} -> {places} places: waiting for the run"):
        while (now := manifest_at(location)).places != places:
            if time.monotonic() > until:
                raise _not_done(location, places, requests.wait_to_be_taken())
            time.sleep(_POLL)
    console.print(
        f"{places} places since version {now.version}, epoch {now.epoch}; there were "
        f"{before.places}",
        markup=False,
    )


def _not_done(location: Location, places: int, waits: bool) -> UsageError:
    if waits:
        got = "no run that takes the request"
        hint = "it stays: the next run with this state begins with it"
    else:
        got, hint = "the request taken, no batch since", "the run says why; it may have no input"
    return UsageError(explain(f"state {location}", "", f"a batch with {places} places", got, hint))
