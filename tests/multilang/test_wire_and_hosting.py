"""Messages in any pieces, and what a child may say of them."""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from typing import Any

import msgpack
import pytest
from children import collecting, run, through
from children import python as program
from hypothesis import example, given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.errors import TopologyError, UsageError
from thalweg.multilang import ShellBolt, ShellSpout
from thalweg.multilang.context import TaskIds
from thalweg.multilang.hosting import (
    Beats,
    Conversation,
    Emitted,
    Ended,
    Logged,
    Reported,
    Said,
    Sender,
    Synced,
    spout_said,
)
from thalweg.multilang.settings import Shell
from thalweg.multilang.wire import JsonWire, MsgpackWire, ProtocolError, make_wire

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
messages = st.lists(st.dictionaries(st.text(max_size=5), values, max_size=4), max_size=6)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """Cut bytes into pieces."""
    at = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(at)]


@given(messages, st.lists(st.integers(0, 10_000), max_size=8), st.booleans())
def test_json_messages_arrive_whole_however_they_are_cut(sent, cuts, pretty) -> None:
    texts = [json.dumps(m, indent=1 if pretty else None, ensure_ascii=pretty) for m in sent]
    data = "".join(f"{text}\nend\n" for text in texts).encode()
    wire = JsonWire()
    assert [m for piece in pieces(data, cuts) for m in wire.feed(piece)] == sent


