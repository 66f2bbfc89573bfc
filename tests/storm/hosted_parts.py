"""Components for the tests of hosting, made against either library; importable by children."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any


def components(lib: Any) -> SimpleNamespace:
    """Define the components with the classes of a library."""

    class Sentences(lib.Spout):
        outputs = ("sentence",)

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.left = list(storm_conf.get("sentences", ()))

        def next_tuple(self) -> None:
            if not self.left:
                sys.exit(0)
            self.emit([self.left.pop(0)])

    class Replaying(lib.ReliableSpout):
        """Ends when all of its tuples are done."""

        outputs = ("sentence",)
        max_fails = 2

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.left = list(storm_conf.get("sentences", ()))

        def next_tuple(self) -> None:
            if self.left:
                self.emit([self.left[0]], tup_id=self.left.pop(0))
            elif not self.unacked_tuples:
                sys.exit(0)

        def ack(self, tup_id: Any) -> None:
            self.log(f"done {tup_id} after {self.failed_tuples[tup_id]} fails")
            super().ack(tup_id)

    class OneByOne(lib.ReliableSpout):
        """Gives the next tuple when the one before is done, or given up."""

        outputs = ("sentence",)

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.left = list(storm_conf["sentences"])

        def next_tuple(self) -> None:
            if self.unacked_tuples:
                return
            if not self.left:
                sys.exit(0)
            self.emit([self.left[0]], tup_id=self.left.pop(0))

    class Split(lib.Bolt):
        outputs = ("word",)

        def process(self, tup: Any) -> None:
            for word in tup.values.sentence.split():
                self.emit([word])

    class Count(lib.Bolt):
        outputs = ("word", "n")

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.counts: dict[str, int] = {}

        def process(self, tup: Any) -> None:
            (word,) = tup.values
            self.counts[word] = self.counts.get(word, 0) + 1
            self.emit([word, self.counts[word]])

    class Picky(lib.Bolt):
        """Raises on some words, each time or only once."""

        outputs = ("word",)
        seen: Any = frozenset()

        def process(self, tup: Any) -> None:
            word = tup.values.sentence
            if word == "bad":
                raise ValueError(word)
            if word == "once" and not os.path.exists(self.storm_conf["mark"]):
                open(self.storm_conf["mark"], "w").close()
                raise ValueError(word)
            self.emit([word])

    class Tolerant(Picky):
        exit_on_exception = False

    class LetsFail(lib.Bolt):
        """Lets some tuples fail without raising."""

        outputs = ("sentence",)

        def process(self, tup: Any) -> None:
            if tup.values.sentence == "bad":
                self.fail(tup)

    class Batches(lib.BatchingBolt):
        outputs = ("key", "words")

        def group_key(self, tup: Any) -> Any:
            return tup.values.sentence[0]

        def process_batch(self, key: Any, tups: Any) -> None:
            self.emit([key, [tup.values.sentence for tup in tups]])

    class ByTime(lib.TicklessBatchingBolt):
        outputs = ("key", "words")
        secs_between_batches = 1.0

        def process_batch(self, key: Any, tups: Any) -> None:
            self.emit(["all", [tup.values.sentence for tup in tups]])

    class OwnEmit(lib.Bolt):
        """Has an ``emit`` of its own."""

        outputs = ("word",)

        def emit(self, tup: Any, **more: Any) -> Any:
            return super().emit([value.upper() for value in tup], **more)

        def process(self, tup: Any) -> None:
            assert self.emit([tup.values.sentence], need_task_ids=True) is not None

    class Aiming(lib.Bolt):
        """Chooses the last task of those that read it."""

        outputs = (lib.Stream(["word"], name="aimed", direct=True),)

        def process(self, tup: Any) -> None:
            tasks = [int(i) for i, c in self.context["task->component"].items() if c == "end"]
            self.emit([tup.values[0]], stream="aimed", direct_task=max(tasks))

    class End(lib.Bolt):
        """Sends nothing."""

        outputs = ("word",)

        def process(self, tup: Any) -> None:
            pass

    class Reusing(lib.Bolt):
        """Changes what it has emitted."""

        outputs = ("word", "seen")

        def process(self, tup: Any) -> None:
            row: list[Any] = [None, []]
            for word in tup.values.sentence.split():
                row[0] = word
                row[1].append(word)
                self.emit(row)

    made = {name: value for name, value in locals().items() if isinstance(value, type)}
    for name, cls in made.items():
        cls.__module__, cls.__qualname__ = __name__, name
    return SimpleNamespace(**made)


def __getattr__(name: str) -> Any:
    """Let children import the classes by path, from the library that they have."""
    import streamparse  # noqa: PLC0415 (the one in place: the real one, or ours)

    found = getattr(components(streamparse), name, None)
    if found is None:
        raise AttributeError(name)
    return found
