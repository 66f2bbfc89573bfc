"""A stream of three steps, from one task each: who keeps up with it, on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

POLICIES = ("static", "autoscale", "autoscale+", "thalweg")


def outcomes_of(case: str, *policies: str) -> dict[str, Any]:
    """Run policies beside each other, each in a process of its own."""
    program = str(Path(__file__).with_name("scaled_program.py"))
    running = {
        policy: subprocess.Popen([sys.executable, program, policy, case], stdout=subprocess.PIPE)  # noqa: S603 (ours)
        for policy in policies
    }
    found = {policy: process.communicate()[0] for policy, process in running.items()}
    assert {policy: process.returncode for policy, process in running.items()} == dict.fromkeys(
        policies, 0
    )
    return {policy: json.loads(text) for policy, text in found.items()}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    """All policies at once: they mostly wait."""
    return outcomes_of("waiting", *POLICIES)


@pytest.mark.quiet
@pytest.mark.parametrize("policy", POLICIES)
def test_every_key_is_counted_exactly(outcomes: dict[str, Any], policy: str) -> None:
    assert outcomes[policy]["exact"]


@pytest.mark.quiet
def test_a_degree_that_stays_congests_and_does_not_recover(outcomes: dict[str, Any]) -> None:
    static = outcomes["static"]
    assert set(static["degrees"]) == {1}
    assert static["late"] > 0.5
    assert static["late_at_last"] == 1.0


@pytest.mark.quiet
@pytest.mark.parametrize("policy", POLICIES[1:])
def test_a_policy_keeps_up_with_degrees_that_rise_and_fall(
    outcomes: dict[str, Any], policy: str
) -> None:
    outcome = outcomes[policy]
    assert outcome["late_at_last"] < 0.01
    assert outcome["late"] < 0.25  # on the way up, where one task congests for good
    degrees = outcome["degrees"]
    assert degrees[0] == 1
    assert max(degrees) >= 7  # 90 % of what 8 tasks can do
    assert degrees[-1] <= 3


@pytest.mark.quiet
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is no other core")
def test_operators_that_burn_a_core_get_another_one() -> None:
    """AUTOSCALE+ goes by the CPU that tasks can get: threads that wait would not show that."""
    outcome = outcomes_of("burning", "autoscale+")["autoscale+"]
    assert outcome["exact"]
    degrees = outcome["degrees"]
    assert degrees[0] == 1
    assert max(degrees) >= 2  # 1.3 cores are needed
    assert degrees[-1] == 1
    assert outcome["late_at_last"] < 0.05
    assert outcome["late"] < 0.25
