"""Some cases of the conformance suite on three hosts: what comes out is the same as anywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance import test_conformance as suite
from conformance.cases_errors import FAILING
from conformance.harness import NOT_ON_SPARK, Case, FailingCase, RuntimeUnderTest, spark
from sparkcluster.cluster import Cluster
from sparkcluster.machine import REPOSITORY
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests

pytestmark = pytest.mark.cluster

CLUSTER = {"hosts": 3}
#: What hosts can do wrong: send tuples astray or out of order, split a key, lose an error.
NAMES = (
    "tally counts and passes the tuples on",
    "scan under total order is the serial one",
    "stateful with a dataclass",
    "top ends with the final ranking",
    "unicode texts as keys",
    "instants in different time zones as keys",
    "all NaNs are one key, and -0.0 is 0, of type double",
    "keys of two fields, with nulls",
    "fields gives each key one task",
    "partial_key on a table merges the halves of a key",
    "local_or_shuffle stays at the sender's place",
    "all gives every tuple to every task",
    "direct goes where a bolt says",
    "diamond in a diamond",
    "key order survives a join upstream",
    "rows that two tasks of a block bolt send backwards too",
    "word count in Storm's manner",
    "what a keyed bolt sends at a tick goes on",
    "components have ticks of their own",
    "a tuple that fails is replayed by its spout",
    "a tuple for all tasks fails when one of them lets it fail",
    "a bolt that raises under skip",
    "five tables, degree 5",
)
FAILING_NAMES = (
    "stateful with a class that raises under fail",
    "prepare that raises",
    "emit_direct to a task which does not exist",
)


def named(cases: list[Any], names: tuple[str, ...]) -> list[Any]:
    by_name = {case.name: case for case in cases}
    return [by_name[name] for name in names]


@pytest.fixture(scope="module")
def states(cluster: Cluster) -> Path:
    """Give the folder with the state of each run."""
    folder = cluster.shared / "states"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def hosts(cluster: Cluster, states: Path) -> RuntimeUnderTest:
    session = cluster.session(**{"spark.executor.memory": "512m"})
    run = spark(3, session=lambda: session, folder=states)
    return RuntimeUnderTest(run, NOT_ON_SPARK)


@pytest.mark.parametrize("case", named(suite.CASES, NAMES), ids=suite.slug)
def test_case_on_hosts(case: Case, hosts: RuntimeUnderTest, states: Path) -> None:
    assert not case.needs & hosts.lacks
    before = set(states.iterdir())
    suite.test_case(case, hosts)
    (state,) = set(states.iterdir()) - before
    last = Manifests(Location.of(state)).latest()
    assert last is not None
    assert len(set(last.hosts)) == 3


@pytest.mark.parametrize("case", named(FAILING, FAILING_NAMES), ids=suite.slug)
def test_failing_case_on_hosts(case: FailingCase, hosts: RuntimeUnderTest) -> None:
    # Paths are told in full: an executor is not in the folder that the driver was started in.
    tells = tuple(text.replace("(tests", f"({REPOSITORY}/tests") for text in case.tells)
    suite.test_failing_case(replace(case, tells=tells), hosts)
