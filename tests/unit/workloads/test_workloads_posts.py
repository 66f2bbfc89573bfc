"""The stream of posts is what its settings say, and always the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.errors import UsageError
from thalweg.workloads.chunks import CHUNK
from thalweg.workloads.names import hashtag_names, region_names
from thalweg.workloads.posts import PostSettings, posts


def all_posts(settings: PostSettings, degree: int = 1, block_rows: int = 1024) -> list[Any]:
    flow = tw.Flow("posts")
    found: list[Any] = []
    flow.source("posts", posts(settings), degree=degree).sink("out", tw.collect(found))
    flow.run(on=tw.Inline(block_rows=block_rows))
    return [(t.region, t.hashtag) for t in found]


@pytest.mark.parametrize("count", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1])
def test_there_are_as_many_posts_as_asked_for(count: int) -> None:
    assert len(all_posts(PostSettings(posts=count))) == count


def test_posts_do_not_depend_on_how_they_are_asked_for() -> None:
    settings = PostSettings(posts=3 * CHUNK + 5)
    once = all_posts(settings)
    assert all_posts(settings, block_rows=777) == once
    assert Counter(all_posts(settings, degree=3)) == Counter(once)


def test_another_seed_gives_other_posts() -> None:
    assert all_posts(PostSettings(posts=100, seed=1)) != all_posts(PostSettings(posts=100, seed=2))


def test_the_fields_are_text() -> None:
    schema = posts().chunk(0).schema
    assert schema == pa.schema({"region": pa.string(), "hashtag": pa.string()})


def test_hashtags_follow_the_law_of_zipf() -> None:
    found = Counter(tag for _, tag in all_posts(PostSettings(posts=200_000, skew=1.0)))
    first, second, *_, tenth = (count for _, count in found.most_common(10))
    assert first / second == pytest.approx(2, rel=0.1)
    assert first / tenth == pytest.approx(10, rel=0.15)


def test_without_skew_all_hashtags_are_alike() -> None:
    settings = PostSettings(posts=100_000, hashtags=100, skew=0)
    found = Counter(tag for _, tag in all_posts(settings))
    assert len(found) == 100
    assert max(found.values()) < 1.3 * min(found.values())


def home_share(pairs: list[tuple[str, str]]) -> float:
    """Give the share of posts that come from the region where their hashtag is most common."""
    by_tag: dict[str, Counter[str]] = {}
    for region, tag in pairs:
        by_tag.setdefault(tag, Counter())[region] += 1
    return sum(max(regions.values()) for regions in by_tag.values()) / len(pairs)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_posts_come_from_the_home_of_their_hashtag(correlation: float) -> None:
    settings = PostSettings(
        posts=100_000, hashtags=50, skew=0, correlation=correlation, drift_every=0
    )
    # Posts from elsewhere hit the home region by chance as well.
    chance = (1 - correlation) / settings.regions
    assert home_share(all_posts(settings)) == pytest.approx(correlation + chance, abs=0.03)


def test_homes_move_one_by_one() -> None:
    still = PostSettings(posts=60_000, hashtags=200, correlation=1.0, drift_every=0)
    moving = PostSettings(posts=60_000, hashtags=200, correlation=1.0, drift_every=30_000)
    homes = [dict(map(reversed, all_posts(still)[at : at + 15_000])) for at in (0, 45_000)]  # type: ignore[call-overload]
    common = homes[0].keys() & homes[1].keys()
    assert all(homes[0][tag] == homes[1][tag] for tag in common)
    assert home_share(all_posts(still)) == 1
    found = all_posts(moving)
    assert home_share(found) < 0.9
    assert home_share(found[:3000]) > 0.95


def test_settings_are_read_from_text() -> None:
    read = PostSettings.read({"posts": "1_000", "skew": "1.5"})
    assert (read.posts, read.skew, read.regions) == (1000, 1.5, PostSettings().regions)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"post": "1"}, "did you mean 'posts'"),
        ({"posts": "many"}, "setting 'posts': expected int, got 'many'"),
        ({"posts": "-1"}, "setting 'posts' of posts: expected at least 0, got -1"),
        ({"correlation": "1.1"}, "expected 0 to 1"),
        ({"regions": "0"}, "expected at least 1"),
        ({"skew": "-1"}, "expected at least 0"),
        ({"seed": "-1"}, "expected at least 0"),
    ],
)
def test_settings_that_make_no_sense(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PostSettings.read(given)


def test_names_never_repeat() -> None:
    for names in (region_names(100).to_pylist(), hashtag_names(5000).to_pylist()):
        assert len(set(names)) == len(names)
