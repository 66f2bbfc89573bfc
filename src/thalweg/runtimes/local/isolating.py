"""When a component that is busy in Python gets processes, because that is measured to pay.

Looks at a component follow each other; each is a value, and so is what is made of it. A component
is moved when several looks in a row say so. It is moved once, and never back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from thalweg.components import BlockBolt, Bolt, Kind
from thalweg.runtimes.local.crossing import from_bytes, to_bytes
from thalweg.topology import Component

#: Seconds between two looks, and looks in a row that have to say the same.
LOOK_EVERY, LOOKS = 0.5, 3
# Share of the time that a component has to be busy, and cores that have to be idle.
_BUSY, _IDLE = 0.5, 0.6
# What has to be gained at least, as a factor; and what a message to a process and its answer cost
# beside the bytes, in seconds.
_GAIN, _ROUND_TRIP = 1.3, 0.0003


@dataclass(frozen=True)
class Look:
    """What was seen of a component, and of the machine, since the last look."""

    seconds: float
    #: Rows that it took, seconds that it was busy in Python with them, and rows of its last block.
    rows: int
    busy: float
    block_rows: int
    #: Seconds that such a block takes to a process.
    crossing: float
    #: Cores that there are, and how many of them had nothing to do.
    cores: int
    idle: float
    #: Rows that it sends for each row.
    selectivity: float = 1.0


@dataclass(frozen=True)
class Verdict:
    """Whether processes would pay, and why."""

    pays: bool
    reason: str


def judge(look: Look) -> Verdict:
    """Say whether processes would pay for a component.

    >>> judge(Look(0.5, 5_000, 0.48, 1000, 0.002, cores=2, idle=0.9)).reason
    'busy 96 % of the time, 0.9 cores idle; a block takes 96.0 ms, with processes about 55.9 ms'
    """
    share = look.busy / look.seconds if look.seconds else 0.0
    if look.cores < 2:
        return Verdict(False, "there is one core")
    if share < _BUSY or not look.rows:
        return Verdict(False, f"busy {share:.0%} of the time".replace("%", " %"))
    if look.idle < _IDLE:
        return Verdict(False, f"{look.idle:.1f} cores idle")
    block = look.busy / look.rows * look.block_rows
    cores = min(look.cores, share + look.idle)
    there_and_back = look.crossing * (1 + look.selectivity)
    then = block / cores + there_and_back + _ROUND_TRIP
    text = (
        f"busy {100 * share:.0f} % of the time, {look.idle:.1f} cores idle; a block takes "
        f"{1000 * block:.1f} ms, with processes about {1000 * then:.1f} ms"
    )
    return Verdict(block >= _GAIN * then, text)


class Votes:
    """Counts looks in a row that say that processes would pay.

    >>> votes, good = Votes(), Verdict(True, "")
    >>> [votes.count(verdict) for verdict in (good, good, Verdict(False, ""), good, good, good)]
    [False, False, False, False, False, True]
    """

    def __init__(self) -> None:
        self._row = 0

    def count(self, verdict: Verdict) -> bool:
        """Take in a verdict; True when it is time to act."""
        self._row = self._row + 1 if verdict.pays else 0
        return self._row >= LOOKS


def candidate(component: Component) -> bool:
    """Say whether a component could be moved at all, as far as its kind tells."""
    options, body = component.options, component.body
    if options.isolation is not None or component.is_spout or not component.outputs:
        return False
    if getattr(body, "timed", False):  # what waits for it may be split, and time among it is not
        return False
    if options.hooks:  # objects of this process: those who gave them look at them here
        return False
    if not getattr(body, "pure_python", False) or component.kind is Kind.GLOBAL:
        return False
    # With more tasks than before, these would be called once for each.
    return options.degree is not None or not (component.tick or speaks_last(component))


def speaks_last(component: Component) -> bool:
    """Say whether a bolt does something at ticks, as time goes on, or at the end."""
    kind = type(component.body)
    base = Bolt if issubclass(kind, Bolt) else BlockBolt
    names = ("process_tick", "process_watermark", "process_end")
    return any(getattr(kind, name) is not getattr(base, name) for name in names)


def crossing_time(batch: pa.RecordBatch, now: Callable[[], float] = time.perf_counter) -> float:
    """Measure how long it takes to write a block down, and to read it as Python values."""
    begin = now()
    from_bytes(to_bytes(batch)).to_pydict()
    return now() - begin


def idle_seconds(text: str | None = None) -> float | None:
    r"""Give the seconds that all cores of this machine have been idle; None where nobody tells.

    >>> idle_seconds("cpu  10 0 10 1200 50 0 0 0 0 0\ncpu0 10 0 10 1200 50 0 0 0 0 0")
    12.5
    """
    if text is None:
        try:
            text = Path("/proc/stat").read_text(encoding="ascii")
        except OSError:
            return None
    idle, waiting = text.split("\n", 1)[0].split()[4:6]
    return (int(idle) + int(waiting)) / 100
