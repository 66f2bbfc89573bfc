"""Clicks on the pages of a shop: people come, look at some pages, and leave.

>>> clicks = list(visits(VisitSettings(clicks=20, users=2)))
>>> len(clicks), {user for user, page, at in clicks} <= {"user-000", "user-001"}
(20, True)
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from thalweg.workloads.settings import check_setting, read_settings

PAGES = ("home", "search", "offers", "product", "reviews", "basket", "checkout", "help")
Click = tuple[str, str, datetime]


@dataclass(frozen=True)
class VisitSettings:
    """What the stream of clicks looks like."""

    #: How many clicks, of how many users.
    clicks: int = 20_000
    users: int = 200
    #: Seconds by which a click may come later than it was made.
    late: float = 120.0
    seed: int = 7

    def __post_init__(self) -> None:
        for name, least in (("clicks", 0), ("users", 1), ("late", 0), ("seed", 0)):
            value = getattr(self, name)
            check_setting("visits", name, value, value >= least, f"at least {least}")

    @classmethod
    def read(cls, values: Mapping[str, str]) -> VisitSettings:
        """Read settings given as text, as with ``--set clicks=1000``."""
        return read_settings(cls, values)


def visits(settings: VisitSettings) -> Iterator[Click]:
    """Make clicks as they arrive: user, page, and when the click was made."""
    chance = random.Random(settings.seed)  # noqa: S311 (the same clicks every time)
    underway: list[tuple[datetime, int, Click]] = []
    for number, click in enumerate(_made(settings, random.Random(settings.seed + 1))):  # noqa: S311 (as above)
        arrives = click[2] + timedelta(seconds=settings.late * chance.random())
        heapq.heappush(underway, (arrives, number, click))
        while underway and underway[0][0] <= click[2]:
            yield heapq.heappop(underway)[2]
    while underway:
        yield heapq.heappop(underway)[2]


def _made(settings: VisitSettings, chance: random.Random) -> Iterator[Click]:
    """Make clicks in the order of time."""
    at = datetime(2026, 3, 2, 8)  # noqa: DTZ001 (a wall clock is all a session needs)
    present: list[str] = []
    for _ in range(settings.clicks):
        at += timedelta(seconds=chance.expovariate(1 / 40))
        if not present or chance.random() < 0.2:
            present.append(f"user-{chance.randrange(settings.users):03}")
        user = chance.choice(present)
        yield user, chance.choice(PAGES), at
        if chance.random() < 0.24:
            present.remove(user)
