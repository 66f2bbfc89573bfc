"""The steps of the queries that cost most, as pure functions on columns.

Streaming operators call them on the rows of a block, or of a window. Rows come sorted where that
is said; :func:`sort_rows` sorts. Definitions are those of :mod:`.queries`.

>>> tickets, items = np.array([7, 7, 7, 8]), np.array([1, 2, 5, 2])
>>> a, b = pairs(tickets, items)
>>> list(zip(a.tolist(), b.tolist()))
[(1, 2), (1, 5), (2, 5)]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.workloads.tpcxbb.drawing import Numbers

Mask = npt.NDArray[np.bool_]

#: Bits of a number that can be sorted: one is the sign.
_BITS = 63
#: Counts up to which a top list is found by tallying them.
_TALLIED = 1 << 12


# --- sorting --------------------------------------------------------------------------------------


def sort_rows(*columns: Numbers) -> tuple[Numbers, ...]:
    """Sort rows by their values, the first column first.

    >>> [column.tolist() for column in sort_rows(np.array([2, 1, 2]), np.array([5, 9, 4]))]
    [[1, 2, 2], [9, 4, 5]]
    """
    if not len(columns[0]):
        return columns
    lows = [int(column.min()) for column in columns]
    sizes = [(int(c.max()) - low).bit_length() for c, low in zip(columns, lows, strict=True)]
    if sum(sizes) > _BITS:
        rows = np.lexsort(columns[::-1])
        return tuple(column[rows] for column in columns)
    # One number per row is sorted several times quicker than rows are by their columns.
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column, low, size in zip(columns, lows, sizes, strict=True):
        codes <<= size
        codes |= column - np.int64(low)
    codes.sort()
    found = []
    for low, size in zip(reversed(lows), reversed(sizes), strict=True):
        found.append((codes & ((1 << size) - 1)) + np.int64(low))
        codes >>= size
    return tuple(reversed(found))


def starts(*columns: Numbers) -> Mask:
    """Mark the rows that differ from the row before; sorted by these columns, groups begin there.

    >>> starts(np.array([1, 1, 2]), np.array([3, 3, 3])).tolist()
    [True, False, True]
    """
    marks = np.ones(len(columns[0]), dtype=np.bool_)
    if len(marks):
        marks[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        marks[1:] |= column[1:] != column[:-1]
    return marks


# --- pairs: Q1 and Q2 -----------------------------------------------------------------------------


def baskets(groups: Numbers, items: Numbers) -> tuple[Numbers, Numbers]:
    """Sort rows by group and item, and keep each item once per group.

    >>> [column.tolist() for column in baskets(np.array([1, 0, 1, 1]), np.array([7, 5, 6, 7]))]
    [[0, 1, 1], [5, 6, 7]]
    """
    groups, items = sort_rows(groups, items)
    kept = starts(groups, items)
    return groups[kept], items[kept]


def pairs(groups: Numbers, items: Numbers) -> tuple[Numbers, Numbers]:
    """Give all pairs of rows of the same group, the earlier row first.

    Groups stand together; the items of a group are in order, each once, so that a < b.
    """
    firsts = np.flatnonzero(starts(groups))
    lengths = np.diff(firsts, append=len(groups))
    rows = np.arange(len(groups))
    # A row is the first of as many pairs as there are rows behind it in its group.
    behind = np.repeat(firsts + lengths, lengths) - rows - 1
    before = np.cumsum(behind) - behind
    second = np.arange(int(behind.sum())) + np.repeat(rows + 1 - before, behind)
    return np.repeat(items, behind), items[second]


def counted_pairs(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Give the different pairs in order, and how often each occurs; numbers are 0 to 2**31 - 1.

    >>> [column.tolist() for column in counted_pairs(np.array([5, 3, 5]), np.array([6, 4, 6]))]
    [[3, 5], [4, 6], [1, 2]]
    """
    size = int(b.max()).bit_length() if len(b) else 0
    codes = (a << size) | b
    if len(a) and int(a.max()).bit_length() + size <= 32:
        codes = codes.astype(np.uint32)  # sorted almost twice as quickly
    codes.sort()
    firsts = np.flatnonzero(starts(codes))
    found = codes[firsts].astype(np.int64)
    return found >> size, found & ((1 << size) - 1), np.diff(firsts, append=len(codes))


def top(counts: Numbers, size: int) -> Numbers:
    """Give the rows with the highest counts, the highest first; of equal ones the first rows.

    >>> top(np.array([1, 2, 3, 2]), 2).tolist()
    [2, 1]
    """
    least = _least(counts, size)
    above, level = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
    above = above[np.argsort(-counts[above], kind="stable")]
    return np.concatenate([above, level])[:size]


