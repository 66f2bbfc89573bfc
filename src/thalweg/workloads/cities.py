"""Cities, where they are, and how far it is from one to another."""

from __future__ import annotations

import math
from functools import cache

#: Degrees north and east, about.
CITIES = {
    "Lisbon": (38.7, -9.1),
    "Porto": (41.2, -8.6),
    "Madrid": (40.4, -3.7),
    "Seville": (37.4, -6.0),
    "Lyon": (45.8, 4.8),
    "Paris": (48.9, 2.4),
    "Brussels": (50.8, 4.4),
    "Antwerp": (51.2, 4.4),
    "Rotterdam": (51.9, 4.5),
    "Hamburg": (53.6, 10.0),
    "Berlin": (52.5, 13.4),
    "Munich": (48.1, 11.6),
    "Vienna": (48.2, 16.4),
    "Prague": (50.1, 14.4),
    "Warsaw": (52.2, 21.0),
    "Zurich": (47.4, 8.5),
    "Milan": (45.5, 9.2),
    "Naples": (40.9, 14.3),
    "Athens": (38.0, 23.7),
    "Dublin": (53.3, -6.3),
    "Glasgow": (55.9, -4.3),
    "Oslo": (59.9, 10.7),
    "Helsinki": (60.2, 24.9),
    "Riga": (56.9, 24.1),
}
_RADIUS = 6371.0


@cache
def kilometres(here: str, there: str) -> float:
    """Give the distance of two cities as the crow flies.

    >>> kilometres("Lisbon", "Lisbon"), round(kilometres("Lisbon", "Porto"), -1)
    (0.0, 280.0)
    """
    (north, east), (to_north, to_east) = CITIES[here], CITIES[there]
    first, second = math.radians(north), math.radians(to_north)
    across = math.radians(to_east - east)
    half = (
        math.sin((second - first) / 2) ** 2
        + math.cos(first) * math.cos(second) * math.sin(across / 2) ** 2
    )
    return 2 * _RADIUS * math.asin(math.sqrt(half))
