"""Key columns of files, in the order of their records or of a time field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import thalweg as tw
from thalweg.components import Shared
from thalweg.errors import UsageError, explain
from thalweg.events import Event
from thalweg.schemas import Fields, arrow_type

#: What can be said behind the name of a key: ``--keys zone:int``.
TYPES: Mapping[str, Any] = {"str": str, "int": int, "float": float, "bool": bool, "bytes": bytes}


def key_fields(text: str, least: int = 2) -> dict[str, Any]:
    """Read ``author,port`` or ``zone:int,dest:str``; the type is None where it is not said.

    >>> key_fields("zone:int,dest")
    {'zone': <class 'int'>, 'dest': None}
    """
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, typed, kind = (word.strip() for word in part.partition(":"))
        if not name or name in found or (typed and kind not in TYPES):
            expected = f"names of fields, each once, with one of the types {', '.join(TYPES)}"
            raise UsageError(explain("--keys", expected=expected, got=repr(text)))
        found[name] = TYPES[kind] if typed else None
    if len(found) < least:
        raise UsageError(explain("--keys", expected=f"at least {least} fields", got=repr(text)))
    return found


def read_keys(
    pattern: str,
    keys: Mapping[str, Any],
    time: str = "",
    listen: Callable[[Event], None] = lambda _event: None,
) -> pa.Table:
    """Read these fields of all records that a source of files finds; sorted by ``time`` if given.

    Records without a time, and those that cannot be read, are left out. ``listen`` hears how far
    it is.
    """
    names = [*keys, *([time] if time and time not in keys else [])]
    types = tuple(arrow_type(keys[name]) if keys.get(name) else None for name in names)
    found = _Columns([])
    flow = tw.Flow("keys")
    source = flow.source("data", tw.files(pattern), fields=Fields(tuple(names), types))
    source.sink("end", found)
    flow.run(on="inline", listen=listen)
    if not found.batches:
        raise UsageError(explain(f"data {pattern!r}", expected="records", got="none"))
    table = pa.Table.from_batches(found.batches)
    if time:
        table = table.filter(pc.is_valid(table[time])).sort_by(time)
    return table.select(list(keys)).combine_chunks()


class _Columns(Shared, tw.BlockBolt):
    """Keeps the blocks that arrive."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self.batches = batches

    def process_block(self, batch: pa.RecordBatch) -> None:
        """Keep a block."""
        self.batches.append(batch)


def columns(table: pa.Table) -> Sequence[pa.Array]:
    """Give the columns of a table as single arrays."""
    return [column.combine_chunks() for column in table.columns]
