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

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.workloads.chunks import Chunked, Numbers, rows_of, scatter
from thalweg.workloads.names import hashtag_names, region_names
from thalweg.workloads.settings import check_setting, read_settings

_SCHEMA = pa.schema({"region": pa.string(), "hashtag": pa.string()})


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
            value = getattr(self, name)
            check_setting("posts", name, value, value >= least, f"at least {least}")
        check_setting("posts", "skew", self.skew, self.skew >= 0, "at least 0")
        check_setting(
            "posts", "correlation", self.correlation, 0 <= self.correlation <= 1, "0 to 1"
        )
        check_setting("posts", "seed", self.seed, self.seed >= 0, "at least 0")

    @classmethod
    def read(cls, values: Mapping[str, str]) -> PostSettings:
        """Read settings given as text, as with ``--set posts=1000``."""
        return read_settings(cls, values)


class Posts(Chunked):
    """The source; its tasks take chunks in turn."""

    outputs = _SCHEMA

    def __init__(self, settings: PostSettings) -> None:
        self.settings = settings
        self._regions = region_names(settings.regions)
        self._hashtags = hashtag_names(settings.hashtags)
        self._tag_law = _zipf(settings.hashtags, settings.skew)
        self._region_law = _zipf(settings.regions, settings.skew)

    def chunk(self, number: int) -> pa.RecordBatch:
        """Make one chunk of posts; an empty one behind the last."""
        positions = rows_of(number, self.settings.posts)
        rows = len(positions)
        rng = np.random.default_rng((self.settings.seed, number))
        tags = _draw(rng, self._tag_law, rows)
        homes = self._homes(tags, positions)
        elsewhere = _draw(rng, self._region_law, rows)
        regions = np.where(rng.random(rows) < self.settings.correlation, homes, elsewhere)
        columns = [self._regions.take(pa.array(regions)), self._hashtags.take(pa.array(tags))]
        return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    def _homes(self, tags: Numbers, positions: Numbers) -> Numbers:
        """Give the home region of each hashtag at its position in the stream."""
        every, seed = self.settings.drift_every, self.settings.seed
        # Each hashtag starts at another point of its stay, so that homes move one by one.
        stays = (positions + scatter(tags, seed) % every) // every if every else 0
        return scatter(tags * 1_000_003 + stays, seed + 1) % self.settings.regions


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
