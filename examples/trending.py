"""Trending hashtags: two tables that are kept up to date while posts stream by.

Shows: the fluent API, a chain of two keyed operators whose keys travel together (most posts of a
hashtag come from one region), and a ranking of a table at intervals. Try:

    thalweg run examples/trending.py
    thalweg run examples/trending.py --on spark
    thalweg run examples/trending.py --set posts=5_000_000 --set skew=1.2
    thalweg describe examples/trending.py
    thalweg describe examples/trending.py --svg -o trending.svg

Settings: posts, regions, hashtags, skew, correlation, drift_every, seed.
"""

from collections.abc import Mapping
from typing import Any

import thalweg as tw
from thalweg.workloads.boards import board
from thalweg.workloads.posts import PostSettings, posts


def trending(settings: Mapping[str, str]) -> tw.Flow:
    """Describe the stream from the posts to the boards."""
    flow = tw.Flow("trending")
    (
        flow.source("posts", posts(PostSettings.read(settings)))
        .tally("by_region", key="region")
        .tally("by_tag", key="hashtag")
    )
    flow.table("by_tag").top(10, every="500 ms").sink("top_hashtags", TopHashtags())
    flow.table("by_region").sink("regions", Regions())
    return flow


class TopHashtags(tw.BlockBolt):
    """Prints the leaders whenever the ranking changes, and the whole ranking at the end."""

    def prepare(self, context: tw.TaskContext) -> None:
        self.ranking: list[dict[str, Any]] = []

    def process_block(self, batch: Any) -> None:
        self.ranking = batch.to_pylist()
        leaders = "  ".join(f"{row['hashtag']} {row['count']:,}" for row in self.ranking[:4])
        print(f"leading  {leaders}", flush=True)

    def process_end(self) -> None:
        ranked = [(f"{row['rank']:>2}  {row['hashtag']}", row["count"]) for row in self.ranking]
        print(board("Top hashtags", ranked), flush=True)


class Regions(tw.Bolt):
    """Keeps the latest count of each region, and prints all of them at the end."""

    def prepare(self, context: tw.TaskContext) -> None:
        self.counts: dict[str, int] = {}

    def process(self, t: Any) -> None:
        self.counts[t.region] = t.count

    def process_end(self) -> None:
        ranked = sorted(self.counts.items(), key=lambda pair: (-pair[1], pair[0]))
        print(board("Posts by region", ranked), flush=True)


if __name__ == "__main__":
    trending({}).run()
