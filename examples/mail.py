"""Mails of a company: deserialised, filtered, modified and measured, one bolt behind the other.

Shows: the mail topology of the Storm-MC benchmark, with bytes and lists as fields, bolts that drop
or change tuples, a keyed bolt that measures by sender and tells the rate now and then. Try:

    thalweg run examples/mail.py
    thalweg run examples/mail.py --set mails=20_000
    thalweg run examples/mail.py --on spark
    thalweg describe examples/mail.py
    thalweg bench storm-mc --topology mail

Settings: mails (how many are made up).
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

import thalweg as tw
from thalweg.workloads.boards import drawn
from thalweg.workloads.stormmc.mail import Deserialise, Filter, Modify
from thalweg.workloads.stormmc.mails import mails


class Measure(tw.Bolt):
    """Adds up mails, words and paragraphs of each sender."""

    kind = tw.Kind.KEYED
    outputs = {"sender": str, "mails": int, "words": int, "paragraphs": int, "topic": str}
    streams = {"rate": {"mails": int}}

    def prepare(self, context: tw.TaskContext) -> None:
        self.recent = 0

    def process(self, t: Any) -> None:
        mails, words, paragraphs = self.state.get(t.sender, (0, 0, 0))
        words += len(t.body.split())
        paragraphs += t.body.count("\n\n") + 1
        self.state.put(t.sender, (mails + 1, words, paragraphs))
        self.recent += 1
        self.emit(t.sender, mails + 1, words, paragraphs, t.subject.partition(":")[0])

    def process_tick(self) -> None:
        self.emit(self.recent, stream="rate")
        self.recent = 0


class Report(tw.Bolt):
    """Keeps the latest of each sender and counts topics; prints both at the end."""

    def prepare(self, context: tw.TaskContext) -> None:
        self.senders: dict[str, tuple[int, int, int]] = {}
        self.topics: Counter[str] = Counter()

    def process(self, t: Any) -> None:
        if self.origin.stream == "rate":
            print(f"leading to {t.mails} mails in the last four seconds", flush=True)
            return
        self.senders[t.sender] = (t.mails, t.words, t.paragraphs)
        self.topics[t.topic] += 1

    def process_end(self) -> None:
        mails, words, paragraphs = (sum(s[i] for s in self.senders.values()) for i in range(3))
        print(f"{mails:,} mails of {len(self.senders):,} senders within the company")
        print(f"{words:,} words in {paragraphs:,} paragraphs\n\nwhat they are about")
        block, most = drawn("█", "#"), max(self.topics.values(), default=1)
        for topic, count in sorted(self.topics.items(), key=lambda pair: (-pair[1], pair[0]))[:8]:
            print(f"  {topic:<10} {count:>6,}  {block * round(40 * count / most)}")


def mail(settings: Mapping[str, str]) -> tw.TopologyBuilder:
    """Describe the topology from bytes to the report."""
    count = int(settings.get("mails", 2000))
    source = tw.items(lambda: map(msgspec.msgpack.encode, mails(count)))
    source.outputs = {"data": bytes}
    builder = tw.TopologyBuilder("mail")
    builder.add_spout("mails", source)
    builder.add_bolt("deserialise", Deserialise()).shuffle("mails")
    builder.add_bolt("filter", Filter()).shuffle("deserialise")
    builder.add_bolt("modify", Modify(), degree=2).shuffle("filter")
    builder.add_bolt("measure", Measure(), degree=2, tick="4 s").fields("modify", "sender")
    builder.add_bolt("report", Report()).global_("measure").global_("measure", stream="rate")
    return builder


if __name__ == "__main__":
    mail({}).build().run()
