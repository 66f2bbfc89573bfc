"""Threads and processes that stay on a core each."""

from __future__ import annotations

import os
from typing import Any

import pytest
from vocabulary import Numbers, chain

import thalweg as tw
from thalweg.testing import run_inline

CORES = sorted(os.sched_getaffinity(0))


class Where(tw.Bolt):
    outputs = {"cores": str}

    def process(self, t: Any) -> None:
        self.emit(",".join(map(str, sorted(os.sched_getaffinity(0)))))


@pytest.mark.parametrize("assigning", ["workers", "executors"])
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_whoever_works_stays_on_one_core(assigning: Any, isolation: Any) -> None:
    topology = chain(Where(), Numbers(50), degree=2, isolation=isolation)
    outcome = run_inline(topology, runtime=tw.Local(pin=True, assigning=assigning))
    assert {t.cores for t in outcome.outputs["bolt"]} <= {str(core) for core in CORES}
    assert sorted(os.sched_getaffinity(0)) == CORES  # as before


def test_cores_may_be_chosen() -> None:
    outcome = run_inline(chain(Where()), runtime=tw.Local(pin=CORES[-1:]))
    assert {t.cores for t in outcome.outputs["bolt"]} == {str(CORES[-1])}


def test_without_it_threads_may_run_anywhere() -> None:
    outcome = run_inline(chain(Where()), runtime=tw.Local())
    assert {t.cores for t in outcome.outputs["bolt"]} == {",".join(map(str, CORES))}


def test_a_core_that_is_not_there_is_refused() -> None:
    with pytest.raises(tw.UsageError, match="pin"):
        chain(Where()).run(on=tw.Local(pin=[100_000]))


@pytest.mark.parametrize("wrong", ["0", [], ["a"], 3.5])
def test_what_is_no_list_of_cores_is_refused(wrong: Any) -> None:
    with pytest.raises(tw.UsageError, match="pin"):
        tw.Local(pin=wrong)
