"""Whoever is faster, results are the same: threads pause at random at named points."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from delaying import Delays

import thalweg as tw
from conformance.harness import Case, local
from conformance.test_conformance import CASES
from thalweg.runtimes.local.runtime import Local

pytestmark = [pytest.mark.heavy, pytest.mark.usefixtures("forked")]

SEEDS = range(50)
WAYS: tuple[dict[str, Any], ...] = (
    {"queue": "hybrid"},
    {"queue": "partitioned"},
    {"queue": "shared"},
    {"assigning": "executors"},
)


def settings(chance: random.Random, delays: Delays) -> dict[str, Any]:
    """Choose a way to run, with little room."""
    return {
        "workers": chance.randrange(1, 5),
        "block_rows": chance.randrange(1, 20),
        "window": chance.choice((2, 3, 50)),
        "queue_rows": chance.choice((1, 10, 1000)),
        "pause": delays,
        **chance.choice(WAYS),
    }


def share(seed: int) -> list[Case]:
    """Give a share of all cases; each of them comes up twice over all seeds."""
    return CASES[seed % 25 :: 25]


@pytest.mark.parametrize("seed", SEEDS)
def test_conformance_does_not_depend_on_who_is_faster(seed: int) -> None:
    chance, delays = random.Random(seed), Delays(seed)
    for case in share(seed):
        run = local(**settings(chance, delays))
        seen = run(case.build(), case.inputs, case.settings)
        for expectation in case.expect:
            expectation.check(seen)
    assert delays.points.keys() == {"send", "arrive", "work", "done", "forward"}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_does_not_depend_on_who_is_faster(seed: int) -> None:
    chance = random.Random(seed)
    rows = [(chance.randrange(12), n) for n in range(chance.randrange(50, 400))]
    seen: list[Any] = []
    flow = tw.Flow("any")
    stream = flow.source("rows", tw.items(rows), fields={"k": int, "n": int})
    doubled = stream.map(lambda k, n: (k, 2 * n), fields={"k": int, "n": int})
    merged = stream.merge(doubled).key_by("k")
    totals_by_row = merged.scan(0, lambda total, n: total + n, into="n", degree=5)
    totals_by_row.sink("out", tw.collect(seen), order="total")
    flow.run(on=Local(**settings(chance, Delays(seed))))
    totals: Counter[int] = Counter()
    expected = []
    for k, n in rows:
        for value in (n, 2 * n):
            totals[k] += value
            expected.append((k, totals[k]))
    assert [tuple(t) for t in seen] == expected
