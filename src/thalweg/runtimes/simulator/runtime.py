"""The simulator: a staged topology on machines, in virtual time, under a policy.

Time goes from sample to sample. Between two samples nothing is decided, so each stage is computed
exactly and at once, in topological order: what it gets, when each tuple starts and ends at its
task, and what it sends. Shares of cores and links are those that the period before would have
asked for. At a sample the policy decides, and changes cost the changed stage a pause.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from thalweg.connectors.profiles import Profile
from thalweg.control.assigning import Moved, Triggers
from thalweg.control.loop import Loop, Plan, Step
from thalweg.control.scaling.monitor import Monitor
from thalweg.control.scaling.values import Decision, Node, Policy, Sample, Stream
from thalweg.control.steps import Assign, Learn, Replicate, Share
from thalweg.errors import UsageError, explain
from thalweg.placement.greedy import Strategy
from thalweg.placement.values import Machine
from thalweg.routing.load_aware import OsgSettings
from thalweg.runtimes.simulator.arrivals import Arrivals
from thalweg.runtimes.simulator.cluster import Cluster
from thalweg.runtimes.simulator.fifo import Floats, Ints
from thalweg.runtimes.simulator.holding import Held, Sent
from thalweg.runtimes.simulator.links import Links
from thalweg.runtimes.simulator.outcome import Applied, Degrees, Outcome, Recorder
from thalweg.runtimes.simulator.roots import Judged, Roots
from thalweg.runtimes.simulator.rows import Rows
from thalweg.runtimes.simulator.splitting import AtRandom, InTurns
from thalweg.runtimes.simulator.stations import Rules, Station
from thalweg.workloads.stages import Law, Staged

_NOBODY = np.empty(0, np.int64)


@dataclass(frozen=True)
class Simulator:
    """What the simulated world is like; ``run`` lets a topology run in it.

    >>> from thalweg.connectors.profiles import constant
    >>> from thalweg.control.scaling.static import Static
    >>> from thalweg.workloads.elastic import linear
    >>> world = Simulator((Machine("m0"), Machine("m1")))
    >>> outcome = world.run(linear(), constant(5, "2 minutes"), Law(), Static())
    >>> outcome.late, outcome.emitted == outcome.in_time + outcome.pending
    (0, True)
    """

    machines: tuple[Machine, ...]
    #: Seconds after which a tuple is late, and how often the source emits a late one again.
    timeout: float = 30.0
    replays: int = 0
    #: Seconds after which no stage begins with a tuple any more, and it is lost. None for never, as
    #: in Storm: what is late is processed all the same, though it helps nobody.
    skip: float | None = None
    #: Seconds for which the tasks of a stage rest when its degree changes. The document says only
    #: that queues migrate, and that tasks start and stop; Storm's workers take about 10 s for that.
    pause: float = 10.0
    #: Whether what waits is then spread over all tasks of the stage. If not, only what waits for
    #: tasks that go is moved, as the document says of its queues.
    spread: bool = True
    #: Tuples that may wait at a task; those that find more are dropped. None for no limit.
    queue: int | None = None
    #: Seconds between two machines.
    latency: float = 0.001
    #: Relative deviation of the input rate from one period to the next.
    noise: float = 0.05
    #: Whether tuples come at random (a Poisson process) and take streams at random, not evenly.
    bursty: bool = False
    seed: int = 0
    strategy: Strategy = "resource"
    #: Tasks that all stages may have together, or "units" for one on each core of the machines;
    #: None for as many as there are places for, where several stages may share a core.
    slots: int | Literal["units"] | None = None
    #: Whether what tasks were seen to use takes the place of what they reserve, for policies and
    #: for placing. The published experiments go by what is declared.
    learns: bool = False
    #: When tasks get other units though no degree changes; those that move rest for a pause.
    assigning: Triggers = field(default_factory=Triggers)
    #: A look every 128 tuples: at tens of tuples per second, 1024 would take minutes.
    osg: OsgSettings = field(default_factory=lambda: OsgSettings(every=128))

    @property
    def tasks(self) -> int | None:
        """Tasks that all stages may have together; None for no limit."""
        if self.slots == "units":
            return sum(machine.cores for machine in self.machines)
        return self.slots

    def run(
        self,
        topology: Staged,
        profile: Profile,
        law: Law,
        policy: Policy,
        degrees: Mapping[str, int] | None = None,
    ) -> Outcome:
        """Run a topology for as long as the profile says; without ``degrees``, one task each."""
        if not math.isfinite(profile.end):
            raise UsageError(explain("simulation", "", "a profile that ends", repr(profile)))
        running = _Running(self, topology, policy, {**topology.minimal, **(degrees or {})})
        return running.run(Arrivals(profile, law, self), profile.end)


def nodes_of(topology: Staged) -> list[Node]:
    """Describe a topology to policies; a stream is named after its reader."""
    stages = [
        Node(
            stage.name,
            tuple(Stream(reads.sender, stage.name) for reads in stage.reads),
            most=stage.most,
            reserved=stage.need.cpu,
            priority=stage.priority,
            window=stage.window,
        )
        for stage in topology
    ]
    return [Node(topology.source), *stages]


class _Running:
    """One run."""

    def __init__(
        self, settings: Simulator, topology: Staged, policy: Policy, degrees: dict[str, int]
    ) -> None:
        self._settings = settings
        self._topology = topology
        self._period = policy.timing.period
        self._roots = Roots(settings.timeout)
        self._record = Recorder(self._period)
        self._stations = {
            stage.name: Station(stage, degrees[stage.name], topology.values, settings.osg)
            for stage in topology
        }
        self._cluster = Cluster(settings, topology, self._stations)
        self._held = {stage.name: Held(stage.window) for stage in topology if stage.window}
        names = [topology.source, *self._stations]
        #: Who reads whom: (number of the stream, station, what it reads).
        streams = [(name, *reader) for name in names for reader in topology.readers(name)]
        self._streams = [f"{name} -> {stage.name}" for name, stage, _ in streams]
        self._readers = {
            name: [
                (number, self._stations[stage.name], reads)
                for number, (sender, stage, reads) in enumerate(streams)
                if sender == name
            ]
            for name in names
        }
        self._links = Links(settings.machines, len(streams), settings.latency)
        self._split = AtRandom() if settings.bursty else InTurns()
        nodes = nodes_of(topology)
        # The source is on no machine, and counts as a task.
        slots = None if settings.tasks is None else settings.tasks + 1
        monitor = Monitor(nodes, policy.timing, slots=slots, machines=len(settings.machines))
        first: list[Step] = [Learn()] if settings.learns else []
        triggers = settings.assigning
        assign = Assign(self._place, self._cluster.move, triggers)
        self._loop = Loop(monitor, (*first, Replicate(policy, triggers.link), Share(), assign))
        self._now = 0.0
        self._replays = Judged(np.empty(0), _NOBODY, _NOBODY, 0, 0)
        #: Tuples of this period: sent by stage and stream, and born at the source.
        self._emitted: dict[str, dict[str, int]] = {}
        self._born = 0

    def run(self, arrivals: Arrivals, end: float) -> Outcome:
        for step in range(math.ceil(end / self._period)):
            begin, now = step * self._period, (step + 1) * self._period
            took = [self._emit(arrivals, begin, now)]
            shares = self._cluster.shares()
            for name, station in self._stations.items():
                took.append(self._serve(station, now, shares[name]))
            self._links.next_period(now, self._period)
            samples = self._look(now, took)
            self._now = now
            self._loop.turn(now, samples, self)
        links = dict(zip(self._streams, self._links.use.tolist(), strict=True))
        return self._record.outcome(self._roots.count, self._roots.left(), links)

    # --- tuples ------------------------------------------------------------------------------

    def _emit(self, arrivals: Arrivals, begin: float, end: float) -> Floats:
        """Let the source emit what is new, and what was late."""
        times, values = arrivals.between(begin, end)
        again = self._replays
        # The source looks once a period, so a replay follows one period after the time limit.
        late = again.born + self._settings.timeout + self._period
        born = np.concatenate((times, np.clip(late, begin, end)))
        order = np.argsort(born, kind="stable")
        values = np.concatenate((values, again.values))[order]
        tries = np.concatenate((np.zeros(len(times), np.int64), again.tries + 1))[order]
        roots = self._roots.add(born[order], values, tries)
        self._born = len(roots)
        return self._send(self._topology.source, None, Sent(born[order], roots, values))

    def _serve(self, station: Station, end: float, shares: Floats) -> Floats:
        settings = self._settings
        rules = Rules(settings.queue, settings.skip, self._roots.born)
        served = station.serve(end, shares, rules)
        self._roots.drop(served.dropped.roots)
        rows = served.rows
        order = np.argsort(served.ends, kind="stable")
        sent = Sent(served.ends[order], rows.roots[order], rows.values[order])
        machines = station.machines[rows.tasks[order]]
        if station.stage.window:
            sent, machines = self._held[station.stage.name].released(sent, machines, end)
        return self._send(station.stage.name, machines, sent)

    def _send(self, name: str, machines: Ints | None, rows: Sent) -> Floats:
        """Send what ended to all who read its stage; the source is on no machine.

        Gives the seconds that those tuples of the source took of which nothing is open any more.
        """
        draws, made = self._split.draws(name, rows.roots), np.zeros(len(rows.roots), np.int64)
        self._emitted[name] = {}
        for number, station, reads in self._readers[name]:
            low, high = reads.portion
            taken = (draws >= low) & (draws < high)
            made += taken
            tasks = station.balancer.assign(rows.values[taken])
            arrive = rows.times[taken]
            if machines is None:
                arrive = arrive + self._settings.latency
            else:
                here = machines[taken]
                remote = here != station.machines[tasks]
                arrive = self._links.travel(number, here, arrive, remote, reads.size)
            station.deliver(Rows(arrive, rows.roots[taken], rows.values[taken], tasks))
            self._emitted[name][station.stage.name] = len(tasks)
        return self._roots.step(rows.roots, rows.times, made)

    # --- looking and deciding ----------------------------------------------------------------

    def _look(self, now: float, took: list[Floats]) -> list[Sample]:
        """Give samples, and take note of what happened."""
        judged = self._roots.judge(now)
        again = judged.tries < self._settings.replays
        self._replays = replace(
            judged, born=judged.born[again], values=judged.values[again], tries=judged.tries[again]
        )
        self._record.in_time += judged.in_time
        self._record.late += judged.late
        source, born = self._topology.source, self._born
        samples = [
            Sample(source, now, 1, born, born, self._emitted[source], lost=judged.late),
            *self._cluster.samples(now, self._period, self._emitted, self._record),
        ]
        self._record.moment(now, born, took, self._in_force())
        return [replace(each, links=self._filled(each.component)) for each in samples]

    def _filled(self, name: str) -> dict[str, float]:
        """Say how full the links of a stage's streams are; nothing where none is narrow."""
        use = self._links.now.tolist()
        filled = {station.stage.name: use[number] for number, station, _ in self._readers[name]}
        return {reader: part for reader, part in filled.items() if part}

    def _in_force(self) -> Degrees:
        stations = self._stations.values()
        return Degrees(
            {name: station.degree for name, station in self._stations.items()},
            sum(station.degree * station.stage.need.cpu for station in stations),
            self._cluster.busy_machines,
            {name: station.pending for name, station in self._stations.items()},
        )

    @property
    def degrees(self) -> Mapping[str, int]:
        """Degrees in force."""
        stations = self._stations.items()
        return {self._topology.source: 1} | {name: each.degree for name, each in stations}

    @property
    def busy(self) -> bool:
        """Nothing is ever under way between two periods."""
        return False

    def realise(self, plan: Plan) -> Plan:
        """Change the degrees for which there is room."""
        wanted = {made.component for made in plan.of(Decision) if made.changes}
        for made in plan.degrees:
            if made.component in wanted:
                refused = "" if made.changes else made.reason
                self._record.applied.append(Applied(self._now, made, refused))
            if made.changes:
                station = self._stations[made.component]
                settings = self._settings
                station.rescale(made.degree, self._now, settings.pause, settings.spread)
        for each in plan.of(Moved):
            self._move(each)
        self._cluster.assign()
        return plan

    def _move(self, made: Moved) -> None:
        """Give tasks other units; those of them that move rest."""
        self._record.moves.append((self._now, made))
        self._cluster.moved(made.units)
        for component in made.components:
            tasks = [task.index for task in made.units if task.component == component]
            self._stations[component].rest(tasks, self._now + self._settings.pause)

    def _place(self, degrees: Mapping[str, int]) -> tuple[Mapping[str, int], Mapping[str, str]]:
        """Find units for the tasks of all stages."""
        return self._cluster.place({name: degrees[name] for name in self._stations})
