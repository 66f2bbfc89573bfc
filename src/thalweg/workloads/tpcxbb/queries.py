"""What the five queries ask, exactly: their constants, and every choice that was left open.

Common to all:

* The time of a row is ``date_sk * 86400 + time_sk``, in seconds since 1970-01-01.
* An answer depends on the set of rows alone, not on the order in which they come: where rows have
  equal times, their values decide.
* A row without a value that a query looks at (no user, no item, no page) does not exist for it.
  Sessions are cut of the rows that are left.
* What counts most comes first; of equal counts, the smaller items. A top list ends after so many
  rows, even between equal counts.
* What is open at the end of the stream, such as a session, ends there.

``None`` for categories, stores or items stands for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from thalweg.workloads.tpcxbb.tables import BEGIN

HOUR = 3600


@dataclass(frozen=True)
class Q1:
    """For each hour, the 100 pairs of items that were sold together most often.

    * A basket is the lines of one ticket in one hour. An item counts once in a basket, however many
      lines it has; a pair (a, b) has a < b and counts once per basket.
    * Only lines of these stores, and of items of these categories, are in baskets.
    * Hours are aligned: a line at time t is in the hour that begins at ``t // 3600 * 3600``, so
      that a line at 10:00:00 is in the hour from 10 to 11.
    * ``least``: pairs that were sold less often are left out. The public query asks for 50, but of
      all sales there ever were; in one hour every pair counts.

    Answer: ``hour`` (its first second), ``item_a``, ``item_b``, ``sold``; hours in order.
    """

    top: int = 100
    window: int = HOUR
    least: int = 1
    categories: tuple[int, ...] | None = (1, 2, 3)
    stores: tuple[int, ...] | None = (10, 20, 33, 40, 50)


@dataclass(frozen=True)
class Q2:
    """The 30 pairs of items that were viewed in the same session most often.

    * A session is a longest run of clicks of one known user, each at most ``timeout`` seconds after
      the one before: a gap of exactly 3600 s goes on, one of 3601 s begins a new session.
    * Every click that shows an item is a view, also one with a sale.
    * An item counts once in a session; a pair (a, b) has a < b and counts once per session.
    * ``item``: only pairs with this item (the public query asks for 10001); None for all pairs,
      as in the document on ordered processing.

    Answer: ``item_a``, ``item_b``, ``viewed``, over the whole stream.
    """

    top: int = 30
    timeout: int = HOUR
    item: int | None = None


@dataclass(frozen=True)
class Q3:
    """For each item bought online, the 30 items that were most often among the last 5 viewed.

    * A click of a known user with a sale is a purchase of its item; one without is a view.
    * Only views of items of these categories count, and the last 5 are the last 5 of these. A
      purchase may be of any category; ``bought`` limits it to some items (publicly: 10001).
    * The last 5 are views, not different items: one that was viewed twice counts twice.
    * They are at most ``within`` seconds before the purchase, exactly so many included. A view in
      the same second as the purchase is before it; of views in the same second, the one with the
      larger item is the later one.
    * Purchases leave the views as they are: two purchases can have the same views before them.

    Answer: ``bought``, ``viewed``, ``views``, over the whole stream; items bought in order.
    """

    top: int = 30
    last: int = 5
    within: int = 10 * 86_400
    categories: tuple[int, ...] | None = (2, 3)
    bought: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Q4:
    """How many pages visitors see, in the mean, who fill a cart and do not check out.

    * Sessions are cut as in Q2, of clicks of known users that have a page and no sale.
    * A session is abandoned if it has a page of type "dynamic" (the cart) and none of type "order"
      (the check-out), neither before nor after the cart.
    * Each click is a page, also if the same page was seen before.

    Answer: ``sessions`` (abandoned ones), ``pages`` (in these, together) and ``mean``, which is
    missing when there are none; over the whole stream.
    """

    timeout: int = HOUR


@dataclass(frozen=True)
class Q15:
    """The item categories whose sales in one store were flat or falling during a year.

    * The points of a category are its sums of ``net_paid`` per day; a day without sales has no
      point. The days are those from ``begin`` to ``end``, both included.
    * A straight line is fitted by least squares. Flat or falling means that its slope is 0 or less;
      with whole cents that is decided exactly. A category with fewer than two days has no slope.

    Answer: ``category``, ``slope`` (cents per day and day); categories in order.
    """

    store: int | None = 10
    begin: date = BEGIN
    end: date = date(2002, 9, 2)

    @property
    def days(self) -> tuple[int, int]:
        """The first and the last day, as ``date_sk``.

        >>> Q15().days
        (11567, 11932)
        """
        epoch = date(1970, 1, 1)
        return (self.begin - epoch).days, (self.end - epoch).days
