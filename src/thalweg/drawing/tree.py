"""A topology as a tree of text, each component below the one it reads."""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.drawing.facts import error_policy, is_read, plural, reading, streams, traits, wrapped
from thalweg.topology import Component, Topology

_WIDTH = 80
#: What a tree is drawn with, beside what it names.
GUIDES = "│├└─·"
_PLAIN = str.maketrans(GUIDES, "|++-*")


def tree(topology: Topology) -> str:
    """Draw a topology for a terminal.

    A component that reads several streams is drawn below the first of them; below the others it
    is only named.
    """
    drawn: set[str] = set()
    lines = [_headline(topology)]
    for spout in topology.spouts:
        lines += ["", *_branch(topology, spout, "", drawn)]
    return "\n".join(lines) + "\n"


def plain(picture: str) -> str:
    """Draw the lines of a tree with letters that every terminal knows.

    >>> plain("│  └─ top · 2")
    '|  +- top * 2'
    """
    return picture.translate(_PLAIN)


def _headline(topology: Topology) -> str:
    parts = [topology.name, plural(len(topology.components), "component")]
    if topology.tables:
        word = "table" if len(topology.tables) == 1 else "tables"
        parts.append(f"{word} {', '.join(topology.tables)}")
    return " · ".join(parts)


def _branch(
    topology: Topology, component: Component, indent: str, drawn: set[str]
) -> Iterator[str]:
    drawn.add(component.name)
    policy = error_policy(component.options.on_error)
    yield f"{component.name}   {', '.join(traits(component))}, on error {policy}"
    readers = _readers(topology, component)
    side = "│" if readers else " "
    for word, text in _details(topology, component):
        yield f"{indent}{side}  {word}  {text}"
    for number, reader in enumerate(readers, 1):
        last = number == len(readers)
        corner, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield f"{indent}│"
        if reader.name in drawn:
            yield f"{indent}{corner}{reader.name}   (drawn above)"
            continue
        first, *rest = _branch(topology, reader, indent + below, drawn)
        yield f"{indent}{corner}{first}"
        yield from rest


def _readers(topology: Topology, component: Component) -> list[Component]:
    found = [r for stream in component.outputs for r, _ in topology.readers(component.name, stream)]
    return [reader for place, reader in enumerate(found) if reader not in found[:place]]


def _details(topology: Topology, component: Component) -> Iterator[tuple[str, str]]:
    for input_ in component.inputs:
        grouping, order = reading(input_)
        yield "reads", f"{input_} by {grouping}, {order}"
    for stream, fields in streams(component):
        name = f"{stream}: " if stream else ""
        nobody = "" if is_read(topology, component, stream) else "   (nobody reads it)"
        *lines, last = wrapped(f"{name}({fields})", _WIDTH)
        for number, line in enumerate([*lines, last + nobody]):
            yield "     " if number else "sends", line
