"""Words and sentences, as many as needed and the same every time."""

from __future__ import annotations

import itertools

import numpy as np

_BEGIN = ("b", "br", "d", "f", "fl", "g", "h", "k", "l", "m", "n", "p", "r", "s", "st", "t", "v")
_MIDDLE = ("a", "ai", "e", "ea", "i", "o", "oo", "u")
_END = ("", "ck", "l", "m", "n", "nd", "r", "rn", "s", "st", "t")


def words(count: int) -> list[str]:
    """Give different words, short ones first.

    >>> words(4), words(3000)[-1]
    (['ba', 'back', 'bal', 'bam'], 'backzbarn')
    """
    short = ["".join(parts) for parts in itertools.product(_BEGIN, _MIDDLE, _END)]
    # Every long one has a 'z' where its halves meet, so no two are the same.
    long = (f"{first}z{second}" for first in short for second in short)
    return list(itertools.islice(itertools.chain(short, long), count))


def draw(rng: np.random.Generator, vocabulary: list[str], count: int, skew: float) -> list[str]:
    """Draw words by Zipf's law."""
    weights = 1 / np.arange(1, len(vocabulary) + 1) ** skew
    chosen = rng.choice(len(vocabulary), count, p=weights / weights.sum())
    return [vocabulary[i] for i in chosen.tolist()]


def sentences(
    count: int, seed: int = 1, vocabulary: int = 20_000, skew: float = 1.1, longest: int = 13
) -> list[str]:
    """Make sentences of 5 words or more, 9 in the mean, without punctuation.

    >>> sentences(2) == sentences(3)[:2], len(sentences(1)[0].split()) >= 5
    (False, True)
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, longest, count, endpoint=True)
    drawn = iter(draw(rng, words(vocabulary), int(lengths.sum()), skew))
    return [" ".join(itertools.islice(drawn, length)) for length in lengths.tolist()]
