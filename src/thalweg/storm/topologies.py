"""Topologies as classes, as streamparse writes them; checked when the class is made."""

from __future__ import annotations

from typing import Any, ClassVar

from thalweg.storm.fluxing import flux_dict
from thalweg.storm.outside import Described
from thalweg.storm.specs import BoltSpec, ComponentSpec, SpoutSpec


class TopologyType(type):
    """Reads the specs of a class body, names and checks them."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> TopologyType:
        """Check a topology."""
        specs = _named(body)
        for spec in specs.values():
            spec.settle_inputs()
            _check(spec, specs)
        if bases and not any(isinstance(spec, SpoutSpec) for spec in specs.values()):
            text = f"topology {name} needs at least one Spout"
            raise ValueError(text)
        if not isinstance(body.setdefault("config", {}), dict):
            text = f"config of topology {name} is a dict; given: {body['config']!r}"
            raise TypeError(text)
        body["specs"] = list(specs.values())
        body["thrift_spouts"] = {n: s for n, s in specs.items() if isinstance(s, SpoutSpec)}
        body["thrift_bolts"] = {n: s for n, s in specs.items() if isinstance(s, BoltSpec)}
        return super().__new__(cls, name, bases, body)

    def __repr__(cls) -> str:
        return f"Topology {cls.__name__}: {', '.join(s.name for s in getattr(cls, 'specs', ()))}"


def _named(body: dict[str, Any]) -> dict[str, ComponentSpec]:
    """Find the specs; those without a name are called like their variable."""
    specs: dict[str, ComponentSpec] = {}
    for variable, value in body.items():
        given = value if isinstance(value, type) else type(value)
        if issubclass(given, Described):
            text = f"{variable} is {value!r}; write {given.__name__}.spec(...) in a topology"
            raise TypeError(text)
        if not isinstance(value, ComponentSpec):
            continue
        value.name = value.name or variable
        if value.name in specs:
            text = f"two components are called {value.name!r}"
            raise ValueError(text)
        specs[value.name] = value
    return specs


def _check(spec: ComponentSpec, specs: dict[str, ComponentSpec]) -> None:
    who = f"{spec.component_cls.__name__} {spec.name!r}"
    if isinstance(spec, BoltSpec) and not spec.inputs:
        text = f"{who} is a Bolt and needs at least one input"
        raise ValueError(text)
    if isinstance(spec, SpoutSpec) and not spec.outputs:
        text = f"{who} is a Spout and needs at least one output"
        raise ValueError(text)
    for stream, grouping in spec.inputs.items():
        source = specs.get(stream.componentId)
        if source is None or stream.streamId not in source.outputs:
            text = f"{who} reads stream {stream.streamId!r} of {stream.componentId!r}, "
            raise ValueError(text + "which this topology does not have")
        known = source.outputs[stream.streamId].output_fields
        for field in grouping.fields or ():
            if field not in known:
                text = f"{who} is grouped by field {field!r}; stream {stream.streamId!r} of "
                raise ValueError(text + f"{source.name!r} has {known}")


class Topology(metaclass=TopologyType):
    """A topology: its class attributes are specs, and ``config``."""

    config: ClassVar[dict[str, Any]] = {}
    specs: ClassVar[list[ComponentSpec]] = []
    #: Specs by name; in streamparse these are what is sent to Storm.
    thrift_spouts: ClassVar[dict[str, ComponentSpec]] = {}
    thrift_bolts: ClassVar[dict[str, ComponentSpec]] = {}

    @classmethod
    def to_flux_dict(cls, name: str) -> dict[str, Any]:
        """Describe it as Storm's Flux does; :mod:`thalweg.storm.flux` reads that again."""
        return flux_dict(cls, name)
