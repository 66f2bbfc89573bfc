"""Places that follow the stream: looked at between two batches, in the thread that runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from thalweg.control.loop import Plan
from thalweg.control.rerouting import Tables
from thalweg.control.scaling.estimating import unready
from thalweg.control.scaling.foreseeing import foreseen
from thalweg.control.scaling.outlook import outlook
from thalweg.control.scaling.pacing import Pacing, Ran
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import View
from thalweg.control.steps import Assign
from thalweg.control.together import Together
from thalweg.events import Event, Noticed
from thalweg.metrics import Counter
from thalweg.runtimes.deciding import Around, Deciding, refused
from thalweg.runtimes.segments import Entry
from thalweg.runtimes.spark.batches import Done
from thalweg.runtimes.spark.engine import Engine
from thalweg.runtimes.spark.executors import Elastic
from thalweg.runtimes.spark.inputs import SLICE_ROWS
from thalweg.runtimes.spark.pump import Pump
from thalweg.runtimes.spark.rerouting import Learning
from thalweg.runtimes.spark.sampling import (
    Sampling,
    Sources,
    Tallies,
    critical,
    entering,
    followers,
    nodes_of,
)

#: Why a change of places is refused.
_STAYS = "its state cannot move"
#: Rows for each place while nobody knows what a row costs.
_FIRST_ROWS = 64
#: Seconds of work that are worth a task of their own where sources are read.
_SLICE_SECONDS = 0.05


@dataclass(frozen=True)
class Parts:
    """What a scaler looks at, and what it asks to do things."""

    engine: Engine
    pump: Pump
    #: Counters of the sinks beside the driver.
    sinks: Sequence[Counter]
    #: Goes on with another number of places, and with tables for them if there are any.
    change: Callable[[int, Tables | None], bool]
    learning: Learning | None = None
    elastic: Elastic | None = None


class Places:
    """Changes the number of places; a runtime as the loop sees it."""

    def __init__(self, parts: Parts, notice: Callable[[str], None]) -> None:
        self._parts, self._engine, self._notice = parts, parts.engine, notice
        self.sharing = followers(parts.engine.topology)
        #: The version before a change that is not committed yet.
        self._before: int | None = None
        #: A number of places for which tables are being made.
        self._waits: tuple[int, Future[Tables | None]] | None = None
        #: The number that was wanted last, also where there was no room for it.
        self.wished = 0

    @property
    def degrees(self) -> Mapping[str, int]:
        """Degrees in force."""
        return {c.name: c.degree for c in self._engine.plan.topology}

    @property
    def busy(self) -> bool:
        """Whether a change is under way: a batch commits it."""
        if self._before is not None and self._engine.batches.manifest.version > self._before:
            self._before = None
        return self._waits is not None or self._before is not None

    def realise(self, plan: Plan) -> Plan:
        """Change the number of places; keys that occur together get tables that fit, if any."""
        made = [each for each in plan.degrees if each.component in self.sharing and each.changes]
        if not made:
            return plan
        places, learning = made[0].degree, self._parts.learning
        tables = None if learning is None else learning.replan(places)
        if tables is not None:
            self._waits = places, tables
        elif not self._change(places, None):
            return Plan(tuple(refused(each, _STAYS) for each in plan.degrees))
        return plan

    def step(self) -> str:
        """Change the number of places when the tables for it are there; or say why not."""
        if self._waits is None or not self._waits[1].done():
            return ""
        (places, tables), self._waits = self._waits, None
        try:
            return "" if self._change(places, self._made(tables)) else _STAYS
        finally:
            if self._parts.learning is not None:
                self._parts.learning.resume()

    def _made(self, tables: Future[Tables | None]) -> Tables | None:
        """Give the tables that were made, or none: places can change without them."""
        try:
            return tables.result()
        except Exception as error:  # whatever it is, the stream goes on
            self._notice(f"keys that occur together get no tables for other places: {error!r}")
            return None

    def room(self, wanted: Mapping[str, int]) -> tuple[dict[str, int], dict[str, str]]:
        """Let places become more only where there are executors for them."""
        now, slots = self._engine.plan.places, self._engine.anchoring.slots
        self.wished = max((wanted[name] for name in self.sharing), default=now)
        if slots is None or self.wished <= max(now, slots):
            return dict(wanted), {}
        granted = dict(wanted) | dict.fromkeys(self.sharing, max(now, slots))
        return granted, dict.fromkeys(self.sharing, f"there are executors for {slots}")

    def _change(self, places: int, tables: Tables | None) -> bool:
        version = self._engine.batches.manifest.version
        changed = self._parts.change(places, tables)
        self._before = version if changed else None
        return changed


class Scaler:
    """Looks between batches what they were like, and decides about places, executors and rows."""

    def __init__(
        self, how: Scaling, most: int, wanted: float, parts: Parts, listen: Callable[[Event], None]
    ) -> None:
        engine = parts.engine
        self._how, self._wanted, self._parts = how, wanted, parts
        self._places = Places(parts, lambda text: listen(Noticed(text)))
        together, assign = Together(self._places.sharing), Assign(self._places.room)
        nodes = nodes_of(engine.topology, engine.plan.places, most, how)
        if not self._places.sharing:
            listen(Noticed("places stay: every component has a degree of its own"))
        around = Around(shared=[together], below=[] if how.dry_run else [assign])
        self._deciding = Deciding(how, nodes, self._places, around, listen, engine.topology)
        self._sampling = Sampling(self._deciding.period)
        self._tallies, self._pacing = Tallies(engine.topology), Pacing()
        self._ran = 0
        self._rate = 0.0
        self._opened = False
        #: Places for which there should be executors; and for how many lately, with the times.
        self.needed = 0
        self._needs: list[tuple[float, int]] = []
        #: Least seconds between the beginnings of two batches.
        self.interval = 0.0
        #: Least rows for a task that reads what sources gave.
        self.slice_rows = SLICE_ROWS
        self._pace()

    def close(self) -> None:
        """Let the history go."""
        self._deciding.close()

    def lead(self, policy: str, now: float, by: str) -> None:
        """Let another policy decide from now on; one that is not known is refused."""
        period = self._deciding.period
        self._deciding.lead(policy, now, by)
        if self._deciding.period != period:
            self._sampling = Sampling(self._deciding.period)

    def ran(self, done: Done, rows: int, seconds: float) -> None:
        """Take note of a batch with so many rows of sources, and of all the time it took."""
        self._ran += 1
        usual = self._ran > 1 and done.attempts == 1
        ran = Ran(rows, done.manifest.places, seconds, critical(done.notes), usual)
        self._pacing.add(ran)
        model = self._pacing.model
        charge = model.charge(ran, self._wanted) if model else ran.places * ran.work
        self._tallies.add(done.notes, charge)
        if not usual:  # Spark starts its workers, or something went wrong
            self._sampling.skip()
        if rows and not self._how.dry_run:
            cost = entering(done.notes) / rows
            self.slice_rows = max(1, min(SLICE_ROWS, int(_SLICE_SECONDS / max(cost, 1e-9))))

    def failed(self) -> None:
        """Take note of a batch that was given up."""
        self._sampling.skip()

    def look(self, now: float, taken: Entry | None = None) -> None:
        """Look at what waits, and decide if it is time; ``taken`` is for the next batch."""
        if not self._opened:
            self._opened = True
            self._deciding.open(now)
        if why := self._places.step():
            self._deciding.given_up(now, why)
        if now >= self._sampling.due:
            self._sample(now, taken)
        self._pace()

    def _sample(self, now: float, taken: Entry | None) -> None:
        marks = self._tallies.marks(self._sources(taken), self._parts.sinks)
        samples = self._sampling.take(now, marks, self._places.degrees)
        if not samples:
            return
        at = samples[-1].time  # what has been done since then is for the next sample
        wished, self._places.wished = self._places.wished, 0
        self._deciding.decide(at, samples)
        view = self._deciding.view(at)
        if any(unready(view, node) for node in view.scalable):  # nobody was asked
            self._places.wished = max(wished, self._places.wished)
        self._foresee(view)

    def _sources(self, taken: Entry | None) -> Sources:
        """Say what spouts hold back, and what is logged and does not fit into the next batch."""
        pump, queued = self._parts.pump, dict[str, int]()
        for entry in pump.pending():
            part = self._excess(entry) if entry is taken else 1.0
            for segment in entry.segments:
                before = queued.get(segment.component, 0)
                queued[segment.component] = before + round(part * segment.rows)
        return Sources(pump.sent, pump.backlog(), queued)

    def _excess(self, entry: Entry) -> float:
        """Give the part of a batch that will be done after the time that it should take."""
        most = self._parts.pump.most_rows
        return max(0.0, 1 - most / entry.rows) if most and entry.rows else 0.0

    def _foresee(self, view: View) -> None:
        """Say what will be needed when executors that are asked for now have come."""
        if self._how.dry_run:
            return
        elastic = self._parts.elastic
        later = 0 if elastic is None else foreseen(view, elastic.starting)
        if not later:  # too little is known
            later = self.needed
        needed = max(self._parts.engine.plan.places, self._places.wished, later)
        # What is given back is not soon there again.
        self._needs = [(t, n) for t, n in self._needs if t > view.now - view.delta]
        self._needs.append((view.now, needed))
        self.needed = max(n for _, n in self._needs)
        sources = [view.history.get(node.name, ()) for node in view.nodes if node.is_source]
        rates = [[s.received / view.period for s in samples] for samples in sources]
        self._rate = sum(outlook(each, 1).rate for each in rates)

    def _pace(self) -> None:
        """Give batches as many rows as they can do in the time that they should take."""
        if self._how.dry_run:
            return
        places, model = self._parts.engine.plan.places, self._pacing.model
        if model is None:
            self._parts.pump.most_rows = _FIRST_ROWS * places
            return
        self._parts.pump.most_rows = model.rows(places, self._wanted)
        self.interval = model.interval(places, self._rate, self._wanted)
