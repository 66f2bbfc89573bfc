"""Joins with tables in files on Spark: replaced between two batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.events import Noticed
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import ManualClock

pytestmark = pytest.mark.spark


def replace(path: Path, text: str) -> None:
    """Put a complete file in the place of another."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


def test_later_batches_see_the_new_version_and_a_broken_one_is_told(tmp_path: Path) -> None:
    path, clock, told = tmp_path / "names.csv", ManualClock(), list[Any]()
    path.write_text("n,name\n1,one\n")

    def numbers() -> Iterator[int]:
        for text in ("", "n,name\n1,uno\n", "n,name\nx,y\n", "n,name\n1,eins\n"):
            if text:
                replace(path, text)
                clock.advance(10.0)
            yield from [1] * 10

    flow, out = tw.Flow("names", "total"), list[Any]()
    stream = flow.source("numbers", tw.items(numbers), fields={"n": int})
    table = tw.table_file(path, fields={"n": int, "name": str})
    stream.join(table, on="n").sink("out", tw.collect(out))
    pump = PumpSettings(rows=10, block_rows=10)
    spark = tw.Spark(spark_session(), places=2, clock=clock, pump=pump)
    flow.run(on=spark, listen=told.append)
    assert [t.name for t in out] == ["one"] * 10 + ["uno"] * 20 + ["eins"] * 10
    texts = "\n".join(event.text for event in told if isinstance(event, Noticed))
    assert "with 1 rows is used from now on" in texts
    assert "the version before stays in use" in texts
