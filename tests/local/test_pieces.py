"""Large blocks are shown to components in pieces, and nobody can tell."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.blocks import Block, Origin
from thalweg.events import Event, TupleRefused
from thalweg.runtimes.local.child import Worker
from thalweg.runtimes.local.crossing import Answer, Parcel, Told, to_bytes, unpack
from thalweg.runtimes.local.pieces import in_pieces, together
from thalweg.runtimes.outputs import Emission

LONG = 8000


def long_block(rows: int) -> Block:
    """Make a block whose tuples are so long that pieces have the least number of tuples."""
    batch = pa.record_batch({"n": list(range(rows)), "text": ["x" * LONG] * rows})
    return Block.of(batch, Origin("numbers"))


@given(st.integers(1, 300))
def test_every_tuple_is_in_one_piece_in_its_place(rows: int) -> None:
    pieces = list(in_pieces(long_block(rows)))
    assert [n for piece in pieces for n in piece.batch.column("n").to_pylist()] == list(range(rows))
    assert max(map(len, pieces)) <= 64


def test_a_small_block_is_one_piece() -> None:
    block = Block.of(pa.record_batch({"n": list(range(5000))}), Origin("numbers"))
    assert [len(piece) for piece in in_pieces(block)] == [5000]


@given(st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=6), st.booleans())
def test_what_pieces_send_is_what_the_whole_would_send(
    pieces: list[list[int]], lineage: bool
) -> None:
    """A piece is, tuple by tuple, the number of outputs that it has."""
    sent, first = [], 0
    for piece in pieces:
        parents = np.repeat(np.arange(len(piece)), piece)
        batch = pa.record_batch({"n": pa.array(parents + first, pa.int64())})
        emission = Emission("default", batch, parents if lineage else None)
        sent.append((first, [emission] if len(parents) else []))
        first += len(piece)
    whole = np.repeat(np.arange(first), [n for piece in pieces for n in piece])
    found = together(sent)
    assert [n for e in found for n in e.batch.column("n").to_pylist()] == whole.tolist()
    if lineage:
        assert [n for e in found for n in e.parents.tolist()] == whole.tolist()  # type: ignore[union-attr]
    assert len(found) <= 1 or len(pieces) == 1


def test_streams_and_types_stay_apart() -> None:
    def sent(stream: str, values: list[object]) -> Emission:
        return Emission(stream, pa.record_batch({"n": pa.array(values)}))

    found = together([(0, [sent("a", [None]), sent("b", [1])]), (1, [sent("a", [2])])])
    assert [(e.stream, e.batch.to_pylist()) for e in found] == [
        ("a", [{"n": None}]),
        ("b", [{"n": 1}]),
        ("a", [{"n": 2}]),
    ]


def refuse_some(n: int, text: str) -> int:
    """Refuse every 50th tuple."""
    if n % 50 == 49:
        raise ValueError(n)
    return n + len(text)


def test_a_refused_tuple_is_the_right_one_in_any_piece() -> None:
    flow = tw.Flow("long")
    source = flow.source("numbers", tw.items([]), fields={"n": int, "text": str})
    mapped = source.map(refuse_some, fields={"m": int}, name="mapped", on_error="skip")
    mapped.sink("out", tw.collect([]))
    component = flow.build().component("mapped")
    read = {"default": frozenset(["m"])}
    worker = Worker(Parcel("long", component, 0, 0, 16, {}, frozenset(["default"]), read))
    try:
        worker.handle(Told("prepare"))
        batch = long_block(300).batch
        told = Told("process", origin=Origin("numbers"), lineage=True, data=bytes(to_bytes(batch)))
        answer: Answer = worker.handle(told)
    finally:
        worker.arena.close()
    kept = [n for n in range(300) if n % 50 != 49]
    (emission,) = unpack(answer, answer.data or b"")
    assert answer.failed_rows == [49, 99, 149, 199, 249, 299]
    assert emission.batch.column("m").to_pylist() == [n + LONG for n in kept]
    assert emission.parents is not None and emission.parents.tolist() == kept


def test_results_in_processes_are_those_of_this_process() -> None:
    def run(isolation: str) -> tuple[list[tuple[int, int]], list[str]]:
        found: list[tuple[int, int]] = []
        heard: list[Event] = []
        flow = tw.Flow("long")
        given = [(n, "x" * LONG) for n in range(500)]
        source = flow.source("numbers", tw.items(given), fields={"n": int, "text": str})
        mapped = source.map(
            lambda n, text: (n, refuse_some(n, text)),
            fields={"n": int, "m": int},
            isolation=isolation,
            on_error="skip",
        )
        mapped.sink("out", tw.call(lambda t: found.append((t.n, t.m))))
        flow.run(on=tw.Local(workers=2), listen=heard.append)
        return found, [e.tuple_text[:20] for e in heard if isinstance(e, TupleRefused)]

    assert run("process") == run("thread")
