"""Sessions: clicks of a user belong together until there is a gap of half an hour.

Shows: windows of sessions in event time, on clicks that do not come in the order in which they
were made, and what is made of them: how many pages, and whether a full basket was left behind. Try:

    thalweg run examples/sessions.py
    thalweg run examples/sessions.py --set clicks=50000 --set gap=600
    thalweg run examples/sessions.py --on spark
    thalweg describe examples/sessions.py

Settings: gap (seconds without a click that end a session); clicks (how many), users, late (seconds
by which a click may come later than it was made), seed.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import thalweg as tw
from thalweg.workloads.boards import board, drawn
from thalweg.workloads.visits import VisitSettings, visits


def sessions(settings: Mapping[str, str]) -> tw.Flow:
    """Describe the flow from clicks to the summary."""
    given = {**settings}
    gap = float(given.pop("gap", 1800))
    chosen = VisitSettings.read(given)
    flow = tw.Flow("sessions")
    clicks = flow.source(
        "clicks",
        tw.items(lambda: visits(chosen)),
        fields={"user": str, "page": str, "at": datetime},
        time=tw.event_time("at", delay=chosen.late),
    )
    looked = clicks.extend(
        in_basket=lambda page: int(page == "basket"),
        paid=lambda page: int(page == "checkout"),
    )
    looked.key_by("user").window(tw.session(gap)).aggregate(
        "sessions",
        pages=tw.agg.count(),
        in_basket=tw.agg.sum("in_basket"),
        paid=tw.agg.sum("paid"),
        degree=4,
    ).sink("summary", Summary(gap))
    return flow


class Summary(tw.Bolt):
    """Keeps all sessions, and prints what they have in common and which were the longest."""

    def __init__(self, gap: float) -> None:
        self.gap = timedelta(seconds=gap)

    def prepare(self, context: tw.TaskContext) -> None:
        self.sessions: list[tuple[str, int, float]] = []
        self.baskets = self.left = 0

    def process(self, t: Any) -> None:
        length = t.end - t.start - self.gap  # a window ends when the gap is over
        self.sessions.append((t.user, t.pages, length.total_seconds() / 60))
        self.baskets += t.in_basket > 0
        self.left += t.in_basket > 0 and not t.paid

    def process_end(self) -> None:
        count = len(self.sessions)
        pages = sum(pages for _, pages, _ in self.sessions)
        users = len({user for user, _, _ in self.sessions})
        print(f"{count:,} sessions of {users:,} users, {pages / max(1, count):.1f} pages each")
        told = [("in all", count), ("with a basket", self.baskets), ("left behind", self.left)]
        print(board("Sessions", told))
        print(f"\n{'user':<10} {'pages':>5} {'duration':>10}   the ten longest")
        block = drawn("▪", "#")
        longest = sorted(self.sessions, key=lambda s: (-s[2], s[0]))[:10]
        for user, pages, minutes in longest:
            print(f"{user:<10} {pages:>5} {minutes:>6.1f} min   {block * min(pages, 40)}")


if __name__ == "__main__":
    sessions({}).run()
