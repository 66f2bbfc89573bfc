"""Fields that hold any plain values, mixed as they come."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from conformance.harness import AnyOrder, Case, InKeyOrder, Observed, TableIs, nowhere, running
from thalweg.anyvalues import anything
from thalweg.builder import TopologyBuilder
from thalweg.components import Bolt
from thalweg.connectors.memory import items
from thalweg.flow import Flow
from thalweg.topology import Topology

VALUES: list[Any] = [
    "text", 7, None, 2.5, True, b"\x00\xff", "", -(2**63), 2**70,
    [1, "a", None], {"k": [1, {"deep": True}]}, ("eu", 2), dt.date(2024, 2, 29), "ä" * 300,
]  # fmt: skip
KEYS: list[Any] = ["a", 1, None, "1", 1.0, "a", True, b"a", 2.5, None, ("eu", 1), ("eu", 1)]


@dataclass(frozen=True)
class Values:
    """These tuples came, in any order; some of their values have no hash."""

    expected: list[tuple[Any, ...]]

    def check(self, seen: Observed) -> None:
        assert sorted(map(repr, seen.outputs["out"])) == sorted(map(repr, self.expected))


class Wrap(Bolt):
    """Puts each value into a list, or takes it out of one."""

    outputs = {"value": anything}

    def process(self, t: Any) -> None:
        self.emit(t.value[0] if isinstance(t.value, list) else [t.value])


def passed_on(isolation: str | None = None) -> Topology:
    builder = TopologyBuilder("values")
    builder.add_spout("values", items([]), fields={"value": anything})
    builder.add_bolt("there", Wrap(), degree=2, isolation=isolation).shuffle("values")
    builder.add_bolt("back", Wrap(), degree=2, isolation=isolation).fields("there", "value")
    builder.add_bolt("out", nowhere()).global_("back")
    return builder.build()


def through() -> Topology:
    flow = Flow("through")
    source = flow.source("values", items([]), fields={"value": anything, "i": int})
    source.filter(lambda value, i: True).sink("out", nowhere())
    return flow.build()


def tallied() -> Topology:
    flow = Flow("keys")
    source = flow.source("keys", items([]), fields={"k": anything})
    source.tally("counts", key="k", degree=3).sink("out", nowhere())
    return flow.build()


def numbered() -> Topology:
    flow = Flow("keys")
    source = flow.source("keys", items([]), fields={"k": anything, "i": int})
    source.key_by("k").running_count(degree=3).sink("out", nowhere())
    return flow.build()


SCALARS = [value for value in VALUES if not isinstance(value, list | dict) and value != 2**70]
NUMBERED: list[tuple[Any, ...]] = [(key, i) for i, key in enumerate(KEYS * 3)]

CASES = [
    Case(
        "values of any types come as they are",
        through,
        {"values": [(value, i) for i, value in enumerate(VALUES)]},
        (Values([(value, i) for i, value in enumerate(VALUES)]),),
    ),
    Case(
        "values of any types as keys of a fields grouping",
        passed_on,
        {"values": SCALARS},
        (Values([(value,) for value in SCALARS]),),
    ),
    Case(
        "values of any types through processes",
        lambda: passed_on("process"),
        {"values": SCALARS},
        (Values([(value,) for value in SCALARS]),),
    ),
    Case(
        "keys of any types are counted, equal ones together",
        tallied,
        {"keys": KEYS},
        (
            TableIs("counts", {"a": 2, 1: 3, None: 2, "1": 1, b"a": 1, 2.5: 1, ("eu", 1): 2}),
            AnyOrder("out", [(key,) for key in KEYS]),
        ),
    ),
    Case(
        "running counts of keys of any types",
        numbered,
        {"keys": NUMBERED},
        (InKeyOrder("out", 0, running(NUMBERED, 0)),),
    ),
]
