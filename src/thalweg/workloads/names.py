"""Names that people can tell apart, as many as needed."""

from __future__ import annotations

import pyarrow as pa


def _words(text: str) -> list[str]:
    return text.split()


_REGIONS = _words(
    "Lisbon Porto Madrid Seville Lyon Paris Brussels Antwerp Rotterdam Hamburg Berlin Munich "
    "Vienna Prague Warsaw Zurich Milan Naples Athens Dublin Glasgow Oslo Helsinki Riga"
)
_FIRST = _words(
    "jazz football sunrise elections coffee cinema chess marathon garden thunder vinyl robots "
    "poetry sailing bakery comet festival cycling museum recipes ocean podcast winter budget "
    "climbing theatre library orchid"
)
_LEFT = _words(
    "Red Blue Gold Green Silver Late Early Slow Fast Loud Quiet Wild Old New Big Tiny Brave Calm "
    "Lucky Hidden Free Cold Warm Bright Dark Deep High Open Sweet Sharp"
)
_RIGHT = _words(
    "River Train Tower Market Street Night Story Game House Lake Team Song Forest Island Bridge "
    "Kitchen Concert School Summer Planet Dance Photo Winner Harbour Mountain Machine Camera "
    "Ticket Morning Journey"
)


def region_names(count: int) -> pa.Array:
    """Give names of regions."""
    return _numbered(_REGIONS, count)


def hashtag_names(count: int) -> pa.Array:
    """Give hashtags: single words first, then pairs, then pairs with a number.

    >>> hashtag_names(30).to_pylist()[-3:]
    ['#orchid', '#RedRiver', '#BlueTrain']
    """
    # Walking both lists at once, one of them a step further each round, makes neighbours differ.
    size = len(_LEFT)
    pairs = [_LEFT[i] + _RIGHT[(i + turn) % size] for turn in range(size) for i in range(size)]
    return _numbered([f"#{name}" for name in (*_FIRST, *pairs)], count)


def _numbered(names: list[str], count: int) -> pa.Array:
    size = len(names)
    rounds = (f"{names[i % size]}{i // size + 1 if i >= size else ''}" for i in range(count))
    return pa.array(rounds, pa.string(), size=count)
