"""Learns which keys occur together while a topology runs, and decides when to reroute.

Pairs of the last batches are held out; older ones are merged, in bounded memory. A decision is
made every so often, or when somebody asks. Between decisions, keys that were never seen before
are placed with the partners that they arrive with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from thalweg.clock import seconds
from thalweg.control.achieved import counted, score
from thalweg.control.adopting import Adopter
from thalweg.control.keygraph import fitted
from thalweg.control.keyview import share_error
from thalweg.control.links import (
    KeyBytes,
    KeyWeights,
    Link,
    Observed,
    Pairs,
    key_weights,
    number_of_places,
)
from thalweg.control.locality import LEAST_RATE, NoChange, Reroute, decide, next_rate
from thalweg.control.rerouting import Cost, Rerouting, Seen, Tables
from thalweg.control.settings import LocalitySettings
from thalweg.errors import UsageError, explain
from thalweg.routing.table import RoutingTable, is_in
from thalweg.sketches.pairs import merged

#: Batches that are kept apart, so that the newest of them can be held out.
_APART = 16
#: Share of the permitted cost that counting aims at.
_AIM = 0.75


@dataclass(frozen=True)
class Locality:
    """How keys are brought together while a topology runs; ``every=None`` waits to be asked."""

    #: Time between two decisions, as "10 min" or in seconds.
    every: str | float | None = "1 min"
    #: Time between two looks at keys that are new.
    adopt_every: str | float = "5 s"
    #: Share of the working time that counting may take.
    cost: float = 0.02
    #: Share of the tuples to begin with; it then follows what counting costs.
    sampling: float = 0.1
    #: Bytes of state that move with one batch; the rest follows with later ones.
    budget: int = 4 << 20
    #: What is left of the pairs after a decision to change nothing.
    decay: float = 0.5
    deciding: LocalitySettings = field(default_factory=LocalitySettings)

    def __post_init__(self) -> None:
        for name in ("cost", "sampling", "decay"):
            if not 0 < getattr(self, name) <= 1:
                text = explain(
                    f"locality {name}", "", "above 0, at most 1", f"{getattr(self, name)}"
                )
                raise UsageError(text)
        _ = self.period, seconds(self.adopt_every, "locality adopt_every")

    @property
    def period(self) -> float:
        """Seconds between two decisions; infinitely many when it waits to be asked."""
        return float("inf") if self.every is None else seconds(self.every, "locality every")


class Learner:
    """Follows the batches of one run."""

    #: Runtimes let it decide beside the batches, where they can.
    takes_time = True

    def __init__(self, settings: Locality | None = None) -> None:
        self._settings = settings or Locality()
        self._rate = self._settings.sampling
        self._begun: float | None = None
        self._adopted = float("-inf")
        self._asked = self._forced = False
        self._clear()
        #: Places keys that come after tables were made; None before there are any.
        self._adopter: Adopter | None = None
        #: The last decision; None before there was one.
        self.last: Reroute | NoChange | None = None
        #: The pairs that the tables in force were made of, and the last batch.
        self._decided: Pairs = {}
        self._seen: Seen | None = None

    @property
    def sampling(self) -> float:
        """The share of the tuples on which pairs are to be counted."""
        return self._rate

    def ask(self, force: bool = False) -> None:
        """Decide after the next batch; with ``force`` also when it hardly pays."""
        self._asked, self._forced = True, force

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        """Take note of a batch; give new tables, or None to go on as before."""
        self._note(seen)
        # At one place nothing is counted, and who asks hears of that.
        alone = self._asked and (not tables or number_of_places(tables) < 2)
        if seen.moving or not (seen.pairs or alone):
            return None
        assert self._begun is not None  # noqa: S101 (noted above)
        if self._asked or seen.clock - self._begun >= self._settings.period:
            return self._decide(seen, tables)
        if self._adopter and seen.clock - self._adopted >= seconds(self._settings.adopt_every):
            return self._adopt(seen, tables)
        return None

    def replanned(self, tables: Tables) -> Rerouting | None:
        """Bring keys together in tables of another size; None where too little was seen."""
        deciding, seen = self._settings.deciding, self._seen
        if seen is None or deciding.tree is not None or number_of_places(tables) < 2:
            return None
        observed = self._observed(seen)
        known = self._merged([self._decided, observed.fit, observed.held_out])
        pairs = {
            link: counts
            for link, counts in known.items()
            if link.reader in tables and (link.from_source or link.sender in tables)
        }
        if sum(counts.total for counts in pairs.values()) < deciding.evidence:
            return None
        made = fitted(pairs, replace(observed, fit=pairs), tables, deciding)
        self._adopter = Adopter.since(pairs, made, deciding.alpha_adopt)
        return self._rerouting(made, seen, key_weights(pairs), "keys that occur together stay so")

    # --- what was seen -------------------------------------------------------------------------

    def _clear(self) -> None:
        self._fit: Pairs = {}
        self._recent: list[Pairs] = []
        self._new: list[Pairs] = []
        #: Pairs that were seen, in tuples, by link.
        self._tuples: dict[Link, float] = {}

    def _note(self, seen: Seen) -> None:
        if self._begun is None:
            self._begun = seen.clock
        self._seen = seen
        if not seen.pairs:
            return
        pairs = {Link(*ends): counts for ends, counts in seen.pairs.items()}
        for link, counts in pairs.items():
            self._tuples[link] = self._tuples.get(link, 0.0) + counts.total / self._rate
        self._recent.append(pairs)
        self._new.append(pairs)
        if len(self._recent) > _APART:
            self._fit = self._merged([self._fit, self._recent.pop(0)])
        if len(self._new) > _APART:
            self._new = [self._merged(self._new)]
        if seen.work > 0:
            # Below the bound, around which the share would otherwise go up and down.
            aim = _AIM * self._settings.cost
            self._rate = next_rate(self._rate, seen.counting / seen.work, aim)

    def _merged(self, parts: Iterable[Pairs]) -> Pairs:
        parts = list(parts)
        links = dict.fromkeys(link for part in parts for link in part)
        capacity = self._settings.deciding.capacity
        return {
            link: merged([part[link] for part in parts if link in part], capacity) for link in links
        }

    # --- decisions -----------------------------------------------------------------------------

    def _decide(self, seen: Seen, tables: Tables) -> Rerouting | None:
        self._asked = False
        deciding = self._settings.deciding
        if self._forced:
            self._forced = False
            deciding = replace(deciding, gain=0.0, points=0.0, evidence=1.0)
        observed = self._observed(seen)
        self.last = decide(observed, tables, deciding)
        if isinstance(self.last, NoChange):
            self._begun = seen.clock
            if self.last.present is not None:  # otherwise too little was seen: keep it all
                self._fade(observed)
            return None
        all_pairs = self._merged([observed.fit, observed.held_out])
        heat = key_weights(all_pairs)
        self._adopter = Adopter.since(all_pairs, self.last.tables, deciding.alpha_adopt)
        self._decided = all_pairs
        self._clear()
        self._begun = self._adopted = seen.clock
        self._rate = max(self._rate / 2, LEAST_RATE)  # tuples will take less work to count within
        made = self._rerouting(self.last.tables, seen, heat, in_words(self.last))
        error = share_error(counted(observed.held_out) / seen.burst)
        before, predicted = (
            score(each, error) for each in (self.last.present, self.last.predicted)
        )
        return replace(made, before=before, predicted=predicted)

    def _adopt(self, seen: Seen, tables: Tables) -> Rerouting | None:
        self._adopted = seen.clock
        new, self._new = self._merged(self._new), []
        if self._adopter is None or not self._settings.deciding.adopts:
            return None
        made = self._adopter.after(new, tables)
        if made is None:
            return None
        placed = sum(_placed(tables[name], table) for name, table in made.items())
        reason = f"{placed:,} new keys join their partners"
        return self._rerouting(made, seen, key_weights(new), reason)

    def _rerouting(self, tables: Tables, seen: Seen, heat: KeyWeights, reason: str) -> Rerouting:
        costs = {name: Cost(*heat[name], _key_bytes(seen, name)) for name in tables if name in heat}
        return Rerouting(tables, costs, self._settings.budget, reason)

    def _observed(self, seen: Seen) -> Observed:
        held = max(1, len(self._recent) // 4)
        elapsed = max(seen.clock - (self._begun or 0.0), seen.seconds, 1e-9)
        links = list(self._tuples)
        return Observed(
            fit=self._merged([self._fit, *self._recent[:-held]]),
            held_out=self._merged(self._recent[-held:]),
            rates={link: self._tuples[link] / elapsed for link in links},
            tuple_bytes={link: _tuple_bytes(seen, link) for link in links},
            state={name: _state(seen, name) for name in seen.state},
            sampling=self._rate,
        )

    def _fade(self, observed: Observed) -> None:
        """Keep a part of what was seen, so that the next decision has more to go by."""
        self._fit = {
            link: counts.decayed(self._settings.decay)
            for link, counts in self._merged([observed.fit, observed.held_out]).items()
        }
        self._recent.clear()
        self._tuples.clear()


def in_words(decision: Reroute | NoChange) -> str:
    """Give the reason of a decision, and which keys are too heavy for any place."""
    if not decision.heavy:
        return decision.reason
    keys = ", ".join(f"one of {key.component!r} with {key.share:.1%}" for key in decision.heavy)
    advice = "spread=True on an aggregate, or partial_key(choices='heavy'), shares them"
    return f"{decision.reason}; keys too heavy for a place: {keys.replace('%', ' %')} ({advice})"


def _placed(old: RoutingTable, new: RoutingTable) -> int:
    """Give the number of keys that have become listed, or have another place."""
    same = old.places_of(new.hashes) == new.key_places
    return len(new.hashes) - int((is_in(new.hashes, old.hashes) & same).sum())


def _tuple_bytes(seen: Seen, link: Link) -> float:
    """Give the mean bytes of a tuple on a link; of all tuples where its sender sent none."""
    size, tuples = seen.sent.get(link.sender.removeprefix("@"), (0, 0))
    if not tuples:
        size = sum(size for size, _ in seen.sent.values())
        tuples = sum(tuples for _, tuples in seen.sent.values())
    return size / tuples if tuples else 1.0


def _key_bytes(seen: Seen, component: str) -> float:
    size, keys = seen.state.get(component, (0, 0))
    return size / keys if keys else 1.0


def _state(seen: Seen, component: str) -> KeyBytes:
    return KeyBytes(np.empty(0, np.uint64), np.empty(0), _key_bytes(seen, component))
