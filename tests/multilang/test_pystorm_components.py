"""pystorm's own classes, unmodified, as children."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from children import RUNTIMES, Given, collecting, python, run

import thalweg as tw
from thalweg.multilang import ShellBolt, ShellSpout

pytest.importorskip("pystorm", reason="pystorm is not installed: pip install pystorm")

SERIALIZERS = ("json", "msgpack")


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_words_are_counted_and_every_sentence_is_acknowledged(on: str, serializer: str) -> None:
    rows: list[str] = []
    builder = tw.TopologyBuilder("wordcount")
    spout = python("words_spout.py", serializer)
    config = {"sentences": 9}
    builder.add_spout(
        "sentences", ShellSpout(spout, ["sentence"], serializer=serializer, config=config)
    )
    split = ShellBolt(python("split_bolt.py", serializer), ["word"], serializer=serializer)
    builder.add_bolt("split", split, degree=2).shuffle("sentences")
    builder.add_bolt("out", collecting(rows)).shuffle("split")
    seen = run(builder.build(), on, rows)
    assert seen.counts == {"to": 6, "be": 6, "or": 3, "not": 3, "that": 3, "is": 3}
    assert (seen.metrics.acked, seen.metrics.failed) == (9, 0)


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_a_batching_bolt_holds_tuples_until_a_tick_and_acknowledges_them_then(
    on: str, serializer: str
) -> None:
    rows: list[tuple[str, int]] = []
    ended: list[tuple[int, str]] = []
    words = ["to", "be", "or", "not", "to", "be"]
    builder = tw.TopologyBuilder("batches")
    builder.add_spout("words", Given(words, ended))
    bolt = ShellBolt(
        python("batching_bolt.py", serializer), ["word", "n"], serializer=serializer, tick=0.1
    )
    builder.add_bolt("count", bolt).shuffle("words")
    builder.add_bolt("out", collecting(rows)).shuffle("count")
    run(builder.build(), on, rows)
    total: Counter[str] = Counter()
    for word, n in rows:
        total[word] += n
    assert total == Counter(words)
    assert sorted(ended) == [(n, "ack") for n in range(len(words))]


class FailsSome(tw.Bolt):
    """Lets some numbers fail as often as told, and others pass."""

    outputs = {"n": tw.anything}

    def __init__(self, often: dict[int, int]) -> None:
        self.often = often

    def process(self, t) -> None:
        if self.often.get(t.n, 0):
            self.often[t.n] -= 1
            self.fail(t)
        else:
            self.emit(t.n)


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_a_reliable_spout_sends_again_what_failed_until_its_limit(on: str, serializer: str) -> None:
    rows: list[int] = []
    builder = tw.TopologyBuilder("reliable")
    spout = ShellSpout(
        python("reliable_spout.py", serializer),
        ["n"],
        serializer=serializer,
        config={"numbers": 5, "max_fails": 3},
    )
    builder.add_spout("numbers", spout)
    builder.add_bolt("picky", FailsSome({1: 2, 4: 100})).shuffle("numbers")
    builder.add_bolt("out", collecting(rows)).shuffle("picky")
    seen = run(builder.build(), on, rows)
    assert sorted(rows) == [0, 1, 2, 3]  # 4 fails for ever: given up
    assert seen.metrics.acked == 4
    assert seen.metrics.failed >= 2 + 3


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("ways", [(), ("stay",)])
@pytest.mark.parametrize("at", [0, 2, 5])
def test_a_bolt_that_raises_is_replaced_and_only_the_tuple_at_hand_fails(
    on: str, ways: tuple[str, ...], at: int, tmp_path: Path
) -> None:
    rows: list[int] = []
    ended: list[tuple[int, str]] = []
    builder = tw.TopologyBuilder("raising")
    builder.add_spout("numbers", Given(range(6), ended))
    bolt = ShellBolt(python("raising_bolt.py", str(at), str(tmp_path / "once"), *ways), ["n"])
    builder.add_bolt("it", bolt).shuffle("numbers")
    builder.add_bolt("out", collecting(rows)).shuffle("it")
    seen = run(builder.build(), on, rows)
    assert sorted(rows) == list(range(6))
    assert sorted(ended) == sorted([(n, "ack") for n in range(6)] + [(at, "fail")])
    assert len(seen.notices) == (0 if ways else 1)
    assert any("a bad value" in text for text in seen.said("it"))


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_bolt_that_raises_on_tuples_without_ids_does_not_end_the_run(
    on: str, tmp_path: Path
) -> None:
    rows: list[int] = []
    builder = tw.TopologyBuilder("raising")
    builder.add_spout("numbers", tw.items(range(6)), fields={"n": int})
    bolt = ShellBolt(python("raising_bolt.py", "2", str(tmp_path / "once")), ["n"])
    builder.add_bolt("it", bolt).shuffle("numbers")
    builder.add_bolt("out", collecting(rows)).shuffle("it")
    seen = run(builder.build(), on, rows)
    assert sorted(rows) == [0, 1, 3, 4, 5]
    assert len(seen.notices) == 1
