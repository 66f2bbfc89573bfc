"""Tuples that skip exchanges do not overtake those of their sender that do not."""

from __future__ import annotations

from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.runtimes.spark.limits import Limits
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import ManualClock, source

ROWS = [(f"a{n * 5 % 7}", f"b{n * 3 % 5}", f"c{n % 3}") for n in range(240)]
LARGE = 400


class First(tw.Bolt):
    """Passes tuples on, with something that makes them worth keeping at their place."""

    kind = tw.Kind.KEYED
    commutative = True
    outputs = {"b": str, "c": str, "pad": str}

    def process(self, t: Any) -> None:
        self.emit(t.b, t.c, "x" * LARGE)


class Second(tw.Bolt):
    """Numbers the tuples of each of its keys; they are large from a number on."""

    kind = tw.Kind.KEYED
    commutative = True
    outputs = {"b": str, "c": str, "n": int, "pad": str}

    def __init__(self, large_from: int) -> None:
        self.large_from = large_from

    def process(self, t: Any) -> None:
        n = self.state.get(t.b, 0)
        self.state.put(t.b, n + 1)
        self.emit(t.b, t.c, n, "y" * (LARGE if n >= self.large_from else 1))


class Third(tw.Bolt):
    """Writes down in which order the numbers came."""

    kind = tw.Kind.KEYED
    commutative = True
    table = "came"

    def process(self, t: Any) -> None:
        self.state.put(t.c, [*self.state.get(t.c, []), [t.b, t.n]])


def came(large_from: int, **options: Any) -> tuple[dict[str, list[list[Any]]], tw.Result]:
    builder = tw.TopologyBuilder("chain")
    builder.add_spout("rows", source(ROWS), fields={"a": str, "b": str, "c": str})
    builder.add_bolt("first", First(), order="sender").fields("rows", "a")
    builder.add_bolt("second", Second(large_from), order="sender").fields("first", "b")
    builder.add_bolt("third", Third(), order="sender").fields("second", "c")
    on = tw.Spark(
        spark_session(),
        places=2,
        clock=ManualClock(),
        pump=PumpSettings(rows=120, block_rows=120),
        **options,
    )
    result = builder.build().run(on=on)
    return dict(result.table("came")), result


def check(table: dict[str, list[list[Any]]]) -> None:
    """Each tuple came once; those of one sender, which has all tuples of its b, in its order."""
    assert sum(map(len, table.values())) == len(ROWS)
    for pairs in table.values():
        for b in {b for b, _ in pairs}:
            numbers = [n for other, n in pairs if other == b]
            assert numbers == sorted(set(numbers))


def test_large_tuples_stay_at_their_place_and_in_order() -> None:
    table, result = came(large_from=0)
    check(table)
    assert result.metrics.component("first").local > 0
    assert result.metrics.component("second").local > 0


def test_small_tuples_take_part_in_the_exchange() -> None:
    table, result = came(large_from=len(ROWS), limits=Limits(fused_bytes=10_000))
    check(table)
    assert result.metrics.component("second").local == 0


@pytest.mark.parametrize("large_from", [20, 30])
def test_tuples_that_become_large_do_not_overtake_small_ones(large_from: int) -> None:
    check(came(large_from)[0])
