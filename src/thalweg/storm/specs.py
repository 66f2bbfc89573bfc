"""What ``Component.spec(...)`` gives: a component's place in a topology, checked.

Attribute names are streamparse's, so that its topologies and ours can be read alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from thalweg.storm.streams import DEFAULT, Grouping, GroupingValue, JavaObject, Stream


@dataclass
class StreamInfo:
    """Fields of a stream, and whether its sender chooses the receiving task."""

    output_fields: list[str] = field(default_factory=list)
    direct: bool = False


@dataclass(frozen=True)
class GlobalStreamId:
    """A stream of a component; the component is its spec until the topology gives it a name."""

    componentId: Any
    streamId: str = DEFAULT


@dataclass(frozen=True)
class ShellComponent:
    """A program, and the arguments that it gets."""

    execution_command: str
    script: str


@dataclass(frozen=True)
class ComponentObject:
    """What a component is: a program, or something of Java's."""

    shell: ShellComponent | None = None
    java_object: JavaObject | None = None
    serialized_java: bytes | None = None


@dataclass(frozen=True)
class ComponentCommon:
    """What Storm is told of every component."""

    inputs: Mapping[GlobalStreamId, GroupingValue]
    streams: Mapping[str, StreamInfo]
    parallelism_hint: Any
    json_conf: str


@dataclass(frozen=True)
class Wanted:
    """What ``spec`` was called with; None where the class says it."""

    name: str | None = None
    inputs: Any = None
    par: Any = None
    config: Any = None
    outputs: Any = None


class ComponentSpec:
    """A component in a topology."""

    kind = ""

    def __init__(self, component_cls: type, object_: ComponentObject, wanted: Wanted) -> None:
        self.component_cls = component_cls
        self.component_object = object_
        self.name = wanted.name
        self.par = _par(_first(wanted.par, component_cls, "par"))
        self.config = _config(_first(wanted.config, component_cls, "config"))
        self.outputs = _outputs(_first(wanted.outputs, component_cls, "outputs"))
        self.inputs = dict(_inputs(wanted.inputs))

    def __getitem__(self, stream: str) -> GlobalStreamId:
        if stream not in self.outputs:
            text = f"{self.name or self.component_cls.__name__} has no stream {stream!r}, only "
            raise KeyError(text + str(list(self.outputs)))
        return GlobalStreamId(self.name or self, stream)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.component_cls.__name__}, name={self.name!r})"

    @property
    def common(self) -> ComponentCommon:
        """Give it as Storm is told of it."""
        return ComponentCommon(self.inputs, self.outputs, self.par, self.config)

    def settle_inputs(self) -> None:
        """Put names where specs stood, now that they have names."""
        self.inputs = {
            replace(stream, componentId=getattr(stream.componentId, "name", stream.componentId)): g
            for stream, g in self.inputs.items()
        }


class BoltSpec(ComponentSpec):
    """A bolt in a topology."""

    kind = "bolt"

    @property
    def bolt_object(self) -> ComponentObject:
        """What it is."""
        return self.component_object


class SpoutSpec(ComponentSpec):
    """A spout in a topology."""

    kind = "spout"

    @property
    def spout_object(self) -> ComponentObject:
        """What it is."""
        return self.component_object


def _first(given: Any, component: type, name: str) -> Any:
    return getattr(component, name, None) if given is None else given


def _par(par: Any) -> Any:
    """Check a degree, or degrees by the name of an environment."""
    if par is None:
        return 1
    by_name = par if isinstance(par, dict) else {"": par}
    for environment, degree in by_name.items():
        if not isinstance(environment, str) or type(degree) is not int:
            text = f"par is a whole number, or a dict from environments to such; given: {par!r}"
            raise TypeError(text)
        if degree < 1:
            text = f"par must be at least 1; given: {par!r}"
            raise ValueError(text)
    return par


def _config(config: Any) -> str:
    if config is not None and not isinstance(config, dict):
        text = f"config is a dict or None; given: {config!r}"
        raise TypeError(text)
    return json.dumps(config or {})


def _outputs(outputs: Any) -> dict[str, StreamInfo]:
    if not isinstance(outputs, list | tuple | None):
        text = f"outputs are a list of strings or of Streams; given: {outputs!r}"
        raise TypeError(text)
    streams: dict[str, StreamInfo] = {}
    for output in outputs or ():
        if isinstance(output, str):
            streams.setdefault(DEFAULT, StreamInfo()).output_fields.append(output)
        elif isinstance(output, Stream):
            streams[output.name] = StreamInfo(list(output.fields), output.direct)
        else:
            text = f"outputs are a list of strings or of Streams; one of them is {output!r}"
            raise TypeError(text)
    return streams


def _inputs(inputs: Any) -> Iterator[tuple[GlobalStreamId, GroupingValue]]:
    if isinstance(inputs, ComponentSpec):
        inputs = [inputs]
    if isinstance(inputs, Mapping):
        for source, grouping in inputs.items():
            if not isinstance(grouping, GroupingValue):
                text = f"inputs map specs or streams to Groupings; {source!r} has {grouping!r}"
                raise TypeError(text)
            yield _stream(source), grouping
    elif isinstance(inputs, Sequence) and not isinstance(inputs, str):
        for source in inputs:
            yield _stream(source), _usual_grouping(source)
    elif inputs is not None:
        text = f"inputs are a list, a dict or None; given: {inputs!r}"
        raise TypeError(text)


def _stream(source: Any) -> GlobalStreamId:
    if isinstance(source, GlobalStreamId):
        return source
    if isinstance(source, ComponentSpec):
        return GlobalStreamId(source.name or source, DEFAULT)
    text = f"an input is the spec of a component, or one of its streams; given: {source!r}"
    raise TypeError(text)


def _usual_grouping(source: Any) -> GroupingValue:
    """Shuffle, but direct where the stream is."""
    stream = _stream(source)
    if isinstance(stream.componentId, ComponentSpec):
        source = stream.componentId
    info = source.outputs.get(stream.streamId) if isinstance(source, ComponentSpec) else None
    return Grouping.DIRECT if info is not None and info.direct else Grouping.SHUFFLE