@given(messages, st.integers(0, 10_000), st.sampled_from(["json", "msgpack"]))
def test_a_wire_knows_whether_a_message_has_begun(sent, cut, serializer) -> None:
    wire = make_wire(serializer)
    each = [wire.encode(m) for m in sent]
    data, borders = b"".join(each), [sum(map(len, each[:n])) for n in range(len(each) + 1)]
    cut %= len(data) + 1
    wire.feed(data[: cut // 2])
    wire.feed(data[cut // 2 : cut])
    assert wire.begun == (cut not in borders)


@given(messages, st.lists(st.integers(0, 10_000), max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_lines_of_json_may_end_in_either_way(sent, cuts, end) -> None:
    texts = [json.dumps(m, indent=1).replace("\n", end) for m in sent]
    data = "".join(f"{text}{end}end{end}" for text in texts).encode()
    wire = JsonWire()
    assert [m for piece in pieces(data, cuts) for m in wire.feed(piece)] == sent


@pytest.mark.parametrize(
    ("name", "deep"),
    [("json", b"[" * 5000 + b"]" * 5000 + b"\nend\n"), ("msgpack", b"\x91" * 5000 + b"\x01")],
)
def test_a_message_that_is_too_deep_is_refused(name: str, deep: bytes) -> None:
    with pytest.raises(ProtocolError, match="standard output"):
        make_wire(name).feed(deep)


@given(st.floats() | st.text(st.characters()))
@example(float("nan"))
@example("\ud800")
def test_what_python_writes_as_json_is_read_though_no_standard_knows_it(value) -> None:
    (read,) = JsonWire().feed(json.dumps([value]).encode() + b"\nend\n")
    assert repr(read) == repr([value])


@given(messages, st.lists(st.integers(0, 10_000), max_size=8))
def test_msgpack_messages_arrive_whole_however_they_are_cut(sent, cuts) -> None:
    data = b"".join(msgpack.packb(message) for message in sent)
    wire = MsgpackWire()
    assert [m for piece in pieces(data, cuts) for m in wire.feed(piece)] == sent


@given(messages, st.sampled_from(["json", "msgpack"]))
def test_what_is_written_is_read_again(sent, name) -> None:
    writer, reader = make_wire(name), make_wire(name)
    assert reader.feed(b"".join(map(writer.encode, sent))) == sent


@given(st.binary(max_size=100), st.sampled_from(["json", "msgpack"]))
@example(b"\x81\x90", "msgpack")  # a list as the key of a map
def test_any_bytes_are_read_or_refused(data, name) -> None:
    wire = make_wire(name)
    try:
        wire.feed(data + b"\nend\n")
    except ProtocolError as error:
        assert "standard output" in str(error)


@pytest.mark.parametrize("name", ["json", "msgpack"])
def test_a_message_without_end_is_refused_at_a_bound(name: str) -> None:
    endless = b'{"a": "' if name == "json" else b"\xdb\x7f\xff\xff\xff"
    wire = make_wire(name, most=1000)
    with pytest.raises(ProtocolError, match="at most 1000 bytes"):
        for _ in range(10):
            wire.feed(endless + b"x" * 200)


PACK = {"json": lambda m: json.dumps(m).encode() + b"\nend\n", "msgpack": msgpack.packb}


@pytest.mark.parametrize("name", ["json", "msgpack"])
def test_the_bound_is_that_of_a_message_however_many_come_at_once(name: str) -> None:
    small, large = {"a": "x" * 50}, {"a": "x" * 5000}
    wire = make_wire(name, most=1000)
    assert wire.feed(PACK[name](small) * 1000) == [small] * 1000
    with pytest.raises(ProtocolError, match="at most 1000 bytes") as caught:
        wire.feed(PACK[name](small) + PACK[name](large))
    assert caught.value.before == [small]


@pytest.mark.parametrize(("name", "bad"), [("json", b"nonsense\nend\n"), ("msgpack", b"\xc1")])
def test_messages_before_one_that_cannot_be_read_are_given(name: str, bad: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        make_wire(name).feed(PACK[name]({"a": 1}) * 2 + bad)
    assert caught.value.before == [{"a": 1}] * 2


def test_a_serializer_that_nobody_knows_is_named() -> None:
    with pytest.raises(UsageError, match="'xml'"):
        make_wire("xml")


# --- the conversation ------------------------------------------------------------------------


def talking(count: int) -> Conversation:
    talk = Conversation(JsonWire())
    talk.tuples(range(10, 10 + count), [[n] for n in range(count)], Sender("words", "default", 3))
    return talk


def test_a_tuple_is_finished_once() -> None:
    talk = talking(2)
    assert talk.said({"command": "ack", "id": "1"}) == Ended(10, ok=True)
    assert talk.said({"command": "fail", "id": "2"}) == Ended(11, ok=False)
    assert not talk.given
    with pytest.raises(ProtocolError, match="has not finished"):
        talk.said({"command": "ack", "id": "1"})


def test_anchors_name_tuples_that_are_not_finished() -> None:
    talk = talking(3)
    emit = {"command": "emit", "tuple": ["x"], "need_task_ids": False}
    both = Emitted(["x"], "default", [10, 12], None, asks=False)
    assert talk.said(emit | {"anchors": ["1", "3"]}) == both
    alone = Emitted(["x"], "default", [11], None, asks=False)
    assert talk.said(emit | {"anchors": "2"}) == alone
    with pytest.raises(ProtocolError, match="anchor of tuple '9'"):
        talk.said(emit | {"anchors": ["9"]})


def test_task_ids_are_wanted_unless_it_says_otherwise_or_names_the_task() -> None:
    emit = {"command": "emit", "tuple": ["x"]}
    assert spout_said(emit).asks
    assert not spout_said(emit | {"need_task_ids": False}).asks
    assert not spout_said(emit | {"task": 4}).asks
    assert spout_said(emit | {"task": 0}).asks


def test_what_is_not_finished_can_be_given_again() -> None:
    talk = talking(3)
    talk.said({"command": "ack", "id": "2"})
    again = JsonWire().feed(talk.again())
    assert [message["id"] for message in again] == ["1", "3"]


@pytest.mark.parametrize("count", [1, 100, 101, 1000])
def test_a_child_is_asked_for_a_sign_between_tuples_so_that_none_is_many_behind_it(
    count: int,
) -> None:
    talk = Conversation(JsonWire())
    data = talk.tuples(range(count), [[n] for n in range(count)], Sender("words", "default", 3))
    talk.begin_anew()
    for sent in (data, talk.again()):
        streams = [message["stream"] for message in JsonWire().feed(sent)]
        assert streams.count("default") == count
        runs = [len(list(run)) for stream, run in groupby(streams) if stream == "default"]
        assert max(runs) <= 100
    number, _ = talk.heartbeat()
    for _ in range(number):
        assert not talk.beats.has(number)
        talk.beats.hear(Synced())
    assert talk.beats.has(number)


def test_a_spout_must_know_what_it_says_and_a_bolt_need_not() -> None:
    assert talking(0).said({"command": "sing"}) is None
    with pytest.raises(ProtocolError, match="'sing'"):
        spout_said({"command": "sing"})


KNOWN = ("emit", "ack", "fail", "log", "error", "metrics", "sync", "snapshot")


@given(
    st.recursive(
        values,
        lambda v: st.dictionaries(
            st.sampled_from(
                ["command", "id", "tuple", "anchors", "stream", "task", "entries", "msg"]
            ),
            v | st.sampled_from(KNOWN),
        ),
    )
)
@example({"command": "emit", "anchors": True})
def test_any_message_is_understood_or_refused(message: Any) -> None:
    talk = talking(1)
    for said in (talk.said, spout_said):
        try:
            understood = said(message)
        except ProtocolError as error:
            assert "expected" in str(error)
        else:
            assert understood is None or isinstance(understood, Said)
            assert message["command"] in KNOWN or understood is None


def test_a_sync_says_that_all_was_seen() -> None:
    assert talking(1).said({"command": "sync"}) == Synced()


class Simulated:
    """A child that answers heartbeats later, and says sync behind errors or does not."""

    def __init__(self, follows: bool) -> None:
        self.follows = follows
        self.beats = Beats()
        #: What it has yet to say: the number of the heartbeat that it answers, or None.
        self.line: list[tuple[Said, int | None]] = []
        self.seen = 0

    def send(self, most: int) -> int:
        number = self.beats.begin()
        for beat in range(number, number + 1 + self.beats.more):
            if beat > number:
                self.beats.begin()
            self.line.append((Synced(), beat))
        assert len(self.line) < most
        return number

    def err(self, tells_more: bool) -> None:
        after: list[tuple[Said, int | None]] = [(Reported("bad"), None)]
        if self.follows:
            after.append((Synced(), None))
        if tells_more:
            after.append((Ended(1, ok=False), None))
        self.line[:0] = after

    def hear(self) -> None:
        said, beat = self.line.pop(0)
        self.seen = beat or self.seen
        for _ in range(self.beats.hear(said)):
            self.line.append((Synced(), self.beats.begin()))


@given(
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 5)), max_size=12),
)
def test_a_sync_behind_an_error_is_not_taken_for_the_answer_to_a_heartbeat(follows, steps) -> None:
    child = Simulated(follows)
    for errors, tells_more, idle in steps:
        number = child.send(most=100)
        for _ in range(errors):
            child.err(tells_more)
        while not child.beats.has(number):
            assert child.line, "it waits for what never comes"
            child.hear()
        assert child.seen >= number
        for _ in range(min(idle, len(child.line))):
            child.hear()


@pytest.mark.parametrize("behind", [Logged(2, "x"), Ended(1, ok=True), Reported("worse"), None])
def test_what_is_no_sync_behind_an_error_says_that_none_follows(behind: Said | None) -> None:
    beats = Beats()
    own = beats.begin()
    for _ in range(100):
        beats.hear(Reported("bad"))
        beats.hear(behind)
    assert beats.more == 0
    beats.hear(Synced())
    assert beats.has(own)


def test_task_numbers_go_through_the_components_in_order() -> None:
    ids = TaskIds({"a": 1, "b": 2})
    assert ids.components() == {"1": "a", "2": "b", "3": "b"}
    with pytest.raises(UsageError, match="from 1 on"):
        ids.at(0)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 20))
def test_tasks_that_are_added_have_numbers_of_their_own(degrees, more) -> None:
    ids = TaskIds({f"c{n}": degree for n, degree in enumerate(degrees)})
    tasks = [(f"c{n}", t) for n, degree in enumerate(degrees) for t in range(degree + more)]
    numbers = [ids.of(*task) for task in tasks]
    assert len(set(numbers)) == len(numbers)
    assert [ids.at(number) for number in numbers] == tasks


@pytest.mark.parametrize(
    ("given_", "tells"),
    [
        ({"serializer": "xml"}, "'xml'"),
        ({"timeout": "soon"}, "timeout in "),
        ({"max_pending": 0}, "max_pending"),
        ({"heartbeat": 3}, "setting 'heartbeat'"),
        ({"config": {"a": {1, 2}, "b": object()}}, "config in program"),
    ],
)
def test_settings_that_cannot_work_are_refused(given_: dict[str, Any], tells: str) -> None:
    with pytest.raises((TopologyError, UsageError), match=tells):
        ShellBolt("program", ["word"], **given_)


def test_a_command_is_words_or_a_line() -> None:
    assert Shell.of("ruby 'my split.rb'", {}).command == ("ruby", "my split.rb")
    with pytest.raises(TopologyError, match="a program"):
        Shell.of([], {})


TOLD = ["é\nend\n", "x" * 100_000, 3, None, {"a": [1]}]
#: Bytes after which it is cut off: in the messages before the long one, and in those behind it.
CUTS = st.integers(0, 400) | st.integers(100_000, 100_700)


def without_repetitions(rows: list[Any]) -> list[Any]:
    return [value for n, value in enumerate(rows) if value not in rows[:n]]


@pytest.mark.parametrize("form", ["json", "msgpack"])
@settings(max_examples=30, deadline=None, derandomize=True)
@given(cut=CUTS, on=st.sampled_from(["inline", "local"]))
def test_a_child_cut_off_at_any_byte_is_replaced_and_nothing_is_lost(
    form: str, cut: int, on: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    once = tmp_path_factory.mktemp("cut") / "once"
    command = program("cut_off.py", str(cut), str(once), form)
    seen = through(ShellBolt(command, ["value"], serializer=form), TOLD, on)
    assert without_repetitions(seen.rows) == TOLD
    assert len(seen.notices) == once.exists()


@pytest.mark.parametrize("form", ["json", "msgpack"])
@settings(max_examples=30, deadline=None, derandomize=True)
@given(cut=CUTS, on=st.sampled_from(["inline", "local"]))
def test_a_spout_cut_off_at_any_byte_is_replaced_and_nothing_is_lost(
    form: str, cut: int, on: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    once = tmp_path_factory.mktemp("cut") / "once"
    rows: list[Any] = []
    builder = tw.TopologyBuilder("cut")
    command = program("cut_off.py", str(cut), str(once), form, *map(json.dumps, TOLD))
    builder.add_spout("values", ShellSpout(command, ["value"], serializer=form))
    builder.add_bolt("out", collecting(rows)).shuffle("values")
    seen = run(builder.build(), on, rows)
    assert without_repetitions(rows) == TOLD
    assert len(seen.notices) == once.exists()
