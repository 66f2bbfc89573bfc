"""Plays the phases of the demo one after the other: each is recorded, and seen on one page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from thalweg.dashboard.hub import Hub
from thalweg.dashboard.telling import Telling
from thalweg.demo.data import Data
from thalweg.demo.describing import Wave, topology
from thalweg.demo.findings import Finding, found
from thalweg.demo.phases import WAIT, Phase, Size, on
from thalweg.events import Event
from thalweg.execution import Result
from thalweg.recording.reading import Recording
from thalweg.recording.recorder import Recorder
from thalweg.recording.records import Numbering, Record
from thalweg.topology import Topology

#: What is run before anything is measured, so that Spark has its Python processes.
_WARM = Wave.of(0.1, 1000, 4000)


@dataclass(frozen=True)
class Played:
    """A phase that has ended."""

    finding: Finding
    recording: Path
    #: The most frequent values of the second key.
    leading: tuple[tuple[str, int], ...]


class Audience(Protocol):
    """Who is told while it is played."""

    def begins(self, phase: Phase, wave: Wave) -> Callable[[Event], None]:
        """Hear that a phase begins; what is given hears its events."""

    def ends(self, played: Played) -> None:
        """Hear that it has ended."""


@dataclass(frozen=True)
class Stage:
    """Where phases are played."""

    data: Data
    size: Size
    #: A folder for recordings, which do not exist yet.
    folder: Path
    hub: Hub
    stop: threading.Event
    audience: Audience
    numbering: Numbering

    def warm(self, session: Any) -> None:
        """Let Spark start what it needs, unseen."""
        phase = Phase("spark", aware=False)
        topology(self.data, _WARM, wait=0.0).run(on=on(phase, self.size, session), stop=self.stop)

    def play(self, phases: tuple[Phase, ...], session: Any = None) -> Iterator[Played]:
        """Play phases until the last, or until somebody stops it: what was cut off is left out."""
        for phase in phases:
            if self.stop.is_set():
                return
            played = self._play(phase, session)
            if not self.stop.is_set():
                self.audience.ends(played)
                yield played

    def _play(self, phase: Phase, session: Any) -> Played:
        wave, runtime = self.size.wave(phase), on(phase, self.size, session)
        # On Spark, components have as many tasks as there are places.
        degree = phase.degree if phase.runtime == "local" else None
        way = "aware" if phase.aware else "hash"
        described = topology(self.data, wave, WAIT, degree, f"trending-{way}")
        policy = runtime.scales.leading.name if runtime.scales else ""
        path = self.folder / f"{phase.runtime}-{way}.sqlite"
        with ExitStack() as stack:
            hear = self.audience.begins(phase, wave)
            telling = Telling(self.hub, described, phase.runtime, policy, self.numbering)
            recorder = Recorder(path, described, phase.runtime, policy)
            stack.enter_context(telling)
            stack.enter_context(recorder)

            def listen(event: Event) -> None:
                for each in (hear, telling.listen, recorder.listen):
                    each(event)

            result = described.run(on=runtime, stop=self.stop, listen=listen)
        with Recording.open(path) as recording:
            return Played(found(phase, wave, recording), path, _leading(result, self.data))


def _leading(result: Result, data: Data) -> tuple[tuple[str, int], ...]:
    counts = result.table(f"by_{data.keys[1]}")
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
    return tuple((str(key), count) for key, count in ranked[:3])


class Continued(Numbering):
    """Numbers the records of several runs in a row, so that one page can show them.

    >>> from thalweg.events import Noticed
    >>> from thalweg.topology import Topology
    >>> numbering = Continued(steady=iter([0.0, 5.0, 6.0]).__next__, wall=lambda: 0.0)
    >>> first = numbering.topology(Topology("empty", ()), "local")
    >>> numbering.record(Noticed("begun"))["at"], first["n"]
    (1.0, 1)
    """

    def topology(self, topology: Topology, runtime: str, policy: str = "") -> Record:
        """Make the first record of another run, whose time begins now."""
        before, self._began = self._n, self._steady()
        made = super().topology(topology, runtime, policy)
        self._n = before + 1
        return {**made, "n": self._n}
