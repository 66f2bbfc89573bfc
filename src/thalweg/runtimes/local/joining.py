"""Joins with tables change the way in which they find pairs, between two blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from thalweg.operators.join_ways import Chooser, Seen, Way
from thalweg.operators.joining import TableJoin
from thalweg.runtimes.local.building import Built


class Joins:
    """The joins that leave the choice to whoever decides about all of the topology.

    Those in processes of their own choose for themselves.
    """

    def __init__(self, built: Built) -> None:
        self._choosers: dict[str, Chooser] = {}
        for operator in built.operators:
            body = operator.component.body
            if isinstance(body, TableJoin) and len(body.chooser.ways) > 1 and not operator.away:
                self._choosers[operator.component.name] = body.chooser

    def steer(self) -> dict[str, Callable[[], Sequence[Seen]]]:
        """Decide in their stead from now on; gives what is known of each."""
        for chooser in self._choosers.values():
            chooser.steered = True
        return {name: chooser.look for name, chooser in self._choosers.items()}

    def change(self, made: Way) -> None:
        """Let a join go another way, from the next block on."""
        self._choosers[made.component].use(made)

    def close(self) -> None:
        """Let them choose for themselves again."""
        for chooser in self._choosers.values():
            chooser.steered = False
