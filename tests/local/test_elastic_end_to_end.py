"""A stream of three steps, from one task each: who keeps up with it, on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

POLICIES = ("static", "autoscale", "autoscale+", "thalweg")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    """Run all policies beside each other, each in a process of its own: they mostly wait."""
    program = str(Path(__file__).with_name("scaled_program.py"))
    running = {
        policy: subprocess.Popen([sys.executable, program, policy], stdout=subprocess.PIPE)  # noqa: S603 (ours)
        for policy in POLICIES
    }
    found = {policy: process.communicate()[0] for policy, process in running.items()}
    return {policy: json.loads(text) for policy, text in found.items()}


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
    degrees = outcome["degrees"]
    assert degrees[0] == 1
    assert max(degrees) >= 7  # 90 % of what 8 tasks can do
    assert degrees[-1] <= 3
