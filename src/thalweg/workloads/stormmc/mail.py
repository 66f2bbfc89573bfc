"""Mail: read, deserialised, filtered, modified and measured. It reads a file all the time.

As in the document: mails with somebody outside of the company are dropped; three names are hidden,
and the most frequent word of the body goes into the subject; characters, words and paragraphs are
counted. Every four seconds each task of the metrics bolt tells how many mails per second it sees to
a global bolt, which adds these up.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from thalweg.builder import TopologyBuilder
from thalweg.components import Bolt, Kind, Shared, Spout
from thalweg.contexts import TaskContext
from thalweg.topology import Topology
from thalweg.workloads.stormmc.mails import HIDDEN, INSIDE, Mail, read_mails

#: Seconds between two times that a metrics task tells its throughput.
EVERY = 4.0
#: Fields of a mail between bolts.
FIELDS = {"sender": str, "recipients": list[str], "subject": str, "body": str}
_NAMES = {name: f"Person {number}" for number, name in enumerate(HIDDEN, 1)}
_ANY_NAME = re.compile("|".join(map(re.escape, HIDDEN)))


class ReadMails(Shared, Spout):
    """Gives the mails of a file, which its tasks share: once, or again and again."""

    outputs = {"data": bytes}  # noqa: RUF012 (as users write it)

    def __init__(self, path: Path, again: bool = False) -> None:
        self.path = path
        self.again = again

    def prepare(self, context: TaskContext) -> None:
        """Open the file."""
        self._mails = read_mails(self.path, context.task, context.degree)

    def next_tuple(self) -> None:
        """Give one mail."""
        data = next(self._mails, None)
        if data is None and self.again:
            self.prepare(self.context)
            data = next(self._mails, None)
        if data is None:
            self.finish()
        else:
            self.emit(data)

    def cleanup(self) -> None:
        """Close the file."""
        self._mails.close()


class Deserialise(Bolt):
    """Makes fields of bytes."""

    outputs = FIELDS

    def prepare(self, context: TaskContext) -> None:
        """Make what decodes."""
        self._decoder = msgspec.msgpack.Decoder(Mail)

    def process(self, t: Any) -> None:
        """Decode one mail."""
        mail = self._decoder.decode(t.data)
        self.emit(mail.sender, mail.recipients, mail.subject, mail.body)


def at_home(address: str) -> bool:
    """Say whether an address belongs to the company.

    >>> at_home("ba.bat@thalweg.example"), at_home("ba.bat@elsewhere.example")
    (True, False)
    """
    return address.endswith(INSIDE)


class Filter(Bolt):
    """Drops mails from or to somebody outside of the company."""

    outputs = FIELDS

    def process(self, t: Any) -> None:
        """Pass a mail on, or not."""
        if at_home(t.sender) and all(map(at_home, t.recipients)):
            self.emit(t.sender, t.recipients, t.subject, t.body)


def hide(text: str) -> str:
    """Put numbers in place of the names that are hidden.

    >>> hide("from Karl Stern to all")
    'from Person 2 to all'
    """
    return _ANY_NAME.sub(lambda found: _NAMES[found.group()], text)


def topic(text: str) -> str:
    """Give the most frequent word of a text, of several the first one.

    >>> topic("to be or not to be")
    'to'
    """
    found = Counter(text.split())
    return max(found, key=found.__getitem__) if found else ""


class Modify(Bolt):
    """Hides names, and puts the most frequent word of the body into the subject."""

    outputs = FIELDS

    def process(self, t: Any) -> None:
        """Modify one mail."""
        body = hide(t.body)
        self.emit(t.sender, t.recipients, f"{topic(body)}: {t.subject}", body)


class Metrics(Bolt):
    """Measures mails, and tells now and then how many come per second."""

    outputs = {"task": int, "mails": int, "per_second": float}  # noqa: RUF012 (as users write it)

    def prepare(self, context: TaskContext) -> None:
        """Begin to count."""
        self.begin = context.clock.now()
        self.mails = self.characters = self.words = self.paragraphs = 0

    def process(self, t: Any) -> None:
        """Measure one mail."""
        self.mails += 1
        self.characters += len(t.body)
        self.words += len(t.body.split())
        self.paragraphs += t.body.count("\n\n") + 1

    def process_tick(self) -> None:
        """Tell the mean since the beginning."""
        took = self.context.clock.now() - self.begin
        self.emit(self.context.task, self.mails, self.mails / took if took else 0.0)

    def process_end(self) -> None:
        """Tell how it was in the end."""
        self.process_tick()


class GlobalMetrics(Bolt):
    """Adds up what tasks tell: the mails per second of all of them."""

    kind = Kind.GLOBAL
    outputs = {"mails": int, "per_second": float}  # noqa: RUF012 (as users write it)

    def process(self, t: Any) -> None:
        """Take the news of one task, and send the sum."""
        self.state.put(t.task, (t.mails, t.per_second))
        told = [value for _, value in self.state.items()]
        self.emit(sum(mails for mails, _ in told), sum(rate for _, rate in told))


def mail(path: Path, degree: int = 1, again: bool = False, every: float = EVERY) -> Topology:
    """Process the mails of a file with plain bolts.

    >>> [component.name for component in mail(Path("mails"))]
    ['mails', 'deserialise', 'filter', 'modify', 'metrics', 'global']
    """
    builder = TopologyBuilder("mail")
    builder.add_spout("mails", ReadMails(path, again), degree=degree)
    builder.add_bolt("deserialise", Deserialise(), degree=degree).shuffle("mails")
    builder.add_bolt("filter", Filter(), degree=degree).shuffle("deserialise")
    builder.add_bolt("modify", Modify(), degree=degree).shuffle("filter")
    builder.add_bolt("metrics", Metrics(), degree=degree, tick=every).shuffle("modify")
    builder.add_bolt("global", GlobalMetrics()).global_("metrics")
    return builder.build()
