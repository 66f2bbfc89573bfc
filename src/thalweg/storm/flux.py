"""Flux: Storm's topologies as YAML. Reads what can run without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from thalweg.errors import TopologyError, explain, shorten
from thalweg.storm.bounds import Bounds
from thalweg.storm.flux_files import Given, read_files
from thalweg.storm.fluxing import NOTHING, SHELL_BOLT, SHELL_SPOUT
from thalweg.storm.plans import Part, Plan, Reading, needs_jvm, program
from thalweg.storm.streams import DEFAULT

_SHELLS = {SHELL_BOLT: "bolt", SHELL_SPOUT: "spout"}
_GROUPINGS = (
    "ALL", "CUSTOM", "DIRECT", "FIELDS", "GLOBAL", "LOCAL_OR_SHUFFLE", "NONE", "PARTIAL_KEY",
    "SHUFFLE",
)  # fmt: skip
_KNOWN = ("name", "config", "components", "spouts", "bolts", "streams", "includes")


def read_flux(
    path: Path, properties: Mapping[str, str] | None = None, bounds: Bounds | None = None
) -> Plan:
    """Read a Flux file; ``${name}`` is a property, ``${ENV-NAME}`` one of the environment.

    Files that are not within ``bounds`` are not included.
    """
    told = read_files(path, Given(properties or {}, bounds))
    for key in told:
        if key not in _KNOWN:
            hint = "a class of Java's makes such a topology" if key == "topologySource" else ""
            raise TopologyError(explain(f"{path}: {key!r}", "", f"one of {_KNOWN}", hint=hint))
    readings = _readings(told.get("streams") or [])
    parts = [
        *(_part(item, "spout", ()) for item in told.get("spouts") or []),
        *(_part(item, "bolt", readings) for item in told.get("bolts") or []),
    ]
    _check_readings(readings, parts)
    name = str(told.get("name") or path.stem)
    return Plan(name, tuple(parts), dict(told.get("config") or {}))


# --- components --------------------------------------------------------------------------------


def _part(item: Any, kind: Any, readings: tuple[tuple[str, Reading], ...]) -> Part:
    name, cls = str(_get(item, "id", kind)), str(_get(item, "className", kind))
    reads = tuple(reading for receiver, reading in readings if receiver == name)
    told = {"name": name, "kind": kind, "par": _degree(item, f"{kind} {name!r}"), "reads": reads}
    config, named = _configured(item)
    if cls not in _SHELLS:
        if cls.startswith(("org.", "com.", "java.", "io.", "net.")):
            raise needs_jvm(name, cls)
        return Part(**told, cls=cls, outputs=_declared(cls, name), config=config)
    if _SHELLS[cls] != kind:
        raise TopologyError(explain(f"{kind} {name!r}", expected=f"a {kind}", got=cls))
    arguments = _list(item, "constructorArgs", f"{kind} {name!r}")
    words = arguments[0] if arguments else None
    if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
        expected = "constructorArgs that begin with a list: the command"
        raise TopologyError(explain(f"{kind} {name!r}", "", expected, shorten(arguments)))
    found = program(*words)
    fields = _names(arguments[1], f"{kind} {name!r}") if len(arguments) > 1 else ()
    outputs = {} if fields in ((), (NOTHING,)) else {DEFAULT: fields}
    told |= {"cls": found.cls, "command": found.command, "config": {**found.config, **config}}
    return Part(**told, outputs=outputs | named)


def _configured(item: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Read the methods that are called on a component: configuration, and streams."""
    config: dict[str, Any] = {}
    streams: dict[str, tuple[str, ...]] = {}
    where = f"component {item.get('id')!r}"
    for method in _list(item, "configMethods", where):
        name, arguments = _get(method, "name", where), method.get("args") or []
        match name, arguments:
            case "addComponentConfig", [str(key), value]:
                config[key] = value
            case "setNamedStream", [str(stream), list(fields)]:
                streams[stream] = _names(fields, where)
            case "setDefaultStream", [list(fields)]:
                streams[DEFAULT] = _names(fields, where)
            case _:
                expected = "addComponentConfig(key, value), setNamedStream(name, fields) ..."
                raise TopologyError(explain(f"method {name!r}", where, expected, str(arguments)))
    return config, streams


def _declared(path: str, name: str) -> dict[str, tuple[str, ...]]:
    """Ask a Python class for its streams."""
    from thalweg.storm.building import load_class  # noqa: PLC0415 (only for such classes)

    cls = load_class(path, name)
    spec: Callable[..., Any] | None = getattr(cls, "spec", None)
    if spec is None:
        raise needs_jvm(name, path)
    return {stream: tuple(info.output_fields) for stream, info in spec(name).outputs.items()}


# --- streams -----------------------------------------------------------------------------------


def _readings(streams: list[Any]) -> tuple[tuple[str, Reading], ...]:
    return tuple((str(_get(item, "to", "a stream")), _reading(item)) for item in streams)


def _reading(item: Any) -> Reading:
    source, grouping = str(_get(item, "from", "a stream")), _get(item, "grouping", "a stream")
    where = f"stream from {source!r} to {item['to']!r}"
    kind = str(_get(grouping, "type", where)).upper()
    if kind not in _GROUPINGS:
        raise TopologyError(explain("grouping", where, f"one of {_GROUPINGS}", kind))
    stream = str(grouping.get("streamId") or DEFAULT)
    args = grouping.get("args") if kind in ("FIELDS", "PARTIAL_KEY") else None
    fields = _names(args or [], where)
    if kind == "FIELDS" and not fields:
        kind = "GLOBAL"
    if kind != "CUSTOM":
        return Reading(source, stream, kind, fields)
    custom = _get(grouping, "customClass", where)
    path = str(_get(custom, "className", where))
    arguments = tuple(_list(custom, "constructorArgs", where))
    return Reading(source, stream, "CUSTOM_OBJECT", (), (path, arguments))


def _check_readings(readings: tuple[tuple[str, Reading], ...], parts: list[Part]) -> None:
    bolts = [part.name for part in parts if part.kind == "bolt"]
    for receiver, reading in readings:
        if receiver not in bolts:
            where = f"stream from {reading.component!r}"
            raise TopologyError(explain(f"receiver {receiver!r}", where, f"one of {bolts}"))


def _get(item: Any, key: str, where: Any) -> Any:
    if not isinstance(item, Mapping) or item.get(key) is None:
        raise TopologyError(explain(f"Flux: {where}", expected=f"{key!r}", got=shorten(item, 80)))
    return item[key]


def _list(item: Mapping[str, Any], key: str, where: str) -> list[Any]:
    found = item.get(key)
    if not isinstance(found, list | None):
        raise TopologyError(explain(f"{key!r} of {where}", "", "a list", shorten(found, 80)))
    return found or []


def _names(given: Any, where: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        expected = "a list of names"
        raise TopologyError(explain(f"fields of {where}", "", expected, shorten(given, 80)))
    return tuple(given)


def _degree(item: Mapping[str, Any], where: str) -> int:
    """Read how many tasks a component has; a value in quotes counts as well."""
    given = item.get("parallelism", 1)
    found = int(given) if isinstance(given, str) and given.isdecimal() else given
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        subject, hint = f"'parallelism' of {where}", "write parallelism: 2"
        expected = "a whole number, 1 or more"
        raise TopologyError(explain(subject, "", expected, shorten(given, 80), hint))
    return found
