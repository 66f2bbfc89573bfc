"""Where a source listens for requests, and to whom."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Door:
    """Where a source listens, and to whom.

    >>> Door("127.0.0.1", 8080).is_loopback, Door("0.0.0.0", 8080).is_loopback
    (True, False)
    """

    host: str
    port: int
    path: str = "/"
    token: str | None = field(default=None, repr=False)
    max_body: int = 1 << 20

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Say whether a name or address means this machine, for this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
