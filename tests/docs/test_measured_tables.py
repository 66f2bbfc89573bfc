"""Tables of figures in the documentation are those of the files that the benchmarks wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from thalweg.bench.elastic_summary import SIX
from thalweg.bench.elastic_tables import table, tables

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/storm-mc.md"
MEASURED: dict[str, Any] = json.loads((ROOT / "bench/storm-mc.json").read_text())
#: The topologies of the document's tables 5.1 to 5.6.
TOPOLOGIES = ("wordcount", "mail", "rolling_sort")


def rows(name: str) -> list[str]:
    """Write a table of the best turn at each degree, beside what the document has for it."""
    made = []
    for degree, found in MEASURED["results"][name].items():
        turn = max(found["turns"], key=lambda each: each["per_second"])
        tuples = [f"{count / turn['seconds']:,.0f}" for count in turn["tuples"].values()]
        others = [published(found["published"][each]) for each in ("storm_mc", "storm")]
        made.append(f"| {' | '.join([degree, *tuples, *used(turn), *others])} |")
    return made


def used(turn: dict[str, Any]) -> list[str]:
    cpu, size = turn.get("cpu"), turn.get("megabytes")
    percent = "-" if cpu is None else f"{100 * cpu:.0f} %"
    return [percent, "-" if size is None else f"{size:,.0f}", str(turn["threads"])]


def published(turn: dict[str, Any]) -> str:
    return ", ".join([f"{turn['per_second']:,.0f}", *used(turn)])


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_table_by_degree_is_what_was_measured(name: str) -> None:
    assert "\n".join(rows(name)) in PAGE.read_text(), "\n" + "\n".join(rows(name))


SEEN = {
    "in_process_vs_multilang_json_own": "{:.1f}",
    "in_process_vs_multilang_msgpack_own": "{:.1f}",
    "in_process_vs_multilang_json_own_one_bolt": "{:.1f}",
    "in_process_vs_multilang_msgpack_own_one_bolt": "{:.1f}",
    "in_process_vs_multilang_json": "{:.1f}",
    "in_process_vs_multilang_msgpack": "{:.1f}",
    "in_process_vs_multilang_json_one_bolt": "{:.1f}",
    "in_process_vs_multilang_msgpack_one_bolt": "{:.1f}",
    "in_process_vs_multilang_json_all_cores": "{:.1f}",
    "in_process_vs_multilang_msgpack_all_cores": "{:.1f}",
}


@pytest.mark.parametrize("name", SEEN)
def test_a_ratio_is_what_was_measured(name: str) -> None:
    summary = MEASURED["summary"]
    best, median = (SEEN[name].format(summary[key]) for key in (name, f"{name}_median"))
    assert f"| `{name}` | {best} | {median} |" in PAGE.read_text()


def elastic(name: str) -> dict[str, Any]:
    return dict(json.loads((ROOT / f"bench/{name}.json").read_text())["results"])


@pytest.mark.parametrize("name", ["elastic", "elastic-real"])
def test_all_tables_of_elasticity_are_what_was_measured(name: str) -> None:
    page = (ROOT / "bench/elastic.md").read_text()
    for made in tables(elastic(name)).split("\n\n"):
        assert made in page, "\n" + made


@pytest.mark.parametrize("measure", ["lost", "resource_seconds", "latency_mean", "latency_p99"])
def test_the_six_scenarios_are_what_was_measured(measure: str) -> None:
    made = table(elastic("elastic"), SIX, measure)
    assert made in (ROOT / "docs/elasticity.md").read_text(), "\n" + made


def test_real_rates_are_what_was_measured() -> None:
    page, found = (ROOT / "docs/elasticity.md").read_text(), elastic("elastic-real")
    for trace, each in found.items():
        cells = [
            f"{100 * r['lost']:.2f} / {r['oracle_ratio']:.2f}" for r in each["policies"].values()
        ]
        made = f"| {trace} | {' | '.join(cells)} |"
        assert made in page, made
