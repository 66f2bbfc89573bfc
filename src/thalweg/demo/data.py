"""The records of the demo: made up, or the first ones of a file."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from thalweg.components import BlockBolt, Shared
from thalweg.connectors.files import files
from thalweg.connectors.formats import file_format
from thalweg.connectors.readers import discover, open_bytes
from thalweg.errors import UsageError, explain
from thalweg.flow import Flow
from thalweg.schemas import Fields
from thalweg.workloads.posts import PostSettings, posts

#: Letters of a post beside its keys.
TEXT = 100
#: Rows of a file that are read, and bytes of its first line.
MOST_ROWS, LONGEST = 300_000, 1 << 20


@dataclass(frozen=True)
class Data:
    """Records with two keys."""

    batch: pa.RecordBatch
    keys: tuple[str, str]
    #: What they are, for people.
    about: str


def made_up(rows: int, seed: int) -> Data:
    """Make posts with a region, a hashtag and a text; most posts of a hashtag are of one region."""
    source = posts(PostSettings(posts=rows, drift_every=0, hashtags=3000, seed=seed))
    chunks, number = [], 0
    while (chunk := source.chunk(number)).num_rows:
        chunks.append(chunk)
        number += 1
    table = pa.Table.from_batches(chunks).append_column("text", _texts(rows, seed))
    (batch,) = table.combine_chunks().to_batches()
    return Data(batch, ("region", "hashtag"), "made-up posts with a region and a hashtag")


def _texts(rows: int, seed: int) -> pa.Array:
    letters = np.random.default_rng(seed).integers(97, 123, rows * TEXT, dtype=np.uint8)
    ends = np.arange(0, (rows + 1) * TEXT, TEXT, dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(letters)]
    return pa.Array.from_buffers(pa.string(), rows, buffers)


def of_file(path: Path, keys: str, most: int = MOST_ROWS) -> Data:
    """Read two columns of a file: of CSV, JSON lines or Parquet."""
    if not path.is_file():
        got = "a folder" if path.is_dir() else "none"
        hint = "a relative path starts at the current folder"
        raise UsageError(explain(f"data {str(path)!r}", "", "a file", got, hint))
    names = checked_keys(keys, known_columns(path), path)
    found = _First(most)
    flow = Flow("data")
    fields = Fields(names, (None, None))
    source = flow.source("data", files(str(path)), fields=fields, on_error="skip")
    source.sink("first", found)
    left_out = flow.run(on="inline", stop=found.enough).metrics.errors
    if not found.batches:
        got = f"none, and {left_out:,} that cannot be read" if left_out else "none"
        raise UsageError(explain(f"data {str(path)!r}", "", "records", got))
    batch = _together(found.batches, most)
    first, second = names
    for name in names:
        if batch.column(name).null_count == batch.num_rows:
            got = f"none in {batch.num_rows:,} records of {path.name}"
            raise UsageError(explain(f"column {name!r}", "--keys", "values", got))
    rest = f" (left out: {left_out:,} that cannot be read)" if left_out else ""
    return Data(batch, (first, second), f"{batch.num_rows:,} records of {path.name}{rest}")


def _together(batches: Sequence[pa.RecordBatch], most: int) -> pa.RecordBatch:
    """Make one block of several; a column has no type yet in those that have no value of it."""
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    table = pa.concat_tables(tables, promote_options="default").slice(0, most)
    (batch,) = table.combine_chunks().to_batches()
    return batch


def known_columns(path: Path) -> Sequence[str]:
    """Name the columns of a file: from its header, its schema or its first record."""
    format_ = file_format(None)
    try:
        found = discover(str(path), format_)
        if found is not None:
            return found.names
        with open_bytes(str(path)) as file:
            return tuple(msgspec.json.decode(file.readline(LONGEST), type=dict[str, object]))
    except (OSError, msgspec.MsgspecError) as error:
        expected = "CSV, JSON lines or Parquet"
        raise UsageError(explain(f"data {str(path)!r}", "", expected, str(error))) from error


def checked_keys(text: str, known: Sequence[str], path: Path) -> tuple[str, str]:
    """Read ``a,b``: two columns that are there.

    >>> checked_keys("b, a", ["a", "b", "c"], Path("x.csv"))
    ('b', 'a')
    """
    names = tuple(name.strip() for name in text.split(","))
    columns = f"{path.name} has {', '.join(known)}"
    if len(names) != 2 or len(set(names)) != 2:
        raise UsageError(explain("--keys", "", "two different columns", repr(text), columns))
    for name in names:
        if name not in known:
            raise UsageError(explain(f"column {name!r}", "--keys", "one of the file", "", columns))
    return names[0], names[1]


@dataclass
class _First(Shared, BlockBolt):
    """Keeps the first blocks."""

    most: int
    batches: list[pa.RecordBatch] = field(default_factory=list)
    enough: threading.Event = field(default_factory=threading.Event)

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Keep a block, and say when there are enough."""
        self.batches.append(batch)
        if sum(each.num_rows for each in self.batches) >= self.most:
            self.enough.set()
