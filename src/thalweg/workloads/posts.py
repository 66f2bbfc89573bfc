"""Posts with a region and a hashtag, whose keys travel together.

Hashtags follow a Zipf law. Each of them has a home region, from which most of its posts come
(``correlation``); homes move as time passes (``drift_every``). The posts depend on the settings
alone, not on how many are asked for at once or how many tasks share them.

>>> source = posts(PostSettings(posts=3, seed=7))
>>> source.chunk(0).to_pylist() == posts(PostSettings(posts=3, seed=7)).chunk(0).to_pylist()
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.components import BlockSpout, Shared, TaskContext
from thalweg.errors import UsageError, explain
from thalweg.workloads.names import hashtag_names, region_names
from thalweg.workloads.settings import read_settings

Numbers = npt.NDArray[np.int64]

#: Posts that are made at once, each such chunk from a seed of its own.
CHUNK = 16_384
_SCHEMA = pa.schema({"region": pa.string(), "hashtag": pa.string()})
# Large odd numbers (splitmix64), which scatter what they multiply.
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MIX = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True)
class PostSettings:
    """What the stream of posts looks like."""

    #: How many posts there are.
    posts: int = 500_000
    #: How many different regions and hashtags.
    regions: int = 24
    hashtags: int = 10_000
    #: Exponent of the Zipf law of hashtags (and of regions, for posts from elsewhere); 0 is even.
    skew: float = 1.0
    #: Share of posts that come from their hashtag's home region, 0 to 1.
    correlation: float = 0.8
    #: Posts after which a hashtag has moved to another home, each at its own moment; 0 for never.
    drift_every: int = 200_000
    seed: int = 1

    def __post_init__(self) -> None:
        for name, least in (("posts", 0), ("regions", 1), ("hashtags", 1), ("drift_every", 0)):
            _check(name, getattr(self, name), getattr(self, name) >= least, f"at least {least}")
        _check("skew", self.skew, self.skew >= 0, "at least 0")
        _check("correlation", self.correlation, 0 <= self.correlation <= 1, "0 to 1")
        _check("seed", self.seed, self.seed >= 0, "at least 0")

    @classmethod
    def read(cls, values: Mapping[str, str]) -> PostSettings:
        """Read settings given as text, as with ``--set posts=1000``."""
        return read_settings(cls, values)


def _check(name: str, value: Any, good: bool, expected: str) -> None:
    if not good:
        raise UsageError(explain(f"setting {name!r} of posts", "", expected, repr(value)))


class Posts(Shared, BlockSpout):
    """The source; its tasks take chunks in turn."""

    outputs = _SCHEMA

    def __init__(self, settings: PostSettings) -> None:
        self.settings = settings
        self._regions = region_names(settings.regions)
        self._hashtags = hashtag_names(settings.hashtags)
        self._tag_law = _zipf(settings.hashtags, settings.skew)
        self._region_law = _zipf(settings.regions, settings.skew)

    def prepare(self, context: TaskContext) -> None:
        """Begin with this task's first chunk."""
        self._next, self._step = context.task, context.degree
        self._ready = pa.RecordBatch.from_pylist([], _SCHEMA)

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        """Give the next posts of the chunk at hand."""
        if not self._ready.num_rows:
            self._ready = self.chunk(self._next)
            self._next += self._step
        if not self._ready.num_rows:
            self.finish()
            return None
        given, self._ready = self._ready[:limit], self._ready[limit:]
        return given

    def chunk(self, number: int) -> pa.RecordBatch:
        """Make one chunk of posts; an empty one behind the last."""
        first = number * CHUNK
        rows = max(0, min(CHUNK, self.settings.posts - first))
        rng = np.random.default_rng((self.settings.seed, number))
        tags = _draw(rng, self._tag_law, rows)
        homes = self._homes(tags, np.arange(first, first + rows))
        elsewhere = _draw(rng, self._region_law, rows)
        regions = np.where(rng.random(rows) < self.settings.correlation, homes, elsewhere)
        columns = [self._regions.take(pa.array(regions)), self._hashtags.take(pa.array(tags))]
        return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    def _homes(self, tags: Numbers, positions: Numbers) -> Numbers:
        """Give the home region of each hashtag at its position in the stream."""
        every, seed = self.settings.drift_every, self.settings.seed
        # Each hashtag starts at another point of its stay, so that homes move one by one.
        stays = (positions + _scatter(tags, seed) % every) // every if every else 0
        return _scatter(tags * 1_000_003 + stays, seed + 1) % self.settings.regions


def posts(settings: PostSettings | None = None) -> Posts:
    """Make a source of posts; its fields are ``region`` and ``hashtag``."""
    return Posts(settings or PostSettings())


def _zipf(size: int, skew: float) -> npt.NDArray[np.float64]:
    """Give the cumulated shares of ranks 1 to ``size``."""
    weights = np.arange(1, size + 1, dtype=np.float64) ** -skew
    return np.cumsum(weights) / weights.sum()


def _draw(rng: np.random.Generator, law: npt.NDArray[np.float64], rows: int) -> Numbers:
    # The last share may be a rounding error below 1.
    return np.minimum(np.searchsorted(law, rng.random(rows), side="right"), len(law) - 1)


def _scatter(values: Numbers, seed: int) -> Numbers:
    """Turn numbers into others, evenly spread and never negative (the end of splitmix64)."""
    mixed = values.astype(np.uint64) + np.uint64((seed + 1) * _GOLDEN % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST_MIX
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND_MIX
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)
