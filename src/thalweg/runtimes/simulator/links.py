"""The network: tuples between machines take a while, and wait where a link is narrow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.placement.values import Machine
from thalweg.runtimes.simulator.fifo import Flags, Floats, Ints, shares, starts


class Links:
    """What machines send; streams share a machine's bandwidth."""

    def __init__(self, machines: Sequence[Machine], streams: int, latency: float) -> None:
        rates = [machine.bandwidth for machine in machines]
        self._latency = latency
        self._limited = any(rate is not None for rate in rates)
        self._rates = np.array([np.inf if rate is None else rate for rate in rates])
        size = (streams, len(machines))
        #: For each stream and machine: when what was sent has left, the share of the link that the
        #: stream has, and the part of the period that it would fill at the full rate.
        self._free: Floats = np.zeros(size)
        self._share: Floats = np.ones(size)
        self._sent: Floats = np.zeros(size)
        #: The highest share of a link that each stream has filled in a period.
        self.use: Floats = np.zeros(streams)
        #: How full the fullest link was that each stream took in the last period, with all that
        #: was sent there.
        self.now: Floats = np.zeros(streams)

    def travel(
        self, stream: int, machines: Ints, times: Floats, remote: Flags, size: float
    ) -> Floats:
        """Say when tuples arrive that leave machines at these times, or stay there."""
        arrive = times + self._latency * remote
        if not self._limited or not remote.any():
            return arrive
        rows = np.flatnonzero(remote)
        rows = rows[np.lexsort((times[rows], machines[rows]))]
        source = machines[rows]
        full = size / self._rates[source]
        service = full / self._share[stream][source]
        ends = starts(source, times[rows], service, self._free[stream]) + service
        np.maximum.at(self._free[stream], source, ends)
        self._sent[stream] += np.bincount(source, full, len(self._rates))
        arrive[rows] = ends + self._latency
        return arrive

    def next_period(self, now: float, period: float) -> None:
        """Share the links anew, by what each stream sent in the period that ends."""
        if not self._limited:
            return
        filled = np.minimum(self._sent / period, 1.0)
        demand = np.where(self._free > now, 1.0, filled)
        machines = np.tile(np.arange(len(self._rates)), len(demand))
        self._share = shares(demand.ravel(), machines, len(self._rates)).reshape(demand.shape)
        self.use = np.maximum(self.use, filled.max(axis=1))
        together = np.minimum(self._sent.sum(axis=0) / period, 1.0)
        self.now = np.where(self._sent > 0, together, 0.0).max(axis=1)
        self._sent = np.zeros_like(self._sent)
