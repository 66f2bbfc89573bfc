"""Topologies written as Storm's Flux does: a dictionary, which YAML can hold.

Works for classes of the real streamparse as well: only attributes that both have are looked at.
"""

from __future__ import annotations

import json
from typing import Any

from thalweg.storm.streams import DEFAULT, grouping_kind

SHELL_BOLT = "org.apache.storm.flux.wrappers.bolts.FluxShellBolt"
SHELL_SPOUT = "org.apache.storm.flux.wrappers.spouts.FluxShellSpout"
#: Flux wants the name of a field also where nothing is sent.
NOTHING = "NONE_BUT_FLUX_WANTS_SOMETHING_HERE"


def flux_dict(topology: Any, name: str) -> dict[str, Any]:
    """Describe a topology class."""
    bolts = [spec for spec in topology.specs if not is_spout(spec)]
    made = {
        "name": name,
        "config": dict(topology.config),
        "spouts": [_component(spec) for spec in topology.specs if is_spout(spec)],
        "bolts": [_component(spec) for spec in bolts],
        "streams": [
            _stream(spec.name, stream, grouping)
            for spec in bolts
            for stream, grouping in spec.inputs.items()
        ],
    }
    return {key: value for key, value in made.items() if value}


def is_spout(spec: Any) -> bool:
    """Say whether a spec is one of a spout: those have no inputs, and bolts must have some."""
    return not spec.inputs


def _component(spec: Any) -> dict[str, Any]:
    object_ = spec.component_object
    if object_.serialized_java is not None:
        text = f"Flux cannot hold serialized Java objects: {spec.name!r}"
        raise TypeError(text)
    made: dict[str, Any] = {"id": spec.name}
    if object_.shell is None:
        made["className"] = object_.java_object.full_class_name
        made["constructorArgs"] = [_plain(a) for a in object_.java_object.args_list]
    else:
        made["className"] = SHELL_SPOUT if is_spout(spec) else SHELL_BOLT
        made["constructorArgs"] = _arguments(spec)
    made["configMethods"] = [*_named_streams(spec), *_settings(spec)]
    made["parallelism"] = spec.par
    return made


def _arguments(spec: Any) -> list[list[str]]:
    shell = spec.component_object.shell
    command = [shell.execution_command, shell.script]
    default = spec.outputs.get(DEFAULT)
    if default is not None:
        return [command, list(default.output_fields)]
    return [command] if spec.outputs else [command, [NOTHING]]


def _named_streams(spec: Any) -> list[dict[str, Any]]:
    return [
        {"name": "setNamedStream", "args": [name, list(info.output_fields)]}
        for name, info in spec.outputs.items()
        if name != DEFAULT
    ]


def _settings(spec: Any) -> list[dict[str, Any]]:
    config = json.loads(spec.config) if isinstance(spec.config, str) else spec.config or {}
    return [{"name": "addComponentConfig", "args": [key, value]} for key, value in config.items()]


def _stream(receiver: str, stream: Any, grouping: Any) -> dict[str, Any]:
    kind = grouping_kind(grouping)
    made: dict[str, Any] = {"type": kind, "streamId": stream.streamId}
    if kind == "FIELDS":
        made["args"] = list(grouping.fields)
    elif kind == "CUSTOM_OBJECT":
        java = grouping.custom_object
        arguments = [_plain(argument) for argument in java.args_list]
        custom = {"className": java.full_class_name, "constructorArgs": arguments}
        made |= {"type": "CUSTOM", "customClass": custom}
    elif kind == "CUSTOM_SERIALIZED":
        text = f"Flux cannot hold serialized Java groupings: input of {receiver!r}"
        raise TypeError(text)
    return {"from": stream.componentId, "to": receiver, "grouping": made}


def _plain(argument: Any) -> Any:
    """Give an argument of a Java object as a value; the real streamparse wraps them."""
    if isinstance(argument, bool | int | float | str | bytes):
        return argument
    return next((value for value in vars(argument).values() if value is not None), None)
