"""Which files a source reads, and how tasks share them."""

from __future__ import annotations

from pathlib import Path

import pytest

import thalweg as tw
from connectors.running import read


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.txt", "c.txt", "z.csv"):
        (tmp_path / name).write_text(f"{name}\n")
    return tmp_path


def test_a_pattern_is_read_in_the_order_of_the_names(folder: Path) -> None:
    assert read(tw.files(f"{folder}/*.txt")).values == ["a.txt", "b.txt", "c.txt"]


def test_a_list_is_read_in_its_own_order_and_each_file_once(folder: Path) -> None:
    patterns = [folder / "c.txt", f"{folder}/*.txt"]
    assert read(tw.files(patterns)).values == ["c.txt", "a.txt", "b.txt"]


def test_a_folder_stands_for_the_files_in_it(folder: Path) -> None:
    (folder / "below").mkdir()
    (folder / "unfinished.txt.part").write_text("x\n")
    outcome = read(tw.files(folder, format="text"))
    assert outcome.values == ["a.txt", "b.txt", "c.txt", "z.csv"]


def test_two_stars_reach_into_folders(folder: Path) -> None:
    (folder / "below" / "deep").mkdir(parents=True)
    (folder / "below" / "deep" / "d.txt").write_text("d.txt\n")
    values = read(tw.files(f"{folder}/**/*.txt")).values
    assert values == ["a.txt", "b.txt", "d.txt", "c.txt"]


def test_a_name_with_a_wildcard_in_it_is_a_name_when_such_a_file_exists(tmp_path: Path) -> None:
    (tmp_path / "a[1].txt").write_text("odd name\n")
    assert read(tw.files(f"{tmp_path}/a[1].txt")).values == ["odd name"]


def test_a_pattern_that_matches_nothing_names_itself_and_the_folder(folder: Path) -> None:
    with pytest.raises(tw.UsageError, match=rf"\*\.jsonl.*none among the 4 entries of.*{folder}"):
        read(tw.files(f"{folder}/*.jsonl"), ["n"])


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(tw.UsageError, match=f"no folder '{tmp_path}/nowhere'"):
        read(tw.files(f"{tmp_path}/nowhere/*.jsonl"), ["n"])


def test_fields_cannot_be_found_where_nothing_matches(tmp_path: Path) -> None:
    with pytest.raises(tw.UsageError, match="at least one file"):
        tw.Flow("f").source("s", tw.files(f"{tmp_path}/*.csv"))


@pytest.mark.parametrize("nothing", [[], "", 7, [""]])
def test_something_that_is_no_pattern_is_refused(nothing: object) -> None:
    with pytest.raises((tw.UsageError, TypeError)):
        tw.files(nothing)  # type: ignore[arg-type]


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_tasks_share_the_files(tmp_path: Path, degree: int) -> None:
    for i in range(4):
        (tmp_path / f"{i}.txt").write_text(f"{i}\n" * 3)
    outcome = read(tw.files(f"{tmp_path}/*.txt"), degree=degree)
    assert sorted(outcome.values) == sorted(["0", "1", "2", "3"] * 3)
