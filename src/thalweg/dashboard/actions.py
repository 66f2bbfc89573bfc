"""What visitors with the token can let a run do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from thalweg.control.scaling.policies import NAMES
from thalweg.errors import explain, meant
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.spark.runtime import Spark
from thalweg.server.answering import read
from thalweg.server.life import Refusal, check_degrees
from thalweg.topology import Topology

SET_POLICY = "set-policy"
#: The policy that leaves degrees as they are.
KEEPING = "static"
#: Who asks for what visitors of a page want.
BY_PAGE = "a visitor of the page"


class Steers(Protocol):
    """Whoever changes a run: its own steering, or the server that runs it."""

    def activate(self) -> None:
        """Let sources be asked again."""

    def deactivate(self) -> None:
        """Let no source be asked."""

    def rebalance(self, component: str, degree: int) -> None:
        """Let a component have another number of tasks."""

    def reroute(self, always: bool = False) -> None:
        """Let it be decided where keys should be."""

    def set_policy(self, policy: str, by: str) -> None:
        """Let another policy decide about degrees."""


class Stops(Protocol):
    """Whoever ends a run."""

    def set(self) -> None:
        """End it."""


class Rebalance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another number of tasks for a component."""

    component: str
    degree: int


class Reroute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether keys move also when it hardly pays."""

    always: bool = False


class SetPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who decides about degrees from now on."""

    policy: str


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No more than the name of the action."""


@dataclass(frozen=True)
class Actions:
    """The actions that a run supports, by name; what came of one, the records tell.

    >>> import threading
    >>> from thalweg.execution import Steering
    >>> steering = Steering()
    >>> Actions(steering, threading.Event(), ("pause", "resume")).do("pause", b"")
    {'text': 'sources will not be asked until resumed'}
    >>> steering.active
    False
    """

    steering: Steers
    stop: Stops
    names: tuple[str, ...]
    #: Gives the components whose degree can change; elsewhere a program may not be loaded yet.
    bolts: Callable[[], tuple[str, ...]] = tuple
    #: Gives the policy that decides about degrees; empty where there is none.
    leading: Callable[[], str] = str
    #: Whether runs follow each other, so that something can be done also between two of them.
    several: bool = False

    def do(self, name: str, body: bytes) -> dict[str, Any]:
        """Let it be done; gives what to expect."""
        ways: dict[str, Callable[[bytes], str]] = {
            "pause": self._pause,
            "resume": self._resume,
            "rebalance": self._rebalance,
            "reroute": self._reroute,
            SET_POLICY: self._set_policy,
            "kill": self._kill,
        }
        if name not in self.names or name not in ways:
            expected = f"one of {', '.join(self.names) or 'none'} for this run"
            raise Refusal(explain(f"action {name[:80]!r}", "", expected), 404)
        return {"text": ways[name](body)}

    def _pause(self, body: bytes) -> str:
        read(body, Nothing)
        self.steering.deactivate()
        return "sources will not be asked until resumed"

    def _resume(self, body: bytes) -> str:
        read(body, Nothing)
        self.steering.activate()
        return "sources will be asked again"

    def _rebalance(self, body: bytes) -> str:
        asked = read(body, Rebalance)
        if asked.component not in (bolts := self.bolts()):
            expected = f"one of {', '.join(bolts) or 'none yet'}"
            raise Refusal(explain(f"bolt {asked.component[:80]!r}", "", expected))
        check_degrees({asked.component: asked.degree})
        self.steering.rebalance(asked.component, asked.degree)
        done = f"{asked.component!r} will have {asked.degree} tasks"
        if (policy := self.leading()) in ("", KEEPING):
            return done
        return f"{done}; policy {policy} may change that again, {KEEPING} would keep it"

    def _reroute(self, body: bytes) -> str:
        self.steering.reroute(read(body, Reroute).always)
        return "it will be decided where keys should be"

    @property
    def policies(self) -> tuple[str, ...]:
        """Policies that can be chosen; those that need a file are not among them."""
        return NAMES if SET_POLICY in self.names else ()

    def _set_policy(self, body: bytes) -> str:
        asked = read(body, SetPolicy).policy
        if asked not in self.policies:
            expected = f"one of {', '.join(self.policies)}"
            hint = meant(asked[:80], self.policies)
            raise Refusal(explain("scaling policy", "", expected, repr(asked[:80]), hint))
        self.steering.set_policy(asked, BY_PAGE)
        return f"policy {asked} will decide about degrees"

    def _kill(self, body: bytes) -> str:
        read(body, Nothing)
        self.stop.set()
        return "the run will finish what is under way, and end"


def supported(topology: Topology, on: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the actions that a runtime supports for a topology, and the bolts they can change."""
    names = ["pause", "resume", "kill"]
    if isinstance(on, Local | Spark) and (on.locality or on.rerouter):
        names.append("reroute")
    if isinstance(on, Spark) and on.scaling is not None:
        names.append(SET_POLICY)
    if on is not None and on != "local" and not isinstance(on, Local):
        return tuple(names), ()
    bolts = tuple(component.name for component in topology if not component.is_spout)
    return (*names, "rebalance", SET_POLICY), bolts
