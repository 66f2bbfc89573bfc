"""What Storm's keys say about one component."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from thalweg.storm.plans import SERIALIZER, Part, Plan
from thalweg.storm_config.config import TOPOLOGY, StormConfig
from thalweg.storm_config.keys import KEYS, OWN

TICK = "topology.tick.tuple.freq.secs"
_PENDING = "topology.max.spout.pending"
#: Keys that a component may have for itself; every other one is of the whole topology.
_OF_COMPONENTS = frozenset(
    [
        TICK,
        SERIALIZER,
        _PENDING,
        "topology.debug",
        "topology.environment",
        "topology.max.task.parallelism",
        "topology.shellbolt.max.pending",
        "topology.subprocess.timeout.secs",
        *(key for key in KEYS if key.startswith(OWN)),
    ]
)


def check(part: Part) -> None:
    """Refuse slips and wrong values in what a component says itself."""
    StormConfig.of(part.config, _where(part))


def settings_of(part: Part) -> StormConfig:
    """Read what is said about a component."""
    said = {key: value for key, value in part.config.items() if key in _OF_COMPONENTS}
    return StormConfig.of(said, _where(part))


def child_settings(part: Part) -> dict[str, Any]:
    """Give what is said about the child process of a component: settings of a shell."""
    told = settings_of(part)
    said = {
        "serializer": told.serializer,
        "timeout": told.subprocess_timeout,
        "max_pending": told.shellbolt_max_pending,
        "restarts": told.restarts,
        "linger": told.linger,
        "most_held": told.most_held,
        "most_bytes": told.most_bytes,
        "env": {name: str(v) for name, v in told.environment.items()} | dict(part.env),
    }
    return {name: value for name, value in said.items() if value is not None}


def notes_of(plan: Plan) -> list[str]:
    """Name what changes nothing in a plan, with the keys of components, and why."""
    return [
        *plan.notes,
        *(
            f"{key} of component {part.name!r}: {reason}"
            for part in plan.parts
            for key, reason in _idle(part, part.config)
        ),
    ]


def _idle(part: Part, config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in config:
        told = StormConfig.of({key: config[key]}, _where(part))
        if key in KEYS and key not in _OF_COMPONENTS:
            yield key, "it is one of the whole topology"
        elif key == _PENDING and part.kind == "bolt":
            yield key, "it is no spout"
        elif key == TICK and part.kind == "spout":
            yield key, "it is no bolt"
        elif key not in KEYS and (key not in told.own or key.startswith(TOPOLOGY)):
            yield key, told.notes[0].removeprefix(f"{key}: ")


def _where(part: Part) -> str:
    return f"component {part.name!r}"
