"""The topologies of the Storm-MC document as streamparse's users write them.

The same classes run inside the run, and as child processes that speak Storm's protocol: on
streamparse itself where it is installed, or on our classes of the same names. Mails are JSON here,
which that protocol can carry.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import os
import random
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from thalweg.builder import TopologyBuilder
from thalweg.storm.building import Hosting, body_of, build
from thalweg.storm.plans import plan_of
from thalweg.storm.settings import TICK
from thalweg.topology import Topology
from thalweg.workloads.stormmc import mail as mailing
from thalweg.workloads.stormmc import sorting
from thalweg.workloads.stormmc.mails import Mail, mails
from thalweg.workloads.stormmc.vocabulary import sentences
from thalweg.workloads.stormmc.words import SENTENCES, WordBlocks

#: Variable that says, as "own", to leave streamparse alone.
LIBRARY = "THALWEG_BENCH_STORM"
if TYPE_CHECKING:
    from thalweg.storm import Bolt, Grouping, Spout
    from thalweg.storm import Topology as StormTopology
else:
    own = os.environ.get(LIBRARY) == "own" or importlib.util.find_spec("streamparse") is None
    library = importlib.import_module("thalweg.storm" if own else "streamparse")
    Bolt, Grouping, Spout = library.Bolt, library.Grouping, library.Spout
    StormTopology = library.Topology

# Mails that a spout keeps in memory.
_MAILS = 200


class Sentences(Spout):
    """Gives sentences again and again."""

    outputs: ClassVar = ["sentence"]

    def initialize(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Begin with the first one."""
        self.lines = itertools.cycle(sentences(SENTENCES))

    def next_tuple(self) -> None:
        """Give one."""
        self.emit([next(self.lines)])


class Split(Bolt):
    """Cuts a sentence into words."""

    outputs: ClassVar = ["word"]

    def process(self, tup: Any) -> None:
        """Emit each word."""
        for word in tup.values[0].split():
            self.emit([word])


