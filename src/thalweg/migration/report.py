"""What a reconfiguration did, for people and for programs.

>>> report = Report(
...     epoch=3, reason="locality", keys=10_000, bytes=1_000_000, steps=2, pause=0.12,
...     before=Score(0.17, 1.12), predicted=Score(0.75, 1.03), after=Score(0.71, 1.05),
... )
>>> print(report.text())
epoch 3 (locality): moved 10,000 keys, 1.0 MB, in 2 steps, pause 0.120 s
locality 17.0 % before, 75.0 % predicted, 71.0 % after; imbalance 1.12, 1.03, 1.05
>>> msgspec.json.decode(msgspec.json.encode(report), type=Report) == report
True
"""

from __future__ import annotations

import math

import msgspec


class Score(msgspec.Struct, frozen=True):
    """How good a set of tables is, measured or predicted."""

    #: Share of the tuples between keyed components that stay at their place, 0 to 1.
    locality: float
    #: Load of the busiest task of a component against the mean, the worst of all components.
    imbalance: float
    #: How far the locality may be off, 19 times of 20, as few tuples were looked at.
    error: float = 0.0


class Report(msgspec.Struct, frozen=True):
    """What a reconfiguration did."""

    epoch: int
    reason: str
    #: Keys and bytes of state that changed place, and the steps it took.
    keys: int
    bytes: int
    steps: int
    #: Seconds that tuples waited for it, or that it added to batches.
    pause: float
    #: Measured before; None where nothing was counted.
    before: Score | None = None
    predicted: Score | None = None
    #: Measured since; None as long as too little has been counted.
    after: Score | None = None
    #: Seconds for which it has been over when it is told, as what came of it was waited for.
    ago: float = 0.0

    def text(self) -> str:
        """Say it in one line, and the scores that are known in a second one."""
        keys, steps = _count(self.keys, "key"), _count(self.steps, "step")
        moved = f"moved {keys}, {_size(self.bytes)}, in {steps}, pause {self.pause:.3f} s"
        line = f"epoch {self.epoch} ({self.reason}): {moved if self.keys else 'moved nothing'}"
        scores = {"before": self.before, "predicted": self.predicted, "after": self.after}
        known = {name: score for name, score in scores.items() if score is not None}
        if not known:
            return line
        locality = ", ".join(f"{score.locality:.1%} {name}" for name, score in known.items())
        imbalance = ", ".join(f"{score.imbalance:.2f}" for score in known.values())
        most = math.ceil(100 * max(score.error for score in known.values()))
        off = f" (up to {_count(most, 'point')} off)" if most else ""
        return f"{line}\nlocality {locality.replace('%', ' %')}{off}; imbalance {imbalance}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"
