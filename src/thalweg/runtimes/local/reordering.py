"""Neighbours change places while a topology runs.

Nothing is under way at that moment: what was let in is finished first, and what comes next finds
the new order. Every operator keeps its tasks, its counters and its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from thalweg.blocks import DEFAULT_STREAM
from thalweg.control.ordering import Chain, Reorder, chains_of, touches
from thalweg.runtimes.local.building import Built
from thalweg.runtimes.local.links import Link
from thalweg.runtimes.local.operators import Operator
from thalweg.schemas import Fields, Shape


class Reordering:
    """Knows the order of every chain, and changes it; for the thread that runs the topology."""

    def __init__(self, built: Built, drain: Callable[[], None]) -> None:
        self._built, self._drain = built, drain
        self.chains = chains_of(built.topology)
        self._in_force = {chain: chain.names for chain in self.chains}

    def order(self, chain: Chain) -> tuple[str, ...]:
        """Give the order in force."""
        return self._in_force[chain]

    def change(self, made: Reorder) -> Reorder:
        """Let a chain have another order; gives the decision back, with the reason if refused."""
        why = self._why_not(made.chain)
        if why:
            return replace(made, after=made.before, refused=why, reason=f"{made.reason}; {why}")
        self._drain()
        self._relink(made)
        self._reshape(made.chain, made.after)
        self._in_force[made.chain] = made.after
        return made

    def _why_not(self, chain: Chain) -> str:
        for operator in map(self._built.operator, chain.names):
            name = operator.component.name
            if operator.away:
                return f"{name!r} is in processes of its own"
            if not operator.ordered:
                return f"{name!r} takes blocks as they come"
            # A field that nobody has seen a value of could turn out to be of another type.
            if self._makes(operator) and None in operator.tasks[0].context.shapes[_ONLY].types:
                return f"{name!r} has fields of a type that is not known yet"
        return ""

    def _relink(self, made: Reorder) -> None:
        operators = {name: self._built.operator(name) for name in made.before}
        ways = {name: operator.inputs[0] for name, operator in operators.items()}
        first, last = ways[made.before[0]], operators[made.before[-1]]
        behind, gate = list(last.streams[_ONLY]), last.gate
        self._enter_by(first, ways[made.after[0]])
        for at, name in enumerate(made.after):
            ends = at == len(made.after) - 1
            leads = behind if ends else [ways[made.after[at + 1]]]
            sender = self._built.operator(made.chain.names[-1]) if ends else operators[name]
            operators[name].place(leads, sender.component, gate and ends)

    def _enter_by(self, old: Link, new: Link) -> None:
        """Let whoever sends to the chain send to its new first operator."""
        new.sender = old.sender
        for streams in (*self._built.sources.values(), *(o.streams for o in self._built.operators)):
            for links in streams.values():
                links[:] = [new if link is old else link for link in links]
        for operator in self._built.operators:
            operator.relinked()

    def _reshape(self, chain: Chain, order: Sequence[str]) -> None:
        """Let filters pass on the fields that there are at their new places."""
        if not any(self._makes(self._built.operator(name)) for name in chain.names):
            return
        topology = self._built.topology
        entry = topology.component(chain.names[0]).inputs[0]
        fields: Fields = topology.component(entry.component).outputs[entry.stream]
        for operator in map(self._built.operator, order):
            if self._makes(operator):
                fields = operator.component.outputs[_ONLY]
                continue
            shape = Shape(fields, f"{operator.component.name!r}, {_ONLY}")
            for task in operator.tasks:
                task.context.reshaped({_ONLY: shape})

    @staticmethod
    def _makes(operator: Operator) -> bool:
        """Say whether it changes fields."""
        found = touches(operator.component)
        return found is not None and not found.filters


_ONLY = DEFAULT_STREAM
