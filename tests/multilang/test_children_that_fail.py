"""A child that dies, hangs or talks nonsense is replaced, and nothing is lost; or the run ends."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from children import RUNTIMES, Given, Seen, collecting, python, run, through

import thalweg as tw
from thalweg.errors import ComponentError, ThalwegError
from thalweg.events import TupleRefused
from thalweg.multilang import KeyedShellBolt, ShellBolt, child
from thalweg.multilang.child import Child, ChildError
from thalweg.runtimes.inline import Inline
from thalweg.topology import Topology

WAYS = ("die", "kill", "garbage", "half", "unknown-id", "twice", "no-command", "deep")


def odd(when: int, how: str, once: Path | str = "", **settings) -> ShellBolt:
    return ShellBolt(python("odd.py", str(when), how, str(once)), ["value"], **settings)


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("when", [0, 7])
def test_a_child_that_fails_once_is_replaced_and_no_tuple_is_lost(
    how: str, when: int, on: str, tmp_path: Path
) -> None:
    seen = through(odd(when, how, tmp_path / "done"), range(20), on)
    assert set(seen.rows) == set(range(20))
    assert len(seen.notices) == 1
    assert "started anew (1 of 3)" in seen.notices[0]


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_child_that_says_nothing_for_too_long_is_killed_and_replaced(
    on: str, tmp_path: Path
) -> None:
    seen = through(odd(3, "hang", tmp_path / "done", timeout=1.5), range(10), on)
    assert sorted(seen.rows) == list(range(10))
    assert "said nothing for 1.5 s" in seen.notices[0]


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("when", ["beginning", "tuple"])
def test_a_child_that_only_logs_for_too_long_is_killed_and_replaced(
    when: str, on: str, tmp_path: Path
) -> None:
    bolt = ShellBolt(python("chatting.py", when, str(tmp_path / "done")), ["value"], timeout=1.5)
    seen = through(bolt, range(10), on)
    assert sorted(seen.rows) == list(range(10))
    assert "said nothing of its work for 1.5 s" in seen.notices[0]
    assert "still there" in seen.said("it")


@pytest.mark.parametrize(("timeout", "limit"), [(0.01, 0.2), (0.3, 0.3)])
def test_a_child_has_time_of_its_own_to_get_ready(
    timeout: float, limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "START", 0.2)
    never = ShellBolt(["sleep", "infinity"], ["value"], timeout=timeout, restarts=0)
    with pytest.raises(ChildError, match=rf"not said its process id within {limit:g} s"):
        through(never, range(3), "inline")


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize(
    ("how", "tells"),
    [
        ("die", "ended with status 7"),
        ("leave", "ended with status 0; its last words on standard error:\n  about to leave"),
        ("kill", "ended by SIGKILL"),
        ("garbage", "Segmentation violation"),
        ("half", "it has ended in the middle of a message"),
        ("deep", "JSON with a line 'end'"),
        ("unknown-id", 'ack of tuple "nobody\'s"'),
        ("no-command", "an object with a 'command'"),
    ],
)
def test_a_child_that_always_fails_ends_the_run_and_says_why(how: str, tells: str, on: str) -> None:
    with pytest.raises(ChildError) as caught:
        through(odd(0, how, restarts=2), range(10), on)
    text = str(caught.value)
    assert "component 'it', task 0: its child has failed, 3 times in a row" in text
    assert tells in text


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("keyed", [False, True])
def test_a_child_that_ends_at_some_tuples_is_replaced_as_often_as_others_come_between(
    keyed: bool, on: str
) -> None:
    words = ["a", "bad", "a", "bad", "a", "bad", "b", "bad"]
    rows: list[tuple[str, int]] = []
    seen = run(counting(tw.items(words), rows, keyed, restarts=1), on, rows)
    assert [word for word, _ in rows] == ["a", "a", "a", "b"]
    assert not keyed or rows == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
    assert len(seen.notices) == words.count("bad")
    assert all("started anew (1 of 1)" in text for text in seen.notices)


def counting(source: Any, rows: list[Any], keyed: bool = False, **settings: Any) -> Topology:
    """Count words in a child that lets the word "bad" fail, and ends with an error."""
    builder = tw.TopologyBuilder("bad-words")
    fields = {} if isinstance(source, tw.Spout) else {"fields": {"value": str}}
    builder.add_spout("words", source, **fields)
    kind = KeyedShellBolt if keyed else ShellBolt
    reads = builder.add_bolt("count", kind(python("ends_at_bad.py"), ["word", "n"], **settings))
    reads.fields("words", "value") if keyed else reads.shuffle("words")
    builder.add_bolt("out", collecting(rows)).shuffle("count")
    return builder.build()


@pytest.mark.parametrize("on", [Inline(block_rows=1), "inline", "local"])
@pytest.mark.parametrize("keyed", [False, True])
def test_a_child_that_ends_at_each_tuple_ends_the_run(keyed: bool, on: Any) -> None:
    rows: list[tuple[str, int]] = []
    words = ["a", "bad", "b", *["bad"] * 9, "c"]
    with pytest.raises(ChildError, match="its child has failed, 4 times in a row"):
        run(counting(tw.items(words), rows, keyed), on, rows)
    assert [word for word, _ in rows] in ([], ["a", "b"])


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("keyed", [False, True])
def test_a_child_that_ends_long_after_a_tuple_that_it_let_fail_has_told_nobody(
    keyed: bool, on: str
) -> None:
    topology = counting(Given(["odd", "a", "worse"], tries=1), [], keyed, restarts=0)
    seen = Seen()
    with pytest.raises(ChildError, match="its child has failed: "):
        topology.run(on=on, listen=seen.events.append)
    assert seen.notices == []


@pytest.mark.parametrize("on", [Inline(block_rows=1), "inline", "local"])
@pytest.mark.parametrize("keyed", [False, True])
def test_a_tuple_that_its_spout_hears_of_may_fail_as_often_as_that_sends_it(
    keyed: bool, on: Any
) -> None:
    source = Given(["a", "bad", "b"], had := [], tries=6)
    seen = run(counting(source, rows := [], keyed, restarts=1), on)
    assert sorted(word for word, _ in rows) == ["a", "b"]
    assert had.count((1, "fail")) == 6
    assert [text.rpartition(";")[2] for text in seen.notices] == [
        " it is started anew and its spout is told"
    ] * 6


class Stopping(Given):
    """Ends the run with its last value."""

    def __init__(self, values: list[str], stop: threading.Event) -> None:
        super().__init__(values, tries=1)
        self.stop = stop

    def __deepcopy__(self, memo: dict[int, Any]) -> Stopping:
        return self

    def next_tuple(self) -> None:
        super().next_tuple()
        if self.next == len(self.values):
            self.stop.set()


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("most", [3, 1000])
def test_a_child_that_goes_on_failing_is_ended_with_the_run_and_what_is_left_is_told(
    on: str, most: int
) -> None:
    stop, seen = threading.Event(), Seen()
    source = Stopping(["a", "bad"] * 4, stop)  # as many as come at once
    made = counting(source, seen.rows, linger=1e-6, max_pending=most)
    made.run(on=on, stop=stop, listen=seen.events.append)
    assert seen.rows == [("a", 1), ("a", 1)]
    assert sorted(source.ended) == [(n, "fail" if n % 2 or n > 2 else "ack") for n in range(8)]
    _, notice = seen.notices
    assert "s after the run was to end its child still fails" in notice
    assert "has ended with status 1; it is ended with 4 tuples that it has not" in notice


@pytest.mark.parametrize("on", RUNTIMES)
def test_what_comes_to_a_bolt_whose_child_was_ended_is_told_too(on: str) -> None:
    stop, seen = threading.Event(), Seen()
    builder = tw.TopologyBuilder("bad-words")
    for name in ("one", "two"):
        builder.add_spout(name, Stopping(["a", "bad"] * 4, stop), max_pending=8)
    bolt = ShellBolt(python("ends_at_bad.py"), ["word", "n"], linger=1e-6)
    builder.add_bolt("count", bolt).shuffle("one").shuffle("two")
    builder.add_bolt("out", collecting(seen.rows)).shuffle("count")
    builder.build().run(on=on, stop=stop, listen=seen.events.append)
    _, notice = seen.notices
    assert "ended with 12 tuples" in notice


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_keyed_child_that_goes_on_failing_ends_the_run_with_an_error(on: str) -> None:
    stop = threading.Event()
    made = counting(Stopping(["a", "bad"] * 10, stop), [], keyed=True, linger=1e-6)
    with pytest.raises(ChildError, match="s after the run was to end its child still fails"):
        made.run(on=on, stop=stop)


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_spout_hears_which_tuples_a_keyed_child_let_fail_before_it_ended(on: str) -> None:
    builder = tw.TopologyBuilder("bad-words")
    builder.add_spout("words", Given(["a", "bad", "b", "bad", "a"], ended := [], tries=1))
    bolt = KeyedShellBolt(python("ends_at_bad.py"), ["word", "n"], restarts=1)
    builder.add_bolt("count", bolt).fields("words", "value")
    builder.add_bolt("out", collecting(rows := [])).shuffle("count")
    run(builder.build(), on, rows)
    assert sorted(ended) == [(0, "ack"), (1, "fail"), (2, "ack"), (3, "fail"), (4, "ack")]
    assert sorted(rows) == [("a", 1), ("a", 2), ("b", 1)]


def test_an_error_shows_the_last_words_of_the_child() -> None:
    with pytest.raises(ChildError, match="about to die"):
        through(odd(0, "die", restarts=0), range(3), "inline")


def test_last_words_are_heard_though_they_are_read_when_the_child_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended, read, wait = threading.Event(), Child._read_errors, Child._ended

    def read_late(child: Child) -> None:
        ended.wait()
        read(child)

    def wait_and_tell(child: Child) -> int:
        try:
            return wait(child)
        finally:
            ended.set()

    monkeypatch.setattr(Child, "_read_errors", read_late)
    monkeypatch.setattr(Child, "_ended", wait_and_tell)
    with pytest.raises(ChildError, match="about to die"):
        through(odd(0, "die", restarts=0), range(3), "inline")


@pytest.mark.parametrize(
    ("how", "tells"), [("wrong-stream", "'nowhere'"), ("wrong-length", "1 values: value")]
)
def test_a_child_that_sends_what_its_component_does_not_declare_ends_the_run(
    how: str, tells: str
) -> None:
    with pytest.raises(ThalwegError, match=tells):
        through(odd(0, how), range(3), "inline")


def test_a_command_that_does_not_exist_is_named() -> None:
    with pytest.raises(ThalwegError, match="no-such-program"):
        through(ShellBolt("no-such-program --x", ["value"]), range(3), "inline")


def test_a_child_that_never_finishes_its_tuples_is_stopped_at_a_bound() -> None:
    bolt = ShellBolt(python("silent.py"), ["value"], most_held=50)
    with pytest.raises(
        ThalwegError, match=r"at most 50 tuples that it has not finished.*thalweg\.most_held"
    ):
        through(bolt, range(100), "inline")


@pytest.mark.parametrize("on", RUNTIMES)
def test_counts_of_a_keyed_child_are_exact_though_it_dies(on: str, tmp_path: Path) -> None:
    words = [f"w{n % 5}" for n in range(50)] + ["die"] + [f"w{n % 5}" for n in range(50)]
    rows: list[tuple[str, int]] = []
    builder = tw.TopologyBuilder("keyed")
    builder.add_spout("words", Given(words))
    bolt = KeyedShellBolt(python("keyed_count.py", str(tmp_path / "died")), ["word", "n"])
    builder.add_bolt("count", bolt, degree=2).fields("words", "value")
    builder.add_bolt("out", collecting(rows)).shuffle("count")
    seen = run(builder.build(), on, rows)
    expected = [(f"w{k}", n) for k in range(5) for n in range(1, 21)] + [("die", 1)]
    assert sorted(rows) == sorted(expected)
    assert len(seen.notices) == 1


@pytest.mark.parametrize("on", RUNTIMES)
def test_counts_of_a_keyed_child_are_exact_though_it_reports_errors(on: str) -> None:
    words = ["a", "bad", "a", "b", "bad", "a", "b"]
    rows: list[tuple[str, int]] = []
    builder = tw.TopologyBuilder("keyed")
    builder.add_spout("words", tw.items(words), fields={"word": str})
    bolt = KeyedShellBolt(python("keyed_errors.py"), ["word", "n"])
    builder.add_bolt("count", bolt).fields("words", "word")
    builder.add_bolt("out", collecting(rows)).shuffle("count")
    small = tw.Local(block_rows=2, workers=1) if on == "local" else Inline(block_rows=2)
    seen = run(builder.build(), small, rows)
    assert sorted(rows) == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)]
    assert seen.said("count") == ["a bad word"] * 2
    assert not seen.notices


#: Tuples that a child holds at most, of three that come before it dies: none, one, or all.
@pytest.mark.parametrize("most", [0, 1, 2, 100])
@pytest.mark.parametrize("keyed", [False, True])
def test_tuples_held_from_earlier_blocks_are_not_lost_when_the_child_dies(
    keyed: bool, most: int, tmp_path: Path
) -> None:
    rows: list[str] = []
    builder = tw.TopologyBuilder("held")
    builder.add_spout("words", tw.items(["a", "b", "c", "die", "e"]), fields={"word": str})
    kind = KeyedShellBolt if keyed else ShellBolt
    bolt = kind(python("holding.py", str(most), str(tmp_path / "died")), ["word"], tick=100)
    reads = builder.add_bolt("hold", bolt)
    reads.fields("words", "word") if keyed else reads.shuffle("words")
    builder.add_bolt("out", collecting(rows)).shuffle("hold")
    seen = run(builder.build(), Inline(block_rows=2), rows)
    assert set(rows) == {"a", "b", "c", "die", "e"}
    assert len(rows) == 5 or not keyed  # what the dead one sent of its last block is taken back
    assert len(seen.notices) == 1


def test_a_keyed_child_that_does_not_say_what_has_changed_is_replaced() -> None:
    bolt = KeyedShellBolt(python("silent.py"), ["word"], timeout=2, restarts=1)
    builder = tw.TopologyBuilder("mute")
    builder.add_spout("words", tw.items(["a"]), fields={"word": str})
    builder.add_bolt("count", bolt).fields("words", "word")
    with pytest.raises(ChildError, match=r"2 times in a row: .*has not answered to __snapshot"):
        builder.build().run(on="inline")


@pytest.mark.parametrize("on", RUNTIMES)
@pytest.mark.parametrize("serializer", ["json", "msgpack"])
def test_a_value_that_no_message_can_hold_is_refused_as_the_policy_says(
    on: str, serializer: str
) -> None:
    program = {"json": python("odd.py", "99", "nothing"), "msgpack": python("echo_msgpack.py")}
    bad = {"json": {(1, 2): 3}, "msgpack": 1 << 70}[serializer]
    rows: list[object] = []
    builder = tw.TopologyBuilder("odd-values")
    builder.add_spout("values", Given([1, bad, 2], ended := [], tries=1))
    bolt = ShellBolt(program[serializer], ["value"], serializer=serializer)
    builder.add_bolt("it", bolt, on_error="skip").shuffle("values")
    builder.add_bolt("out", collecting(rows)).shuffle("it")
    seen = run(builder.build(), on, rows)
    assert sorted(rows) == [1, 2]
    assert sorted(ended) == [(0, "ack"), (1, "fail"), (2, "ack")]
    (refused,) = [e for e in seen.events if isinstance(e, TupleRefused)]
    assert f"{serializer} cannot hold it" in refused.reason
    with pytest.raises(ComponentError, match="cannot hold it"):
        through(ShellBolt(program[serializer], ["value"], serializer=serializer), [bad], on)


@pytest.mark.parametrize("on", RUNTIMES)
def test_half_a_character_from_a_child_is_refused_as_the_policy_says(on: str) -> None:
    seen = through(odd(1, "surrogate"), range(3), on, on_error="skip")
    assert set(seen.rows) == {0, 1, 2}  # it failed, and came again
    (refused,) = [e for e in seen.events if isinstance(e, TupleRefused)]
    assert "'\\ud800'" in refused.reason
    assert not seen.notices


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize(
    "ways", [("sync", "ack"), ("ack", "sync"), ("sync", "late"), ("sync", "sync", "log", "late")]
)
def test_a_child_that_says_sync_behind_some_errors_and_not_others_is_heard(
    ways: tuple[str, ...], rows: int
) -> None:
    bolt = ShellBolt(python("mixed_errors.py", *ways), ["value"], timeout=4)
    seen = through(bolt, range(5), Inline(block_rows=rows))
    assert seen.rows == list(range(5))
    assert not seen.notices


@pytest.mark.parametrize("bad", [float("nan"), float("-inf"), b"bytes", [1, {"a": float("nan")}]])
def test_a_value_that_json_would_change_is_refused(bad: object) -> None:
    builder = tw.TopologyBuilder("odd-values")
    builder.add_spout("values", Given([1.5, "a", bad, [1]], tries=1))
    builder.add_bolt("it", odd(99, "nothing"), on_error="skip").shuffle("values")
    builder.add_bolt("out", collecting(rows := [])).shuffle("it")
    seen = run(builder.build(), "inline", rows)
    assert rows == [1.5, "a", [1]]
    (refused,) = [e for e in seen.events if isinstance(e, TupleRefused)]
    assert "json cannot hold it" in refused.reason


@pytest.mark.parametrize("key", [b"a", float("nan")])
def test_a_key_that_json_would_change_is_named(key: object) -> None:
    builder = tw.TopologyBuilder("keyed")
    builder.add_spout("keys", tw.items([key]), fields={"key": type(key)})
    builder.add_bolt("count", KeyedShellBolt(python("keyed_count.py"))).fields("keys", "key")
    with pytest.raises(ThalwegError, match=r"key .* of 'count': expected text, a number"):
        builder.build().run(on="inline")
