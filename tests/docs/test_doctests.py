"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import thalweg

MODULES = sorted(
    ["thalweg", *(found.name for found in pkgutil.walk_packages(thalweg.__path__, "thalweg."))]
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_module(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(importlib.import_module(name), report=True)
    assert results.failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = [importlib.import_module(name) for name in MODULES]
    with_examples = [m for m in modules if any(test.examples for test in finder.find(m))]
    assert len(with_examples) >= len(MODULES) // 4
