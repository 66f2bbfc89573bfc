"""Windows of event time: the same results everywhere, as long as nothing comes too late."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from statistics import mean, variance
from typing import Any

from conformance.harness import AnyOrder, Case, Exactly, InKeyOrder, to_sink
from thalweg.anyvalues import anything
from thalweg.config import OrderName
from thalweg.connectors.memory import items
from thalweg.eventtime import event_time
from thalweg.flow import Flow, Stream
from thalweg.topology import Topology
from thalweg.windows import agg
from thalweg.windows.specs import landmark, last_rows, rows, session, sliding, tumbling

Click = tuple[int, str, int]
DELAY = 30


def clicks(count: int = 240, seed: int = 3) -> list[Click]:
    """Make clicks of some users, each up to half a minute late, in bursts."""
    draw = random.Random(seed)
    times, now = [], 0
    for _ in range(count):
        now += draw.choice([0, 1, 1, 2, 5, 40])
        times.append(now)
    order = sorted(times, key=lambda at: at + draw.uniform(0, DELAY - 1))
    return [(at, f"u{draw.randrange(5)}", draw.randrange(100)) for at in order]


CLICKS = clicks()


def source(name: str = "clicks", order: OrderName = "sender") -> Stream:
    flow = Flow("windows", order)
    fields = {"at": int, "user": str, "price": int}
    time = event_time("at", delay=DELAY)
    return flow.source(name, items(CLICKS), fields=fields, time=time)


def at(seconds: float) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)


def in_windows(size: int, every: int) -> dict[tuple[str, int], list[int]]:
    """Put prices into windows by going through all of them: key, start."""
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for when, user, price in CLICKS:
        start = when // every * every
        while start > when - size:
            found[user, start].append(price)
            start -= every
    return found


def in_sessions(gap: int) -> list[tuple[str, int, int, list[int]]]:
    found = []
    for user in sorted({user for _, user, _ in CLICKS}):
        own = sorted((when, price) for when, u, price in CLICKS if u == user)
        run = [own[0]]
        for click in own[1:]:
            if click[0] - run[-1][0] >= gap:
                found.append((user, run))
                run = []
            run.append(click)
        found.append((user, run))
    return [(u, run[0][0], run[-1][0] + gap, [p for _, p in run]) for u, run in found]


def built(make: Callable[[Stream], Stream]) -> Callable[[], Topology]:
    return lambda: to_sink(make(source()))


def totals(size: int, every: int) -> Iterable[tuple[Any, ...]]:
    for (user, start), prices in in_windows(size, every).items():
        yield user, at(start), at(start + size), len(prices), sum(prices), max(prices)


def everything() -> list[tuple[Any, ...]]:
    found: dict[int, int] = defaultdict(int)
    for when, _, price in CLICKS:
        found[when // 60 * 60] += price
    return [(at(start), at(start + 60), total) for start, total in found.items()]


def since_the_beginning() -> list[tuple[Any, ...]]:
    made = []
    for user in {user for _, user, _ in CLICKS}:
        own = [(when, price) for when, u, price in CLICKS if u == user]
        for end in sorted({when // 120 * 120 + 120 for when, _ in own}):
            made.append((user, at(0), at(end), sum(p for when, p in own if when < end)))
    return made


def by_rows(size: int, every: int) -> list[tuple[Any, ...]]:
    made = []
    for user in sorted({user for _, user, _ in CLICKS}):
        own = [price for _, u, price in CLICKS if u == user]
        for end in range(every, len(own) + 1, every):
            made.append((user, max(0, end - size), end, own[max(0, end - size) : end]))
    return made


def in_total_order(size: int, every: int) -> Topology:
    windows = source(order="total").key_by("user").window(rows(size, every=every))
    return to_sink(windows.aggregate(prices=agg.values("price"), degree=3))


def one_by_one(size: int, every: int) -> list[tuple[Any, ...]]:
    """Let clicks come one by one: each may complete a window of its user."""
    came: dict[str, list[int]] = defaultdict(list)
    made = []
    for _, user, price in CLICKS:
        own = came[user]
        own.append(price)
        if len(own) % every == 0:
            made.append((user, max(0, len(own) - size), len(own), own[-size:]))
    return made


def hours_of_minutes() -> list[tuple[Any, ...]]:
    minutes: dict[tuple[str, int], int] = defaultdict(int)
    for when, user, price in CLICKS:
        minutes[user, when // 60] += price
    best: dict[tuple[str, int], int] = {}
    for (user, minute), total in minutes.items():
        best[user, minute // 10] = max(best.get((user, minute // 10), 0), total)
    return [(u, at(ten * 600), at(ten * 600 + 600), n) for (u, ten), n in best.items()]


def changes(size: int, every: int, relation: str) -> list[tuple[Any, ...]]:
    """Compare relations step by step: the users' totals at each end of a window."""
    found = {window: sum(prices) for window, prices in in_windows(size, every).items()}
    starts = [start for _, start in found]
    before: dict[str, int] = {}
    made = []
    for start in range(min(starts), max(starts) + 2 * every, every):
        now = {user: total for (user, begin), total in found.items() if begin == start}
        told, other = (now, before) if relation == "istream" else (before, now)
        rows = told.items() - other.items()
        made += [(user, at(start), at(start + size), total) for user, total in rows]
        before = now
    return made


