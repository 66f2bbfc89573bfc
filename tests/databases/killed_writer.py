"""A run with a checkpoint that writes to PostgreSQL; told what to do by a file of JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

import thalweg as tw

FIELDS = {"n": int, "word": str}
#: Rows for each snapshot.
STEP = 200


def row(n: int) -> tuple[int, str]:
    return n, f"w{n * 7919 % 97}"


class Rows(tw.BlockSpout):
    """Gives some rows for each snapshot, so that there are many of these."""

    outputs = FIELDS

    def __init__(self, rows: int, manifests: str) -> None:
        self.rows, self.manifests = rows, manifests

    def prepare(self, context: Any) -> None:
        self.given = 0

    def next_block(self, limit: int) -> pa.RecordBatch | None:
        if self.given == self.rows:
            self.finish()
            return None
        if self.given // STEP > self.snapshots():
            return None
        some = range(self.given, min(self.given + min(limit, STEP), self.rows))
        self.given = some.stop
        return self.make_batch(list(zip(*map(row, some), strict=True)))

    def snapshots(self) -> int:
        names = os.listdir(self.manifests) if os.path.exists(self.manifests) else []
        return max((int(n.removesuffix(".json")) for n in names if n[0] != "."), default=0)


def build(job: dict[str, str], rows: int) -> tw.Topology:
    """Write all rows to one table, and the last one of each word to another."""
    flow = tw.Flow("killed")
    source = flow.source("rows", Rows(rows, f"{job['checkpoint']}/state/manifests"))
    source.sink("all", tw.to_postgres(job["dsn"], job["all"]))
    source.sink("last", tw.to_postgres(job["dsn"], job["last"], key=["word"]))
    return flow.build()


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[1]).read_text())
    small = {"block_rows": 50, "most_block_rows": 50, "snapshot_every": 0, "workers": 2}
    build(asked, asked["rows"]).run(on=tw.Local(checkpoint=asked["checkpoint"], **small))
