"""The local runtime: all cores of this machine, in order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thalweg.clock import SystemClock, WallClock
from thalweg.execution import Result, Run
from thalweg.runtimes.local.crew import MAIN
from thalweg.runtimes.local.pinning import cores_of, staying
from thalweg.runtimes.local.running import Running
from thalweg.runtimes.local.settings import Settings
from thalweg.topology import Topology


@dataclass(frozen=True)
class Local(Settings):
    """The local runtime; ``Local().run(topology)`` runs a topology on it."""

    def run(self, topology: Topology, run: Run | None = None) -> Result:
        """Run a topology until its sources end or it is told to stop."""
        settings: Settings = self
        lasts = self.checkpoint is not None or (self.scales and self.scales.history is not None)
        if lasts and type(self.clock) is SystemClock:
            settings = replace(self, clock=WallClock())  # its time goes on in the next process
        checked, cores = (run or Run()).checked(topology), cores_of(self.pin)
        if cores:  # known by name from here on: this thread will see one core only
            settings = replace(settings, pin=cores, workers=settings.workers or len(cores))
        with staying(cores, MAIN):
            return Running(settings, topology, checked).run()