def sessions_per_step(gap: int, step: int) -> list[tuple[Any, ...]]:
    found: dict[int, int] = defaultdict(int)
    for _, _, end, prices in in_sessions(gap):
        found[(end * 1_000_000 - 1) // (step * 1_000_000) * step] += len(prices)
    return [(at(start), at(start + step), clicks) for start, clicks in found.items()]


ORDERS = [(when + 3, user, price) for when, user, price in clicks(60, seed=11)]


def joined(make: Callable[[Stream, Stream], Stream], who: str = "user") -> Stream:
    stream = source()
    fields = {"at": int, who: str, "price": int}
    time = event_time("at", delay=DELAY)
    orders = stream.flow.source("orders", items(ORDERS), fields=fields, time=time)
    return make(stream, orders)


def near(apart: int, lonely: bool = False) -> list[tuple[Any, ...]]:
    made = []
    for when, user, price in CLICKS:
        found = [o for o in ORDERS if o[1] == user and abs(o[0] - when) <= apart]
        made += [(when, user, price, o[0], o[2]) for o in found]
        if lonely and not found:
            made.append((when, user, price, None, None))
    return made


def before(most: int | None = None) -> list[tuple[Any, ...]]:
    made = []
    for when, user, price in CLICKS:
        found = [o for o in ORDERS if o[1] == user and o[0] <= when]
        last = max(enumerate(found), key=lambda pair: (pair[1][0], pair[0]), default=(0, None))[1]
        if last is not None and (most is None or when - last[0] <= most):
            made.append((when, user, price, last[0], last[2]))
        elif most is None:
            made.append((when, user, price, None, None))
    return made


def statistics_by_hand() -> list[tuple[Any, ...]]:
    """Make by plain loops what the aggregates make; of so few values sketches are exact."""
    made = []
    for (user, start), prices in in_windows(300, 300).items():
        top = sorted(set(prices), key=lambda price: (-prices.count(price), price))[:2]
        spread = variance(prices) if len(prices) > 1 else None
        figures = (mean(prices), spread, None if spread is None else math.sqrt(spread))
        median = float(sorted(prices)[len(prices) // 2])
        last = (min(prices), top, len(set(prices)), [median], "".join(map(str, prices)))
        made.append((user, at(start), *figures, *last))
    return made


STATISTICS = {
    "mean": agg.mean("price"),
    "variance": agg.variance("price"),
    "deviation": agg.deviation("price"),
    "least": agg.min("price"),
    "top": agg.top("price", 2),
    "different": agg.distinct("price"),
    "median": agg.quantiles("price", [0.5]),
    "joined": agg.fold("price", str, lambda text, price: text + str(price)),
}


def values_of_sessions() -> list[tuple[Any, ...]]:
    """Give the prices of each session in the order in which they came."""
    return [
        (user, [price for when, u, price in CLICKS if u == user and first <= when < end])
        for user, first, end, _ in in_sessions(35)
    ]


def with_digit(counts: dict[str, int], price: int) -> dict[str, int]:
    """Count prices by their last digit: windows have other keys than those before them."""
    digit = str(price % 10)
    return counts | {digit: counts.get(digit, 0) + 1}


def folded() -> list[tuple[Any, ...]]:
    made = []
    for (user, start), prices in in_windows(60, 60).items():
        digits = Counter(str(price % 10) for price in prices)
        made.append((user, at(start), sorted(digits.items()), sum(prices) / 2))
    return [(user, start, str(digits), half) for user, start, digits, half in made]


def means_of_panes() -> list[tuple[Any, ...]]:
    return [
        (user, at(start), mean(prices), variance(prices) if len(prices) > 1 else None)
        for (user, start), prices in in_windows(60, 10).items()
    ]


CASES = [
    Case(
        "what a function makes of windows may be of a declared type",
        built(
            lambda s: (
                s.key_by("user")
                .window(tumbling("1 min"))
                .aggregate(
                    digits=agg.fold("price", dict, with_digit, anything),
                    half=agg.fold("price", int, lambda total, price: total + price / 2, float),
                    degree=2,
                )
                .map(
                    lambda user, start, end, digits, half: (
                        (user, start, str(sorted(digits.items())), half)
                    ),
                    fields=["user", "start", "digits", "half"],
                )
            )
        ),
        {},
        (AnyOrder("out", folded()),),
    ),
    Case(
        "means of whole numbers are exact, however panes and blocks are",
        built(
            lambda s: (
                s.key_by("user")
                .window(sliding("1 min", every="10 s"))
                .aggregate(mean=agg.mean("price"), variance=agg.variance("price"), degree=2)
                .select("user", "start", "mean", "variance")
            )
        ),
        {},
        (AnyOrder("out", means_of_panes()),),
    ),
    Case(
        "what is made of the tuples of a window",
        built(
            lambda s: (
                s.key_by("user")
                .window(tumbling("5 min"))
                .aggregate(**STATISTICS, degree=2)
                .select("user", "start", *STATISTICS)
            )
        ),
        {},
        (AnyOrder("out", statistics_by_hand()),),
    ),
    Case(
        "values of sessions as they came",
        built(
            lambda s: (
                s.key_by("user")
                .window(session("35 s"))
                .aggregate(prices=agg.values("price"), degree=2)
                .select("user", "prices")
            )
        ),
        {},
        (AnyOrder("out", values_of_sessions()),),
    ),
    Case(
        "tumbling windows of each key",
        built(
            lambda s: (
                s.key_by("user")
                .window(tumbling("1 min"))
                .aggregate(n=agg.count(), total=agg.sum("price"), most=agg.max("price"), degree=2)
            )
        ),
        {},
        (AnyOrder("out", list(totals(60, 60))),),
    ),
    Case(
        "sliding windows share their panes",
        built(
            lambda s: (
                s.key_by("user")
                .window(sliding("1 min", every="20 s"))
                .aggregate(n=agg.count(), total=agg.sum("price"), most=agg.max("price"), degree=3)
            )
        ),
        {},
        (AnyOrder("out", list(totals(60, 20))),),
    ),
    Case(
        "sliding windows of many panes",
        built(
            lambda s: (
                s.key_by("user")
                .window(sliding("30 min", every="30 s"))
                .aggregate(n=agg.count(), total=agg.sum("price"), most=agg.max("price"), degree=3)
            )
        ),
        {},
        (AnyOrder("out", list(totals(1800, 30))),),
    ),
    Case(
        "sessions end when their gap has passed",
        built(
            lambda s: (
                s.key_by("user")
                .window(session("35 s"))
                .aggregate(n=agg.count(), total=agg.sum("price"), degree=2)
            )
        ),
        {},
        (AnyOrder("out", [(u, at(a), at(b), len(p), sum(p)) for u, a, b, p in in_sessions(35)]),),
    ),
    Case(
        "windows of a whole stream",
        built(lambda s: s.window(tumbling("1 min")).aggregate(total=agg.sum("price"))),
        {},
        (AnyOrder("out", everything()),),
    ),
    Case(
        "windows since a landmark",
        built(
            lambda s: (
                s.key_by("user")
                .window(landmark("2 min"))
                .aggregate(total=agg.sum("price"), degree=2)
            )
        ),
        {},
        (InKeyOrder("out", 0, sorted(since_the_beginning(), key=lambda row: row[2])),),
    ),
    Case(
        "windows of the results of windows",
        built(
            lambda s: (
                s.key_by("user")
                .window(tumbling("1 min"))
                .aggregate(total=agg.sum("price"), degree=2)
                .key_by("user")
                .window(tumbling("10 min"))
                .aggregate(best=agg.max("total"), degree=3)
            )
        ),
        {},
        (AnyOrder("out", hours_of_minutes()),),
    ),
    Case(
        "windows of so many tuples of a key",
        built(
            lambda s: (
                s.key_by("user")
                .window(rows(6, every=4))
                .aggregate(prices=agg.values("price"), degree=2)
            )
        ),
        {},
        (InKeyOrder("out", 0, by_rows(6, 4)),),
    ),
    *(
        Case(
            f"windows of {size} tuples with every {every} in total order",
            lambda size=size, every=every: in_total_order(size, every),  # type: ignore[misc]  # as given
            {},
            (Exactly("out", one_by_one(size, every)),),
        )
        for size, every in ((3, 1), (6, 4))
    ),
    Case(
        "the last tuples of each key",
        built(
            lambda s: (
                s.key_by("user")
                .window(last_rows(3))
                .aggregate(prices=agg.values("price"), degree=3)
            )
        ),
        {},
        (InKeyOrder("out", 0, by_rows(3, 1)),),
    ),
    Case(
        "clicks and orders within a time of each other",
        lambda: to_sink(
            joined(lambda c, o: c.join_within(o, "user", within="25 s", prefix="o_", degree=2))
        ),
        {},
        (AnyOrder("out", near(25)),),
    ),
    Case(
        "clicks without an order near are told with nothing",
        lambda: to_sink(
            joined(
                lambda c, o: c.join_within(
                    o, {"user": "who"}, within="5 s", how="left", prefix="o_", degree=3
                ),
                who="who",
            )
        ),
        {},
        (AnyOrder("out", near(5, lonely=True)),),
    ),
    Case(
        "each click with the last order before it",
        lambda: to_sink(
            joined(lambda c, o: c.join_asof(o, "user", how="left", prefix="o_", degree=2))
        ),
        {},
        (AnyOrder("out", before()),),
    ),
    Case(
        "each click with the last order that is not too old",
        lambda: to_sink(
            joined(lambda c, o: c.join_asof(o, "user", within="30 s", prefix="o_", degree=2))
        ),
        {},
        (AnyOrder("out", before(30)),),
    ),
    Case(
        "what has come into the results",
        built(
            lambda s: (
                s.key_by("user")
                .window(sliding("1 min", every="20 s"), relation="istream")
                .aggregate(total=agg.sum("price"), degree=2)
            )
        ),
        {},
        (AnyOrder("out", changes(60, 20, "istream")),),
    ),
    Case(
        "what is no more in the results",
        built(
            lambda s: (
                s.key_by("user")
                .window(sliding("1 min", every="20 s"), relation="dstream")
                .aggregate(total=agg.sum("price"), degree=3)
            )
        ),
        {},
        (AnyOrder("out", changes(60, 20, "dstream")),),
    ),
    Case(
        "windows of the results of sessions, which end at any time",
        built(
            lambda s: (
                s.key_by("user")
                .window(session("35 s"))
                .aggregate(n=agg.count(), degree=2)
                .window(tumbling("3 s"))
                .aggregate(clicks=agg.sum("n"))
            )
        ),
        {},
        (AnyOrder("out", sessions_per_step(35, 3)),),
    ),
]
