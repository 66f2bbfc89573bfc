"""A validator looks at a topology before anything starts."""

from __future__ import annotations

from typing import Any

import pytest
from vocabulary import RUNTIMES, Numbers, Pass, chain

import thalweg as tw


class Unprepared(Pass):
    def prepare(self, context: tw.TaskContext) -> None:
        raise AssertionError("nothing may start")


@pytest.mark.parametrize("name", RUNTIMES)
@pytest.mark.parametrize("wrong", ["no sink", ValueError("no sink")])
def test_what_a_validator_gives_keeps_a_run_from_starting(name: str, wrong: Any) -> None:
    with pytest.raises(tw.TopologyError, match="topology 'chain': no sink"):
        chain(Unprepared()).run(on=RUNTIMES[name](), validator=lambda topology: wrong)


def test_it_may_raise_as_well() -> None:
    def validator(topology: tw.Topology) -> None:
        raise RuntimeError("too large")

    with pytest.raises(tw.TopologyError, match="too large") as caught:
        chain(Unprepared()).run(validator=validator)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_none_lets_it_run() -> None:
    seen: list[str] = []
    chain(Pass()).run(validator=lambda topology: seen.append(topology.name))
    assert seen == ["chain"]


def test_the_builder_asks_its_validator_when_it_builds() -> None:
    builder = tw.TopologyBuilder("words", validator=lambda t: f"{len(t.components)} components")
    builder.add_spout("numbers", Numbers(1))
    with pytest.raises(tw.TopologyError, match="topology 'words': 1 components"):
        builder.build()


def test_spark_asks_it_before_it_starts_anything() -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(tw.TopologyError, match="not here"):
        chain(Pass()).run(on=tw.Spark(), validator=lambda topology: "not here")
