"""A configuration with Storm's keys, as one frozen value."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from thalweg.errors import UsageError, explain, meant, shorten
from thalweg.storm_config.keys import KEYS, MEANINGLESS, OF_CLUSTERS, OWN

# How alike a key has to be to one of Storm's to be taken for a slip.
_ALIKE = 0.85
#: How keys of Storm begin that are about topologies.
TOPOLOGY = "topology."


@dataclass(frozen=True)
class StormConfig:
    """What a configuration says; None where it says nothing.

    >>> config = StormConfig.of({"topology.max.spout.pending": 100, "topology.priority": 3})
    >>> config.max_spout_pending, config.notes[0]
    (100, 'topology.priority: there are no worker processes to be placed on machines')
    """

    name: str | None = None
    #: Threads, on the local runtime.
    workers: int | None = None
    #: Most tasks of a component.
    max_task_parallelism: int | None = None
    #: Seconds between two ticks of bolts that do not say so themselves.
    tick: float | None = None
    #: Seconds after which a tuple that was not acknowledged fails, and whether any does.
    message_timeout: float | None = None
    message_timeouts: bool | None = None
    #: Tuples with an id that a task of a spout may have open.
    max_spout_pending: int | None = None
    #: Rows that may wait for a component.
    queue_rows: int | None = None
    #: How executors wait.
    wait: str | None = None
    #: Seconds to wait when no source has anything.
    idle: float | None = None
    #: Whether all that is emitted is shown.
    debug: bool | None = None
    #: Counts are exact here, whatever it says.
    sample_rate: float | None = None
    #: Those who are told metrics, as written; how often, in seconds.
    consumers: tuple[Any, ...] = ()
    metrics_every: float | None = None
    #: Names of hooks for all components.
    hooks: tuple[str, ...] = ()
    #: 0 lets nobody follow tuples.
    ackers: int | None = None
    #: Threads for background work.
    background_threads: int | None = None
    #: Seconds between two snapshots.
    snapshot_every: float | None = None
    #: Name of a function that looks at the topology.
    validator: str | None = None
    #: For components in other languages.
    serializer: str | None = None
    shellbolt_max_pending: int | None = None
    subprocess_timeout: float | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    #: Whether a component of Storm's wants a process of its own, and whether it keeps nothing.
    isolation: str | None = None
    stateless: bool | None = None
    #: How often, in a row, a component of Storm's or a child is started anew.
    restarts: int | None = None
    #: Seconds that a child is waited for at the end, tuples that it may hold, bytes of a message.
    linger: float | None = None
    most_held: int | None = None
    most_bytes: int | None = None
    #: Keys that are none of Storm's: for components.
    own: Mapping[str, Any] = field(default_factory=dict)
    #: All keys, as written.
    values: Mapping[str, Any] = field(default_factory=dict)
    #: What has no meaning here, and why.
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str = "configuration") -> StormConfig:
        """Read keys and values; a key that looks like a slip is an error, as is a wrong value."""
        _check_unknown(values, where)
        read: dict[str, Any] = {}
        for key, value in values.items():
            if key in KEYS and value is not None:
                read[KEYS[key].field] = _frozen(_checked(key, value, where))
        own = {key: value for key, value in values.items() if _is_own(key)}
        return cls(
            **read,
            own=MappingProxyType(own),
            values=MappingProxyType(dict(values)),
            notes=tuple(_notes(values)),
        )

    @property
    def given(self) -> dict[str, str]:
        """Give the fields that something is said about, with the keys that say it."""
        named = {KEYS[key].field: key for key, value in self.values.items() if key in KEYS}
        return {f.name: named[f.name] for f in fields(self) if f.name in named}


def read_config(path: str | os.PathLike[str]) -> StormConfig:
    """Read a file of YAML."""
    where = f"file {os.fspath(path)!r}"
    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(explain(where, expected="a file of YAML", got=str(error))) from error
    except yaml.YAMLError as error:
        raise UsageError(
            explain(where, expected="YAML", got=" ".join(str(error).split()))
        ) from error
    found = {} if found is None else found
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        hint = "lines as topology.workers: 4"
        raise UsageError(explain(where, expected="keys with values", got=shorten(found), hint=hint))
    return StormConfig.of(found, where)


def _checked(key: str, value: Any, where: str) -> Any:
    try:
        return KEYS[key].check(value)
    except (ValueError, TypeError) as error:
        text = explain(f"key {key!r}", where, KEYS[key].expected, shorten(value))
        raise UsageError(text) from error


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType(value)
    return tuple(value) if isinstance(value, list) else value


def _reason(key: str) -> str | None:
    """Say why a key of Storm has no meaning here."""
    if key in KEYS:
        return None
    ofs = (reason for start, reason in OF_CLUSTERS.items() if key.startswith(start))
    return MEANINGLESS.get(key) or next(ofs, None)


def _is_own(key: str) -> bool:
    """Say whether a key is for components."""
    return key not in KEYS and _reason(key) is None


def _check_unknown(values: Mapping[str, Any], where: str) -> None:
    """Refuse keys that look like slips; others may be of a version of Storm that is not known."""
    unknown = []
    ours = [key for key in KEYS if key.startswith(OWN)]
    for key in filter(_is_own, values):
        if key.startswith(OWN):
            unknown.append(f"{key!r} ({meant(key, ours, _ALIKE) or f'ours are {ours}'})")
        elif hint := meant(key, [*KEYS, *MEANINGLESS], _ALIKE):
            unknown.append(f"{key!r} ({hint})")
    if unknown:
        subject = "key" if len(unknown) == 1 else "keys"
        raise UsageError(explain(subject, where, "keys that Storm has", ", ".join(unknown)))


def _notes(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        if reason := _reason(key):
            yield f"{key}: {reason}"
        elif key == "topology.stats.sample.rate":
            yield f"{key}: all tuples are counted, which costs nothing here"
        elif key == "topology.acker.executors" and value:
            yield f"{key}: tuples are followed without tasks for it; only 0 makes a difference"
        elif key == "topology.workers":
            yield f"{key}: these are threads of one process"
        elif key == "topology.metrics.consumer.register" and _several(value):
            yield f"{key}: a consumer has one thread, whatever its parallelism.hint"
        elif key.startswith(TOPOLOGY) and _is_own(key):
            yield f"{key}: not known as a key of Storm's; components see it, nobody else does"
        elif _is_own(key):
            yield f"{key}: for components, in context.settings"


def _several(consumers: Any) -> bool:
    listed = [c for c in consumers or () if isinstance(c, dict)]
    return any(consumer.get("parallelism.hint", 1) != 1 for consumer in listed)
