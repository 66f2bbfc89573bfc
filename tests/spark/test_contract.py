"""What ``exchange.py`` relies upon in Spark, below its public surface."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema

from sparksession import spark_session
from thalweg.runtimes.spark.exchange import (
    ANCHOR,
    address,
    arrow_batches,
    collect,
    descriptors,
    exchange,
    executors,
    exhaust,
    host_of_failure,
    make_anchor,
    newest_number,
    presence,
    processes,
    remove_shuffles,
    run_at,
    shuffled_bytes,
    side_by_side,
)

WATCHDOG = 60.0


@pytest.fixture
def context() -> Iterator[Any]:
    """Give Spark's context; functions of this module travel as code."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield spark_session().sparkContext
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def as_they_are(_place: int, payloads: Iterable[Any]) -> Iterator[bytes]:
    yield from payloads


# --- DataFrames -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("context")
def test_a_dataframe_comes_as_record_batches_with_the_same_rows() -> None:
    frame = spark_session().createDataFrame(
        [(n, f"w{n}" if n % 3 else None, [n, -n]) for n in range(1000)],
        "n bigint, word string, pair array<bigint>",
    )
    schema = to_arrow_schema(frame.schema)
    found = collect(run_at(arrow_batches(frame.repartition(3)), as_they_are))
    batches = [pa.ipc.read_record_batch(pa.py_buffer(data), schema) for data in found]
    rows = pa.Table.from_batches(batches).to_pylist()
    assert sorted(rows, key=lambda r: r["n"]) == [
        row.asDict() for row in frame.orderBy("n").collect()
    ]


@pytest.mark.usefixtures("context")
def test_a_dataframe_without_rows_gives_no_rows() -> None:
    frame = spark_session().createDataFrame([], "n bigint")
    schema = to_arrow_schema(frame.schema)
    found = collect(run_at(arrow_batches(frame), as_they_are))
    batches = [pa.ipc.read_record_batch(pa.py_buffer(data), schema) for data in found]
    assert sum(batch.num_rows for batch in batches) == 0


# --- payloads -------------------------------------------------------------------------------------


def test_few_payloads_come_as_they_are_and_none_makes_empty_partitions(context: Any) -> None:
    payloads = [b"", b"a", b"\x00\xff" * 10]
    assert collect(descriptors(context, payloads, 2)) == payloads
    assert descriptors(context, payloads, 9).partitions == 3
    empty = run_at(descriptors(context, [], 4), lambda place, _: [str(place).encode()])
    assert collect(empty) == [b"0", b"1", b"2", b"3"]


SIZES = (0, 1, 7, 8, 65_536, 5 << 20, 0, 3)


def send(places: int, sender: int, payloads: Iterable[bytes]) -> Iterator[bytes]:
    """Send a payload of every size to every place, with sender and turn in front."""
    exhaust(payloads)
    for turn, size in enumerate(SIZES):
        for place in range(places):
            yield address(place)
            yield bytes([sender, turn]) + bytes([place]) * size if size else b""


def receive(place: int, payloads: Iterable[bytes]) -> Iterator[bytes]:
    """Say what arrived: place, then sender, turn and size of each, or dots for empty ones."""
    found = []
    for payload in payloads:
        data = bytes(payload)
        whole = data[2:] == bytes([place]) * (len(data) - 2)
        found.append(
            f"{data[0]}:{data[1]}:{len(data) - 2}" if data and whole else "." if not data else "?"
        )
    yield f"{place} {' '.join(found)}".encode()


@pytest.mark.parametrize("places", [1, 3])
def test_an_exchange_brings_every_payload_to_its_place_in_the_senders_order(
    context: Any, places: int
) -> None:
    sent = run_at(descriptors(context, [], 2), partial(send, places))
    last = run_at(exchange(sent, places), receive)
    try:
        found = [data.decode().split() for data in collect(last)]
    finally:
        remove_shuffles(last)
    assert [int(place) for place, *_ in found] == list(range(places))
    for _, *payloads in found:
        assert payloads.count(".") == 2 * SIZES.count(0)
        for sender in range(2):
            of_sender = [p for p in payloads if p.startswith(f"{sender}:")]
            sizes = [(turn, size) for turn, size in enumerate(SIZES) if size]
            assert of_sender == [f"{sender}:{turn}:{size}" for turn, size in sizes]


def test_exchanges_follow_one_another_in_one_job(context: Any) -> None:
    def forward(place: int, payloads: Iterable[bytes]) -> Iterator[bytes]:
        for payload in payloads:
            yield address((place + 1) % 2)
            yield bytes(payload) + str(place).encode()

    rdd = run_at(descriptors(context, [b"a", b"b"], 2), forward)
    last = run_at(exchange(run_at(exchange(rdd, 2), forward), 2), as_they_are)
    try:
        assert sorted(collect(last)) == [b"a01", b"b10"]
    finally:
        remove_shuffles(last)


