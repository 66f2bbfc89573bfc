"""The rows of ``web_clickstreams``: clicks of many visitors at the same time.

>>> clicks = ClickRows(Stream(rows=1000))
>>> clicks.make(10, 20).equals(clicks.make(0, 1000)[10:20])
True
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.workloads.tpcxbb.drawing import Bits, Numbers, Pieces, Small, below, bits
from thalweg.workloads.tpcxbb.rows import Rows
from thalweg.workloads.tpcxbb.tables import CART, CLICKS_SCHEMA, ORDER, PAGES, TYPES, Stream, grown

Mask = npt.NDArray[np.bool_]

#: 64 clicks at one place are so many sessions: 7.1 clicks in the mean.
_RUN_BITS, _SESSIONS = 6, 9
#: Seconds between two clicks of a visitor, about.
_PAUSE = 60
#: Their numbers have 32 bits.
_MOST_USERS = 2**31 - 1
#: Shares of sessions, of 32: those that buy, and those that fill a cart or buy.
_BUY, _CART = 8, 14
#: Clicks of a session that buys, at least: something, cart, check-out, sale.
_LEAST_TO_BUY = 4


class ClickRows(Rows):
    """Clicks of visitors who are there at the same time, session behind session.

    There are ``places`` for visitors. In each round each of them clicks once, in another order
    each time. A session that buys ends with cart, check-out and sale; one that only fills a cart
    has it at its last click but one. Here and there a cart is looked at as well.
    """

    schema = CLICKS_SCHEMA
    #: Ours: the public description that we have does not say.
    at_scale_1 = 6_700_000

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        # A power of 2, so that an exclusive or changes their order.
        self._bits = max(0, round(np.log2(_PAUSE * self.pace)))
        self.places = 1 << self._bits
        # So many that few come back within an hour, or sessions would not end.
        self.users = min(max(grown(100_000, stream.scale), 50 * self.places), _MOST_USERS)
        self._sessions = Pieces(1 << _RUN_BITS, _SESSIONS, stream.seed)
        self._pages = _pages()

    def _columns(self, numbers: Numbers) -> Sequence[pa.Array]:
        rounds = numbers >> self._bits
        order = self._chance(rounds, 5).view(np.int64)
        place = (numbers ^ order) & (self.places - 1)
        runs = ((rounds >> _RUN_BITS) << self._bits) | place
        row = rounds & ((1 << _RUN_BITS) - 1)
        entries = self._sessions.entries(runs, row, self._salt + 6)
        sessions = runs * _SESSIONS + self._sessions.piece(entries)
        visitor, chance = self._chance(sessions, 7), self._chance(numbers, 8)
        left = self._sessions.left(entries)
        long = left + (row - self._sessions.begin(entries)) >= _LEAST_TO_BUY - 1
        kinds, sold = _steps(visitor, chance, left, long)
        items, no_item = self._viewed(visitor, chance, sold)
        users = (below(visitor, self.users) + 1).astype(np.int32)
        return [
            *self._moments(numbers),
            pa.array(users, mask=bits(visitor, 0, 3) == 0),  # one visitor in eight is not known
            pa.array(items, mask=no_item),
            pa.array(self._pages[kinds * 64 + bits(chance, 0, 6)]),
            pa.array(sessions + 1, mask=~sold),
        ]

    def _viewed(self, visitor: Bits, chance: Bits, sold: Mask) -> tuple[Small, Mask]:
        """Draw items: half of them, and what is bought, are among a few close to each other."""
        items = self._items.draw(chance)
        # Other bits than those that say who it is.
        interest = self._items.draw(visitor << np.uint64(32)) + bits(chance, 16, 3)
        close = (bits(chance, 15, 1) == 0) | sold
        items = np.where(close, (interest - 1) % self.stream.items + 1, items).astype(np.int32)
        # One click in eight shows no item.
        return items, (bits(chance, 12, 3) == 0) & ~sold


def _steps(visitor: Bits, chance: Bits, left: Small, long: Mask) -> tuple[Numbers, Mask]:
    """Give the kind of page (0 any, 1 cart, 2 check-out) and which clicks are sales."""
    plan = bits(visitor, 3, 5)
    buys = (plan < _BUY) & long
    fills = (plan < _CART) & ~buys
    sold = buys & (left == 0)
    cart = (buys & (left == 2)) | (fills & (left == 1)) | (bits(chance, 6, 6) == 0)
    order = buys & (left <= 1)
    return np.where(order, 2, cart.astype(np.int64)), sold


def _pages() -> Small:
    """Give 64 web pages of each kind."""
    types = [TYPES[number % len(TYPES)] for number in range(PAGES)]
    kinds = [set(TYPES) - {CART, ORDER}, {CART}, {ORDER}]
    numbers = [[n + 1 for n, type_ in enumerate(types) if type_ in kind] for kind in kinds]
    return np.concatenate([np.resize(each, 64) for each in numbers]).astype(np.int32)
