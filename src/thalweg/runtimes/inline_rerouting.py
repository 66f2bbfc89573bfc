"""Learning on the reference runtime: pairs of keys are counted, and keys get other tasks.

It is known of a tuple which key it had at the last keyed component, also behind stateless bolts:
such a block has a *trail*, two numbers per row, of a block that was met in this wave (0 for none)
and of a row in it. The trail travels as the block's path, which this runtime needs for nothing
else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from thalweg.blocks import Block, Rows
from thalweg.clock import Clock
from thalweg.components import Kind
from thalweg.control.keyview import KeyView
from thalweg.control.links import comparable
from thalweg.control.rerouting import Ends, Rerouter, Seen
from thalweg.errors import ThalwegError
from thalweg.events import Event, Noticed
from thalweg.hashing import Hashes, hash_columns
from thalweg.runtimes.inline_routing import Edge, Edges, Owners
from thalweg.runtimes.pairing import Naming, PairSample, has_movable_keys, leading
from thalweg.sketches.pairs import PairCounts
from thalweg.topology import Component, Input, Topology

#: Levels of a block's path.
Trail = tuple[Rows, ...]


class Pairs:
    """Looks at blocks on their way, and counts which keys occur together."""

    def __init__(self, topology: Topology, edges: Edges, seed: int) -> None:
        self._movable = frozenset(c.name for c in topology if has_movable_keys(c))
        self._leading = leading(topology, self._movable)
        self._beside = {stream: self._siblings(readers) for stream, readers in edges.items()}
        self._seed = f"{seed}/pairs"
        self._rate = 0.0
        self._sample: PairSample | None = None
        #: Blocks that keyed components met in this wave: who, and the columns of the keys.
        self._met: list[tuple[str, list[pa.Array]]] = []
        #: Learns what frequent keys look like.
        self.naming = Naming()

    def count(self, rate: float) -> None:
        """Count on this share of the tuples from now on; 0 for none."""
        if rate != self._rate:
            self._rate = rate
            self._sample = PairSample(rate, self._seed) if rate else None

    def arrived(self, component: Component, input_: Input, block: Block) -> Trail:
        """Count the pairs that a block brings, and give the trail of what is made of its rows."""
        name = component.name
        if self._sample is None or name not in self._leading | self._movable:
            return ()
        if name not in self._movable:
            return block.path if component.kind is Kind.STATELESS else ()
        with self._sample.timed():
            if block.path:
                self._followed(name, input_, block)
            if name not in self._leading:
                return ()
            self._met.append((name, _key_columns(block, input_)))
        met = np.broadcast_to(np.int64(len(self._met)), (len(block),))
        return met, np.arange(len(block), dtype=np.int64)

    def sent(self, blocks: Sequence[Block]) -> None:
        """Count the pairs that tuples bring to readers side by side."""
        beside = self._beside[blocks[0].origin.component, blocks[0].origin.stream]
        if self._sample is None or not beside:
            return
        with self._sample.timed():
            for block in blocks:
                rows = self._sample.rows(len(block))
                for one, other in beside if len(rows) else ():
                    left = self._hashes(_key_columns(block, one.input), rows)
                    right = self._hashes(_key_columns(block, other.input), rows)
                    self._sample.add(one.reader.name, other.reader.name, left, right)

    def take(self) -> tuple[dict[Ends, PairCounts], float]:
        """Give what was counted in a wave, and the seconds that it took; begin anew."""
        self._met.clear()
        if self._sample is None:
            return {}, 0.0
        counts = self._sample.take()
        seconds, self._sample.seconds = self._sample.seconds, 0.0
        return counts, seconds

    def _followed(self, reader: str, input_: Input, block: Block) -> None:
        """Count pairs of the key that a row had, where that is known, and the one that it has."""
        assert self._sample is not None  # noqa: S101 (the caller has looked)
        rows = self._sample.rows(len(block))
        met, stood = (level[rows] for level in block.path)
        right = self._hashes(_key_columns(block, input_), rows)
        for number in np.unique(met[met > 0]).tolist():
            (sender, columns), mine = self._met[number - 1], met == number
            left = self._hashes(columns, stood[mine])
            self._sample.add(sender, reader, left, right[mine])

    def _hashes(self, columns: Sequence[pa.Array], rows: Rows) -> Hashes:
        taken = [column.take(pa.array(rows)) for column in columns]
        hashes = hash_columns(taken)
        self.naming.look(hashes, taken)
        return hashes

    def _siblings(self, readers: Sequence[Edge]) -> list[tuple[Edge, Edge]]:
        ends = {edge.reader.name: edge for edge in readers if edge.reader.name in self._movable}
        return list(pairwise(ends.values()))


def _key_columns(block: Block, input_: Input) -> list[pa.Array]:
    return [block.batch.column(name) for name in input_.key]


class Learning:
    """Stands between the waves and a rerouter."""

    def __init__(
        self,
        rerouter: Rerouter,
        owners: Owners,
        pairs: Pairs,
        clock: Clock,
        listen: Callable[[Event], None],
        pause: Callable[[], None],
    ) -> None:
        #: Lets tasks finish what they hold.
        self._pause = pause
        self._rerouter, self._owners, self.pairs = rerouter, owners, pairs
        self._clock, self._listen = clock, listen
        self._busy = 0.0
        self._view = KeyView(time.perf_counter)
        self._moved = 0, 0
        pairs.count(rerouter.sampling)

    def after(self, seconds: float, busy: float) -> None:
        """Tell of a wave, and move keys before the next one, if that is decided or under way.

        ``busy`` is how long tasks have worked since the run began.
        """
        moving = self._owners.pending
        seen = self._seen(seconds, busy, moving)
        self._show(seen)
        decided = self._rerouter.after(seen, self._owners.tables)
        self.pairs.count(self._rerouter.sampling)
        if decided is not None or moving:
            self._pause()
        if decided is not None and not moving:
            try:
                self._owners.reroute(decided)
            except ThalwegError as error:
                self._notice(f"keys stay where they are: {error}")
            else:
                self._notice(f"rerouting: {decided.reason}" if decided.reason else "rerouting")
        self._moved = self._owners.advance()

    def _notice(self, text: str) -> None:
        self._listen(Noticed(text))

    def _show(self, seen: Seen) -> None:
        """Tell now and then which keys are frequent, and ask for the names of those."""
        tables, naming = comparable(self._owners.tables), self.pairs.naming
        self._view.name(naming.take())
        told = self._view.note(seen.clock, seen.pairs, tables, self._rerouter.sampling)
        if told is not None:
            naming.want(self._view.unnamed)
            self._listen(told)

    def _seen(self, seconds: float, busy: float, moving: bool) -> Seen:
        counts, counting = self.pairs.take()
        work, self._busy = busy - self._busy, busy
        keys, size = self._moved
        return Seen(
            clock=self._clock.now(),
            seconds=seconds,
            pairs=counts,
            work=work + counting,
            counting=counting,
            state=self._owners.sizes(),
            moved_keys=keys,
            moved_bytes=size,
            moving=moving,
        )