def test_the_files_of_an_exchange_are_removed(context: Any) -> None:
    token = os.urandom(64)
    sent = run_at(descriptors(context, [], 2), partial(send_to_all, token))
    last = run_at(exchange(sent, 2), as_they_are)
    assert collect(last) == [token] * 4
    assert files_with(token)
    remove_shuffles(last)
    until = time.monotonic() + WATCHDOG
    while files_with(token):
        assert time.monotonic() < until, "the files of the exchange are still there"


def send_to_all(payload: bytes, _place: int, payloads: Iterable[bytes]) -> Iterator[bytes]:
    exhaust(payloads)
    for place in range(2):
        yield from (address(place), payload)


def files_with(token: bytes) -> list[Path]:
    """Find files of Spark's block managers that hold these bytes."""
    found = []
    for folder in Path(tempfile.gettempdir()).glob("blockmgr-*"):
        # Other sessions clean up meanwhile: os.walk passes over folders that are gone.
        for within, _, names in os.walk(folder):
            for path in (Path(within, name) for name in names if name.startswith("shuffle_")):
                with contextlib.suppress(FileNotFoundError):
                    found += [path] if token in path.read_bytes() else []
    return found


# --- anchors --------------------------------------------------------------------------------------


def test_an_anchor_has_two_votes_on_where_a_place_is(context: Any) -> None:
    anchor = make_anchor(context, ("somewhere", "else"))
    sent = run_at(descriptors(context, [], 2), partial(send_to_all, b"x"))
    anchored = exchange(sent, 2, anchor)
    assert "PartitionerAwareUnionRDD" in anchored.rdd.toDebugString()
    last = run_at(anchored, as_they_are)
    try:
        assert sorted(collect(last)) == sorted([ANCHOR, ANCHOR, b"x", b"x"] * 2)
    finally:
        remove_shuffles(last)
        anchor.drop()


def test_the_driver_is_one_of_the_processes(context: Any) -> None:
    (found,) = processes(context)
    assert found.rpartition(":")[0] == context.getConf().get("spark.driver.host")


# --- executors ------------------------------------------------------------------------------------


def test_a_driver_that_runs_tasks_itself_has_no_executors(context: Any) -> None:
    assert presence(context) == (processes(context), context.defaultParallelism)
    assert executors(context) == ()


# --- what went before -----------------------------------------------------------------------------


def test_the_host_of_a_task_that_failed_is_known(context: Any) -> None:
    def fail(_place: int, _payloads: Iterable[bytes]) -> Iterator[bytes]:
        raise ValueError

    with pytest.raises(PySparkException):
        collect(run_at(descriptors(context, [], 1), fail))
    assert host_of_failure(context) is not None


@pytest.mark.usefixtures("context")
def test_the_newest_number_in_a_folder_is_found(tmp_path: Path) -> None:
    for name in ("3", "11", ".12.crc", "x"):
        (tmp_path / name).touch()
    assert newest_number(spark_session(), str(tmp_path)) == 11
    assert newest_number(spark_session(), str(tmp_path / "none")) == -1


# --- lanes side by side ---------------------------------------------------------------------------


def test_lanes_side_by_side_have_all_partitions_in_their_order(context: Any) -> None:
    one, other = descriptors(context, [b"a", b"b"], 2), descriptors(context, [b"c"], 1)
    both = side_by_side([one, other])
    assert both.partitions == 3
    assert collect(run_at(both, numbered)) == [b"0a", b"1b", b"2c"]


def numbered(place: int, payloads: Iterable[Any]) -> Iterator[bytes]:
    for payload in payloads:
        yield f"{place}".encode() + bytes(payload)


def test_a_dataframe_and_descriptors_go_side_by_side(context: Any) -> None:
    frame = spark_session().range(0, 10, 1, 2)
    both = side_by_side([arrow_batches(frame), descriptors(context, [b"order"], 1)])
    assert both.partitions == 3
    assert collect(run_at(both, as_they_are))[-1] == b"order"


def test_the_bytes_of_exchanges_are_told(context: Any) -> None:
    before = shuffled_bytes(context)
    lane = exchange(run_at(descriptors(context, [b"x" * 10_000], 1), to_one), 2)
    assert collect(run_at(lane, as_they_are)) == [b"x" * 10_000]
    remote, local = (now - then for now, then in zip(shuffled_bytes(context), before, strict=True))
    assert remote == 0
    assert local > 0


def to_one(_place: int, payloads: Iterable[Any]) -> Iterator[bytes]:
    for payload in payloads:
        yield from (address(1), bytes(payload))
