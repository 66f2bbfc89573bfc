"""State by key that is kept where no runtime can write it down: in child processes, say."""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.errors import TopologyError, explain
from thalweg.groupings import Fields, PartialKey
from thalweg.topology import Component, Topology


def keeps_outside(component: Component) -> bool:
    """Say whether a component may keep state by key that ends with it."""
    by_key = any(isinstance(i.grouping, Fields | PartialKey) for i in component.inputs)
    return by_key and getattr(component.body, "outside_state", False)


def check_outside(component: Component) -> None:
    """Refuse state by key that is kept where it cannot be written down."""
    if keeps_outside(component):
        raise TopologyError(
            explain(
                f"component {component.name!r} with a fields grouping",
                expected="state that can be written down and moved with its keys",
                got=getattr(component.body, "keeps", "a child process, whose memory is neither"),
                hint=getattr(component.body, "remedy", ""),
            )
        )


def forgotten(topology: Topology) -> Iterator[str]:
    """Say what no snapshot of a topology holds; refuses what may not be missing from one.

    Components of Storm's topologies lose it there as well.
    """
    for component in filter(keeps_outside, topology):
        if not getattr(component.body, "as_in_storm", False):
            check_outside(component)
        yield (
            f"component {component.name!r} with a fields grouping: what it keeps by key is in no"
            " snapshot; after a crash it begins anew (thalweg.stateless: true if it keeps nothing)"
        )
