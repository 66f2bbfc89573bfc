"""Flux: Storm's topologies as YAML. Reads what can run without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from thalweg.errors import TopologyError, explain, meant, shorten
from thalweg.storm import flux_keys as keys
from thalweg.storm.bounds import Bounds
from thalweg.storm.counterparts import COUNTERPARTS
from thalweg.storm.flux_files import Given, read_files
from thalweg.storm.fluxing import NOTHING, SHELL_BOLT, SHELL_SPOUT
from thalweg.storm.plans import Part, Plan, Reading, needs_jvm, program
from thalweg.storm.streams import DEFAULT

_SHELLS = {SHELL_BOLT: "bolt", SHELL_SPOUT: "spout"}
_GROUPINGS = (
    "ALL", "CUSTOM", "DIRECT", "FIELDS", "GLOBAL", "LOCAL_OR_SHUFFLE", "NONE", "PARTIAL_KEY",
    "SHUFFLE",
)  # fmt: skip


def read_flux(
    path: Path, properties: Mapping[str, str] | None = None, bounds: Bounds | None = None
) -> Plan:
    """Read a Flux file; ``${name}`` is a property, ``${ENV-NAME}`` one of the environment.

    Files that are not within ``bounds`` are not included.
    """
    told = read_files(path, Given(properties or {}, bounds))
    for key in told:
        if key not in keys.TOPOLOGY:
            hint = keys.OF_JAVA.get(str(key)) or meant(str(key), keys.TOPOLOGY)
            expected = f"one of {keys.TOPOLOGY}"
            raise TopologyError(explain(f"{path}: {key!r}", "", expected, hint=hint))
    for item in told.get("components") or []:
        keys.check_keys(item, keys.COMPONENT, f"component {_get(item, 'id', 'component')!r}")
    readings = _readings(told.get("streams") or [])
    parts = [
        *(_part(item, "spout", ()) for item in told.get("spouts") or []),
        *(_part(item, "bolt", readings) for item in told.get("bolts") or []),
    ]
    _check_readings(readings, parts)
    name = str(told.get("name") or path.stem)
    return Plan(name, tuple(parts), dict(told.get("config") or {}), tuple(_notes(told)))


def _notes(told: Mapping[str, Any]) -> Iterator[str]:
    """Name what changes nothing in a file that was checked, and why."""
    for kind in ("spout", "bolt"):
        for item in told.get(f"{kind}s") or []:
            yield from keys.notes_of_component(item, f"{kind} {str(item['id'])!r}")
    for item in told.get("streams") or []:
        grouping, where = item["grouping"], _stream(item)
        yield from keys.notes_of_grouping(grouping, str(grouping["type"]).upper(), where)


# --- components --------------------------------------------------------------------------------


def _part(item: Any, kind: Any, readings: tuple[tuple[str, Reading], ...]) -> Part:
    name, cls = str(_get(item, "id", kind)), str(_get(item, "className", kind))
    cls = COUNTERPARTS.get(cls, cls)
    where = f"{kind} {name!r}"
    keys.check_keys(item, keys.SPOUT_OR_BOLT, where)
    outputs = {} if cls in _SHELLS else _declared(cls, name)  # of Java's classes it says so
    keys.check_empty(item, keys.JAVAS, where, "only objects of Java's have these")
    reads = tuple(reading for receiver, reading in readings if receiver == name)
    part = Part(name, kind, reads=reads, par=_degree(item, where))
    if cls not in _SHELLS:
        return _of_class(item, replace(part, cls=cls, outputs=outputs), where)
    if _SHELLS[cls] != kind:
        raise TopologyError(explain(where, expected=f"a {kind}", got=cls))
    return _of_command(item, part, where)


def _of_class(item: Mapping[str, Any], part: Part, where: str) -> Part:
    """Read what is said about a Python class, which says itself what its streams are."""
    hint = "give it values with addComponentConfig; initialize gets them"
    keys.check_empty(item, ["constructorArgs"], where, hint)
    said = _said(item, where)
    if said.streams:
        expected, got = "those in outputs of its class", shorten(list(said.streams), 80)
        hint = "setNamedStream and setDefaultStream are for programs"
        raise TopologyError(explain(f"streams of {where}", "", expected, got, hint))
    return replace(part, config=said.config, env=said.env, moves=said.moves)


def _of_command(item: Mapping[str, Any], part: Part, where: str) -> Part:
    """Read the command of a program, its fields, and what is said about it."""
    arguments = _list(item, "constructorArgs", where)
    words = arguments[0] if arguments else None
    if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
        expected = "constructorArgs that begin with a list: the command"
        raise TopologyError(explain(where, "", expected, shorten(arguments)))
    if len(arguments) > 2:
        expected = "the command and its fields, no more"
        raise TopologyError(
            explain(f"'constructorArgs' of {where}", "", expected, shorten(arguments))
        )
    found = program(*words)
    own = _said(item, where)
    fields = _names(arguments[1], where) if len(arguments) > 1 else ()
    outputs = {} if fields in ((), (NOTHING,)) else {DEFAULT: fields}
    said = replace(part, cls=found.cls, command=found.command, outputs=outputs | own.streams)
    return replace(said, config={**found.config, **own.config}, env=own.env, moves=own.moves)


@dataclass
class _Said:
    """What is said about a component beside what it is."""

    config: dict[str, Any] = field(default_factory=dict)
    streams: dict[str, tuple[str, ...]] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    moves: bool = True


def _said(item: Mapping[str, Any], where: str) -> _Said:
    """Read what is said about a component, and methods that are called on it."""
    said = _Said()
    for method in _list(item, "configMethods", where):
        name, arguments = _get(method, "name", where), method.get("args") or []
        keys.check_keys(method, keys.METHOD, f"method {name!r} of {where}")
        match name, arguments:
            case "addComponentConfig", [str(key), value]:
                said.config[key] = value
            case "setNamedStream", [str(stream), list(fields)]:
                said.streams[stream] = _names(fields, where)
            case "setDefaultStream", [list(fields)]:
                said.streams[DEFAULT] = _names(fields, where)
            case "setEnv", [dict(env)]:
                said.env |= {str(name): str(value) for name, value in env.items()}
            case "changeChildCWD", [bool(moves)]:
                said.moves = moves
            case _:
                expected = "addComponentConfig(key, value), setNamedStream(name, fields) ..."
                raise TopologyError(explain(f"method {name!r}", where, expected, str(arguments)))
    own = item.get("config") or {}
    if not isinstance(own, dict) or not all(isinstance(key, str) for key in own):
        got = shorten(own, 80)
        raise TopologyError(explain(f"'config' of {where}", "", "keys with values", got))
    said.config |= own
    return said


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
    where = _stream(item)
    keys.check_keys(item, keys.STREAM, where)
    kind = str(_get(grouping, "type", where)).upper()
    if kind not in _GROUPINGS:
        raise TopologyError(explain("grouping", where, f"one of {_GROUPINGS}", kind))
    keys.check_keys(grouping, keys.GROUPING, f"grouping of {where}")
    stream = str(grouping.get("streamId") or DEFAULT)
    fields = _keys(grouping, kind, where) if kind in keys.KEYED else ()
    if kind == "FIELDS" and not fields:
        kind = "GLOBAL"
    if kind != "CUSTOM":
        return Reading(source, stream, kind, fields)
    custom = _get(grouping, "customClass", where)
    path = str(_get(custom, "className", where))
    keys.check_keys(custom, keys.CLASS, f"customClass of {where}")
    others, hint = [*keys.JAVAS, "configMethods"], "only objects of Java's have these"
    keys.check_empty(custom, others, f"customClass of {where}", hint)
    arguments = tuple(_list(custom, "constructorArgs", where))
    return Reading(source, stream, "CUSTOM_OBJECT", (), (path, arguments))


def _keys(grouping: Mapping[str, Any], kind: str, where: str) -> tuple[str, ...]:
    """Read the fields of a grouping by key: none has to be said, since all then go to one task."""
    if grouping.get("args") is None:
        hint = "GLOBAL is for all to one task"
        raise TopologyError(explain("grouping", where, f"args: fields, for {kind}", "none", hint))
    return _names(grouping["args"], where)


def _stream(item: Mapping[str, Any]) -> str:
    return f"stream from {str(item['from'])!r} to {str(item['to'])!r}"


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
