"""What a checkpoint remembers of a topology, and whether another one may go on from it."""

from __future__ import annotations

from collections.abc import Mapping

from thalweg.components import Kind
from thalweg.errors import StateError, explain
from thalweg.groupings import describe
from thalweg.runtimes.making import codec_of
from thalweg.statelog.manifests import ComponentMark
from thalweg.topology import Component, Topology


def marks_of(topology: Topology) -> dict[str, ComponentMark]:
    """Write down what the state of a topology depends upon."""
    return {component.name: _mark(component, topology) for component in topology}


def _mark(component: Component, topology: Topology) -> ComponentMark:
    key: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    for input_ in component.inputs if component.kind is Kind.KEYED else ():
        key = input_.key
        fields = topology.component(input_.component).outputs[input_.stream]
        types = tuple("any" if (t := fields.type_of(name)) is None else str(t) for name in key)
    return ComponentMark(
        kind=component.kind.value,
        key=key,
        key_types=types,
        codec="" if component.kind is Kind.STATELESS else _codec_name(component),
        degree=component.degree,
        grouping="" if component.kind is not Kind.KEYED else _groupings(component),
    )


def _groupings(component: Component) -> str:
    return ", ".join(describe(input_.grouping) for input_ in component.inputs)


def _codec_name(component: Component) -> str:
    codec = codec_of(component)
    named = getattr(component.body, "state_type", None)
    shown = getattr(named, "__name__", str(named))
    return f"{type(codec).__name__}({shown})"


def changes(before: Mapping[str, ComponentMark], now: Mapping[str, ComponentMark]) -> list[str]:
    """List what is new and what has gone; raises when the state can no longer be read.

    The code of a component may change, and so may its number of tasks; its key and the way in
    which its values are written may not.
    """
    common = before.keys() & now.keys()
    stateful = {name for name, mark in before.items() if mark.kind != "stateless"}
    broken = [
        line
        for name in sorted(common & stateful)
        for line in _broken(name, before[name], now[name])
    ]
    if broken or (before and not common):
        shown = broken or [f"it has {sorted(before)}, the topology has {sorted(now)}"]
        raise StateError(
            explain(
                "checkpoint",
                expected="one of this topology",
                got="; ".join(shown),
                hint="give another checkpoint and state, or undo the change",
            )
        )
    added = [f"component {name!r} is new" for name in now if name not in before]
    gone = [
        f"component {name!r} is gone{', its state is no longer used' if name in stateful else ''}"
        for name in before
        if name not in now
    ]
    return added + gone


def _broken(name: str, before: ComponentMark, now: ComponentMark) -> list[str]:
    facts = [
        ("kind", before.kind, now.kind),
        ("key", ", ".join(before.key), ", ".join(now.key)),
        ("codec", before.codec, now.codec),
        ("grouping", before.grouping or now.grouping, now.grouping),
    ]
    known = [t for t in zip(before.key_types, now.key_types, strict=False) if "any" not in t]
    facts += [("key type", a, b) for a, b in known]
    return [
        f"{what} of {name!r} was {a or 'none'}, is {b or 'none'}" for what, a, b in facts if a != b
    ]
