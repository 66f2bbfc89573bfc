"""Messages into rows and rows into messages, without a server."""

from __future__ import annotations

import datetime as dt
import json
import sys
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.connectors.kafka_client import Trouble
from thalweg.connectors.message_values import MessageWriter
from thalweg.connectors.messages import MessageReader, extra_fields, message_fields
from thalweg.errors import SchemaError, UsageError
from thalweg.schemas import Shape, fields


@dataclass
class Message:
    """What a client gives."""

    raw: bytes | None
    raw_key: bytes | None = None
    number: int = 0
    #: What it is a time of, 0 for none, and its milliseconds.
    when: tuple[int, int] = (1, 0)

    def timestamp(self) -> tuple[int, int]:
        return self.when

    def value(self) -> bytes | None:
        return self.raw

    def key(self) -> bytes | None:
        return self.raw_key

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.number


def read(messages: list[Message], format_: Any, declared: Any, *extra: str) -> tuple[Any, Any]:
    """Give the rows, and the offsets of what was refused."""
    names = extra_fields(extra)
    found = message_fields(format_, declared, names, False)
    assert found is not None
    refused: list[str] = []
    reader = MessageReader(
        Shape(found), format_, names, lambda where, _raw, _why: refused.append(where)
    )
    batch = reader.batch(messages)
    return [] if batch is None else batch.to_pylist(), refused


def test_a_message_without_a_time_gives_none() -> None:
    sent = [Message(b"1", when=(0, -1)), Message(b"2", when=(1, 1000))]
    rows, refused = read(sent, "bytes", None, "timestamp")
    second = dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    assert ([row["timestamp"] for row in rows], refused) == ([None, second], [])


GOOD = st.fixed_dictionaries({"n": st.integers(-(2**63), 2**63 - 1)}).map(json.dumps)
BAD = st.sampled_from(["{", "[]", '{"n": "x"}', '{"n": 9223372036854775808}', '{"m": 1}', "\xff"])


@given(st.lists(st.tuples(st.booleans(), GOOD, BAD)))
def test_the_good_ones_come_in_order_and_each_bad_one_is_named(
    given_: list[tuple[bool, str, str]],
) -> None:
    messages = [
        Message((good if fine else bad).encode("latin-1"), number=at)
        for at, (fine, good, bad) in enumerate(given_)
    ]
    rows, refused = read(messages, "json", {"n": int}, "offset")
    assert [row["offset"] for row in rows] == [at for at, (fine, *_) in enumerate(given_) if fine]
    bad = [f"t/0, offset {at}" for at, (fine, *_) in enumerate(given_) if not fine]
    assert sorted(refused) == sorted(bad)


def test_a_function_that_raises_refuses_its_message_alone() -> None:
    messages = [Message(b"1"), Message(b"x", number=1), Message(b"3", number=2)]
    rows, refused = read(messages, int, {"n": int})
    assert (rows, refused) == ([{"n": 1}, {"n": 3}], ["t/0, offset 1"])


def test_a_function_that_exits_refuses_its_message_alone() -> None:
    def decode(value: bytes) -> int:
        return int(value) if value.isdigit() else sys.exit()

    messages = [Message(b"1"), Message(b"x", number=1), Message(b"3", number=2)]
    rows, refused = read(messages, decode, {"n": int})
    assert (rows, refused) == ([{"n": 1}, {"n": 3}], ["t/0, offset 1"])


def test_a_key_that_is_no_text_refuses_its_message() -> None:
    messages = [Message(b"a", b"k"), Message(b"b", b"\xff", 1), Message(b"c", None, 2)]
    rows, refused = read(messages, "text", None, "key")
    assert rows == [{"value": "a", "key": "k"}, {"value": "c", "key": None}]
    assert refused == ["t/0, offset 1"]


def test_text_needs_one_field() -> None:
    with pytest.raises(UsageError, match="one field"):
        read([], "text", ["a", "b"])


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.text())))
@pytest.mark.parametrize("format_", ["json", "msgpack"])
def test_what_is_written_can_be_read(format_: Any, rows: list[tuple[int, str]]) -> None:
    batch = Shape(fields({"n": int, "word": str})).batch(
        [[n for n, _ in rows], [w for _, w in rows]]
    )
    encoded = MessageWriter(format_, "word").encode(batch, _fail).to_pylist()
    messages = [Message(each["value"], each["key"]) for each in encoded]
    found, refused = read(messages, format_, {"n": int, "word": str}, "key")
    assert not refused
    assert [(row["n"], row["word"], row["key"]) for row in found] == [(n, w, w) for n, w in rows]


def _fail(row: int, error: Exception) -> None:
    raise AssertionError(row) from error


def test_a_row_that_cannot_be_written_is_refused_alone() -> None:
    def spell(t: Any) -> Any:
        if t.n == 3:
            sys.exit()
        return t.n / 0 if t.n == 1 else str(t.n)

    refused: list[int] = []
    batch = pa.RecordBatch.from_pydict({"n": [0, 1, 2, 3]})
    found = MessageWriter(spell, None).encode(batch, lambda row, _error: refused.append(row))
    assert (found.column("value").to_pylist(), refused) == ([b"0", b"2"], [1, 3])


def test_a_key_that_is_no_field_is_told() -> None:
    batch = pa.RecordBatch.from_pydict({"n": [0]})
    with pytest.raises(SchemaError, match="'word'"):
        MessageWriter("json", "word").encode(batch, _fail)


@pytest.mark.parametrize(
    "options",
    [
        {"format": "xml"},
        {"extra": ["colour"]},
        {"until": "noon"},
        {"lost": "found"},
        {"keys": "json"},
        {"colour": 1},
        {"config": {"group.id": "mine"}},
        {"start": "middle"},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        tw.kafka("localhost:9092", "any", **options)


@pytest.mark.parametrize("options", [{"format": "xml"}, {"key": 1}, {"colour": 1}])
def test_options_of_the_sink_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        tw.to_kafka("localhost:9092", "any", **options)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (
            "auto.offset.reset",
            "say start= for where to begin, and lost= for messages that are gone",
        ),
        ("isolation.level", "messages of transactions that were given up are never read"),
    ],
)
def test_settings_that_promises_depend_on_are_refused(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        tw.kafka("localhost:9092", "any", config={name: "latest"})
    expected = "config: expected settings of the client that Thalweg does not make itself, got "
    assert str(refused.value) == f"{expected}{name} ({hint})"


def test_passwords_are_never_shown() -> None:
    source = tw.kafka("localhost:9092", "any", config={"sasl.password": "secret"})
    assert "secret" not in f"{source!r} {source.cluster!r} {source.wanted!r}"


def test_an_outage_is_told_once() -> None:
    class Error:
        def __init__(self, code: int) -> None:
            self._code = code

        def code(self) -> int:
            return self._code

        def str(self) -> str:
            return "gone"

        def fatal(self) -> bool:
            return False

    down = pytest.importorskip("confluent_kafka").KafkaError._ALL_BROKERS_DOWN
    told: list[str] = []
    trouble = Trouble(told.append)
    trouble(Error(down))
    assert not told, "it was never there"
    trouble.reached = True
    trouble.over()
    for _ in range(2):
        trouble(Error(down))
        trouble(Error(down))
        trouble.over()
    assert [text.split()[1] for text in told] == ["gone;", "connected"] * 2
