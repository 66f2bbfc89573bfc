"""Which tuples a task of a source gives: all tasks take turns, with an end or without."""

from __future__ import annotations

import itertools
from collections.abc import Iterator


def turns(task: int, degree: int, count: int | None) -> Iterator[int]:
    """Give the numbers of one task: its index, and every ``degree``-th after that below ``count``.

    >>> list(turns(1, 2, 6))
    [1, 3, 5]
    >>> list(itertools.islice(turns(1, 2, None), 4))
    [1, 3, 5, 7]
    """
    return itertools.count(task, degree) if count is None else iter(range(task, count, degree))
