"""Deciding whether keys that travel together should be brought to the same place.

Tables are made from one part of the pairs that were seen and judged by the other, recent part, as
they will be judged by what comes. What that saves within the horizon is weighed against the state
that has to move; what does not pay is left as it is, with the reason in words.

Keys that a table does not know join their partners before long, and it is judged as it will be
then. What is told is measured as it will be measured when it is in force: before they have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.control.adopting import Adopter
from thalweg.control.keygraph import fitted
from thalweg.control.links import Observed, Pairs, Tables, key_weights, number_of_places
from thalweg.control.measures import HeavyKey, Outlook, heavy_keys, moved, outlook
from thalweg.control.settings import LocalitySettings
from thalweg.routing.table import RoutingTable
from thalweg.sketches.pairs import merged

#: Statistics are never switched off: a decision needs to see what it decides about.
LEAST_RATE = 0.001


@dataclass(frozen=True)
class NoChange:
    """Leave the tables as they are."""

    reason: str
    present: Outlook | None = None
    predicted: Outlook | None = None
    heavy: tuple[HeavyKey, ...] = ()


@dataclass(frozen=True)
class Reroute:
    """Go on with these tables; the state of some keys moves."""

    reason: str
    #: Of the next epoch, for all keyed components.
    tables: Mapping[str, RoutingTable]
    #: The present tables on held-out pairs, and tables made without these on the same, as tables
    #: in force are measured: what they do not know goes by hash.
    present: Outlook
    predicted: Outlook
    #: Keys whose state moves, and its bytes.
    keys: int
    state_bytes: float
    #: Bytes that need not travel within the horizon.
    saved_bytes: float
    heavy: tuple[HeavyKey, ...] = ()


def decide(
    observed: Observed, tables: Tables, settings: LocalitySettings | None = None
) -> Reroute | NoChange:
    """Say which tables to go on with, or why not to change them."""
    use = settings or LocalitySettings()
    missing = _missing(observed, tables, use)
    if missing:
        return NoChange(missing)
    seen = _all_pairs(observed, use.capacity)
    places = number_of_places(tables)
    heavy = heavy_keys(key_weights(seen), use.alpha / places, use.heaviest)
    trial = fitted(observed.fit, observed, tables, use)
    present, predicted = (outlook(observed.held_out, each) for each in (tables, trial))
    now, then = (_judged(observed, each, use) for each in (tables, trial))
    told = _told((present, predicted), (now, then))
    local, even = _more_local(now, then, use), _more_even(now, then, use)
    if not local and not even:
        asked = f"{100 * use.points:g} points more are asked for"
        reason = f"no better tables were found: {told} ({asked})"
        return NoChange(reason, present, predicted, heavy)
    made = fitted(seen, observed, tables, use)
    keys, state_bytes = _moves(observed, tables, made)
    saved = _saved(observed, now, then) * use.horizon
    moves = f"{state_bytes:,.0f} bytes of state to move ({keys:,} keys)"
    account = f"{told}; {saved:,.0f} bytes saved in {use.horizon:g} s against {moves}"
    pays = local and saved >= use.gain * state_bytes
    if not pays and not even:
        return NoChange(f"it does not pay: {account}", present, predicted, heavy)
    return Reroute(
        f"it pays: {account}" if pays else f"more even: {told}; {moves}",
        made,
        present,
        predicted,
        keys,
        state_bytes,
        saved,
        heavy,
    )


def next_rate(rate: float, share: float, budget: float = 0.02) -> float:
    """Give the sampling rate with which statistics cost at most ``budget`` of the time.

    ``share`` is what they cost with the present ``rate``. A rate falls at once, and at most
    doubles, since a single cheap block says little.

    >>> next_rate(1.0, share=0.08), next_rate(0.25, share=0.001), next_rate(1.0, share=0.0)
    (0.25, 0.5, 1.0)
    """
    wanted = rate * budget / share if share > 0 else 1.0
    return min(max(min(wanted, 2 * rate), LEAST_RATE), 1.0)


def _missing(observed: Observed, tables: Tables, use: LocalitySettings) -> str:
    if not tables or number_of_places(tables) < 2:
        return "all keys are at one place already"
    for name, pairs in (("", observed.fit), ("held-out ", observed.held_out)):
        seen = sum(counts.total for counts in pairs.values())
        if seen < use.evidence:
            return f"too little was seen: {seen:,.0f} {name}pairs, {use.evidence:,.0f} are needed"
    return ""


def _all_pairs(observed: Observed, capacity: int) -> Pairs:
    sides = (observed.fit, observed.held_out)
    links = sorted({link for side in sides for link in side})
    return {link: merged([s[link] for s in sides if link in s], capacity) for link in links}


def _judged(observed: Observed, tables: Tables, use: LocalitySettings) -> Outlook:
    """Measure tables on held-out pairs, as they would be after unseen keys have been adopted."""
    if use.adopts:
        adopter = Adopter.since(observed.fit, tables, use.alpha_adopt)
        tables = adopter.after(observed.held_out, tables) or tables
    return outlook(observed.held_out, tables)


def _more_local(present: Outlook, predicted: Outlook, use: LocalitySettings) -> bool:
    return predicted.locality.overall >= present.locality.overall + use.points


def _more_even(present: Outlook, predicted: Outlook, use: LocalitySettings) -> bool:
    as_local = predicted.locality.overall > present.locality.overall - use.points
    return as_local and predicted.worst <= present.worst - use.balance


def _told(measured: tuple[Outlook, Outlook], judged: tuple[Outlook, Outlook]) -> str:
    """Say what was measured and, where that is something else, what was decided by."""
    present, predicted = measured
    text = (
        f"locality {_points(present)} now, {_points(predicted)} predicted on held-out pairs; "
        f"imbalance {present.worst:.2f} now, {predicted.worst:.2f} predicted"
    )
    now, then = judged
    settled = (
        f"locality {_points(now)} and {_points(then)}, imbalance {now.worst:.2f} and "
        f"{then.worst:.2f} once new keys have joined their partners"
    )
    return text if judged == measured else f"{text}; {settled}"


def _points(outlook: Outlook) -> str:
    return f"{100 * outlook.locality.overall:.1f} %"


def _saved(observed: Observed, present: Outlook, predicted: Outlook) -> float:
    """Give the bytes per second that need not travel any more."""
    before, after = present.locality.by_link, predicted.locality.by_link
    return sum((after[link] - before[link]) * observed.traffic(link) for link in after)


def _moves(observed: Observed, old: Tables, new: Tables) -> tuple[int, float]:
    found = [moved(old[name], new[name], observed.state_of(name)) for name in new]
    return sum(keys for keys, _ in found), sum(size for _, size in found)
