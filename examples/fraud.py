"""Fraud by phone number: who was in two cities, and cannot have travelled that fast?

Shows: the five steps of figure 1 of the document on ordered processing, with calls filtered,
projected, grouped by number, where the order of a number's calls matters and is kept, filtered
again, and counted in windows of event time. Try:

    thalweg run examples/fraud.py
    thalweg run examples/fraud.py --on spark
    thalweg run examples/fraud.py --set area=17 --set limit=900
    thalweg run examples/fraud.py --set calls=2_000_000 --set phones=100_000
    thalweg describe examples/fraud.py

Settings: area (01 to 24) and limit (km/h); calls, days, phones, copied (the share of phones that
were copied), seed.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow.compute as pc

import thalweg as tw
from thalweg.workloads.boards import board, curve, headed
from thalweg.workloads.calls import CallSettings, area_of, phone_calls
from thalweg.workloads.cities import kilometres

SEEN = {"phone": str, "at": datetime, "city": str}
TRIP = {"phone": str, "at": datetime, "origin": str, "city": str, "km": float, "kmh": float}


@dataclass
class Whereabouts:
    """Where a phone was seen last; one for each number."""

    at: datetime | None = None
    city: str = ""

    def process(self, phone: str, at: datetime, city: str) -> tuple[Any, ...]:
        """Compare with the last time: how far is it, and how fast must that have been?"""
        origin, since = self.city or city, at - (self.at or at)
        self.at, self.city = at, city
        km = kilometres(origin, city)
        hours = max(since, timedelta(seconds=1)) / timedelta(hours=1)
        return phone, at, origin, city, km, km / hours


def fraud(settings: Mapping[str, str]) -> tw.Flow:
    """Describe the flow from calls to the boards."""
    given = {**settings}
    area, limit = given.pop("area", "01"), float(given.pop("limit", 1000))
    of_area = pc.MatchSubstringOptions(area)

    def seen(t: Any) -> list[tuple[Any, ...]]:
        """Give who of the two is of the area, and where that was."""
        both = ((t.caller, t.at, t.caller_city), (t.callee, t.at, t.callee_city))
        return [one for one in both if one[0].startswith(area)]

    flow = tw.Flow("fraud")
    trips = (
        flow.source("calls", phone_calls(CallSettings.read(given)), degree=1, time="at")
        .filter(
            tw.col("caller").call("starts_with", options=of_area)
            | tw.col("callee").call("starts_with", options=of_area),
            name="of_area",
        )
        .flat_map(seen, fields=SEEN, name="seen")
        .key_by("phone")
        .stateful(Whereabouts, fields=TRIP, name="trips", degree=4)
        .filter(tw.col("kmh") > limit, name="too_fast")
    )
    trips.sink("phones", Phones(area_of(area)), order="total")
    hourly = trips.window(tw.tumbling("1 h")).aggregate("by_hour", cases=tw.agg.count())
    hourly.sink("hours", Hours())
    return flow


class Phones(tw.Bolt):
    """Counts cases of each number, and prints the worst numbers and the fastest trips."""

    def __init__(self, home: str) -> None:
        self.home = home

    def prepare(self, context: tw.TaskContext) -> None:
        self.cases: Counter[str] = Counter()
        self.trips: list[tuple[float, str]] = []

    def process(self, t: Any) -> None:
        self.cases[t.phone] += 1
        way = f"{t.origin} - {t.city}"
        text = f"  {t.at:%a %H:%M}  {t.phone}  {way:<22} {t.km:>6,.0f} km  {t.kmh:>9,.0f} km/h"
        self.trips = sorted([*self.trips, (-t.kmh, text)])[:5]

    def process_end(self) -> None:
        worst = sorted(self.cases.items(), key=lambda pair: (-pair[1], pair[0]))[:10]
        print(board(f"Numbers of {self.home} in two places", worst))
        print("\n".join([headed("Fastest trips"), *(text for _, text in self.trips)]), flush=True)


class Hours(tw.Bolt):
    """Keeps how many cases each hour had, and draws them day by day."""

    def prepare(self, context: tw.TaskContext) -> None:
        self.days: dict[date, Counter[int]] = defaultdict(Counter)

    def process(self, t: Any) -> None:
        self.days[t.start.date()][t.start.hour] = t.cases

    def process_end(self) -> None:
        lines = [
            f"  {day:%a %d %b}  {curve([hours[h] for h in range(24)])}  {hours.total():>4} cases"
            for day, hours in sorted(self.days.items())
        ]
        ruler = f"  {'':10}  0     6     12    18"
        print("\n".join([headed("Cases by hour"), *lines, ruler]), flush=True)


if __name__ == "__main__":
    fraud({}).run()
