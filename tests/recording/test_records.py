"""Records: events as plain JSON."""

from __future__ import annotations

import json
from math import inf, nan
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recording.runs import HOSTILE, snapshot, words
from thalweg.errors import UsageError
from thalweg.events import (
    Activated,
    BatchDone,
    Decided,
    KeyCount,
    KeyLink,
    KeyPair,
    Keys,
    Noticed,
    Progress,
    Reconfigured,
    RunFailed,
    RunFinished,
    TupleRefused,
)
from thalweg.recording.records import (
    LONGEST,
    kind_of,
    plain,
    record_of,
    snapshot_of,
    topology_record,
)

LINK = KeyLink(
    "by_region",
    "by_tag",
    total=10.0,
    lost=1.0,
    locality=0.8,
    left=(KeyCount("eu", 6.0, 1),),
    right=(KeyCount("0x00ff", 5.0, 0),),
    pairs=(KeyPair("eu", "0x00ff", 5.0, False),),
)
EVENTS = [
    Noticed("a host has joined"),
    Progress(snapshot()),
    RunFinished(snapshot(), stopped=True),
    TupleRefused("count", 1, "('a',)", "no number"),
    Reconfigured("epoch 2", {"epoch": 2, "before": {"locality": nan}}),
    Decided("", "ds2", 12.0, MappingProxyType({"count": (1, 2)})),
    Activated(False),
    Keys((LINK,), 0.1, {"by_tag": 3}, {"by_tag": inf}),
    BatchDone(3, 1, 10, 0.5, 1, {"job": 0.4}, (0.1, 0.2), 5, 50, 5, 0, 0, 0, 9, 90),
    RunFailed("no number", "count", 1, "('a',)"),
]


@pytest.mark.parametrize("event", EVENTS, ids=kind_of)
def test_a_record_is_plain_json_with_a_head(event: Any) -> None:
    record = record_of(event, n=7, at=1.5, wall=100.0)
    assert list(record)[:4] == ["n", "at", "wall", "kind"]
    assert (record["n"], record["at"], record["wall"]) == (7, 1.5, 100.0)
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_numbers_that_json_does_not_have_are_none() -> None:
    keys = record_of(EVENTS[7], 1, 0.0, 0.0)
    assert keys["imbalance"] == {"by_tag": None}
    assert record_of(EVENTS[4], 1, 0.0, 0.0)["report"]["before"] == {"locality": None}


def test_texts_are_cut_and_otherwise_what_they_were() -> None:
    record = record_of(TupleRefused("count", 0, HOSTILE, "short"), 1, 0.0, 0.0)
    assert record["reason"] == "short"
    assert len(record["tuple_text"]) == LONGEST
    assert record["tuple_text"][:-1] == HOSTILE[: LONGEST - 1]


def test_half_a_character_does_no_harm() -> None:
    record = record_of(TupleRefused("count", 0, "\ud800 and more", "x"), 1, 0.0, 0.0)
    assert record["tuple_text"] == "? and more"


def test_a_snapshot_can_be_read_back() -> None:
    record = record_of(Progress(snapshot()), 1, 0.0, 0.0)
    assert snapshot_of(msgspec.json.decode(msgspec.json.encode(record))) == snapshot()


def test_what_has_no_snapshot_says_so() -> None:
    with pytest.raises(UsageError, match="record 3: expected a snapshot"):
        snapshot_of(record_of(Noticed("hello"), 3, 0.0, 0.0))


def test_the_first_record_describes_the_topology() -> None:
    record = topology_record(words(), "local", "ds2", wall=5.0)
    assert (record["n"], record["kind"], record["wall"]) == (1, "topology", 5.0)
    assert (record["name"], record["runtime"], record["policy"]) == ("words", "local", "ds2")
    assert [(c["name"], c["kind"], c["degree"]) for c in record["components"]] == [
        ("words", "spout", 1),
        ("counts", "keyed", 1),
    ]
    assert record["components"][0]["fields"] == {"default": ["word"]}
    assert record["streams"] == [
        {
            "from": "words",
            "to": "counts",
            "stream": "default",
            "grouping": "fields(word)",
            "order": record["streams"][0]["order"],
        }
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


@given(VALUES)
def test_any_value_becomes_json(value: Any) -> None:
    made = plain(value)
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert plain(made) == made
