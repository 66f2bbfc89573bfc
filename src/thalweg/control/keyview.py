"""Which keys are frequent, which occur together, and where they are: for people who look on.

Each look at the pairs takes time, so the next one waits until it costs a hundredth of the time at
most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from thalweg.control.links import Link, Tables, number_of_places, places_of
from thalweg.control.measures import Outlook, outlook
from thalweg.events import KeyCount, KeyLink, KeyPair, Keys
from thalweg.hashing import Hashes, hash_key
from thalweg.sketches.pairs import PairCounts, Weights, merged

#: Pairs by both ends of a link.
Counted = Mapping[tuple[str, str], PairCounts]

#: Keys and pairs of a link that are named, and tuples that are looked at.
MOST, ENOUGH = 20, 5000
#: Seconds between two looks at least, and as a multiple of what a look takes.
_EVERY, _SHARE = 2.0, 100.0
#: Names that are remembered; pairs of a link that are looked at.
_NAMES, _CAPACITY = 2000, 1 << 20


class KeyView:
    """Gathers pairs, and now and then gives what is to be seen in them."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        #: What was counted, and how many neighbours at once.
        self._parts: list[tuple[Counted, int]] = []
        self._due = float("-inf")
        #: Texts of keys by hash, as far as they are known; and hashes without one, those of keys
        #: that were seen and those that somebody asked for.
        self._names: dict[int, str] = {}
        self._nameless: frozenset[int] = frozenset()
        self._asked: frozenset[int] = frozenset()

    def note(
        self, now: float, pairs: Counted, tables: Tables, sampling: float, burst: int = 1
    ) -> Keys | None:
        """Take in pairs that came by these tables; give what is seen, if it is time.

        ``burst`` neighbours were counted at once.
        """
        if not pairs:
            return None
        self._parts.append((pairs, burst))
        self._shorten()
        if now < self._due or not tables:
            return None
        begin = self._timer()
        made = self._seen(tables, sampling)
        self._due = now + max(_EVERY, _SHARE * (self._timer() - begin))
        return made

    def name(self, names: Mapping[int, str]) -> None:
        """Learn what keys look like."""
        self._names |= names
        for hash_ in list(self._names)[: max(0, len(self._names) - _NAMES)]:
            del self._names[hash_]
        self._nameless -= names.keys()
        self._asked -= names.keys()

    def want(self, hashes: frozenset[int]) -> None:
        """Look for the names of these keys too."""
        self._asked = hashes - self._names.keys()

    @property
    def unnamed(self) -> frozenset[int]:
        """Hashes of keys whose names are wanted."""
        return self._nameless | self._asked

    @property
    def names(self) -> Mapping[int, str]:
        """Texts of keys by hash, as far as they are known."""
        return self._names

    def _shorten(self) -> None:
        """Forget the oldest pairs, as long as the others are enough."""
        sizes = [sum(counts.total for counts in part.values()) for part, _ in self._parts]
        while len(sizes) > 1 and sum(sizes[1:]) >= ENOUGH:
            del self._parts[0], sizes[0]

    def _seen(self, tables: Tables, sampling: float) -> Keys:
        pairs = self._known(tables)
        judged = outlook(pairs, tables) if pairs else None
        self._nameless = frozenset()
        partitions = {hash_key(n): str(n) for n in range(number_of_places(tables))}
        links = [
            replace(
                self._link(link, counts, tables, judged, partitions),
                share_error=share_error(self._draws(link), sampling),
            )
            for link, counts in pairs.items()
        ]
        return Keys(
            links=tuple(links),
            sampling=sampling,
            listed={name: len(table.hashes) for name, table in tables.items()},
            imbalance={} if judged is None else dict(judged.imbalance),
        )

    def _known(self, tables: Tables) -> dict[Link, PairCounts]:
        """Give the pairs of links whose ends have tables now."""
        found: dict[Link, list[PairCounts]] = {}
        for part, _ in self._parts:
            for ends, counts in part.items():
                link = Link(*ends)
                if link.reader in tables and (link.from_source or link.sender in tables):
                    found.setdefault(link, []).append(counts)
        return {link: merged(parts, _CAPACITY) for link, parts in found.items()}

    def _draws(self, link: Link) -> float:
        """Say how often tuples of a link were chosen; neighbours may all be alike."""
        return math.fsum(
            counts.total / burst
            for part, burst in self._parts
            for ends, counts in part.items()
            if Link(*ends) == link
        )

    def _link(
        self,
        link: Link,
        counts: PairCounts,
        tables: Tables,
        judged: Outlook | None,
        partitions: Mapping[int, str],
    ) -> KeyLink:
        left, right = counts.left_weights(), counts.right_weights()
        top = np.argsort(-counts.count, kind="stable")[:MOST]
        names = partitions if link.from_source else self._names
        lefts = self._texts(counts.left[top], names)
        rights = self._texts(counts.right[top], self._names)
        local = places_of(link.sender, counts.left[top], tables) == places_of(
            link.reader, counts.right[top], tables
        )
        columns = zip(lefts, rights, counts.count[top].tolist(), local.tolist(), strict=True)
        return KeyLink(
            sender=link.sender,
            reader=link.reader,
            total=counts.total,
            lost=counts.lost,
            locality=0.0 if judged is None else judged.locality.by_link[link],
            left=self._top(link.sender, left, tables, names),
            right=self._top(link.reader, right, tables, self._names),
            pairs=tuple(KeyPair(*column) for column in columns),
        )

    def _top(
        self,
        component: str,
        weights: tuple[Hashes, Weights],
        tables: Tables,
        names: Mapping[int, str],
    ) -> tuple[KeyCount, ...]:
        hashes, counts = weights
        top = np.argsort(-counts, kind="stable")[:MOST]
        places = places_of(component, hashes[top], tables).tolist()
        texts = self._texts(hashes[top], names)
        return tuple(map(KeyCount, texts, counts[top].tolist(), places))

    def _texts(self, hashes: Hashes, names: Mapping[int, str]) -> list[str]:
        """Name keys; those without a name have their hash, until somebody has seen them."""
        if names is self._names:
            self._nameless |= {hash_ for hash_ in hashes.tolist() if hash_ not in names}
        return [names.get(hash_, f"0x{hash_:016x}") for hash_ in hashes.tolist()]


def share_error(draws: float, sampling: float = 0.0) -> float:
    """Say how far a share may be off, 19 times of 20: two standard deviations of a half.

    >>> share_error(100.0, sampling=0.0), share_error(100.0, sampling=1.0), share_error(0.5, 0.0)
    (0.1, 0.0, 1.0)
    """
    return math.sqrt(max(0.0, 1.0 - sampling) / max(1.0, draws))
