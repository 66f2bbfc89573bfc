"""``thalweg state import``: a new version, in which some keys have other values."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from thalweg.cli.state_files import Origin, Record, read_origin, read_records
from thalweg.cli.state_values import Values, key_from_json
from thalweg.errors import ThalwegError, UsageError, explain, shorten
from thalweg.eventtime import NEVER
from thalweg.keys import Key, canonical
from thalweg.statelog.delivered import read_mark
from thalweg.statelog.garbage import run_name
from thalweg.statelog.keying import encode_keys, hash_keys
from thalweg.statelog.manifests import ENDED, ComponentMark, Manifest, Manifests
from thalweg.statelog.parts import SCHEMA, merge, milliseconds
from thalweg.statelog.reading import Version
from thalweg.statelog.runs import RunRef, write_run
from thalweg.timers import TimersCodec

#: Rows and bytes that make a run; more of them make several.
_ROWS, _BYTES = 1 << 19, 64 << 20
#: Keys after which it is said how far the reading is.
_TOLD = 1000
#: Where a record stands in a file, and the record.
Place = tuple[str, Record]


@dataclass
class _Rows:
    """Rows of one state's name that are not written yet."""

    keys: list[Key] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)

    def part(self, clock: float) -> pa.RecordBatch:
        """Make a part of them; of a key that came twice the last value counts."""
        columns = [
            pa.array(hash_keys(self.keys)),
            pa.array(encode_keys(self.keys), pa.large_binary()),
            pa.array(self.values, pa.large_binary()),
            pa.array(np.full(len(self.keys), milliseconds(clock))),
        ]
        return merge([pa.RecordBatch.from_arrays(columns, schema=SCHEMA)], oldest=False)


def import_file(
    version: Version,
    component: str,
    path: Path,
    done: Callable[[int], None] = lambda _keys: None,
) -> tuple[Manifest, int]:
    """Commit a version with the values of a file on top of the newest one; give it and the count.

    Places share the new runs: each of them reads its own keys. ``done`` hears of keys as they are
    read.
    """
    last = version.manifest
    if component not in last.topology:
        expected = "one of the topology that made this state"
        raise UsageError(explain(f"component {component!r}", "", expected, "one that has gone"))
    _check_origin(origin_of(last, component), path)
    refs: list[RunRef] = []
    count = 0
    for rows in _chunks(version, component, _told(read_records(path), done)):
        name = run_name(last.version + 1, 0, uuid.uuid4().hex)
        parts = {state: waiting.part(last.clock) for state, waiting in rows.items()}
        versions = last.version + 1, last.version + 1
        refs.append(write_run(version.location, name, parts, versions, shared=True))
        count += sum(len(waiting.keys) for waiting in rows.values())
    made = msgspec.structs.replace(
        last,
        version=last.version + 1,
        runs=[[*there, *refs] for there in last.runs],
        due=_due(last, component),
        # What sinks have not been given yet is given to them by the next run.
        staged=last.staged if read_mark(version.location) < last.version else [],
        notes=_without_end(last) | {"imported": f"{count} keys of {component}"},
    )
    Manifests(version.location).commit(made)
    return made, count


def _due(last: Manifest, component: str) -> dict[str, tuple[int, int]]:
    """Let the next batch look at all timers of a component: new ones may be due."""
    has_timers = last.topology[component].codec.startswith(TimersCodec.__name__)
    return {**last.due, component: (NEVER, NEVER)} if has_timers else last.due


def _without_end(manifest: Manifest) -> dict[str, Any]:
    """Give the notes of a manifest, but for the one that there is nothing more to come."""
    return {key: note for key, note in manifest.notes.items() if key != ENDED}


def origin_of(manifest: Manifest, component: str) -> Origin | None:
    """Say what the state of a component is; nothing where the component has gone."""
    mark = manifest.topology.get(component)
    if mark is None:
        return None
    return Origin(component, mark.kind, list(mark.key_types), mark.codec)


def _check_origin(wanted: Origin | None, path: Path) -> None:
    """Refuse a file with the state of a component of another kind."""
    found = read_origin(path)
    if wanted is not None and found is not None and not found.fits(wanted):
        hint = "keys and values of one are not those of the other"
        text = explain(f"file {str(path)!r}", "", f"state of {wanted}", f"that of {found}", hint)
        raise UsageError(text)


def _told(records: Iterator[Place], done: Callable[[int], None]) -> Iterator[Place]:
    """Say now and then how many there were."""
    for n, record in enumerate(records, 1):
        yield record
        if n % _TOLD == 0:
            done(_TOLD)


def _chunks(
    version: Version, component: str, records: Iterator[Place]
) -> Iterator[dict[str, _Rows]]:
    mark = version.manifest.topology[component]
    is_split = any(
        version.owners.split(n)[1] is not None for n in version.components().get(component, ())
    )
    values = Values(mark.codec)
    chunk: dict[str, _Rows] = {}
    rows = size = 0
    for where, record in records:
        try:
            name = _name(component, mark, record, is_split)
            key, value = _key(mark, record), values.from_json(record["value"])
        except ThalwegError as error:
            raise UsageError(f"{where}: {error}") from error  # noqa: EM102 (explained there)
        waiting = chunk.setdefault(name, _Rows())
        waiting.keys.append(key)
        waiting.values.append(value)
        rows, size = rows + 1, size + len(value)
        if rows >= _ROWS or size >= _BYTES:
            yield chunk
            chunk, rows, size = {}, 0, 0
    if chunk:
        yield chunk


def _key(mark: ComponentMark, record: Record) -> Key:
    key = canonical(key_from_json(record["key"]))
    parts = len(key) if isinstance(key, tuple) else 1
    if len(mark.key) > 1 and parts != len(mark.key):
        expected = f"a list of {len(mark.key)} parts ({', '.join(mark.key)})"
        raise UsageError(explain("key", "", expected, shorten(key, 80)))
    return key


def _name(component: str, mark: ComponentMark, record: Record, is_split: bool) -> str:
    task = record.get("task")
    if task is None and not is_split:
        return component
    if not isinstance(task, int) or not 0 <= task < mark.degree:
        hint = "its tasks have values of their own for a key"
        text = explain("task", "", f"a number below {mark.degree}", shorten(task, 80), hint)
        raise UsageError(text)
    return f"{component}#{task}"
