"""Sessions: clicks of a user belong together until there is a gap of half an hour.

Shows: a keyed bolt whose state is an object, event time in a field of the tuple, and what is still
open at the end. Try:

    thalweg run examples/sessions.py
    thalweg run examples/sessions.py --set clicks=50000 --set gap=600
    thalweg run examples/sessions.py --on spark
    thalweg describe examples/sessions.py

Settings: clicks (how many), users, gap (seconds without a click that end a session).
"""

import random
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

import thalweg as tw

PAGES = ("home", "search", "offers", "product", "reviews", "basket", "checkout", "help")


def clicks(count: int, users: int) -> Iterator[tuple[str, str, datetime]]:
    """Make up clicks in the order of time: people come, look at some pages, and leave."""
    chance = random.Random(7)  # noqa: S311 (the same clicks every time)
    at = datetime(2026, 3, 2, 8)  # noqa: DTZ001 (a wall clock is all a session needs)
    present: list[str] = []
    for _ in range(count):
        at += timedelta(seconds=chance.expovariate(1 / 40))
        if not present or chance.random() < 0.2:
            present.append(f"user-{chance.randrange(users):03}")
        user = chance.choice(present)
        yield user, chance.choice(PAGES), at
        if chance.random() < 0.24:
            present.remove(user)


class Session(msgspec.Struct):
    """What is known of a session that is still open."""

    first: datetime
    last: datetime
    pages: int = 1


class Sessions(tw.Bolt):
    """Closes a session when its user's next click comes after the gap, or at the end."""

    kind = tw.Kind.KEYED
    state_type = Session
    outputs = {"user": str, "pages": int, "minutes": float}

    def __init__(self, gap: float) -> None:
        self.gap = timedelta(seconds=gap)

    def process(self, t: Any) -> None:
        session = self.state.get(t.user)
        if session is not None and t.at - session.last <= self.gap:
            self.state.put(t.user, Session(session.first, t.at, session.pages + 1))
            return
        if session is not None:
            self.close(t.user, session)
        self.state.put(t.user, Session(t.at, t.at))

    def process_end(self) -> None:
        for user, session in self.state.items():
            self.close(str(user), session)

    def close(self, user: str, session: Session) -> None:
        length = session.last - session.first
        self.emit(user, session.pages, length.total_seconds() / 60)


class Summary(tw.Bolt):
    """Keeps all sessions, and prints what they have in common and which were the longest."""

    def prepare(self, context: tw.TaskContext) -> None:
        self.sessions: list[tuple[str, int, float]] = []

    def process(self, t: Any) -> None:
        self.sessions.append((t.user, t.pages, t.minutes))

    def process_end(self) -> None:
        count = len(self.sessions)
        pages = sum(pages for _, pages, _ in self.sessions)
        users = len({user for user, _, _ in self.sessions})
        print(f"{count:,} sessions of {users:,} users, {pages / max(1, count):.1f} pages each")
        print(f"\n{'user':<10} {'pages':>5} {'duration':>10}   the ten longest")
        block = drawn("▪", "#")
        for user, pages, minutes in sorted(self.sessions, key=lambda s: (-s[2], s[0]))[:10]:
            print(f"{user:<10} {pages:>5} {minutes:>6.1f} min   {block * min(pages, 40)}")


def drawn(text: str, plain: str) -> str:
    """Give the text, or the plain one where standard output does not know its letters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return plain
    return text


def sessions(settings: Mapping[str, str]) -> tw.TopologyBuilder:
    """Describe the topology from clicks to the summary."""
    count, users = int(settings.get("clicks", 20_000)), int(settings.get("users", 200))
    source = tw.items(lambda: clicks(count, users))
    source.outputs = {"user": str, "page": str, "at": datetime}
    builder = tw.TopologyBuilder("sessions")
    builder.add_spout("clicks", source)
    gap = float(settings.get("gap", 1800))
    builder.add_bolt("sessions", Sessions(gap), degree=4).fields("clicks", "user")
    builder.add_bolt("summary", Summary()).global_("sessions")
    return builder


if __name__ == "__main__":
    sessions({}).build().run()
