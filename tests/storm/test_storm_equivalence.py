"""Whatever a bolt does: inside a run its tuples end as they do over the protocol."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storm_libraries import NAMES, Parent, library

from thalweg.clock import ManualClock
from thalweg.runtimes.inline import Inline
from thalweg.storm import topology_of
from thalweg.testing import run_inline

#: What a bolt does with a word.
WORDS = ("pass", "twice", "loose", "raise", "fail", "hold", "ack")
#: More of these in a row end a run.
MOST = 3


def no_long_rows(words: list[str]) -> bool:
    rows = (len(list(same)) for word, same in itertools.groupby(words) if word == "raise")
    return max(rows, default=0) <= MOST


def acting(lib: ModuleType, flags: dict[str, bool]) -> Any:
    class Acting(lib.Bolt):
        outputs = ("word",)

        def process(self, tup: Any) -> None:
            word = tup.values.word
            if word == "raise":
                raise ValueError(word)
            if word == "fail":
                self.fail(tup)
            elif word == "ack" and not self.auto_ack:
                self.ack(tup.id)
            elif word == "loose":
                self.emit([word], anchors=[])
            elif word != "hold":
                for _ in range(2 if word == "twice" else 1):
                    self.emit([word])

    for name, value in flags.items():
        setattr(Acting, name, value)
    return Acting


def over_the_protocol(cls: Any, words: list[str], folder: Path) -> tuple[Any, Any]:
    """Let children do it, one after the other where one ends; the first word on a tuple counts."""
    ends: dict[int, str] = {}
    emitted: Counter[str] = Counter()
    done = 0
    while True:
        parent = Parent(folder)
        parent.handshake()
        parent.give(*words[done:], first=done + 1)
        heard, status = parent.run(cls)
        for message in heard:
            if message["command"] in ("ack", "fail"):
                ends.setdefault(int(message["id"]) - 1, message["command"])
            elif message["command"] == "emit":
                emitted[message["tuple"][0]] += 1
        if status == 2:
            return ends, emitted
        done = words.index("raise", done) + 1


def inside_a_run(lib: ModuleType, cls: Any, words: list[str], rows: int) -> tuple[Any, Any]:
    ends: dict[int, str] = {}

    class Source(lib.Spout):
        outputs = ("word",)
        left: Any = ()
        open = 0

        def initialize(self, storm_conf: Any, context: Any) -> None:
            self.left = list(enumerate(words))
            self.open = len(words)

        def next_tuple(self) -> None:
            if self.left:
                number, word = self.left.pop(0)
                self.emit([word], tup_id=number)
            elif not self.open:
                raise SystemExit

        def ack(self, tup_id: Any) -> None:
            self._end(tup_id, "ack")

        def fail(self, tup_id: Any) -> None:
            self._end(tup_id, "fail")

        def _end(self, tup_id: Any, how: str) -> None:
            self.open -= 1
            ends[tup_id] = how

    for made in (Source, cls):
        made.__module__ = __name__
        globals()[made.__name__] = made

    class Both(lib.Topology):
        source = Source.spec()
        acting = cls.spec(inputs=[source])

    runtime = Inline(clock=ManualClock(), block_rows=rows)
    outcome = run_inline(topology_of(Both), runtime=runtime)
    return ends, Counter(t.word for t in outcome.outputs["acting"])


FLAGS = st.fixed_dictionaries(
    dict.fromkeys(("auto_ack", "auto_anchor", "auto_fail", "exit_on_exception"), st.booleans())
)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(WORDS), max_size=12).filter(no_long_rows), FLAGS, st.integers(1, 5))
def test_tuples_end_inside_as_they_do_in_children(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    words: list[str],
    flags: dict[str, bool],
    rows: int,
) -> None:
    lib = library(name)
    cls = acting(lib, flags)
    ends, emitted = over_the_protocol(cls, words, tmp_path_factory.mktemp("pids"))
    # What nobody finishes fails, when its time is over.
    expected = {number: ends.get(number, "fail") for number in range(len(words))}
    assert inside_a_run(lib, cls, words, rows) == (expected, emitted)
