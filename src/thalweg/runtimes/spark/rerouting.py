"""Gives the rerouter of a run what batches were like, and does what it decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from thalweg.control.rerouting import Ends, Rerouter, Seen
from thalweg.errors import ThalwegError
from thalweg.runtimes.spark.batches import Done
from thalweg.runtimes.spark.engine import Engine
from thalweg.runtimes.spark.notes import Note
from thalweg.runtimes.spark.totals import state_size
from thalweg.sketches.pairs import PairCounts, merged

#: Pairs of one link of one batch that are looked at.
_MOST = 1 << 20


class Learning:
    """Stands between the batches and a rerouter."""

    def __init__(self, engine: Engine, rerouter: Rerouter, notice: Callable[[str], None]) -> None:
        self._engine, self._rerouter, self._notice = engine, rerouter, notice
        engine.batches.sampling = rerouter.sampling

    def after(self, done: Done) -> None:
        """Tell of a batch, and reroute if that is decided."""
        engine = self._engine
        tabled = engine.batches.tabled
        moving = tabled is not None and tabled.pending
        decided = self._rerouter.after(self._seen(done, moving), engine.tables())
        engine.batches.sampling = self._rerouter.sampling
        if decided is None or moving:
            return
        try:
            engine.reroute(decided)
        except ThalwegError as error:
            self._notice(f"keys stay where they are: {error}")
            return
        self._notice(f"rerouting: {decided.reason}" if decided.reason else "rerouting")

    def _seen(self, done: Done, moving: bool) -> Seen:
        notes, manifest = done.notes, done.manifest
        sent: dict[str, tuple[int, int]] = {}
        for counts in (counts for note in notes for counts in note.counts):
            size, rows = sent.get(counts.component, (0, 0))
            sent[counts.component] = size + counts.shuffled_bytes, rows + counts.shuffled
        sizes = {name: state_size(name, manifest) for name in manifest.topology}
        return Seen(
            clock=manifest.clock,
            seconds=done.seconds,
            pairs=_pairs(notes),
            work=sum(note.seconds for note in notes),
            counting=sum(note.pairing for note in notes),
            sent=sent,
            state={name: (size, keys) for name, (keys, size) in sizes.items()},
            moved_keys=sum(note.moved_keys for note in notes),
            moved_bytes=sum(note.moved_bytes for note in notes),
            moving=moving,
        )


def _pairs(notes: Iterable[Note]) -> dict[Ends, PairCounts]:
    found: dict[Ends, list[PairCounts]] = {}
    for note in notes:
        for sender, by_reader in note.pairs.items():
            for reader, data in by_reader.items():
                found.setdefault((sender, reader), []).append(PairCounts.from_bytes(data))
    return {ends: merged(parts, _MOST) for ends, parts in found.items()}
