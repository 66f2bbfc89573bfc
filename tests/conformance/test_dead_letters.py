"""The policy dead_letter, on every runtime: the file holds each bad tuple and the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.cases_errors import BAD, OPERATORS, Operator, unreadable_record
from conformance.harness import RUNTIMES, AnyOrder, Counts, RuntimeUnderTest, Settings, nowhere
from thalweg.config import dead_letter
from thalweg.connectors.memory import items
from thalweg.flow import Flow

every_runtime = pytest.mark.parametrize("runtime", RUNTIMES.values(), ids=RUNTIMES)
NUMBERS = {"numbers": range(20)}


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@every_runtime
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_the_file_holds_the_bad_tuples_and_the_others_pass(
    operator: Operator, runtime: RuntimeUnderTest, tmp_path: Path
) -> None:
    path = tmp_path / "not-yet-there" / "bad.jsonl"
    seen = runtime.run(operator.build(dead_letter(path)), NUMBERS, Settings())
    AnyOrder("out", operator.sends).check(seen)
    Counts({"errors": len(BAD)}, "it").check(seen)
    kept = sorted(records(path), key=lambda record: record["tuple"]["n"])
    assert [record["tuple"]["n"] for record in kept] == BAD
    assert [record["reason"] for record in kept] == [f"ValueError: no {n}" for n in BAD]
    assert {(record["component"], record["task"]) for record in kept} == {("it", 0)}


@every_runtime
def test_a_record_that_cannot_be_read_is_kept_as_it_was(
    runtime: RuntimeUnderTest, tmp_path: Path
) -> None:
    path = tmp_path / "bad.jsonl"
    seen = runtime.run(unreadable_record(dead_letter(path)), {}, Settings())
    AnyOrder("out", [1, 3]).check(seen)
    (record,) = records(path)
    assert (record["component"], record["raw"]) == ("it", "'two'")
    assert "int64" in str(record["reason"])


@every_runtime
def test_all_tasks_share_the_file_and_a_second_run_appends(
    runtime: RuntimeUnderTest, tmp_path: Path
) -> None:
    def refuse(n: int) -> int:
        raise KeyError(n)

    path = tmp_path / "bad.jsonl"
    for run in (1, 2):
        flow = Flow("refuse")
        numbers = flow.source("numbers", items([]), fields={"n": int})
        numbers.map(refuse, degree=3, on_error=dead_letter(path)).sink("out", nowhere())
        seen = runtime.run(flow.build(), NUMBERS, Settings())
        AnyOrder("out", []).check(seen)
        assert len(records(path)) == 20 * run
    assert {record["task"] for record in records(path)} == {0, 1, 2}
