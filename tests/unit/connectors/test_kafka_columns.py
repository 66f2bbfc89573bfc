"""Messages as Spark's connector gives them are read like those of the client."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.connectors.kafka_columns import MessageColumns
from thalweg.connectors.kafka_java import java_settings
from thalweg.connectors.messages import MessageReader, extra_fields, message_fields
from thalweg.errors import UsageError
from thalweg.schemas import Shape

EXTRA = ["key", "topic", "partition", "offset", "timestamp", "headers"]
_MS = 1_700_000_000_123


class Message:
    """What the client gives of the same message."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row

    def __getattr__(self, name: str) -> Any:
        return lambda: self._row[name]

    def timestamp(self) -> tuple[int, int]:
        millis = self._row["timestamp"]
        return int(millis != -1), millis


VALUES = st.one_of(
    st.fixed_dictionaries({"n": st.integers(-(2**63), 2**63 - 1)}).map(
        lambda found: json.dumps(found).encode()
    ),
    st.sampled_from([None, b"", b"{", b'{"n": "x"}', b'{"n": null}', b"\xff", b'{"m": 1}']),
)
ROWS = st.fixed_dictionaries(
    {
        "value": VALUES,
        "key": st.sampled_from([None, b"", b"k", "ü".encode(), b"\xff"]),
        "topic": st.sampled_from(["a", "b/c"]),
        "partition": st.integers(0, 9),
        "timestamp": st.sampled_from([-1, 0, _MS]),  # -1 stands for none
        "headers": st.lists(st.tuples(st.sampled_from(["h", "i"]), st.sampled_from([None, b"x"]))),
    }
)


def columns_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Give rows as Spark writes them."""
    header = pa.struct({"key": pa.string(), "value": pa.binary()})
    types = {
        "value": pa.binary(),
        "key": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "headers": pa.list_(header),
    }
    spark = [
        {
            **row,
            "timestamp": row["timestamp"] * 1000,
            "headers": [{"key": key, "value": value} for key, value in row["headers"]] or None,
        }
        for row in rows
    ]
    arrays = [pa.array([row[name] for row in spark], type_) for name, type_ in types.items()]
    return pa.record_batch(arrays, names=list(types))


@given(st.lists(ROWS), st.sampled_from([(), ("offset",), tuple(EXTRA)]), st.booleans())
def test_rows_and_refusals_are_those_of_the_client(
    rows: list[dict[str, Any]], extra: tuple[str, ...], binary: bool
) -> None:
    rows = [{**row, "offset": at} for at, row in enumerate(rows)]
    names = extra_fields(extra)
    found = message_fields("json", {"n": int}, names, binary)
    assert found is not None
    told: dict[str, list[Any]] = {"client": [], "connector": []}

    def refuse(who: str) -> Any:
        return lambda *said: told[who].append(said)

    expected = MessageReader(Shape(found), "json", names, refuse("client")).batch(
        [Message(row) for row in rows]
    )
    reading = MessageColumns("json", names).reading(Shape(found), refuse("connector"))
    given_ = reading(columns_of(rows))
    assert told["connector"] == told["client"]
    assert (given_ is None or not given_.num_rows) == (expected is None or not expected.num_rows)
    if given_ is not None and expected is not None:
        assert given_.to_pylist() == expected.to_pylist()
        assert given_.schema == expected.schema


def test_times_may_be_asked_for_as_numbers() -> None:
    rows = [
        {
            "value": b"1",
            "key": None,
            "topic": "t",
            "partition": 0,
            "offset": 0,
            "timestamp": _MS,
            "headers": [],
        }
    ]
    extra = {"timestamp": "at"}
    for declared, expected in ((int, _MS), (pa.timestamp("ms", "UTC"), _at(_MS))):
        shape = Shape(message_fields(int, {"n": int, "at": declared}, {}, False))  # type: ignore[arg-type] # declared
        batch = MessageColumns(int, extra).reading(shape, print)(columns_of(rows))
        assert batch is not None
        assert batch.to_pylist() == [{"n": 1, "at": expected}]


def _at(millis: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(millis / 1000, dt.UTC)


# --- settings --------------------------------------------------------------------------------


def test_security_is_told_to_the_client_in_java() -> None:
    config = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "ann",
        "sasl.password": 'a"b\\c',
        "ssl.ca.location": "/etc/ca.pem",
    }
    assert java_settings(config) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/etc/ca.pem",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="ann" password="a\\"b\\\\c";',
    }


@pytest.mark.parametrize(
    "config",
    [
        {"queued.max.messages.kbytes": 1},
        {"sasl.username": "ann", "sasl.password": "secret"},
        {"sasl.mechanism": "PLAIN", "sasl.password": "secret"},
        {"sasl.mechanism": "OAUTHBEARER", "sasl.username": "a", "sasl.password": "secret"},
    ],
)
def test_what_cannot_be_told_is_refused_and_no_password_is_shown(config: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="config") as caught:
        java_settings(config)
    assert "secret" not in str(caught.value)
