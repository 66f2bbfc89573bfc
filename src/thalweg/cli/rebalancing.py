"""``thalweg rebalance`` and ``thalweg reroute``: ask a run on Spark to go on otherwise."""

from __future__ import annotations

import time
import uuid

from thalweg.cli.showing import error_console
from thalweg.errors import UsageError, explain
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifest
from thalweg.statelog.reading import manifest_at
from thalweg.statelog.requests import Request, Requests

_POLL = 0.2


def rebalance(state: str, request: Request, patience: float) -> None:
    """Leave a request, and wait until a batch as it asks for is committed."""
    location = Location.of(state)
    before = manifest_at(location)
    console = error_console()
    requests = Requests(location)
    requests.ask(request)
    until = time.monotonic() + patience
    with console.status("waiting for the run"):
        while not _is_so(now := manifest_at(location), request, before):
            if time.monotonic() > until:
                raise _not_done(location, requests.wait_to_be_taken())
            time.sleep(_POLL)
    hosts = f" on {', '.join(sorted(set(now.hosts)))}" if now.hosts else ""
    console.print(
        f"{now.places} places{hosts} since version {now.version}, epoch {now.epoch}; there were "
        f"{before.places}",
        markup=False,
        soft_wrap=True,
    )


def reroute(state: str, always: bool, patience: float) -> None:
    """Ask a run to decide now which keys belong together, and print what it says."""
    location = Location.of(state)
    manifest_at(location)
    requests = Requests(location)
    request = Request(reroute="always" if always else "if it pays", id=uuid.uuid4().hex)
    requests.ask(request)
    console, until = error_console(), time.monotonic() + patience
    with console.status("waiting for the run"):
        while (text := requests.answer_to(request)) is None:
            if time.monotonic() > until:
                raise _not_done(location, requests.wait_to_be_taken())
            time.sleep(_POLL)
    console.print(text, markup=False, soft_wrap=True)


def _is_so(now: Manifest, request: Request, before: Manifest) -> bool:
    places = request.places in (None, now.places)
    hosts = request.avoid is None or not set(request.avoid) & set(now.hosts)
    newer = now.version > before.version or request.avoid is None
    return places and hosts and newer


def _not_done(location: Location, waits: bool) -> UsageError:
    if waits:
        got = "no run that takes the request"
        hint = "it stays: the next run with this state begins with it"
    else:
        got, hint = "the request taken, no batch since", "the run says why; it may have no input"
    return UsageError(explain(f"state {location}", "", "a batch as asked for", got, hint))
