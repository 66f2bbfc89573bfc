"""A rolling window: the latest hundred messages, sorted at intervals and at the end.

Shows: the RollingSort topology of the Storm-MC benchmark with a global bolt, whose window is in its
state, and ticks. Try:

    thalweg run examples/rollingsort.py
    thalweg run examples/rollingsort.py --set messages=2_000_000
    thalweg run examples/rollingsort.py --on spark
    thalweg describe examples/rollingsort.py
    thalweg bench storm-mc --topology rolling-sort

Settings: messages (how many).
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import thalweg as tw
from thalweg.workloads.boards import drawn
from thalweg.workloads.stormmc.sorting import CHUNK, messages


def chosen(count: int) -> Iterator[str]:
    """Choose among a hundred messages, the same ones every time."""
    chance = random.Random(3)  # noqa: S311 (to be repeatable)
    made = messages(chance)
    return (chance.choice(made) for _ in range(count))


class Sort(tw.Bolt):
    """Keeps the latest messages, and sends them in order when a tick comes and at the end."""

    kind = tw.Kind.GLOBAL
    outputs = {"last": bool, "messages": list[str]}

    def process(self, t: Any) -> None:
        window = self.state.get("window", [])
        self.state.put("window", [*window[1 - CHUNK :], t.message])

    def process_tick(self) -> None:
        self.emit(False, sorted(self.state.get("window", [])))

    def process_end(self) -> None:
        self.emit(True, sorted(self.state.get("window", [])))


class Report(tw.Bolt):
    """Prints how the messages of a window begin: how many with which digit."""

    def process(self, t: Any) -> None:
        if not t.last:
            print(f"leading to {t.messages[0][:20]}... as the first of {len(t.messages)}")
            return
        print(f"{len(t.messages)} messages, from {t.messages[0][:20]}... on, by their first digit")
        block = drawn("█", "#")
        for digit in "012345678":
            count = sum(message.startswith(digit) for message in t.messages)
            print(f"  {digit}  {count:>3}  {block * count}")


def rollingsort(settings: Mapping[str, str]) -> tw.TopologyBuilder:
    """Describe the topology from messages to the report."""
    count = int(settings.get("messages", 50_000))
    source = tw.items(lambda: chosen(count))
    source.outputs = {"message": str}
    builder = tw.TopologyBuilder("rollingsort")
    builder.add_spout("messages", source)
    builder.add_bolt("sort", Sort(), tick="10 s", order="total").global_("messages")
    builder.add_bolt("report", Report()).global_("sort")
    return builder


if __name__ == "__main__":
    rollingsort({}).build().run()
