"""Timers of keys: called once, in the order of time, wherever their key is by then."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from conformance.cases_windows import CLICKS, DELAY, in_windows
from conformance.harness import (
    CLOCK,
    AnyOrder,
    Case,
    Exactly,
    InKeyOrder,
    TableIs,
    nowhere,
)
from thalweg.builder import TopologyBuilder
from thalweg.components import BlockBolt, Bolt, Kind
from thalweg.connectors.memory import items
from thalweg.eventtime import SECOND, event_time
from thalweg.keys import key_values
from thalweg.testing import PAUSE
from thalweg.topology import Topology

MINUTE = 60 * SECOND


class Minutes(Bolt):
    """Windows of a minute, made of timers: what came in one, as soon as time has passed it."""

    kind = Kind.KEYED
    outputs = {"user": str, "start": int, "n": int, "total": int}
    table = "clicks"

    def process(self, t) -> None:
        minute = t.at // 60
        kept = self.state.get(t.user, {"all": 0})
        kept["all"] += 1
        n, total = kept.get(str(minute), (0, 0))
        kept[str(minute)] = n + 1, total + t.price
        self.state.put(t.user, kept)
        self.timers.at(t.user, (minute + 1) * MINUTE, str(minute))

    def process_timer(self, key, at, name) -> None:
        kept = self.state.get(key)
        n, total = kept.pop(name)
        self.state.put(key, kept)
        self.emit(key, at // SECOND - 60, n, total)


class Undecided(Bolt):
    """Even prices set the timer of their minute, odd ones take it back."""

    kind = Kind.KEYED
    outputs = {"user": str, "at": int}

    def process(self, t) -> None:
        minute = t.at // 60
        if t.price % 2:
            self.timers.cancel(t.user, f"{minute}")
        else:
            self.timers.at(t.user, (minute + 1) * MINUTE, f"{minute}")

    def process_timer(self, key, at, name) -> None:
        self.emit(key, at // SECOND)


class Beats(Bolt):
    """Beats every minute since the first click of a user, each beat setting the next."""

    kind = Kind.KEYED
    outputs = {"user": str, "at": int, "beat": int}

    def process(self, t) -> None:
        if self.state.get(t.user) is None:
            self.state.put(t.user, 0)
            self.timers.at(t.user, t.at * SECOND)

    def process_timer(self, key, at, name) -> None:
        beat = self.state.get(key) + 1
        self.state.put(key, beat)
        self.emit(key, at // SECOND, beat)
        self.timers.at(key, at + MINUTE)


class Marks(BlockBolt):
    """A vectorised bolt, with a key of two fields: a timer a minute after each click."""

    kind = Kind.KEYED
    outputs = {"user": str, "price": int, "at": int}

    def process_block(self, batch) -> None:
        keys = key_values([batch.column(name) for name in ("user", "price")])
        with self.state.working(keys) as values:
            for key in keys:
                values[key] = values.get(key, 0) + 1
        for key, at in zip(keys, batch.column("at").to_pylist(), strict=True):
            self.timers.at(key, (at + 60) * SECOND, str(at))

    def process_timer(self, key, at, name) -> None:
        if self.state.get(key) is not None:
            self.emit(self.make_batch([[key[0]], [key[1]], [at // SECOND - 60]]))


class Hours(Bolt):
    """One state for all: how many clicks there were when each ten minutes were over."""

    kind = Kind.GLOBAL
    outputs = {"at": int, "n": int}

    def process(self, t) -> None:
        ten = t.at // 600
        counts = self.state.get("counts", {})
        counts[str(ten)] = counts.get(str(ten), 0) + 1
        self.state.put("counts", counts)
        self.timers.at("counts", (ten + 1) * 10 * MINUTE, str(ten))

    def process_timer(self, key, at, name) -> None:
        counts = self.state.get(key)
        self.emit(at // SECOND, counts.pop(name))
        self.state.put(key, counts)


def clicks(bolt: Any, *key: str, degree: int = 2, order: str | None = None) -> Topology:
    builder = TopologyBuilder("timers")
    fields = {"at": int, "user": str, "price": int}
    time = event_time("at", delay=DELAY)
    builder.add_spout("clicks", items([]), fields=fields, time=time)
    reads = builder.add_bolt("timed", bolt, degree=degree)
    reads.fields("clicks", *key) if key else reads.global_("clicks")
    builder.add_bolt("out", nowhere(), order=order).global_("timed")
    return builder.build()


def minutes() -> list[tuple[Any, ...]]:
    found = in_windows(60, 60)
    return [(user, start, len(p), sum(p)) for (user, start), p in sorted(found.items())]


def per_user() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(lambda: {"all": 0})
    for _, user, _ in CLICKS:
        found[user]["all"] += 1
    return dict(found)


def decided() -> list[tuple[Any, ...]]:
    found: dict[tuple[str, int], bool] = {}
    for at, user, price in CLICKS:
        found[user, at // 60] = price % 2 == 0
    return sorted((user, (minute + 1) * 60) for (user, minute), even in found.items() if even)


def beats() -> list[tuple[Any, ...]]:
    """All until the end of the input, and one that was waiting then."""
    last = max(at for at, _, _ in CLICKS) - DELAY
    first: dict[str, int] = {}
    for at, user, _ in CLICKS:
        first.setdefault(user, at)
    made = []
    for user, start in first.items():
        count = (last - start) // 60 + 2
        made += [(user, start + 60 * beat, beat + 1) for beat in range(count)]
    return made


def tens() -> list[tuple[int, int]]:
    found: dict[int, int] = defaultdict(int)
    for at, _, _ in CLICKS:
        found[at // 600 * 600 + 600] += 1
    return sorted(found.items())


class Silent(Bolt):
    """Says when nothing has come from a sensor for ten seconds by the clock."""

    kind = Kind.KEYED
    outputs = {"sensor": str, "at": int, "n": int}

    def process(self, t) -> None:
        self.state.put(t.sensor, self.state.get(t.sensor, 0) + 1)
        self.timers.after(t.sensor, "10 s")

    def process_timer(self, key, at, name) -> None:
        self.emit(key, round(self.context.clock.now()), self.state.get(key))


class Every(Bolt):
    """Speaks every five seconds after the first tuple of a key, until it is told to stop."""

    kind = Kind.KEYED
    outputs = {"sensor": str, "at": int}

    def process(self, t) -> None:
        if t.stop:
            self.timers.cancel(t.sensor)
        else:
            self.timers.after(t.sensor, 5)

    def process_timer(self, key, at, name) -> None:
        self.emit(key, at // SECOND)
        self.timers.after(key, 5)


def some(names: str) -> list[tuple[str, bool]]:
    return [(name, False) for name in names]


def sensors(bolt: Bolt) -> Topology:
    builder = TopologyBuilder("sensors")
    builder.add_spout("values", items([]), fields={"sensor": str, "stop": bool})
    builder.add_bolt("timed", bolt, degree=2).fields("values", "sensor")
    builder.add_bolt("out", nowhere()).global_("timed")
    return builder.build()


class LateCalls(Bolt):
    """Calls each tuple when it is ten seconds old, and says what the clock was then."""

    kind = Kind.KEYED
    outputs = {"key": int, "at": int, "clock": int}

    def process(self, t) -> None:
        self.timers.at(t.key, (t.at + 10) * SECOND, str(t.at))

    def process_timer(self, key, at, name) -> None:
        self.emit(key, at // SECOND, round(self.context.clock.now()))


def two_sources(idle: int | None) -> Topology:
    builder, fields = TopologyBuilder("silence"), {"at": int, "key": int}
    builder.add_spout("busy", items([]), fields=fields, time="at")
    silent = event_time("at", idle=idle)
    builder.add_spout("silent", items([]), fields=fields, time=silent)
    reads = builder.add_bolt("timed", LateCalls(), degree=2)
    reads.fields("busy", "key").fields("silent", "key")
    builder.add_bolt("out", nowhere()).global_("timed")
    return builder.build()


BUSY_AND_SILENT = {
    "busy": [(0, 1), (10, 2), (20, 1), (30, 2), PAUSE(60)],
    "silent": [(0, 3), PAUSE(60)],
}


CASES = [
    Case(
        "timers at the ends of minutes make windows",
        lambda: clicks(Minutes(), "user"),
        {"clicks": CLICKS},
        (InKeyOrder("out", 0, minutes()), TableIs("clicks", per_user())),
    ),
    Case(
        "timers that are taken back are not called",
        lambda: clicks(Undecided(), "user", degree=3),
        {"clicks": CLICKS},
        (InKeyOrder("out", 0, decided()),),
    ),
    Case(
        "timers that set timers",
        lambda: clicks(Beats(), "user"),
        {"clicks": CLICKS},
        (InKeyOrder("out", 0, beats()),),
    ),
    Case(
        "timers of a vectorised bolt with a key of two fields",
        lambda: clicks(Marks(), "user", "price", degree=3),
        {"clicks": CLICKS},
        (AnyOrder("out", sorted({(user, price, at) for at, user, price in CLICKS})),),
    ),
    Case(
        "timers of a global bolt come in the order of time",
        lambda: clicks(Hours(), degree=1, order="total"),
        {"clicks": CLICKS},
        (Exactly("out", tens()),),
    ),
    Case(
        "timers by the clock, with nothing coming in",
        lambda: sensors(Silent()),
        {
            "values": [
                *some("ab"),
                PAUSE(6),
                *some("bc"),
                PAUSE(6),
                *some("b"),
                PAUSE(30),
                *some("a"),
            ]
        },
        (InKeyOrder("out", 0, [("a", 10, 1), ("b", 22, 3), ("c", 16, 1)]),),
        needs=frozenset([CLOCK]),
    ),
    Case(
        "timers by the clock that set the next",
        lambda: sensors(Every()),
        {
            "values": [
                *some("a"),
                PAUSE(12),
                *some("b"),
                PAUSE(4),
                ("a", True),
                PAUSE(8),
                *some("c"),
            ]
        },
        (InKeyOrder("out", 0, [("a", 5), ("a", 10), ("a", 15), ("b", 17), ("b", 22)]),),
        needs=frozenset([CLOCK]),
    ),
    Case(
        "timers go on when a source is silent for too long",
        lambda: two_sources(5),
        BUSY_AND_SILENT,
        (AnyOrder("out", [(1, 10, 5), (3, 10, 5), (2, 20, 5), (1, 30, 5), (2, 40, 60)]),),
        needs=frozenset([CLOCK]),
    ),
    Case(
        "timers wait for a source that may be silent",
        lambda: two_sources(None),
        BUSY_AND_SILENT,
        (AnyOrder("out", [(1, 10, 60), (3, 10, 60), (2, 20, 60), (1, 30, 60), (2, 40, 60)]),),
        needs=frozenset([CLOCK]),
    ),
]
