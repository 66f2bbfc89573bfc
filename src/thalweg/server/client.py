"""Talks to a server; finds it by the folder that it keeps."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from thalweg.errors import UsageError, explain
from thalweg.server.access import read_token
from thalweg.server.folders import Root, View

T = TypeVar("T")
_TIMEOUT = 30.0
#: Seconds between two looks.
_POLL = 0.1


class Client:
    """A server, as those who use it see it."""

    def __init__(self, root: Path) -> None:
        self._root = Root(root)

    def status(self) -> dict[str, Any]:
        """Ask a server how it is."""
        return self._ask("GET", "/status")

    def stop(self, leave: bool) -> None:
        """Let a server end."""
        self._ask("POST", "/stop", {"leave": leave})

    def submit(self, name: str, program: Any) -> View:
        """Run a program."""
        asked = {"name": name, "program": msgspec.to_builtins(program)}
        return _view(self._ask("POST", "/topologies", asked))

    def views(self, everything: bool) -> list[View]:
        """Give what there is to know of all topologies."""
        found = self._ask("GET", "/topologies" + ("?all=1" if everything else ""))
        return [_view(each) for each in found]

    def view(self, name: str) -> View:
        """Give what there is to know of a topology."""
        return _view(self._ask("GET", _path(name)))

    def kill(self, name: str, wait: float) -> View:
        """End a topology."""
        return _view(self._ask("POST", _path(name, "kill"), {"wait": wait}))

    def forget(self, name: str) -> None:
        """Delete what is left of a topology."""
        self._ask("DELETE", _path(name))

    def settled(self, name: str, patience: float) -> View:
        """Wait until a topology runs or is over; raises why it cannot begin."""

        def known(view: View) -> bool:
            running = view.status is not None and view.status.since is not None
            return view.record.over or (view.alive and running)

        view = wait_for(lambda: self.view(name), known, patience)
        if view.record.phase == "failed":
            raise UsageError(view.record.error)
        return view

    def activate(self, name: str, active: bool, patience: float) -> None:
        """Let sources be asked, or not, and wait until it is so."""

        def is_so(view: View) -> bool:
            status = view.status
            return not view.alive or (status is not None and status.active == active)

        self._ask("POST", _path(name, "activate" if active else "deactivate"))
        self._until(name, is_so, patience)

    def set_policy(self, name: str, policy: str, by: str, patience: float) -> None:
        """Let a scaling policy decide about degrees, and wait until it does."""

        def is_so(view: View) -> bool:
            return not view.alive or (view.status is not None and view.status.policy == policy)

        self._ask("POST", _path(name, "policy"), {"policy": policy, "by": by})
        self._until(name, is_so, patience)

    def _until(self, name: str, is_so: Callable[[View], bool], patience: float) -> None:
        """Wait until what was noted is so."""
        if not is_so(wait_for(lambda: self.view(name), is_so, patience)):
            hint = "it is noted, and done when the topology can"
            raise UsageError(explain(f"topology {name!r}", "", "an answer", "none yet", hint))

    def rebalance(self, name: str, degrees: dict[str, int], patience: float) -> str:
        """Change degrees; gives what came of it, and raises what was refused."""
        asked = self._ask("POST", _path(name, "rebalance"), {"degrees": degrees})
        path = _path(name, f"answers/{asked['request']}")
        answer = wait_for(lambda: self._ask("GET", path)["answer"], bool, patience)
        if not answer:
            hint = "thalweg server logs says more"
            raise UsageError(explain(f"topology {name!r}", "", "an answer", "none yet", hint))
        if not answer["ok"]:
            raise UsageError(answer["text"])
        return str(answer["text"])

    def log(self, name: str, place: str | None) -> tuple[str, str]:
        """Give what a topology printed behind a place, and the place behind that."""
        query = "" if place is None else "?" + urlencode({"place": place})
        found = self._ask("GET", _path(name, "log") + query)
        return found["text"], found["place"]

    def log_behind(self, name: str, place: str, patience: float) -> tuple[str, str]:
        """Wait for something behind a place in a log."""
        return wait_for(lambda: self.log(name, place), lambda read: bool(read[0]), patience)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        address = self._root.address()
        # One that was killed leaves its address: another program may listen there, not for us.
        if address is None or not self._root.lock.held:
            raise self._nobody()
        headers = {"Authorization": f"Bearer {read_token(self._root.token)}"}
        data = None if body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(address.host, address.port, timeout=_TIMEOUT)
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            read = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._nobody() from error
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise UsageError(read["error"])
        return read

    def _nobody(self) -> UsageError:
        root = str(self._root.path)
        hint = f"start it with: thalweg server start --root {root} --allow FOLDER"
        return UsageError(explain(f"server in {root!r}", "", "one that answers", "none", hint))


def wait_for(look: Callable[[], T], enough: Callable[[T], bool], patience: float) -> T:
    """Look again and again until it is enough, or for so many seconds; gives what was seen last."""
    until = time.monotonic() + patience
    while not enough(seen := look()) and time.monotonic() < until:
        time.sleep(_POLL)
    return seen


def _path(name: str, rest: str = "") -> str:
    return f"/topologies/{quote(name, safe='')}" + (f"/{rest}" if rest else "")


def _view(found: Any) -> View:
    return msgspec.convert(found, View)
