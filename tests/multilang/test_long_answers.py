"""Children that take long over one `next`, or one tuple, or never come to its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import RUNTIMES, Given, Seen, collecting, python, run

import thalweg as tw
from thalweg.errors import ThalwegError
from thalweg.multilang import KeyedShellBolt, ShellBolt, ShellSpout


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_next_without_end_gives_its_tuples_and_can_be_stopped(on: str) -> None:
    stop, rows, seen = threading.Event(), list[int](), Seen()

    def take(t: Any) -> None:
        rows.append(t.n)
        if len(rows) == 5000:
            stop.set()

    builder = tw.TopologyBuilder("endless")
    spout = ShellSpout(python("endless_spout.py"), ["n"], linger=0.1)
    builder.add_spout("numbers", spout)
    builder.add_bolt("out", tw.call(take)).shuffle("numbers")
    builder.build().run(on=on, stop=stop, listen=seen.events.append)
    assert rows == list(range(len(rows)))
    assert len(rows) >= 5000
    (notice,) = seen.notices
    assert "still answers to next 0.1 s after the run was to end" in notice


@pytest.mark.parametrize("on", RUNTIMES)
def test_tuples_go_on_before_a_next_has_ended_and_their_ends_are_told_behind_it(
    on: str, tmp_path: Path
) -> None:
    acked = tmp_path / "acked"

    class Noting(ShellSpout):
        def ack(self, id: Any) -> None:
            acked.touch()
            super().ack(id)

    builder = tw.TopologyBuilder("long")
    builder.add_spout("words", Noting(python("long_next.py", str(acked)), ["word"]))
    builder.add_bolt("out", collecting(rows := [])).shuffle("words")
    seen = run(builder.build(), on, rows)
    assert rows == ["one", "two"]
    told = [text for text in seen.said("words") if text != "next"]
    assert told == ["activate", "sent to [2]", "ack", "ack"]


def test_ends_of_tuples_wait_for_the_end_of_a_next_up_to_a_bound() -> None:
    spout = ShellSpout(python("endless_ids.py"), ["n"], most_held=50)
    builder = tw.TopologyBuilder("endless")
    builder.add_spout("numbers", spout)
    builder.add_bolt("out", collecting([])).shuffle("numbers")
    with pytest.raises(ThalwegError, match="at most 50 tuples that end during one next"):
        builder.build().run(on="inline")


@pytest.mark.parametrize("on", RUNTIMES)
def test_tuples_go_on_before_a_bolt_is_done_with_the_one_that_they_stem_from(
    on: str, tmp_path: Path
) -> None:
    enough, rows = tmp_path / "enough", list[tuple[int, int]]()

    def take(t: Any) -> None:
        rows.append((t.value, t.n))
        enough.touch()

    builder = tw.TopologyBuilder("long")
    builder.add_spout("values", Given(range(2500), ended := []))
    bolt = ShellBolt(python("long_tuple.py", str(enough)), ["value", "n"], max_pending=100)
    builder.add_bolt("it", bolt).shuffle("values")
    builder.add_bolt("out", tw.call(take)).shuffle("it")
    seen = run(builder.build(), on)
    if on == "inline":
        assert rows == sorted(rows)
    longest = max(n for _, n in rows)
    assert sorted(rows) == [(0, n) for n in range(longest + 1)] + [(n, 0) for n in range(1, 2500)]
    assert sorted(ended) == [(n, "ack") for n in range(2500)]
    assert not seen.notices


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("pending", [10, 1000])
def test_what_waits_behind_a_long_tuple_is_not_held(on: str, pending: int, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    command = python("long_tuple.py", str(enough))
    bolt = ShellBolt(command, ["value", "n"], max_pending=pending, most_held=50)
    builder = tw.TopologyBuilder("long")
    builder.add_spout("values", tw.items(range(200)), fields={"value": int})
    builder.add_bolt("it", bolt).shuffle("values")
    builder.add_bolt("out", tw.call(lambda _: enough.touch())).shuffle("it")
    assert run(builder.build(), on).metrics.component("out").received > 200


@pytest.mark.parametrize("on", RUNTIMES)
def test_tuples_go_on_though_the_source_has_ended(on: str, tmp_path: Path) -> None:
    enough, rows = tmp_path / "enough", list[int]()

    def take(t: Any) -> None:
        rows.append(t.n)
        enough.touch()

    builder = tw.TopologyBuilder("long")
    builder.add_spout("values", tw.items([1]), fields={"value": int})
    bolt = ShellBolt(python("long_tuple.py", str(enough)), ["value", "n"])
    builder.add_bolt("it", bolt).shuffle("values")
    builder.add_bolt("out", tw.call(take)).shuffle("it")
    run(builder.build(), on)
    assert sorted(rows) == list(range(len(rows)))


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_bolt_that_is_never_done_with_a_tuple_is_ended_when_the_run_is(on: str) -> None:
    stop, rows, seen = threading.Event(), list[int](), Seen()

    def take(t: Any) -> None:
        rows.append(t.n)
        stop.set()

    builder = tw.TopologyBuilder("endless")
    builder.add_spout("values", tw.items([1, 2]), fields={"value": int})
    bolt = ShellBolt(python("long_tuple.py"), ["value", "n"], linger=0.1)
    builder.add_bolt("it", bolt).shuffle("values")
    builder.add_bolt("out", tw.call(take)).shuffle("it")
    builder.build().run(on=on, stop=stop, listen=seen.events.append)
    assert sorted(rows) == list(range(len(rows)))
    (notice,) = seen.notices
    assert "still sends tuples 0.1 s after the run was to end" in notice
    assert "tuples that it has not finished" in notice


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_keyed_bolt_that_is_never_done_with_a_tuple_ends_the_run_with_an_error(on: str) -> None:
    stop = threading.Event()

    def words() -> Iterator[str]:
        yield "a"
        stop.set()
        yield from iter(lambda: "a", None)

    builder = tw.TopologyBuilder("endless")
    builder.add_spout("words", tw.items(words), fields={"word": str})
    bolt = KeyedShellBolt(python("long_tuple.py"), ["value", "n"], linger=0.1)
    builder.add_bolt("it", bolt).fields("words", "word")
    builder.add_bolt("out", collecting([])).shuffle("it")
    with pytest.raises(ThalwegError, match=r"still sends tuples .* after the run was to end"):
        builder.build().run(on=on, stop=stop)
