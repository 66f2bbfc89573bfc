"""The topologies of the elasticity experiments, as values.

Costs, reservations and degrees are the document's where it has them. Where it has only words or
figures, what is chosen stands here with its reason.
"""

from __future__ import annotations

from thalweg.groupings import Grouping, Shuffle
from thalweg.placement.values import Need
from thalweg.workloads.stages import Reads, Stage, Staged

FAST, SLOW, SLOW_STAR = Need(0.2, 256.0), Need(0.8, 512.0), Need(0.3, 512.0)
THIRDS = ((0.0, 1 / 3), (1 / 3, 2 / 3), (2 / 3, 1.0))
#: 64 values: enough that no value is most of the stream, few enough that all of them come.
VALUES = 64
#: 10 to 90 ms, the costly values last: with Zipf's law these are the rare ones.
SENSITIVE = tuple(0.010 + 0.080 * value / (VALUES - 1) for value in range(VALUES))
SKEW = 1.5
#: A degree that 9 machines of 2 cores can hold, and twice the expert's: room to catch up.
MOST = 16


def linear() -> Staged:
    """Give source -> intermediate -> sink."""
    return Staged(
        "linear",
        (
            Stage("intermediate", (Reads("source"),), (0.002,), FAST),
            Stage("sink", (Reads("intermediate"),), (0.080,), SLOW, expert=8),
        ),
    )


def diamond() -> Staged:
    """Give source -> three intermediates, a third of the tuples each -> one sink."""
    names = ("left", "middle", "right")
    between = [
        Stage(name, (Reads("source", portion),), (0.002,), FAST)
        for name, portion in zip(names, THIRDS, strict=True)
    ]
    sink = Stage("sink", tuple(Reads(name) for name in names), (0.080,), SLOW, expert=8)
    return Staged("diamond", (*between, sink))


def star() -> Staged:
    """Give source -> intermediate -> three sinks, a third of the tuples each."""
    sinks = [
        Stage(f"sink{i}", (Reads("intermediate", portion),), (0.240,), SLOW_STAR, expert=8)
        for i, portion in enumerate(THIRDS, 1)
    ]
    return Staged("star", (Stage("intermediate", (Reads("source"),), (0.002,), FAST), *sinks))


def advertising() -> Staged:
    """Give the advertising topology: a selective filter, and costly operators behind it.

    The filter keeps a tenth, so that even at the high rate one task of each operator suffices: the
    document's minimal start does not congest. The expert judges by latency alone and takes 4.
    """
    kept = (0.0, 0.1)
    return Staged(
        "advertising",
        (
            Stage("deserialise", (Reads("source"),), (0.010,), FAST),
            Stage("filter", (Reads("deserialise"),), (0.001,), FAST),
            Stage("ip_projection", (Reads("filter", kept),), (0.002,), FAST),
            Stage("ip_processor", (Reads("ip_projection"),), (0.080,), SLOW, expert=4),
            Stage("ad_projection", (Reads("filter", kept),), (0.002,), FAST),
            Stage("join", (Reads("ad_projection"),), (0.020,), FAST, expert=2),
            Stage("campaign_processor", (Reads("join"),), (0.080,), SLOW, expert=4),
        ),
    )


def consistency() -> Staged:
    """Give the topology with which LocalOnly, Straight and GAL are compared.

    At the high rate the document has 14 tasks in the middle, and 2 at the end.
    """
    return Staged(
        "consistency",
        (
            Stage("fast", (Reads("source"),), (0.001,), FAST),
            Stage("slow_mid", (Reads("fast"),), (0.100,), SLOW, expert=14, most=14),
            Stage("fast_filter", (Reads("slow_mid"),), (0.001,), FAST),
            Stage("slow_end", (Reads("fast_filter", (0.0, 0.1)),), (0.100,), SLOW, expert=2),
        ),
    )


def simple(sensitive: bool, grouping: Grouping | None = None) -> Staged:
    """Give source -> costly bolt -> finalise; 50 ms, or 10 to 90 ms that depend on the value."""
    seconds = SENSITIVE if sensitive else (0.050,)
    return Staged(
        f"simple {'sensitive' if sensitive else 'insensitive'}",
        (
            Stage("bolt", (Reads("source"),), seconds, SLOW, 8, MOST, grouping or Shuffle()),
            Stage("finalise", (Reads("bolt"),), (0.001,), FAST),
        ),
        values=VALUES,
    )


def complex_sensitive(grouping: Grouping | None = None) -> Staged:
    """Give the opinions: one branch by city, one by age, and a persister for the groups found.

    One topic in ten is irrelevant, and half of what is analysed makes a group. Only the city's
    normaliser is critical: two tasks can do what the analysers get at the high rate.
    """
    relevant, found = (0.0, 0.9), (0.0, 0.5)
    cheap = (0.004,)
    return Staged(
        "complex sensitive",
        (
            Stage("dispatcher", (Reads("source"),), (0.001,), FAST),
            Stage(
                "city_normaliser",
                (Reads("dispatcher", relevant),),
                SENSITIVE,
                SLOW,
                8,
                MOST,
                grouping or Shuffle(),
            ),
            Stage("city_analyser", (Reads("city_normaliser"),), cheap, FAST, 2),
            Stage("age_analyser", (Reads("dispatcher", relevant),), cheap, FAST, 2),
            Stage(
                "persister",
                (Reads("city_analyser", found), Reads("age_analyser", found)),
                (0.001,),
                FAST,
            ),
        ),
        values=VALUES,
    )