def _least(counts: Numbers, size: int) -> int:
    """Give a count that enough rows reach; most often only few have more, which must be sorted."""
    if len(counts) <= size:
        return int(counts.min(initial=0))
    # Most counts are small, and many of them equal: tallying is far quicker than sorting.
    reached = np.bincount(np.minimum(counts, _TALLIED))[::-1].cumsum()[::-1]
    return int(np.flatnonzero(reached >= size)[-1])


# --- sessions: Q2 and Q4 --------------------------------------------------------------------------


def cut_sessions(users: Numbers, times: Numbers, timeout: int) -> Mask:
    """Mark the rows that begin a session; rows are sorted by user and time.

    >>> cut_sessions(np.array([1, 1, 1, 2]), np.array([0, 3600, 7201, 7201]), 3600).tolist()
    [True, False, True, True]
    """
    marks = starts(users)
    marks[1:] |= times[1:] - times[:-1] > timeout
    return marks


@dataclass(frozen=True)
class Visits:
    """Sessions: how many pages each has, and whether there are a cart and a check-out."""

    pages: Numbers
    cart: Mask
    order: Mask

    @property
    def abandoned(self) -> Mask:
        """Those with a cart and without a check-out."""
        return self.cart & ~self.order


def visits(begins: Mask, cart: Mask, order: Mask) -> Visits:
    """Sum up sessions, given which rows begin one, and show a cart or a check-out.

    >>> no, yes = False, True
    >>> begins, cart, order = ([yes, no, yes], [no, yes, no], [no, no, yes])
    >>> found = visits(np.array(begins), np.array(cart), np.array(order))
    >>> found.pages.tolist(), found.abandoned.tolist()
    ([2, 1], [True, False])
    """
    firsts = np.flatnonzero(begins)
    pages = np.diff(firsts, append=len(begins))
    if not len(firsts):
        return Visits(pages, np.zeros(0, np.bool_), np.zeros(0, np.bool_))
    return Visits(
        pages, np.logical_or.reduceat(cart, firsts), np.logical_or.reduceat(order, firsts)
    )


# --- the last items viewed: Q3 --------------------------------------------------------------------


@dataclass(frozen=True)
class Clicks:
    """Views and sales, sorted by user, time, whether it is a sale, and item."""

    users: Numbers
    times: Numbers
    items: Numbers
    sold: Mask


def last_viewed(clicks: Clicks, last: int, within: int) -> tuple[Numbers, Numbers]:
    """Give (bought, viewed) for the last views of each sale, the latest first.

    >>> users, times = np.array([1, 1, 1]), np.array([0, 5, 10])
    >>> clicks = Clicks(users, times, np.array([7, 8, 9]), np.array([False, False, True]))
    >>> [column.tolist() for column in last_viewed(clicks, last=5, within=10)]
    [[9, 9], [8, 7]]
    """
    views, sales = np.flatnonzero(~clicks.sold), np.flatnonzero(clicks.sold)
    if not len(views) or not len(sales):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    # How many views are before a sale, of any user: those looked for are the last of these.
    ends = np.searchsorted(views, sales)
    at = ends[:, None] - 1 - np.arange(last)
    rows = views[np.maximum(at, 0)]
    good = (at >= 0) & (clicks.users[rows] == clicks.users[sales][:, None])
    good &= clicks.times[sales][:, None] - clicks.times[rows] <= within
    which, _ = np.nonzero(good)
    return clicks.items[sales[which]], clicks.items[rows[good]]


# --- trends: Q15 ----------------------------------------------------------------------------------


def day_sums(categories: Numbers, days: Numbers, paid: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Add up what was paid per category and day; give categories, days and sums, in order.

    Sums are exact up to 2**53, that is 90 trillion in cents.

    >>> twos, eights = np.array([2, 2]), np.array([8, 8])
    >>> [column.tolist() for column in day_sums(twos, eights, np.array([5, 6]))]
    [[2], [8], [11]]
    """
    if not len(days):
        return categories, days, paid
    low, high, day = int(categories.min()), int(categories.max()), int(days.min())
    width = int(days.max()) - day + 1
    cells = (categories - low) * width + (days - day)
    size = (high - low + 1) * width
    sums = np.bincount(cells, paid, size)
    seen = np.flatnonzero(np.bincount(cells, minlength=size))
    return seen // width + low, seen % width + day, sums[seen].astype(np.int64)


def slope(days: Numbers, sums: Numbers) -> float | None:
    """Fit a line to different days and their sums; its sign is exact. None for less than two days.

    >>> slope(np.array([3, 4, 6]), np.array([10, 8, 4]))
    -2.0
    """
    # Whole numbers of any size.
    x, y = days.tolist(), sums.tolist()
    count, total = len(x), sum(x)
    below = count * sum(each * each for each in x) - total * total
    if below <= 0:
        return None
    above = count * sum(a * b for a, b in zip(x, y, strict=True)) - total * sum(y)
    return above / below
