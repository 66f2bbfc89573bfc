"""``thalweg rebalance`` and ``thalweg reroute``: ask a run to go on otherwise."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import Annotated

import typer

from thalweg.cli.showing import error_console
from thalweg.errors import UsageError, explain
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import FOLDER, RUNTIME, Manifest
from thalweg.statelog.reading import manifest_at
from thalweg.statelog.requests import Request, Requests

_POLL = 0.2


@dataclass(frozen=True)
class PlaceOptions:
    """Which places a run on Spark is to have; each field is an option of the command."""

    places: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="How many places from now on.")
    ] = None
    avoid: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="A host that is to hold no place; may be repeated."),
    ] = None
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Use hosts again that were to be avoided.")
    ] = False

    def request(self) -> Request | None:
        """Say it as a request; None where nothing is said."""
        if self.places is None and not self.avoid and not self.everywhere:
            return None
        avoided = tuple(self.avoid) if self.avoid else () if self.everywhere else None
        return Request(self.places, avoided)


def located(state: str) -> Location:
    """Give where state is: there, or below, where ``--checkpoint`` puts it."""
    location = Location.of(state)
    inside = location.child("state")
    return inside if not location.names(FOLDER) and inside.names(FOLDER) else location


def rebalance(state: str, request: Request, patience: float) -> None:
    """Leave a request, and wait until a batch as it asks for is committed."""
    location = located(state)
    before = manifest_at(location)
    if not _on_spark(before):
        hint = "say COMPONENT=DEGREE: there are no places on the local runtime"
        raise UsageError(explain(f"state {location}", "", "one of a run on Spark", "", hint))
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
    location = located(state)
    manifest_at(location)
    request = Request(reroute="always" if always else "if it pays", id=uuid.uuid4().hex)
    _ask(location, request, patience)


def change_degrees(state: str, degrees: dict[str, int], patience: float) -> None:
    """Ask a run on this machine for other degrees, and print what came of it."""
    location = located(state)
    if _on_spark(manifest_at(location)):
        hint = "say --places: on Spark degrees stay while a run goes on"
        subject = f"state {location}"
        raise UsageError(explain(subject, "", "one of the local runtime", "one of Spark", hint))
    _ask(location, Request(degrees=degrees, id=uuid.uuid4().hex), patience)


def degree(text: str) -> tuple[str, int]:
    """Read ``COMPONENT=DEGREE``.

    >>> degree("count=4")
    ('count', 4)
    """
    name, sign, number = text.rpartition("=")
    if not (name and sign and number.isdecimal() and int(number)):
        expected = "COMPONENT=DEGREE, the degree at least 1"
        raise UsageError(explain("degree", "", expected, repr(text)))
    return name, int(number)


def _ask(location: Location, request: Request, patience: float) -> None:
    """Leave a request, and print the answer; a refusal is an error."""
    requests, console = Requests(location), error_console()
    requests.ask(request)
    until = time.monotonic() + patience
    with console.status("waiting for the run"):
        while (answer := requests.answer_to(request)) is None:
            if time.monotonic() > until:
                raise _not_done(location, requests.wait_to_be_taken())
            time.sleep(_POLL)
    if not answer.ok:
        raise UsageError(answer.text)
    console.print(answer.text, markup=False, soft_wrap=True)


def _on_spark(manifest: Manifest) -> bool:
    return RUNTIME not in manifest.notes


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
