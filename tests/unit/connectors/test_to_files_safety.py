"""What is there stays until there is something to put in its place; nothing is lost silently."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import thalweg as tw
from connectors.running import read, write

SUFFIXES = pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])


class Unready(tw.Spout):
    outputs = {"n": int}

    def prepare(self, context: Any) -> None:
        raise ValueError("not ready")


def breaking() -> Iterable[int]:
    yield from range(4)
    raise ValueError("the source broke")


def run(source: Any, *sinks: Any, fields: Any = None, block_rows: int = 2) -> None:
    flow = tw.Flow("run")
    stream = flow.source("source", source, fields=fields)
    for number, sink in enumerate(sinks):
        stream.sink(f"out{number}", sink)
    flow.run(tw.Inline(block_rows=block_rows))


def parts(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".part")]


@SUFFIXES
def test_the_old_file_stays_when_the_run_does_not_start(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_text("precious")
    with pytest.raises(tw.ComponentError, match="not ready"):
        run(Unready(), tw.to_files(path, overwrite=True))
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == [path.name]


@SUFFIXES
def test_the_old_file_stays_when_the_run_breaks(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_text("precious")
    with pytest.raises(tw.ComponentError, match="the source broke"):
        run(tw.items(breaking), tw.to_files(path, overwrite=True), fields={"n": int})
    assert path.read_text() == "precious"
    (part,) = parts(tmp_path)
    assert read(tw.files(tmp_path / part, format=suffix), {"n": int}).values == [0, 1, 2, 3]


@SUFFIXES
def test_a_file_can_be_read_and_overwritten_in_one_run(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"io.{suffix}"
    write(tw.to_files(path), range(5), {"n": int})
    run(tw.files(path), tw.to_files(path, overwrite=True), fields={"n": int})
    assert read(tw.files(path), {"n": int}).values == list(range(5))
    assert os.listdir(tmp_path) == [path.name]


def test_lines_are_overwritten_also_by_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    write(tw.to_files(tmp_path / "a.csv", overwrite=True), [], {"n": int})
    assert (tmp_path / "a.csv").read_text() == ""


def test_an_overwritten_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("old")
    (tmp_path / "a.csv").chmod(0o640)
    (tmp_path / "link.csv").symlink_to("a.csv")
    write(tw.to_files(tmp_path / "link.csv", overwrite=True), [1], {"n": int})
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "a.csv").read_text() == "n\n1\n"
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == 0o640


def test_what_is_no_regular_file_is_written_in_place() -> None:
    write(tw.to_files("/dev/null", format="csv", overwrite=True), [1], {"n": int})
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(tw.UsageError, match="a regular file"):
        write(tw.to_files("/dev/null", format="parquet", overwrite=True), [1], {"n": int})
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@SUFFIXES
@pytest.mark.parametrize("old", [False, True])
def test_two_sinks_on_one_path_clash(tmp_path: Path, suffix: str, old: bool) -> None:
    path = tmp_path / f"a.{suffix}"
    if old:
        path.write_text("precious")
    sinks = [
        tw.to_files(path, overwrite=old),
        tw.to_files(tmp_path / "." / path.name, overwrite=True),
    ]
    with pytest.raises(tw.UsageError, match=rf"a\.{suffix}.*'out.'.*another sink"):
        run(tw.items([1]), *sinks, fields={"n": int})
    if old:
        assert path.read_text() == "precious"
    write(tw.to_files(path, overwrite=True), [1], {"n": int})  # the name is free again


def test_a_strangers_part_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "h.parquet.part").write_text("a stranger's")
    write(tw.to_files(tmp_path / "h.parquet"), [1], {"n": int})
    assert sorted(os.listdir(tmp_path)) == ["h.parquet", "h.parquet.part"]
    assert (tmp_path / "h.parquet.part").read_text() == "a stranger's"


@pytest.mark.parametrize("links", [True, False])
def test_a_parquet_file_that_appeared_meanwhile_is_kept(
    tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"

    def no_links(*_: Any) -> None:
        raise PermissionError("no links here")

    def numbers() -> Iterable[int]:
        yield 1
        path.write_text("a stranger's")

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(tw.UsageError, match=r"a\.parquet.*free.*appeared.*\.part"):
        run(tw.items(numbers), tw.to_files(path), fields={"n": int})
    assert path.read_text() == "a stranger's"
    assert pq.read_table(tmp_path / parts(tmp_path)[0]).num_rows == 1
    path.unlink()
    write(tw.to_files(path), [1], {"n": int})
    assert pq.read_table(path).num_rows == 1


@pytest.mark.parametrize(("empty", "full"), [(None, "x"), ([], ["x"])])
def test_parquet_waits_for_the_type_of_a_column(tmp_path: Path, empty: Any, full: Any) -> None:
    rows = [(n, empty) for n in range(60_000)] + [(n, full) for n in range(60_000)]
    write(tw.to_files(tmp_path / "a.parquet"), rows, ["n", "v"], block_rows=10_000)
    found = pq.read_table(tmp_path / "a.parquet").column("v").to_pylist()
    assert found == [v for _, v in rows]


@pytest.mark.parametrize("old", [False, True])
def test_parquet_asks_for_a_type_it_never_learns(tmp_path: Path, old: bool) -> None:
    path = tmp_path / "a.parquet"
    if old:
        path.write_text("precious")
    rows = [(n, None) for n in range(70_000)] + [(1, "x")]
    with pytest.raises(
        tw.ComponentError, match=r"SchemaError.*a\.parquet.*type.*'v'.*null.*declare"
    ):
        write(tw.to_files(path, overwrite=True), rows, ["n", "v"], block_rows=10_000)
    assert path.exists() == old
    assert not old or path.read_text() == "precious"


def test_a_few_rows_without_a_type_are_written(tmp_path: Path) -> None:
    write(tw.to_files(tmp_path / "a.parquet"), [(1, None)], ["n", "v"])
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == [{"n": 1, "v": None}]
