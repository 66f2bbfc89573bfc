"""What every picture says about a component, in the same words."""

from __future__ import annotations

import textwrap

from thalweg.blocks import DEFAULT_STREAM
from thalweg.config import DeadLetter, OnError
from thalweg.groupings import describe
from thalweg.topology import Component, Input, Topology

#: Fill and line colour of each role.
COLOURS: dict[str, tuple[str, str]] = {
    "spout": ("#e3f2fd", "#1565c0"),
    "stateless": ("#f5f5f5", "#616161"),
    "keyed": ("#e8f5e9", "#2e7d32"),
    "global": ("#fff8e1", "#b26a00"),
    "sink": ("#f3e5f5", "#6a1b9a"),
}


def plural(count: int, word: str) -> str:
    """Count things.

    >>> plural(1, "task"), plural(2, "task")
    ('1 task', '2 tasks')
    """
    return f"{count} {word}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """Write a duration in the unit that suits it.

    >>> duration(10), duration(0.25), duration(90), duration(7200)
    ('10 s', '250 ms', '90 s', '2 h')
    """
    if seconds < 1:
        return f"{seconds * 1000:g} ms"
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def error_policy(policy: OnError) -> str:
    """Name what happens to a tuple that cannot be processed."""
    return f"keep in {policy.path}" if isinstance(policy, DeadLetter) else policy


def traits(component: Component) -> list[str]:
    """Say what a component is: role, tasks, table, tick."""
    said = [component.role, plural(component.degree, "task")]
    if component.table:
        said.append(f"table {component.table}")
    if component.options.tick:
        said.append(f"tick every {duration(component.options.tick)}")
    return said


def unusual_traits(component: Component) -> list[str]:
    """Say the same, and the error policy where it is not the usual one."""
    policy = component.options.on_error
    said = traits(component)
    return said if policy == "fail" else [*said, f"on error {error_policy(policy)}"]


def streams(component: Component) -> list[tuple[str, str]]:
    """Give the output streams: name (empty for the default one) and fields."""
    return [
        ("" if name == DEFAULT_STREAM else name, fields.describe())
        for name, fields in component.outputs.items()
    ]


def wrapped(text: str, width: int) -> list[str]:
    """Break text into lines, but never between the name of a field and its type.

    >>> wrapped("(word: string, n: int64)", 16)
    ['(word: string,', 'n: int64)']
    """
    lines = textwrap.wrap(text.replace(": ", ":\u00a0"), width)
    return [line.replace("\u00a0", " ") for line in lines]


def reading(input_: Input) -> tuple[str, str]:
    """Say how a stream is read: by which grouping, in which order."""
    return describe(input_.grouping), f"order {input_.order}"


def edge_label(input_: Input) -> list[str]:
    """Say at an arrow which stream it is, how it is split, and what order it keeps."""
    named = [] if input_.stream == DEFAULT_STREAM else [f"stream {input_.stream}"]
    return [*named, *reading(input_)]


def is_read(topology: Topology, component: Component, stream: str) -> bool:
    """Whether anybody reads a stream; the name of the default one may be empty."""
    return bool(topology.readers(component.name, stream or DEFAULT_STREAM))
