"""Moments that Arrow has and Python has not: each is refused alone, in blocks of any size."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.components import Shared
from thalweg.connectors.message_values import MessageWriter
from thalweg.connectors.to_kafka import KafkaSink
from thalweg.foreign import NoValue
from thalweg.operators.calls import bind
from thalweg.operators.stateless import Extend
from thalweg.schemas import Fields

FAR = "11103-08-29 17:22:31.711744"
#: Microseconds: the second, and the last but one, are beyond the year 9999.
MOMENTS = [0, 2**58, 1_000_000, 2_000_000, 2**58, 1_000_000]
GOOD = [n for n in MOMENTS if n < 2**58]
FIELDS = {"n": int, "at": dt.datetime}


def at(micros: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)


def timed(batch: pa.RecordBatch) -> pa.RecordBatch:
    n = batch.column("n")
    return pa.record_batch({"n": n, "at": n.cast(pa.timestamp("us"))})


def stream(source: Any = None) -> Any:
    made = tw.Flow("far").source("s", source or tw.items(MOMENTS), fields={"n": int})
    return made.map_block(timed, fields=FIELDS)


class Seen(tw.Bolt):
    outputs = ("n",)

    def process(self, t: Any) -> None:
        if t.n == 2_000_000:
            raise ValueError("two")
        self.emit(t.n)


class Anchored(Shared, tw.AnchoredBolt):
    """Emits, and acknowledges, the numbers of a block."""

    outputs = ("n",)

    def process_tuples(self, first: int, block: Any) -> None:
        for number, value in enumerate(block.values("n"), first):
            self.at = number
            self.emit([value])
            self.ack(number)


def two_calls(n: int) -> int:
    if n == 2_000_000:
        raise ValueError("two")
    return n


def extending(s: Any) -> Extend:
    calls = {"m": bind(two_calls, s.fields, "m"), "k": bind(lambda at: at.second, s.fields, "k")}
    return Extend(calls, s.fields.extend(Fields(("m", "k"), (None, None))))


#: A table of some of the moments.
TABLE = [{"when": at(n), "m": f"m{n}"} for n in (0, 1_000_000)]
#: What reads the moments, and what comes of the good ones.
READERS: dict[str, tuple[Any, list[Any]]] = {
    "bolt": (
        lambda s, **o: s.through("there", Seen(), **o),
        [(n,) for n in GOOD if n != 2_000_000],
    ),
    "anchored": (lambda s, **o: s.through("there", Anchored(), **o), [(n,) for n in GOOD]),
    "map": (
        lambda s, **o: s.map(lambda n, at: (n, at), fields=["m", "b"], name="there", **o),
        [(n, at(n)) for n in GOOD],
    ),
    "tuples": (
        lambda s, **o: s.map(lambda t: t.n, fields="m", name="there", **o),
        [(n,) for n in GOOD],
    ),
    "flat_map": (
        lambda s, **o: s.flat_map(lambda n, at: [n, n], fields="m", name="there", **o),
        [(n,) for n in GOOD for _ in (1, 2)],
    ),
    "filter": (
        lambda s, **o: s.filter(lambda at: at.second, name="there", **o).select("n"),
        [(n,) for n in GOOD if n],
    ),
    "extend": (
        lambda s, **o: s.through("there", extending(s), **o).select("k"),
        [(n // 10**6,) for n in GOOD if n != 2_000_000],
    ),
    "join": (
        lambda s, **o: s.join(TABLE, lambda t, r: t.at == r.when, name="there", **o).select(
            "n", "m"
        ),
        [(n, f"m{n}") for n in GOOD if n != 2_000_000],
    ),
    "scan": (
        lambda s, **o: (
            s.key_by("n")
            .scan(0, lambda state, at: state + 1, into="k", name="there", **o)
            .select("n", "k")
        ),
        [(0, 1), (1_000_000, 1), (2_000_000, 1), (1_000_000, 2)],
    ),
}


def run(reader: str, on: Any, **options: Any) -> tuple[list[Any], Any]:
    found: list[Any] = []
    made = READERS[reader][0](stream(), **options)
    made.sink("out", tw.call(lambda t: found.append(tuple(t))))
    return found, made.flow.run(on=on)


def refused_beside(reader: str) -> int:
    """Give how many tuples are refused for another reason."""
    return 1 if reader in ("bolt", "extend") else 0


@pytest.mark.parametrize("block_rows", [1, 2, 4, 100])
def test_a_join_that_looks_them_up_finds_none_and_needs_no_value(block_rows: int) -> None:
    found: list[Any] = []
    made = stream().join(TABLE, {"at": "when"}, name="there").select("m")
    made.sink("out", tw.call(lambda t: found.append(t.m)))
    made.flow.run(on=tw.Inline(block_rows=block_rows))
    assert found == ["m0", "m1000000", "m1000000"]


@pytest.mark.parametrize("block_rows", [1, 2, 4, 100])
def test_a_ranking_leaves_them_out(block_rows: int) -> None:
    ranks: dict[int, int] = {}
    made = stream().top(9, by="n", name="there", on_error="skip")
    made.sink("out", tw.call(lambda t: ranks.update({t.rank: t.n})))
    result = made.flow.run(on=tw.Inline(block_rows=block_rows))
    assert result.metrics.component("there").errors == 2
    assert ranks == {1: 2_000_000, 2: 1_000_000, 3: 0}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("block_rows", [1, 2, 4, 100])
def test_each_is_refused_alone(reader: str, block_rows: int) -> None:
    found, result = run(reader, tw.Inline(block_rows=block_rows), on_error="skip")
    assert found == READERS[reader][1]
    assert result.metrics.component("there").errors == 2 + refused_beside(reader)


@pytest.mark.parametrize("reader", READERS)
def test_each_is_refused_alone_at_several_tasks_on_local(reader: str) -> None:
    degree = 1 if reader == "anchored" else 2
    found, result = run(reader, tw.Local(workers=2), on_error="skip", degree=degree)
    assert sorted(found) == sorted(READERS[reader][1])
    assert result.metrics.component("there").errors == 2 + refused_beside(reader)


@pytest.mark.parametrize("reader", ["bolt", "map"])
def test_each_is_refused_alone_in_a_process(reader: str) -> None:
    found, _ = run(reader, tw.Local(workers=1), on_error="skip", isolation="process")
    assert found == READERS[reader][1]


@pytest.mark.parametrize("reader", READERS)
def test_letters_show_the_tuples_and_why(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "letters.jsonl"
    run(reader, "inline", on_error=tw.dead_letter(path))
    letters = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    far = [letter for letter in letters if "Python" in letter["reason"]]
    assert [letter["tuple"] for letter in far] == [{"n": 2**58, "at": FAR}] * 2
    assert far[0]["reason"] == (
        "SchemaError: field 'at': expected values that Python has, such as times of the years 1 "
        f"to 9999, got {FAR}"
    )


@pytest.mark.parametrize("reader", READERS)
def test_a_run_that_fails_names_the_tuple(reader: str) -> None:
    with pytest.raises(tw.ComponentError) as raised:
        run(reader, "inline")
    assert raised.value.tuple_text == f"n={2**58}, at={FAR!r}"
    assert "none of which it names" not in str(raised.value)


class Numbers(Shared, tw.Spout):
    """Emits the moments with their places as ids, and notes how they end."""

    outputs = {"n": int}

    def __init__(self, ends: dict[str, list[int]]) -> None:
        self.ends, self._next = ends, 0

    def next_tuple(self) -> None:
        if self._next == len(MOMENTS):
            self.finish()
            return
        self.emit(MOMENTS[self._next], id=self._next)
        self._next += 1

    def ack(self, id: int) -> None:
        self.ends["acked"].append(id)

    def fail(self, id: int) -> None:
        self.ends["failed"].append(id)


class InPairs(Seen):
    """Acknowledges tuples by itself, two at a time, also of two blocks."""

    auto_ack = False

    def __init__(self) -> None:
        self._held: Any = None

    def process(self, t: Any) -> None:
        self.emit(t.n)
        if self._held is None:
            self._held = t
            return
        self.ack(self._held)
        self.ack(t)
        self._held = None


@pytest.mark.parametrize(
    "on", [tw.Inline(block_rows=4), tw.Local(workers=1)], ids=["inline", "local"]
)
@pytest.mark.parametrize(
    "read",
    [
        lambda s: s.through("there", InPairs(), on_error="skip"),
        lambda s: s.through("there", Anchored(), on_error="skip"),
        lambda s: s.map(lambda at: at, fields="m", name="there", on_error="skip"),
    ],
    ids=["bolt", "anchored", "map"],
)
def test_the_right_tuples_fail_and_all_others_are_acknowledged(on: Any, read: Any) -> None:
    ends: dict[str, list[int]] = {"acked": [], "failed": []}
    made = read(stream(Numbers(ends)))
    made.sink("out", tw.call(lambda t: None))
    made.flow.run(on=on)
    assert {how: sorted(ids) for how, ids in ends.items()} == {
        "acked": [0, 2, 3, 5],
        "failed": [1, 4],
    }


# --- sinks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_rows", [1, 4, 100])
def test_a_file_has_all_others(block_rows: int, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    made = stream()
    made.sink("out", tw.to_files(str(path)), on_error="skip")
    result = made.flow.run(on=tw.Inline(block_rows=block_rows))
    found = [msgspec.json.decode(line)["n"] for line in path.read_bytes().splitlines()]
    assert (found, result.metrics.component("out").errors) == (GOOD, 2)


@pytest.mark.parametrize("format_", ["text", "table", "jsonl"])
def test_all_others_are_printed(format_: Any, capsys: pytest.CaptureFixture[str]) -> None:
    made = stream()
    made.sink("out", tw.stdout(format_, limit=3), on_error="skip")
    result = made.flow.run(on=tw.Inline(block_rows=100))
    printed = capsys.readouterr().out
    assert result.metrics.component("out").errors == 2
    assert all(str(n) in printed for n in GOOD)
    assert (format_ == "jsonl") or "and 1 more" in printed


@pytest.mark.parametrize("format_", ["json", "msgpack", lambda t: str(t.at)], ids=type)
def test_messages_name_the_field_before_any_is_sent(format_: Any) -> None:
    batch = timed(pa.record_batch({"n": MOMENTS}))
    with pytest.raises(NoValue, match="field 'at' in row 1"):
        MessageWriter(format_, None).encode(batch, lambda row, error: None)
    assert KafkaSink.reads_first


# --- what has a state -----------------------------------------------------------------------------

ROWS = [("a", 0, 5), ("b", 1, 2**58), ("a", 2, 7), ("a", 3, 2**58), ("b", 4, 9), ("b", 12, 8)]


def beside(batch: pa.RecordBatch) -> pa.RecordBatch:
    moments = batch.column("m").cast(pa.timestamp("us"))
    return pa.record_batch([batch.column("u"), batch.column("t"), moments], ["u", "t", "m"])


def windowed(window: Any, block_rows: int, rows: list[Any], key: str = "u") -> Any:
    flow, found = tw.Flow("far"), []
    fields = {"u": str, "t": int, "m": int}
    source = flow.source("s", tw.items(rows), fields=fields)
    moments = source.map_block(beside, fields={"u": str, "t": int, "m": dt.datetime})
    made = moments.key_by(key).window(window, time="t")
    most = made.aggregate("there", n=tw.agg.count(), most=tw.agg.max("m"), on_error="skip")
    most.sink("out", tw.call(lambda t: found.append(tuple(t))))
    return found, flow.run(on=tw.Inline(block_rows=block_rows))


@pytest.mark.parametrize("block_rows", [1, 3, 100])
@pytest.mark.parametrize(
    "window", [tw.tumbling(10), tw.sliding(10, 2), tw.session(5), tw.landmark(10), tw.rows(2)]
)
def test_windows_hold_each_of_the_others_once(window: Any, block_rows: int) -> None:
    found, result = windowed(window, block_rows, ROWS)
    expected, _ = windowed(window, 100, [row for row in ROWS if row[2] != 2**58])
    assert found == expected
    assert result.metrics.component("there").errors == 2


@pytest.mark.parametrize("block_rows", [1, 3, 100])
def test_windows_of_keys_leave_out_keys_without_a_value(block_rows: int) -> None:
    found, result = windowed(tw.rows(1), block_rows, ROWS, "m")
    assert [row[0] for row in found] == [at(row[2]) for row in ROWS if row[2] != 2**58]
    assert result.metrics.component("there").errors == 2


@pytest.mark.parametrize("block_rows", [1, 3, 100])
def test_tables_count_each_of_the_others_once(block_rows: int) -> None:
    counts = stream().key_by("at").count("counts", on_error="skip")
    result = counts.flow.run(on=tw.Inline(block_rows=block_rows))
    assert result.tables["counts"] == {at(0): 1, at(1_000_000): 2, at(2_000_000): 1}
