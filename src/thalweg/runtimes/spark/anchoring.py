"""Keeps places on their hosts: looks before each batch who is there, and remakes the anchor."""

from __future__ import annotations

import contextlib
import functools
import socket
from collections.abc import Callable, Iterable, Sequence

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from thalweg.runtimes.spark.exchange import Anchor, executors, make_anchor, presence
from thalweg.runtimes.spark.placement import Executor, Placing, place_on_hosts, slots_on_hosts


def executors_elsewhere(master: str) -> bool:
    """Say whether a master starts executors besides the driver.

    >>> executors_elsewhere("local[2]"), executors_elsewhere("spark://10.0.0.1:7077")
    (False, True)
    """
    return master != "local" and not master.startswith("local[")


class Anchoring:
    """The anchor of a run, while there are several hosts.

    An executor that comes back on its old host has lost what was cached there, and its places
    would stay away; so the anchor is made anew whenever any executor has come or gone.
    """

    def __init__(
        self,
        context: SparkContext,
        placing: Placing,
        notice: Callable[[str], None],
        before: Sequence[str] = (),
    ) -> None:
        self._context, self._placing, self._notice = context, placing, notice
        self._hosts = tuple(before)
        self._there: tuple[frozenset[str], int] | None = None
        #: Executors that were there for the last batch; nothing where they are not looked at.
        self.executors: tuple[Executor, ...] = ()
        #: Those that were there when they were looked at last.
        self._known: tuple[Executor, ...] = ()
        #: Hosts that are to hold no place because somebody said so.
        self.avoided: frozenset[str] = frozenset()
        self._leaving: frozenset[str] = frozenset()
        #: Names the hosts whose executors are being got ready; they hold no place yet.
        self.cold: Callable[[Sequence[Executor]], frozenset[str]] = lambda _executors: frozenset()
        self._anchor: Anchor | None = None
        self._one_host = not executors_elsewhere(context.master or "local")

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host of each place; nothing where all are on one."""
        return self._hosts if self._anchor is not None else ()

    @property
    def slots(self) -> int | None:
        """Tasks that executors which are ready run at once; None on one machine."""
        if self._one_host:
            return None
        unwanted = self.avoided | self.cold(self._known)
        return sum(e.slots for e in self._known if e.host not in unwanted)

    def gone(self, ids: Iterable[str]) -> None:
        """Hear that executors have been given back."""
        self._known = tuple(e for e in self._known if e.id not in frozenset(ids))
        self.executors = tuple(e for e in self.executors if e in self._known)

    def at(self, places: int) -> Anchor | None:
        """Give the anchor for a batch; None while there is only one host."""
        if self._one_host:
            return None
        try:
            return self._looked_after(places)
        except (Py4JError, PySparkException) as error:
            # Where places are is a matter of speed: the batch runs without.
            line = str(error).partition("\n")[0]
            self._notice(f"places could not be put on their hosts: {line}")
            self.close()
            return None

    def avoid(self, hosts: Iterable[str]) -> None:
        """Put no place on these hosts from the next batch on, as long as there are others."""
        self.avoided = frozenset(hosts)
        self.close()

    def leave(self, hosts: Iterable[str]) -> None:
        """Put no place on these hosts from the next batch on: they are given back after it."""
        before, self._leaving = self._leaving, frozenset(hosts)
        if (before ^ self._leaving) & {executor.host for executor in self.executors}:
            self.close()

    def close(self, wait: bool = False) -> None:
        """Let go of the anchor; with ``wait`` until all executors have."""
        if self._anchor is not None:
            with contextlib.suppress(Py4JError):  # the session may be gone
                self._anchor.drop(wait)
        self._anchor, self._there, self.executors = None, None, ()

    def _looked_after(self, places: int) -> Anchor | None:
        there = presence(self._context)
        if there == self._there and (self._anchor is None or len(self._hosts) == places):
            return self._anchor
        self.close()
        self.executors = self._known = executors(self._context)
        slots = slots_on_hosts(self.executors)
        if len(slots) > 1:
            unwanted = self.avoided | self._leaving | self.cold(self.executors)
            wanted = {host: n for host, n in slots.items() if host not in unwanted}
            hosts = place_on_hosts(self._placing, places, wanted or slots, self._hosts)
            if hosts != self._hosts:
                shares = {host: hosts.count(host) for host in sorted(set(hosts))}
                self._notice(f"places are on {shares}")
            self._anchor, self._hosts = make_anchor(self._context, hosts), hosts
        self._there = there
        return self._anchor


@functools.cache
def own_address(towards: str) -> str:
    """Give the address from which this host reaches another; nothing is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((towards, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()


@functools.cache
def addresses_of(host: str) -> frozenset[str]:
    """Give the addresses that a name of a host stands for, and the name itself."""
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        return frozenset({host})
    return frozenset({host, *(str(entry[4][0]) for entry in found)})
