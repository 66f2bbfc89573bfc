"""Word count on the inline runtime against hand-written Python.

Sentences of ten words (vocabulary 20,000, Zipf 1.1) are split and counted, each word with its
running count. The references do the same: a chain of two generators, and one flat loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import thalweg as tw
from thalweg.bench.measuring import environment, side_by_side
from thalweg.topology import Topology

WORDS, QUICK_WORDS = 2_000_000, 200_000
VOCABULARY, ZIPF, SENTENCE = 20_000, 1.1, 10


def sentences(words: int, seed: int = 1) -> list[str]:
    """Make the input, the same for everyone."""
    weights = 1 / np.arange(1, VOCABULARY + 1) ** ZIPF
    ids = np.random.default_rng(seed).choice(VOCABULARY, words, p=weights / weights.sum())
    names = np.array([f"w{i}" for i in range(VOCABULARY)], dtype=object)[ids].tolist()
    return [" ".join(names[i : i + SENTENCE]) for i in range(0, words, SENTENCE)]


def generators(lines: list[str]) -> int:
    """Count with two chained generator functions."""

    def split(lines: list[str]) -> Iterator[str]:
        for line in lines:
            yield from line.split()

    def count(words: Iterator[str]) -> Iterator[tuple[str, int]]:
        counts: dict[str, int] = {}
        for word in words:
            n = counts[word] = counts.get(word, 0) + 1
            yield word, n

    seen = 0
    for _ in count(split(lines)):
        seen += 1
    return seen


def flat_loop(lines: list[str]) -> int:
    """Count with one loop and a dictionary."""
    counts: dict[str, int] = {}
    for line in lines:
        for word in line.split():
            counts[word] = counts.get(word, 0) + 1
    return sum(counts.values())


class Arrivals(tw.BlockBolt):
    """The end of the line: adds up the rows that arrive."""

    def __init__(self) -> None:
        self.rows = [0]

    def __deepcopy__(self, memo: dict[int, Any]) -> Arrivals:
        return self

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Count rows."""
        self.rows[0] += batch.num_rows


def functions(lines: list[str], on: Any = "inline") -> int:
    """Count with plain functions in the fluent API."""
    arrivals = Arrivals()
    flow = tw.Flow("wordcount")
    source = flow.source("sentences", tw.items(lines), fields={"sentence": str})
    words = source.flat_map(lambda sentence: sentence.split(), fields={"word": str})
    words.key_by("word").scan(0, lambda n: n + 1, into="n").sink("end", arrivals)
    flow.run(on=on)
    return arrivals.rows[0]


class Split(tw.Bolt):
    """Sentence to words."""

    outputs = {"word": str}  # noqa: RUF012 (as users write it)

    def process(self, t: Any) -> None:
        """Emit each word."""
        for word in t.sentence.split():
            self.emit(word)


class Count(tw.Bolt):
    """Running count per word."""

    kind = tw.Kind.KEYED
    outputs = {"word": str, "n": int}  # noqa: RUF012 (as users write it)

    def process(self, t: Any) -> None:
        """Count and emit."""
        n = self.state.get(t.word, 0) + 1
        self.state.put(t.word, n)
        self.emit(t.word, n)


def bolts_topology(lines: list[str], end: Arrivals) -> Topology:
    """Describe the count with Storm-style bolts."""
    builder = tw.TopologyBuilder("wordcount")
    builder.add_spout("sentences", tw.items(lines), fields={"sentence": str})
    builder.add_bolt("split", Split()).shuffle("sentences")
    builder.add_bolt("count", Count()).fields("split", "word")
    builder.add_bolt("end", end).shuffle("count")
    return builder.build()


def bolts(lines: list[str], on: Any = "inline") -> int:
    """Count with Storm-style bolts."""
    arrivals = Arrivals()
    bolts_topology(lines, arrivals).run(on=on)
    return arrivals.rows[0]


def run(quick: bool, report: Callable[[str], None]) -> dict[str, Any]:
    """Word count with functions and with bolts, against generators and a flat loop."""
    lines = sentences(QUICK_WORDS if quick else WORDS)
    candidates = {c.__name__: c for c in (generators, flat_loop, functions, bolts)}
    expected = len(lines) * SENTENCE

    def checked(candidate: Callable[[list[str]], int]) -> int:
        items = candidate(lines)
        if items != expected:
            text = f"{candidate.__name__} saw {items} words instead of {expected}"
            raise tw.ThalwegError(text)
        return items

    timed = {name: (lambda c=c: checked(c)) for name, c in candidates.items()}
    results = side_by_side(timed, 3 if quick else 5, report)
    summary: dict[str, Any] = {}
    for kind in ("best", "median"):
        suffix = "" if kind == "best" else "_median"
        limit = results["generators"][kind]
        summary[f"ratio_vs_generators{suffix}"] = results["functions"][kind] / limit
        summary[f"bolt_ratio_vs_generators{suffix}"] = results["bolts"][kind] / limit
        summary[f"ratio_vs_flat_loop{suffix}"] = (
            results["functions"][kind] / results["flat_loop"][kind]
        )
    return {
        "name": "inline-wordcount",
        "environment": environment() | {"words": expected, "vocabulary": VOCABULARY},
        "results": results,
        "summary": summary,
    }
