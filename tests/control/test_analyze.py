"""``thalweg analyze``: what it reports, and the table and picture that it writes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from thalweg.cli.app import app
from thalweg.routing.table_file import read_table_file

#: Six regions with five tags each; every tag belongs to one region.
ROWS = [(region, 10 * region + tag) for _ in range(20) for region in range(6) for tag in range(5)]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def analyze(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["analyze", *map(str, words)])


def lines(done: Result) -> list[list[str]]:
    return [line.split() for line in done.stdout.splitlines() if line.strip()]


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    path = tmp_path / "posts.csv.gz"
    text = "region,tag\n" + "".join(f"{region},{tag}\n" for region, tag in ROWS)
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_it_reports_keys_skew_and_locality(posts: Path) -> None:
    done = analyze(posts, "--keys", "region,tag")
    assert done.exit_code == 0, done.output
    found = lines(done)
    assert found[0] == ["600", "records,", "6", "places"]
    (region,) = (line for line in found if line[0] == "region" and line[1] == "6")
    assert region[3] == "16.7"
    assert region[-1] == "1"
    (link,) = (line for line in found if line[:3] == ["region", "->", "tag"])
    assert link[5:] == ["100.0", "%", "100.0", "%"]


def test_the_table_has_keys_of_the_type_that_was_said(posts: Path, tmp_path: Path) -> None:
    done = analyze(posts, "--keys", "region:int,tag", "--table", tmp_path / "table.json")
    assert done.exit_code == 0, done.output
    found = read_table_file(tmp_path / "table.json")
    assert found.places == 6
    assert set(found.fields["region"]) == set(range(6))
    assert sorted(found.fields["region"].values()) == list(range(6))
    for tag, place in found.fields["tag"].items():
        assert isinstance(tag, str)
        assert place == found.fields["region"][int(tag) // 10]


def test_parquet_sorted_by_time_with_three_keys_and_a_picture(tmp_path: Path) -> None:
    columns = {
        "region": [region for region, _ in ROWS],
        "tag": [tag for _, tag in ROWS],
        "user": [f"u{tag}" for _, tag in ROWS],
        "at": list(range(len(ROWS), 0, -1)),
    }
    pq.write_table(pa.table(columns), tmp_path / "posts.parquet")
    plot = tmp_path / "plot.svg"
    keys = ("--keys", "region,tag,user", "--time", "at")
    done = analyze(tmp_path / "posts.parquet", *keys, "--places", 3, "--plot", plot)
    assert done.exit_code == 0, done.output
    assert plot.read_text().startswith("<svg")
    assert any(line[:3] == ["tag", "->", "user"] for line in lines(done))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--keys", "region"], "expected at least 2 fields"),
        (["--keys", "region,tag:number"], "one of the types str, int"),
        (["--keys", "region,region"], "each once"),
        (["--keys", "region,nothing"], "nothing"),
        (["--keys", "region,tag", "--table", "/no/such/table.json"], "a file to write"),
    ],
)
def test_what_makes_no_sense_is_explained(posts: Path, words: list[str], message: str) -> None:
    done = analyze(posts, *words)
    assert done.exit_code == 1
    assert message in done.stderr


def test_files_without_records_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("region,tag\n")
    done = analyze(tmp_path / "empty.csv", "--keys", "region,tag")
    assert done.exit_code == 1
    assert "expected records, got none" in done.stderr
