"""Which categories of a store sell less and less? Query 15 of five, on generated sales.

Shows: a generated source that several tasks share, a join with a side table, expressions on
columns, and the same tables as Parquet files. Try:

    thalweg run examples/tpcxbb.py
    thalweg run examples/tpcxbb.py --set scale=1 --set seed=7
    thalweg run examples/tpcxbb.py --set folder=tables
    thalweg run examples/tpcxbb.py --on spark

Settings: scale (1 is 820,000 lines), seed, folder (write the tables there, and read the sales from
the file).
"""

import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import thalweg as tw
from thalweg.workloads import tpcxbb as bb
from thalweg.workloads.tpcxbb.first_steps import q15_sales
from thalweg.workloads.tpcxbb.kernels import slope


class Trends(tw.Bolt):
    """Keeps what each category sold on each day, and prints where that leads."""

    def prepare(self, context: tw.TaskContext) -> None:
        self.sold: dict[int, dict[int, int]] = defaultdict(dict)

    def process(self, t: Any) -> None:
        self.sold[t.category][t.day] = t.sum

    def process_end(self) -> None:
        found = {category: fitted(days) for category, days in self.sold.items()}
        steepest = max((abs(each) for each in found.values()), default=0.0) or 1.0
        block = drawn("█", "#")
        print(f"{'category':>8}  {'cents per day':>13}")
        for category, each in sorted(found.items(), key=lambda pair: (pair[1], pair[0])):
            bar = block * max(1, round(30 * abs(each) / steepest))
            print(
                f"{category:>8}  {each:>13.2f}  {'flat or falling' if each <= 0 else '':<15}  {bar}"
            )


def fitted(days: dict[int, int]) -> float:
    """Give the slope of a category; 0 where there are too few days for one."""
    found = slope(np.array(list(days)), np.array(list(days.values())))
    return found or 0.0


def drawn(text: str, plain: str) -> str:
    """Give the text, or the plain one where standard output does not know its letters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return plain
    return text


def from_files(folder: Path, scale: float, seed: int) -> tuple[Any, pa.Schema]:
    """Write all tables as files, and give the sales as a source that reads them."""
    sales, clicks = bb.store_sales(scale, seed), bb.web_clickstreams(scale, seed)
    written = bb.write_tables(folder, sales, clicks)
    return tw.files(str(written[0])), sales.rows.schema


def trends(settings: Mapping[str, str]) -> tw.Flow:
    """Describe the flow from lines of tickets to the trends."""
    scale, seed = float(settings.get("scale", 0.1)), int(settings.get("seed", 1))
    flow = tw.Flow("tpcxbb")
    if "folder" in settings:
        source, fields = from_files(Path(settings["folder"]), scale, seed)
        sales = flow.source("sales", source, fields=fields)
    else:
        sales = flow.source("sales", bb.store_sales(scale, seed))
    lines = q15_sales(sales, bb.item(scale, seed))
    lines.key_by("category", "day").sum("sold", "paid").sink("trends", Trends())
    return flow


if __name__ == "__main__":
    trends({}).run()
