"""The streams of the elasticity experiments: rates over time.

The document shows them in figures only, without numbers, so they are fixed here. Their unit is the
*expert capacity*: what the critical stage can process with its expert degree (8 tasks). Low is a
tenth of it, which one task can just do (0.8 of its time); high is nine tenths, which needs all 8.
For 8 sinks of 80 ms each that is 10 and 90 tuples/s.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.connectors.profiles import Profile

LOW, HIGH = 0.1, 0.9
#: A segment: minutes, and the rates at its beginning and its end.
Segment = tuple[float, float, float]

# Constant, a progressive rise, constant, a marked fall, and low again. The high part is long
# enough that half of the expert's resources are really needed (the document saves 37.5 %).
THREE_STEP: tuple[Segment, ...] = (
    (8, LOW, LOW),
    (6, LOW, HIGH),
    (14, HIGH, HIGH),
    (2, HIGH, LOW),
    (10, LOW, LOW),
)
# From low to a peak without a transition, twice. The document's policy absorbs the peaks and
# catches up with what gathered before it saw them: at nine tenths of all there is, nobody could.
PEAK = 0.6
FIVE_STEP: tuple[Segment, ...] = (
    (6, LOW, LOW),
    (6, PEAK, PEAK),
    (6, LOW, LOW),
    (6, PEAK, PEAK),
    (6, LOW, LOW),
)
# A rise and a fall that take a few windows of 90 s each: one can see them coming, but not wait.
PROGRESSIVE: tuple[Segment, ...] = (
    (6, LOW, LOW),
    (6, LOW, HIGH),
    (12, HIGH, HIGH),
    (6, HIGH, LOW),
    (8, LOW, LOW),
)
# Two short peaks with a deep valley between them, and a long one at the end. The short ones last
# two windows: what is scaled out for them comes late in any case.
ERRATIC: tuple[Segment, ...] = (
    (6, LOW, LOW),
    (3, HIGH, HIGH),
    (5, LOW, LOW),
    (3, HIGH, HIGH),
    (6, LOW, LOW),
    (12, HIGH, HIGH),
    (6, LOW, LOW),
)
# Two hills: major increases, each followed by a decrease. What is low there is less of the capacity
# of 14 tasks, so that one of them can do it.
_FOOT = 0.06
HILLS: tuple[Segment, ...] = (
    (5, _FOOT, _FOOT),
    (3, _FOOT, HIGH),
    (6, HIGH, HIGH),
    (3, HIGH, _FOOT),
    (5, _FOOT, _FOOT),
    (3, _FOOT, HIGH),
    (6, HIGH, HIGH),
    (3, HIGH, _FOOT),
    (4, _FOOT, _FOOT),
)


def stream(segments: Sequence[Segment], capacity: float, speed: float = 1.0) -> Profile:
    """Make a profile of segments whose rates are shares of a capacity, in tuples per second.

    With a ``speed`` the same tuples come so much faster.

    >>> stream(THREE_STEP, capacity=100.0), stream(THREE_STEP, capacity=100.0, speed=20)
    (Profile(110400 items in 2400 s), Profile(110400 items in 120 s))
    """
    minutes, firsts, lasts = np.array(segments, np.float64).T
    most = capacity * speed
    return Profile.of(minutes * 60 / speed, firsts * most, lasts * most)
