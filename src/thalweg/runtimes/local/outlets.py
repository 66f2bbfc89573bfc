"""The way out of an operator: what its tasks have sent goes to its readers."""

from __future__ import annotations

from functools import cached_property

from thalweg.blocks import Block
from thalweg.runtimes.following import joined
from thalweg.runtimes.local.links import Link, Streams
from thalweg.runtimes.local.units import by_stream

#: What was sent for a unit, by arrival and part.
Sent = list[list[list[Block]]]


class Outlet:
    """Hands units over, in their order."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def send(self, number: int, sent: Sent) -> None:
        """Hand a unit to all readers; those to whom order matters hear of it in any case."""
        links = self._links
        if len(links) == 1 == len(self._streams):  # the common case
            self._to_one(number, links[0], sent)
        elif links:
            self._to_all(number, sent)

    @cached_property
    def _links(self) -> list[Link]:
        """Those first that take blocks as they come: the unit may end with the others."""
        links = [link for links in self._streams.values() for link in links]
        return sorted(links, key=lambda link: link.reader.ordered)

    def _to_one(self, number: int, link: Link, sent: Sent) -> None:
        outgoing: list[Block] = []
        for arrival in sent:
            blocks = arrival[0] if len(arrival) == 1 else [b for part in arrival for b in part]
            if blocks:
                outgoing += joined(link.input, blocks) if link.reader.ordered else blocks
        if outgoing or link.reader.ordered:
            link.reader.arrive(number, link, outgoing)

    def _to_all(self, number: int, sent: Sent) -> None:
        outgoing: dict[int, list[Block]] = {}
        for arrival in sent:
            for stream, blocks in by_stream([b for part in arrival for b in part]).items():
                for link in self._streams[stream]:
                    given = joined(link.input, blocks) if link.reader.ordered else blocks
                    outgoing.setdefault(id(link), []).extend(given)
        for link in self._links:
            blocks = outgoing.get(id(link), [])
            if blocks or link.reader.ordered:
                link.reader.arrive(number, link, blocks)
