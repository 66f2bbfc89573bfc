"""Cases on the local runtime, with bolts that have other degrees all the time."""

from __future__ import annotations

import pytest

from conformance.harness import MEMORY, Case, local
from conformance.test_conformance import CASES, slug

pytestmark = pytest.mark.usefixtures("forked")

WAYS = {
    "workers": local(restless=3, workers=3, block_rows=2, most_block_rows=2, window=8),
    "executors": local(restless=4, assigning="executors", block_rows=3, most_block_rows=3),
}
#: Cases that look at the numbers of tasks.
ABOUT_TASKS = (
    "shuffle gives even shares",
    "none is as good as shuffle",
    "fields gives each key one task",
    "fields of two names gives each pair one task",
    "fields with bounds splits by range",
    "partial_key shares a key between two tasks at most",
    "local_or_shuffle stays at the sender's place",
    "local_or_shuffle stays at the sender's place under total order",
    "local_or_shuffle shuffles where the sender has no neighbour",
    "load_aware uses every task",
    "a task knows its place and the settings",
    "metrics count tuples",
)
# What a task keeps besides its state ends with it.
OTHERS = [case for case in CASES if MEMORY not in case.needs and case.name not in ABOUT_TASKS]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", OTHERS, ids=slug)
def test_case(case: Case, way: str) -> None:
    seen = WAYS[way](case.build(), case.inputs, case.settings)
    for expectation in case.expect:
        expectation.check(seen)


def test_the_cases_that_are_left_out_exist() -> None:
    assert set(ABOUT_TASKS) <= {case.name for case in CASES}
