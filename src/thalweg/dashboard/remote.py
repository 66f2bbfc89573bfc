"""Steers a topology of a server, as if it ran here."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.errors import UsageError, explain
from thalweg.server.client import Client

#: Seconds to wait until what was asked is so.
_PATIENCE = 20.0
#: Actions that a server passes on.
NAMES = ("pause", "resume", "kill", "rebalance", "set-policy")


@dataclass(frozen=True)
class Remote:
    """Asks a server, with its token, for what visitors want; what it refuses is raised."""

    client: Client
    name: str

    def activate(self) -> None:
        """Let sources be asked again."""
        self.client.activate(self.name, True, _PATIENCE)

    def deactivate(self) -> None:
        """Let no source be asked."""
        self.client.activate(self.name, False, _PATIENCE)

    def rebalance(self, component: str, degree: int) -> None:
        """Let a component have another number of tasks."""
        self.client.rebalance(self.name, {component: degree}, _PATIENCE)

    def reroute(self, always: bool = False) -> None:
        """Refuse it: a server runs topologies without locality."""
        raise UsageError(explain(f"topology {self.name!r}", "", "a run with --locality"))

    def set_policy(self, policy: str, by: str) -> None:
        """Let another policy decide about degrees."""
        self.client.set_policy(self.name, policy, by, _PATIENCE)

    def set(self) -> None:
        """End the topology: sources pause, and what is under way is finished."""
        self.client.kill(self.name, 0.0)
