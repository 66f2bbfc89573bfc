"""A topology as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterable

from thalweg.drawing.facts import COLOURS, edge_label, unusual_traits
from thalweg.topology import Component, Topology

# Mermaid reads these inside quoted labels, so they are written as its entities.
_ENTITIES = str.maketrans(
    {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;"}
)
_SHAPES = {"spout": ('(["', '"])'), "sink": ('[/"', '"/]')}


def mermaid(topology: Topology) -> str:
    """Draw a topology as a Mermaid flowchart."""
    # Numbers instead of names: a component called "end" would end Mermaid's parser.
    ids = {component.name: f"c{number}" for number, component in enumerate(topology)}
    lines = ["flowchart TD"]
    lines += [f"  {_node(ids[component.name], component)}" for component in topology]
    for component in topology:
        for input_ in component.inputs:
            label = _label(edge_label(input_))
            lines.append(f'  {ids[input_.component]} -->|"{label}"| {ids[component.name]}')
    used = sorted({component.role for component in topology})
    for role in used:
        fill, line = COLOURS[role]
        members = ",".join(ids[c.name] for c in topology if c.role == role)
        lines.append(f"  classDef {role}_ fill:{fill},stroke:{line},color:#212121")
        lines.append(f"  class {members} {role}_")
    return "\n".join(lines) + "\n"


def _node(id_: str, component: Component) -> str:
    opening, closing = _SHAPES.get(component.role, ('["', '"]'))
    label = _label([component.name, ", ".join(unusual_traits(component))])
    return f"{id_}{opening}{label}{closing}"


def _label(lines: Iterable[str]) -> str:
    return "<br/>".join(line.translate(_ENTITIES) for line in lines)
