"""What a newcomer sees first."""

from __future__ import annotations

import os
import re

import pytest

from docs.markdown import ROOT

FIRST_SCREEN = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40]


def test_the_first_screen_names_exactly_two_commands() -> None:
    text = "\n".join(FIRST_SCREEN)
    assert re.findall(r"^\$ (.+)$", text, re.MULTILINE) == ["scripts/demo", "scripts/test"]
    assert set(re.findall(r"scripts/\w+", text)) == {"scripts/demo", "scripts/test"}


@pytest.mark.parametrize("script", ["setup", "check", "demo", "test"])
def test_scripts_can_be_run(script: str) -> None:
    assert os.access(ROOT / "scripts" / script, os.X_OK)


def test_the_gate_runs_everything() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    called = [line.strip() for line in lines if not line.startswith("#")]
    assert {"scripts/check", "scripts/demo --fast", "scripts/test"} <= set(called)
