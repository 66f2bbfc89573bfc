"""What a configuration changes: the topology, the runtime, and what a run is told."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from thalweg.config import Options
from thalweg.consumers import LoggingConsumer
from thalweg.errors import UsageError, explain
from thalweg.hooks import EmitInfo, TaskHook
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.local.runtime import Local
from thalweg.storm_config.children import with_child
from thalweg.storm_config.config import StormConfig
from thalweg.storm_config.names import loaded, made
from thalweg.topology import Component, Topology

# Storm's own classes that have a counterpart here, without their packages.
_LOGGING = "LoggingMetricsConsumer"
_ANY_TOPOLOGY = "DefaultTopologyValidator"
#: Fields that are settings of a runtime, with their names there.
_OF_LOCAL = {
    "workers": "workers",
    "queue_rows": "queue_rows",
    "wait": "wait",
    "idle": "idle",
    "snapshot_every": "snapshot_every",
}
_OF_INLINE = {"idle": "idle"}
#: Fields that change what a run is told, which Spark cannot do yet.
_NOT_ON_SPARK = ("hooks", "consumers", "metrics_every", "debug", "max_spout_pending")


class ShowEmits(TaskHook):
    """Shows all that is emitted on standard error, as Storm does with ``topology.debug``."""

    def emit(self, info: EmitInfo) -> None:
        """Show a tuple, or a record batch."""
        shown = info.values if isinstance(info.values, tuple) else info.values.to_pylist()
        stream = f"{info.component}:{info.task} {info.stream}"
        sys.stderr.write(f"emitting {stream} {shown}\n")


@dataclass(frozen=True)
class Configured:
    """A topology, what it runs on, and what its run is told."""

    topology: Topology
    on: Any
    #: For :meth:`thalweg.topology.Topology.run`.
    arguments: Mapping[str, Any] = field(default_factory=dict)
    #: Keys that change nothing, and why.
    notes: tuple[str, ...] = ()


def configured(
    config: StormConfig,
    topology: Topology,
    on: Any = None,
    settings: Mapping[str, str] | None = None,
) -> Configured:
    """Apply a configuration; settings that were given otherwise count more than its own keys."""
    notes = list(config.notes)
    components = tuple(with_child(config, _component(config, each)) for each in topology)
    changed = replace(topology, name=config.name or topology.name, components=components)
    runtime, unused = _runtime(config, on)
    notes += [f"{config.given[name]}: it means nothing on {_name(on)}" for name in unused]
    own = {key: _text(value) for key, value in config.own.items()}
    return Configured(
        changed, runtime, _arguments(config, own | dict(settings or {})), tuple(notes)
    )


def _component(config: StormConfig, component: Component) -> Component:
    options, changes = component.options, dict[str, Any]()
    most = config.max_task_parallelism
    if most is not None and (options.degree or 0) > most:
        changes["degree"] = most
    if component.is_spout and options.max_pending is None:
        changes["max_pending"] = config.max_spout_pending
    if not component.is_spout and options.tick is None and config.tick is not None:
        changes["tick"] = config.tick
    where = f"component {component.name!r}"
    return replace(component, options=replace(options, **Options.checked(changes, where)))


def _runtime(config: StormConfig, on: Any) -> tuple[Any, list[str]]:
    """Give the runtime with its settings, and the fields that it has no use for."""
    if _name(on) == "local":
        local = on if isinstance(on, Local) else Local()
        given = {to: getattr(config, name) for name, to in _OF_LOCAL.items()}
        if config.wait not in (None, "blocking"):  # only who has a queue of its own waits for it
            given["assigning"] = "executors"
        given |= {"acking": False} if config.ackers == 0 else {}
        return replace(local, **_said(given | _timeout(config))), []
    if _name(on) == "inline":
        inline = on if isinstance(on, Inline) else Inline()
        given = {to: getattr(config, name) for name, to in _OF_INLINE.items()}
        unused = [*(_OF_LOCAL.keys() - _OF_INLINE.keys())]
        given |= {"acking": False} if config.ackers == 0 else {}
        return replace(inline, **_said(given | _timeout(config))), _unused(config, unused)
    if _name(on) != "spark":  # nobody knows it, and it will be refused
        return on, []
    unused = [*_OF_LOCAL, *_NOT_ON_SPARK, "message_timeout", "message_timeouts"]
    unused += ["ackers", "background_threads"]
    refused = [config.given[name] for name in _NOT_ON_SPARK if name in config.given]
    if refused:
        raise UsageError(
            explain("configuration", f"a run on {_name(on)}", "other keys", ", ".join(refused))
        )
    return on, _unused(config, unused)


def _timeout(config: StormConfig) -> dict[str, Any]:
    return {"ack_timeout": math.inf if config.message_timeouts is False else config.message_timeout}


def _said(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _unused(config: StormConfig, names: list[str]) -> list[str]:
    return sorted(name for name in names if name in config.given)


def _name(on: Any) -> str:
    return "local" if on is None else on if isinstance(on, str) else str(on.name)


def _arguments(config: StormConfig, settings: Mapping[str, str]) -> dict[str, Any]:
    hooks = [made(path) for path in config.hooks]
    given: dict[str, Any] = {
        "hooks": [*hooks, *([ShowEmits()] if config.debug else [])] or None,
        "consumers": [_consumer(each) for each in config.consumers] or None,
        "metrics_every": config.metrics_every,
        "background_threads": config.background_threads,
        "validator": _validator(config.validator),
    }
    return _said(given) | {"settings": dict(settings)}


def _consumer(written: Any) -> Any:
    """Make a consumer of what is written: a name, or ``class`` with an ``argument``."""
    about = {"class": written} if isinstance(written, str) else written
    known = {"class", "argument", "parallelism.hint"}
    if not isinstance(about, dict) or not isinstance(about.get("class"), str):
        raise UsageError(explain("metrics consumer", "", "its class", repr(written)))
    if more := sorted(about.keys() - known):
        raise UsageError(
            explain(f"metrics consumer {about['class']!r}", "", f"only {sorted(known)}", f"{more}")
        )
    if about["class"].endswith(f".{_LOGGING}"):
        return LoggingConsumer(about.get("argument"))
    return made(about["class"], about.get("argument"))


def _validator(path: str | None) -> Any:
    return None if path is None or path.endswith(_ANY_TOPOLOGY) else loaded(path)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
