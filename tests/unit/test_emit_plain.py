"""The quick way to emit of bolts in Storm's manner gives what the general one gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.anchored import AnchoredBolt
from thalweg.blocks import Block
from thalweg.testing import PAUSE, ManualClock, run_inline


class Sends(AnchoredBolt):
    """Sends for each number as many tuples as it says, each quickly or not as a plan says."""

    def __init__(self, fields: int, plan: list[bool]) -> None:
        self.outputs = [f"f{i}" for i in range(fields)]
        self.plan = plan

    def process_tuples(self, first: int, block: Block) -> None:
        for number, count in enumerate(block.values("n"), first):
            self.at = number
            for i in range(count):
                quick = self.plan[(number + i) % len(self.plan)]
                values = [number * 100 + i + field for field in range(len(self.outputs))]
                (self.add if quick else self.emit)(values)
            columns, anchors = self.outbox
            anchors.extend([number] * (len(columns[0]) - len(anchors)))

    def add(self, values: list[int]) -> None:
        """Put values straight into their columns."""
        for column, value in zip(self.outbox[0], values, strict=True):
            column.append(value)

    def process_tick(self) -> None:
        self.add([-1] * len(self.outputs))


def sent(items: list[Any], fields: int, plan: list[bool], rows: int = 3) -> list[tuple[int, ...]]:
    flow = tw.Flow("plain")
    source = flow.source("numbers", tw.items([]), fields={"n": int})
    source.through("sends", Sends(fields, plan), tick="10 s").sink(
        "out", tw.stdout(), order="total"
    )
    runtime = tw.Inline(block_rows=rows, clock=ManualClock())
    found = run_inline(flow, {"numbers": items}, runtime=runtime).outputs["out"]
    return [tuple(getattr(t, f"f{i}") for i in range(fields)) for t in found]


@given(
    items=st.lists(st.integers(0, 4), max_size=12),
    fields=st.integers(1, 4),
    plan=st.lists(st.booleans(), min_size=1, max_size=5),
    rows=st.integers(1, 5),
)
def test_quick_and_general_emits_mix(
    items: list[int], fields: int, plan: list[bool], rows: int
) -> None:
    assert sent(items, fields, plan, rows) == sent(items, fields, [False], rows)


@pytest.mark.parametrize("fields", [1, 2, 3])
def test_ticks_may_send_quickly_too(fields: int) -> None:
    found = sent([1, PAUSE("11 s"), 1], fields, [True])
    assert [row[0] for row in found] == [0, -1, 100]


@pytest.mark.parametrize("fields", [1, 2, 3])
def test_a_tuple_of_another_length_is_refused_with_the_names_of_the_fields(fields: int) -> None:
    class Wrong(Sends):
        def process_tuples(self, first: int, block: Block) -> None:
            self.emit([1] * (fields + 1))

    flow = tw.Flow("wrong")
    source = flow.source("numbers", tw.items([]), fields={"n": int})
    source.through("sends", Wrong(fields, [True])).sink("out", tw.stdout())
    with pytest.raises(tw.ThalwegError, match=rf"expected {fields} values: f0.*got {fields + 1}"):
        run_inline(flow, {"numbers": [1]})


class Before(AnchoredBolt):
    """Sends a tuple before the first one, and says later that it has another."""

    outputs = ["n"]
    left = 1

    def prepare(self, context: Any) -> None:
        self.emit(["before"])

    def process_tuples(self, first: int, block: Block) -> None:
        for number, n in enumerate(block.values("n"), first):
            self.emit([f"{number}: {n}"], anchors=[number])

    @property
    def waiting(self) -> bool:
        return self.left > 0

    def process_wake(self) -> None:
        self.left -= 1
        self.emit(["woken"])


@pytest.mark.parametrize("items", [[], [5, 6]])
@pytest.mark.parametrize("runtime", [tw.Inline, tw.Local])
def test_what_is_sent_before_all_tuples_comes_first_and_who_waits_is_woken(
    items: list[int], runtime: Any
) -> None:
    flow = tw.Flow("before")
    source = flow.source("numbers", tw.items([]), fields={"n": int})
    source.through("sends", Before()).sink("out", tw.stdout(), order="total")
    outcome = run_inline(flow, {"numbers": items}, runtime=runtime(clock=ManualClock()))
    found = [t.n for t in outcome.outputs["out"]]
    assert found[0] == "before"
    rest = [f"{number}: {n}" for number, n in enumerate(items)]
    assert sorted(found[1:]) == sorted([*rest, "woken"])