class Count(Bolt):
    """Counts words, each with its running count."""

    outputs: ClassVar = ["word", "count"]

    def initialize(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Begin to count."""
        self.counts: Counter[str] = Counter()

    def process(self, tup: Any) -> None:
        """Count one."""
        word = tup.values[0]
        self.counts[word] += 1
        self.emit([word, self.counts[word]])


class WordCount(StormTopology):
    """The topology."""

    sentences = Sentences.spec()
    split = Split.spec(inputs=[sentences])
    count = Count.spec(inputs={split: Grouping.fields("word")})


class Mails(Spout):
    """Gives mails again and again."""

    outputs: ClassVar = ["data"]

    def initialize(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Make some."""
        made = [msgspec.json.encode(mail).decode() for mail in mails(_MAILS)]
        self.mails = itertools.cycle(made)

    def next_tuple(self) -> None:
        """Give one."""
        self.emit([next(self.mails)])


class Deserialise(Bolt):
    """Makes fields of JSON."""

    outputs: ClassVar = list(mailing.FIELDS)

    def initialize(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Make what decodes."""
        self.decode = msgspec.json.Decoder(Mail).decode

    def process(self, tup: Any) -> None:
        """Decode one mail."""
        mail = self.decode(tup.values[0])
        self.emit([mail.sender, mail.recipients, mail.subject, mail.body])


class Filter(Bolt):
    """Drops mails from or to somebody outside of the company."""

    outputs: ClassVar = list(mailing.FIELDS)

    def process(self, tup: Any) -> None:
        """Pass a mail on, or not."""
        sender, recipients, *_ = tup.values
        if mailing.at_home(sender) and all(map(mailing.at_home, recipients)):
            self.emit(list(tup.values))


class Modify(Bolt):
    """Hides names, and puts the most frequent word of the body into the subject."""

    outputs: ClassVar = list(mailing.FIELDS)

    def process(self, tup: Any) -> None:
        """Modify one mail."""
        sender, recipients, subject, body = tup.values
        body = mailing.hide(body)
        self.emit([sender, recipients, f"{mailing.topic(body)}: {subject}", body])


class Metrics(Bolt):
    """Measures mails, and tells with each tick how many have come since the last one."""

    outputs: ClassVar = ["mails", "words", "paragraphs"]

    def initialize(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Begin to count."""
        self.mails = self.words = self.paragraphs = 0

    def process(self, tup: Any) -> None:
        """Measure one mail."""
        body = tup.values[3]
        self.mails += 1
        self.words += len(body.split())
        self.paragraphs += body.count("\n\n") + 1

    def process_tick(self, tup: Any) -> None:
        """Tell, and begin anew."""
        self.emit([self.mails, self.words, self.paragraphs])
        self.mails = self.words = self.paragraphs = 0


class GlobalMetrics(Bolt):
    """Adds up what all metrics tasks tell."""

    outputs: ClassVar = ["mails"]

    def initialize(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Begin to count."""
        self.mails = 0

    def process(self, tup: Any) -> None:
        """Add what one task tells."""
        self.mails += tup.values[0]
        self.emit([self.mails])


class MailTopology(StormTopology):
    """Mails."""

    mails = Mails.spec()
    deserialise = Deserialise.spec(inputs=[mails])
    kept = Filter.spec(inputs=[deserialise], name="filter")
    modify = Modify.spec(inputs=[kept])
    metrics = Metrics.spec(inputs=[modify], config={TICK: mailing.EVERY})
    total = GlobalMetrics.spec(inputs={metrics: Grouping.GLOBAL}, name="global")


class Messages(Spout):
    """Gives one of its messages at random."""

    outputs: ClassVar = ["message"]

    def initialize(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Make messages, and choose among them."""
        self.chance = random.Random(context["taskid"])  # noqa: S311 (to be repeatable)
        self.messages = sorting.messages(self.chance)

    def next_tuple(self) -> None:
        """Give one."""
        self.emit([self.chance.choice(self.messages)])


class Sort(Bolt):
    """Keeps the latest messages; sorts and sends them when a tick comes."""

    outputs: ClassVar = ["messages"]

    def initialize(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Begin with an empty window."""
        self.window: deque[str] = deque(maxlen=sorting.CHUNK)

    def process(self, tup: Any) -> None:
        """Keep a message."""
        self.window.append(tup.values[0])

    def process_tick(self, tup: Any) -> None:
        """Send the window in order."""
        self.emit([sorted(self.window)])


class RollingSort(StormTopology):
    """Messages."""

    messages = Messages.spec()
    sort = Sort.spec(inputs=[messages], config={TICK: sorting.EVERY})


#: By name: the class, and the component whose tuples count.
TOPOLOGIES: dict[str, tuple[Any, str]] = {
    "wordcount": (WordCount, "count"),
    "mail": (MailTopology, "metrics"),
    "rolling_sort": (RollingSort, "sort"),
}
#: Ways to run these classes.
HOSTINGS = {
    "in_process": Hosting(),
    "multilang_json": Hosting(serializer="json", isolation="process"),
    "multilang_msgpack": Hosting(serializer="msgpack", isolation="process"),
}


def whole(name: str, way: str) -> Topology:
    """Make a topology, all of its components run in one way.

    >>> [component.name for component in whole("wordcount", "in_process")]
    ['sentences', 'split', 'count']
    """
    return build(plan_of(TOPOLOGIES[name][0], name), HOSTINGS[way])


def one_bolt(way: str) -> Topology:
    """Make a topology of words that come as blocks, and the counting bolt.

    >>> [component.name for component in one_bolt("multilang_json")]
    ['words', 'count']
    """
    counting = next(part for part in plan_of(WordCount, "").parts if part.name == "count")
    builder = TopologyBuilder("count")
    builder.add_spout("words", WordBlocks(sentences(SENTENCES)))
    builder.add_bolt("count", body_of(counting, HOSTINGS[way])).fields("words", "word")
    return builder.build()
