"""Policies go by what tasks have used, not by what was declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import thalweg as tw
from thalweg.components import Bolt
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Decision, Timing, View
from thalweg.runtimes.local.runtime import Local

pytestmark = pytest.mark.usefixtures("all_samples_count")


@dataclass(frozen=True)
class Looking:
    """Changes nothing, and keeps what it sees."""

    seen: list[View]
    timing: Timing = field(default_factory=lambda: Timing(0.05, 0.05, 0.0))
    name: str = "looking"

    def decide(self, view: View) -> tuple[Decision, ...]:
        """Look."""
        self.seen.append(view)
        return ()


class Waiting(Bolt):
    """Waits, and uses next to nothing of a core."""

    outputs = {"n": int}

    def process(self, t: Any) -> None:
        """Wait."""
        self.context.clock.sleep(0.002)


def run(looks: int, seen: list[View], scaling: Scaling, **options: Any) -> list[View]:
    """Give numbers until somebody has looked so often."""

    def numbers() -> Iterator[int]:
        while len(seen) < looks:
            yield 1

    builder = tw.TopologyBuilder("needs")
    builder.add_spout("numbers", tw.items(numbers), fields={"n": int})
    builder.add_bolt("waiting", Waiting(), degree=1, **options).shuffle("numbers")
    local = Local(assigning="executors", scaling=scaling, block_rows=5, most_block_rows=5)
    builder.build().run(on=local)
    return seen


def reserved(view: View) -> tuple[float, float]:
    return view.node("waiting").reserved, view.windows["waiting"].last.tasks[0].reserved


def test_the_cores_of_a_task_are_learnt_from_what_it_used() -> None:
    seen: list[View] = []
    run(40, seen, Scaling(Looking(seen)))
    first, last = (view.node("waiting").reserved for view in (seen[0], seen[-1]))
    assert first > 0.9  # a whole core is the first guess
    used = sorted(sample.tasks[0].used for sample in seen[-1].history["waiting"])
    assert last == used[int(0.95 * len(used))]
    assert reserved(seen[-1]) == (last, last)


def test_nothing_is_learnt_where_it_is_not_wanted() -> None:
    seen: list[View] = []
    run(35, seen, Scaling(Looking(seen), learns=False))
    assert reserved(seen[-1]) == (1.0, 1.0)


def test_policies_beside_the_leading_one_learn_too() -> None:
    seen: list[View] = []
    run(40, seen, Scaling(Looking([]), beside=(Looking(seen),)))
    assert seen[-1].node("waiting").reserved != 1.0


@pytest.mark.parametrize(("isolation", "known"), [("process", True), ("thread", False)])
def test_the_memory_of_a_task_is_known_in_a_process_of_its_own(isolation: str, known: bool) -> None:
    seen: list[View] = []
    run(3, seen, Scaling(Looking(seen)), isolation=isolation)
    (load,) = seen[-1].windows["waiting"].last.tasks
    assert (load.memory > 1e6) is known  # Python itself takes more than that
