"""What is kept of the windows of a key, and what becomes of it as time goes on. Nothing runs here.

A *piece* is what the tuples of one block give to a key and a stretch of time: from, to, and partial
results. What is kept of a key is a plain value: how far it has been told of, and pieces.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import numpy as np

from thalweg.eventtime import ALWAYS, LAST, NEVER, Micros
from thalweg.windows.aggregates import Aggregate, Numbered, Partial, combined, merged
from thalweg.windows.running import Running, Until
from thalweg.windows.specs import LandmarkWindow, SessionWindow, TimeSpec, TimeWindow


class Piece(NamedTuple):
    """Partial results of a stretch of time, from its beginning up to, not including, its end."""

    start: int
    end: int
    partials: list[Partial]


class Told(NamedTuple):
    """A window that is complete, or is told again because a late tuple has come."""

    start: int
    end: int
    partials: list[Partial]


#: What is kept of a key: until when windows have been told, pieces in the order of time (as lists),
#: and, for sessions, how many rows there were.
Kept = list[Any]
_START, _END = itemgetter(0), itemgetter(1)


class Added(NamedTuple):
    """What came of new pieces: what is kept, windows to tell again, and pieces that came late."""

    kept: Kept | None
    again: list[Told]
    late: list[int]


class Keeping(Protocol):
    """The rules of one kind of windows."""

    @property
    def parts(self) -> tuple[Aggregate, ...]:
        """What pieces are made of."""

    def stretches(self, times: Micros) -> tuple[Micros, Micros]:
        """Give for each tuple where the stretch of time that it belongs to begins and ends."""

    def add(self, kept: Kept | None, pieces: Sequence[Piece], now: int) -> Added:
        """Take in pieces; ``now`` is how far time has come."""

    def due(self, kept: Kept, now: int) -> tuple[Kept | None, list[Told]]:
        """Give the windows that are complete at a time, and what is kept then.

        Where there is nothing to change, it gives what it was given.
        """

    def next(self, kept: Kept) -> int:
        """Give the time at which ``due`` will change something; ALWAYS for never."""


def _opened(kept: Kept | None, now: int) -> tuple[int, list[Any]]:
    """Give how far time has come for a key, and a copy of its pieces."""
    return (now, []) if kept is None else (max(kept[0], now), list(kept[1]))


@dataclass(frozen=True)
class Panes:
    """Windows of one length: each is put together of panes, which neighbours share."""

    spec: TimeWindow
    aggregates: tuple[Aggregate, ...]
    #: How long after its end a window is still told again for late tuples.
    allowed: int = 0

    @property
    def parts(self) -> tuple[Aggregate, ...]:
        """What pieces are made of."""
        return self.aggregates

    def stretches(self, times: Micros) -> tuple[Micros, Micros]:
        """Give the pane of each tuple."""
        pane, offset = self.spec.pane, self.spec.offset
        start: Micros = (times - offset) // pane * pane + offset
        return start, start + pane

    def add(self, kept: Kept | None, pieces: Sequence[Piece], now: int) -> Added:
        """Add to panes; windows that were told before are told again, if that is allowed."""
        told, panes = _opened(kept, now)
        late, touched = [], []
        running = _running(kept)
        for number, piece in enumerate(pieces):
            if self._last_end(piece.start) + self.allowed <= told:
                late.append(number)
                continue
            _put(panes, piece, self.aggregates)
            touched.append(piece.start)
        again = self._again(panes, touched, told) if self.allowed else []
        if running is not None and not any(map(running.knows, touched)):
            told = running.until(told)
        return Added([told, panes] if panes else None, again, late)

    def due(self, kept: Kept, now: int) -> tuple[Kept | None, list[Told]]:
        """Put the panes of complete windows together; those that nobody needs any more go."""
        told, panes = kept
        bounds = list(self._bounds(panes, told, now)) if panes else []
        gone = bisect_right(panes, now - self.allowed, key=lambda pane: self._last_end(pane[0]))
        if not (bounds or gone):
            return kept, []
        running = _running(kept) or Running(self.aggregates)
        found = self._windows(panes, bounds, running)
        left = panes[gone:]
        return [running.until(max(told, now)), left] if left else None, found

    def next(self, kept: Kept) -> int:
        """Give the end of the next window with tuples, or the time at which the first pane goes."""
        told, panes = kept
        end = self._end_from(max(panes[0][1], told + 1))
        last = self._last_end(panes[0][0])
        if end <= last:
            return end
        ends = (end for _, _, end in self._bounds(panes, told, last + self.allowed))
        return next(ends, last + self.allowed)

    def _last_end(self, pane: int) -> int:
        """Give the end of the last window that a pane is in."""
        every, offset = self.spec.every, self.spec.offset
        return (pane - offset) // every * every + offset + self.spec.size

    def _end_from(self, time: int) -> int:
        """Give the first end of a window that is not before a time."""
        phase = self.spec.offset + self.spec.size
        return -((phase - time) // self.spec.every) * self.spec.every + phase

    def _windows(
        self, panes: Sequence[Any], bounds: Iterable[tuple[int, int, int]], running: Running
    ) -> list[Told]:
        """Put windows together, in the order of time."""
        size = self.spec.size
        return [
            Told(end - size, end, running.window(panes, first, last, end))
            for first, last, end in bounds
        ]

    def _bounds(
        self, panes: Sequence[Any], after: int, until: int
    ) -> Iterator[tuple[int, int, int]]:
        """Give the windows with tuples that end after a time, and not after another.

        Each is the number of its first pane, that of the one behind its last, and its end.
        """
        first, size = 0, self.spec.size
        end = self._end_from(max(panes[0][1], after + 1))
        while end <= until and first < len(panes):
            first = bisect_left(panes, end - size, first, key=_START)
            last = bisect_left(panes, end, first, key=_START)
            if first < last:
                yield first, last, end
                end += self.spec.every
            elif first < len(panes):  # nothing until the next pane
                end = self._end_from(panes[first][1])

    def _again(self, panes: Sequence[Any], touched: Iterable[int], told: int) -> list[Told]:
        """Give the windows with these panes that have been told, and may be told again."""
        ends: set[int] = set()
        for pane in touched:
            begin = self._end_from(max(pane + self.spec.pane, told - self.allowed + 1))
            ends.update(range(begin, min(told, self._last_end(pane)) + 1, self.spec.every))
        size = self.spec.size
        bounds = (
            (bisect_left(panes, end - size, key=_START), bisect_left(panes, end, key=_START), end)
            for end in sorted(ends)
        )
        return self._windows(panes, bounds, Running(self.aggregates))


def _running(kept: Kept | None) -> Running | None:
    """Take what is known of windows; it goes on with what is kept next, or not at all."""
    until = None if kept is None else kept[0]
    if not isinstance(until, Until):
        return None
    running, until.running = until.running, None
    return running


def _put(pieces: list[Any], piece: Piece, aggregates: Sequence[Aggregate]) -> None:
    """Add a piece to the one that begins when it does, or put it among the others."""
    at = bisect_left(pieces, piece.start, key=_START)
    if at < len(pieces) and pieces[at][0] == piece.start:
        whole = merged(aggregates, pieces[at][2], piece.partials)
        pieces[at] = [piece.start, piece.end, whole]
    else:
        pieces.insert(at, list(piece))


@dataclass(frozen=True)
class Sessions:
    """Windows that go on as long as tuples follow each other."""

    spec: SessionWindow
    aggregates: tuple[Aggregate, ...]
    allowed: int = 0

    @cached_property
    def parts(self) -> tuple[Aggregate, ...]:
        """What pieces are made of: sessions that become one have come in turns."""
        return tuple(Numbered(a.field, a) if a.ordered else a for a in self.aggregates)

    def stretches(self, times: Micros) -> tuple[Micros, Micros]:
        """Let each tuple begin a session of its own; those that overlap become one."""
        return times, times + self.spec.gap

    def add(self, kept: Kept | None, pieces: Sequence[Piece], now: int) -> Added:
        """Put pieces to the sessions that they overlap with, which may become one thereby."""
        told, sessions = _opened(kept, now)
        rows = kept[2] if kept is not None else 0
        late: list[int] = []
        changed: dict[int, Any] = {}
        for number, piece in enumerate(pieces):
            near = slice(
                bisect_right(sessions, piece.start, key=_END),
                bisect_left(sessions, piece.end, key=_START),
            )
            joined = sessions[near]
            if not joined and piece.end + self.allowed <= told:
                late.append(number)
                continue
            whole = self._joined(joined, piece, rows)
            sessions[near] = [whole]
            for session in joined:
                changed.pop(session[0], None)
            changed[whole[0]] = whole
        again = [self._told(session) for session in changed.values() if session[1] <= told]
        kept_now = [told, sessions, rows + _rows(self.parts, pieces)]
        return Added(kept_now if sessions else None, again if self.allowed else [], late)

    def _joined(self, sessions: Sequence[Any], piece: Piece, rows: int) -> list[Any]:
        """Make one session of some and a piece, which has come after so many rows."""
        new = [
            a.later(partial, rows) if isinstance(a, Numbered) else partial
            for a, partial in zip(self.parts, piece.partials, strict=True)
        ]
        whole = combined(self.parts, [*(partials for _, _, partials in sessions), new])
        start = min([piece.start, *(session[0] for session in sessions)])
        return [start, max([piece.end, *(session[1] for session in sessions)]), whole]

    def due(self, kept: Kept, now: int) -> tuple[Kept | None, list[Told]]:
        """Give the sessions whose gap has passed."""
        told, sessions, rows = kept
        found = [self._told(session) for session in sessions if told < session[1] <= now]
        left = [session for session in sessions if session[1] + self.allowed > now]
        if not found and len(left) == len(sessions):
            return kept, []
        return [max(told, now), left, rows] if left else None, found

    def next(self, kept: Kept) -> int:
        """Give the end of the next session, or the time at which the first one goes."""
        told, sessions, _ = kept
        first = bisect_right(sessions, told, key=_END)
        gone: int = sessions[0][1] + self.allowed
        return gone if first == len(sessions) else min(gone, sessions[first][1])

    def _told(self, session: Any) -> Told:
        start, end, partials = session
        pairs = zip(self.parts, partials, strict=True)
        return Told(start, end, [a.plain(p) if isinstance(a, Numbered) else p for a, p in pairs])


def _rows(parts: Sequence[Aggregate], pieces: Iterable[Piece]) -> int:
    """Give a number that is above those of all rows in pieces."""
    at = [number for number, part in enumerate(parts) if isinstance(part, Numbered)]
    lists = (piece.partials[number] for piece in pieces for number in at)
    return max((rows[-1][0] + 1 for rows in lists if rows), default=0)


@dataclass(frozen=True)
class Landmarks:
    """Windows that begin together: what was told is added to what comes."""

    spec: LandmarkWindow
    aggregates: tuple[Aggregate, ...]
    allowed: int = 0

    @property
    def parts(self) -> tuple[Aggregate, ...]:
        """What pieces are made of."""
        return self.aggregates

    def stretches(self, times: Micros) -> tuple[Micros, Micros]:
        """Give the time between two ends; all that is before the landmark belongs to none."""
        every, since = self.spec.every, self.spec.since
        start: Micros = (times - since) // every * every + since
        return np.where(times < since, NEVER, start), start + every

    def add(self, kept: Kept | None, pieces: Sequence[Piece], now: int) -> Added:
        """Add to stretches; windows that were told before are told again, if that is allowed.

        What comes later than that counts from the first window on that may still be told; when
        all time has passed there is none.
        """
        if now == ALWAYS:
            return Added(kept, [], list(range(len(pieces))))
        told, found = _opened(kept, now)
        told = found[-1][1] if told == ALWAYS else told  # so ends of runs were written once
        late: list[int] = []
        first = told + 1
        open_end = self._end_after(told - self.allowed)
        for number, piece in enumerate(pieces):
            end = max(piece.end, open_end)
            if piece.start == NEVER or end > LAST:
                late.append(number)
                continue
            _put(found, Piece(end - self.spec.every, end, piece.partials), self.aggregates)
            first = min(first, end)
        again = list(self._windows(found, first - 1, told)) if first <= told else []
        return Added([told, found] if found else None, again, late)

    def due(self, kept: Kept, now: int) -> tuple[Kept | None, list[Told]]:
        """Tell all since the landmark, wherever something has come.

        What will not be told again becomes one piece, which begins with the landmark. The end of
        a run is no later than the last window: the next run goes on from there.
        """
        told, pieces = kept
        until = pieces[-1][1] if now == ALWAYS else now
        windows = list(self._windows(pieces, told, until))
        over = bisect_right(pieces, until - self.allowed, key=_END)
        if not windows and over <= 1:
            return kept, []
        left = pieces[over:]
        if over:
            whole = combined(self.aggregates, [partials for _, _, partials in pieces[:over]])
            left = [[self.spec.since, pieces[over - 1][1], whole], *left]
        return [max(told, until), left], windows

    def next(self, kept: Kept) -> int:
        """Give the next end of a piece, or the time at which the first two become one."""
        told, pieces = kept
        first = bisect_right(pieces, told, key=_END)
        ends = [pieces[first][1]] if first < len(pieces) else []
        if len(pieces) > 1:
            ends.append(pieces[1][1] + self.allowed)
        return min(ends, default=ALWAYS)

    def _end_after(self, time: int) -> int:
        """Give the first end of a window that is after a time."""
        every, since = self.spec.every, self.spec.since
        return ((time - since) // every + 1) * every + since

    def _windows(self, pieces: Sequence[Any], after: int, until: int) -> Iterator[Told]:
        """Give what was there at each end of a piece after a time, and not after another."""
        first, last = (bisect_right(pieces, time, key=_END) for time in (after, until))
        if first == last:
            return
        whole = combined(self.aggregates, [partials for _, _, partials in pieces[: first + 1]])
        yield Told(self.spec.since, pieces[first][1], whole)
        for _, end, partials in pieces[first + 1 : last]:
            whole = merged(self.aggregates, whole, partials)
            yield Told(self.spec.since, end, whole)


def keeping(spec: TimeSpec, aggregates: tuple[Aggregate, ...], allowed: int) -> Keeping:
    """Find the rules for a kind of windows."""
    match spec:
        case TimeWindow():
            return Panes(spec, aggregates, allowed)
        case SessionWindow():
            return Sessions(spec, aggregates, allowed)
        case LandmarkWindow():
            return Landmarks(spec, aggregates, allowed)
