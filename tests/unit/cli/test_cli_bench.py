"""``thalweg bench`` with measurements made up for the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from thalweg.cli.app import app

Report = Callable[[str], None]


def sorting(quick: bool, report: Report) -> dict[str, Any]:
    """Sorts numbers.

    Further explanations are not listed.
    """
    report("sorting [now]")
    summary = [{"size": 10 if quick else 1000, "rate": 12345.6}]
    return {"name": "sorting", "environment": {}, "results": [1.5], "summary": summary}


def mapping(quick: bool, report: Report) -> dict[str, Any]:
    """Maps."""
    return {"name": "mapping", "environment": {}, "results": [], "summary": {"ratio": 0.75}}


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    benches = {"sorting": sorting, "mapping": mapping}
    monkeypatch.setattr("thalweg.bench.catalogue.BENCHES", benches, raising=False)


def test_without_a_name_the_benches_are_listed() -> None:
    done = CliRunner().invoke(app, ["bench"])
    assert done.exit_code == 0
    assert [line.split() for line in done.stdout.splitlines() if line.strip()][2:] == [
        ["sorting", "Sorts", "numbers."],
        ["mapping", "Maps."],
    ]


def test_a_bench_reports_on_standard_error_and_prints_its_summary() -> None:
    done = CliRunner().invoke(app, ["bench", "sorting", "--quick"])
    assert done.exit_code == 0
    assert done.stderr == "sorting [now]\n"
    assert ["10", "12,346"] in [line.split() for line in done.stdout.splitlines()]


def test_a_summary_may_be_values_by_name() -> None:
    done = CliRunner().invoke(app, ["bench", "mapping"])
    assert ["ratio", "0.75"] in [line.split() for line in done.stdout.splitlines()]


def test_all_results_go_into_a_json_file(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    done = CliRunner().invoke(app, ["bench", "sorting", "--json", str(path)])
    assert done.exit_code == 0
    assert msgspec.json.decode(path.read_bytes())["summary"] == [{"size": 1000, "rate": 12345.6}]
    assert path.read_text().startswith('{\n  "name": "sorting"')


def test_a_folder_that_is_not_there_is_an_error_before_anything_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.json"
    done = CliRunner().invoke(app, ["bench", "sorting", "--json", str(path)])
    assert done.exit_code == 1
    assert done.stderr == (
        f"error: JSON file {str(path)!r}: expected a file to write, got no such folder "
        f"(make it first: mkdir -p {path.parent})\n"
    )
    assert not path.parent.exists()


def test_an_unknown_bench_is_an_error_that_says_which_exist() -> None:
    done = CliRunner().invoke(app, ["bench", "sortin"])
    assert done.exit_code == 1
    assert "expected one of ['mapping', 'sorting'] (did you mean 'sorting'?)" in done.stderr
