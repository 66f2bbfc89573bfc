"""What runs the batches of a run: its plan and program, its state, and what keeps that in order."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from thalweg.control.rerouting import Cost, Rerouting, Tables
from thalweg.errors import ThalwegError, UsageError, explain
from thalweg.migration.plan import Plan as MovePlan
from thalweg.migration.plan import plan_moves
from thalweg.routing.table import RoutingTable, check_places
from thalweg.routing.table_file import read_table_file
from thalweg.routing.transition import Transition
from thalweg.runtimes.failpoints import hit
from thalweg.runtimes.marks import marks_of
from thalweg.runtimes.segments import SegmentLog
from thalweg.runtimes.shipping import pack
from thalweg.runtimes.spark.anchoring import Anchoring
from thalweg.runtimes.spark.batches import Batches
from thalweg.runtimes.spark.housekeeping import Housekeeping
from thalweg.runtimes.spark.planning import Plan, make_plan
from thalweg.runtimes.spark.pools import use_pool
from thalweg.runtimes.spark.program import Program, Shipped, digest, for_workers
from thalweg.runtimes.spark.settings import SparkSettings
from thalweg.runtimes.spark.side_tables import SideTables
from thalweg.runtimes.spark.starting import begin_with, spread
from thalweg.runtimes.spark.tabled import Tabled
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifest, Manifests
from thalweg.statelog.tables import load_tables, save_tables
from thalweg.topology import Topology

#: Seconds that the end of a run waits for executors.
_PATIENCE = 10.0


@dataclass(frozen=True)
class Prepared:
    """New tables, saved and sent."""

    plan: MovePlan
    places: int
    #: Name of the tables that they are made from.
    instead_of: str | None
    tabled: Tabled


class Engine:
    """Plans a topology for some places, and runs its batches there."""

    def __init__(
        self,
        context: SparkContext,
        settings: SparkSettings,
        topology: Topology,
        location: Location,
        given: Mapping[str, str],
        notice: Callable[[str], None],
    ) -> None:
        self._context, self._settings = context, settings
        #: As it was described: degrees that nobody chose are open.
        self.topology = topology
        self._location, self._given, self._notice = location, given, notice
        # Without a number of places a run goes on with that of the last one.
        last = None if settings.places else Manifests(location).latest()
        known = settings.places or (last.places if last else None)
        self.plan = self._plan(known or context.defaultParallelism)
        self._sent: Any = None

    def begin(self, log: SegmentLog, pool: str) -> None:
        """Take up the last version of the state, or begin without; jobs go into a pool."""
        manifests = Manifests(self._location)
        manifest = begin_with(manifests, self.plan, self._settings, self._notice)
        program, shipped = self._ship(self.plan, manifest)
        tabled = self._tabled(manifest, manifest.places)
        self.anchoring = Anchoring(
            self._context, self._settings.placing, self._notice, manifest.hosts
        )
        use = partial(use_pool, self._context, pool)
        self.housekeeping = Housekeeping(
            self._context, shipped, manifests, log, self._notice, in_thread=use
        )
        self.batches = Batches(
            context=self._context,
            program=program,
            shipped=shipped,
            manifests=manifests,
            manifest=manifest,
            retries=self._settings.retries,
            notice=self._notice,
            anchoring=self.anchoring,
            adopt=self.housekeeping.adopt,
            side_tables=SideTables(self._context, self.topology, self._notice),
        )
        self._use(tabled)
        if self._settings.table is not None:
            self._read_table(self._settings.table)

    def rebalance(self, places: int, tables: Tables | None = None) -> bool:
        """Go on with another number of places, between two batches; False when state cannot move.

        Nothing is committed by that: the next batch does it. ``tables`` are for the new places;
        since every place reads its keys anew, they cost no more moves.
        """
        batches, last = self.batches, self._sent
        try:
            plan = self._plan(places)
            manifest = spread(batches.manifest, plan, self._notice)
        except ThalwegError as error:
            self._notice(f"places stay {self.plan.places}: {error}")
            return False
        program, shipped = self._ship(plan, manifest)
        self.housekeeping.use(shipped)
        batches.program, batches.shipped = program, shipped
        self._use(self._tabled(batches.manifest, places, tables))
        batches.manifest = manifest
        self.plan = plan
        last.destroy()
        return True

    def reroute(self, wanted: Rerouting) -> MovePlan:
        """Give keys other places from the next batch on."""
        prepared = self.prepare(wanted)
        self.use(prepared)
        return prepared.plan

    def prepare(self, wanted: Rerouting) -> Prepared:
        """Plan how keys get other places, and save that; nothing changes yet.

        Keys will move with the batches that follow, in steps; components that are not named go on
        as they do. It may take its time, beside the batches.
        """
        batches = self.batches
        if batches.tabled is not None and batches.tabled.pending:
            hint = "wait until the batches that follow have moved them"
            raise UsageError(explain("reroute", "", "no keys on their way", "some", hint))
        unknown = sorted(set(wanted.tables) - batches.program.links.movable)
        if unknown:
            expected = f"some of {sorted(batches.program.links.movable)}"
            hint = "keyed components with fields(...) and as many tasks as places"
            raise UsageError(explain("reroute", "", expected, f"{unknown}", hint))
        old = self.tables()
        new = {**old, **wanted.tables}
        for name in wanted.tables:
            check_places(name, new[name], self.plan.places)
        held = {name: wanted.costs.get(name, Cost()).held(old[name], new[name]) for name in new}
        plan = plan_moves(old, new, held, wanted.budget)
        steps = [plan.step(number) for number in range(plan.steps)]
        moved = [{name: moves.hashes for name, moves in step.items()} for step in steps]
        transition = Transition.between(old, new, moved)
        ref = save_tables(self._location, transition, batches.manifest.version + 1)
        hit("after tables")
        return Prepared(
            plan,
            self.plan.places,
            _name(batches.tabled),
            Tabled.send(self._context, ref, transition),
        )

    def use(self, prepared: Prepared) -> bool:
        """Begin to move keys with the next batch; False when they have got other places since."""
        now = self.batches.tabled
        same = prepared.places == self.plan.places and prepared.instead_of == _name(now)
        if not same or (now is not None and now.pending):
            return False
        self._use(prepared.tabled)
        return True

    def _read_table(self, path: str) -> None:
        """Begin with the places that a file has for keys; a state that knows better goes on so."""
        if self.batches.tabled is not None:
            self._notice(f"the state has places for single keys already; {path} is not used")
            return
        file, places = read_table_file(path), self.plan.places
        if file.places != places:
            hint = f"run with --places {file.places}, or analyze for {places}"
            got = f"{file.places}"
            raise UsageError(explain(f"table file {path!r}", "", f"{places} places", got, hint))
        found = {}
        for name in sorted(self.batches.program.links.movable):
            key = self.topology.component(name).inputs[0].key
            if len(key) == 1 and key[0] in file.fields:
                found[name] = file.table(key[0], self._settings.key_groups)
        if not found:
            expected = f"a field that a keyed component has as its key, of {sorted(file.fields)}"
            raise UsageError(explain(f"table file {path!r}", "", expected, "none in the topology"))
        self.reroute(Rerouting(found))

    def tables(self) -> dict[str, RoutingTable]:
        """Give the routing tables of the components whose keys may have places of their own."""
        program, tabled = self.batches.program, self.batches.tabled
        known = set(tabled.tables()) if tabled is not None else set()
        return {name: program.table(name, tabled) for name in sorted(program.links.movable | known)}

    def _use(self, tabled: Tabled | None) -> None:
        self.batches.tabled = self.housekeeping.tabled = tabled

    def fitting(self, places: int) -> dict[str, RoutingTable]:
        """Give tables for another number of places, with those of the single keys that still fit.

        All other keys are spread evenly.
        """
        return self._fitting(self.tables(), places)

    def _fitting(self, tables: Tables, places: int) -> dict[str, RoutingTable]:
        even, kept = RoutingTable.even(places, self._settings.key_groups), {}
        for name, table in tables.items():
            fit = table.key_places < places
            kept[name] = even.with_hashes(table.hashes[fit], table.key_places[fit])
        return kept

    def _tabled(
        self, manifest: Manifest, places: int, tables: Tables | None = None
    ) -> Tabled | None:
        """Send the tables of a version; with other places those given, or what still fits."""
        kept: dict[str, RoutingTable] = {}
        if manifest.tables is not None:
            transition = load_tables(self._location, manifest.tables)
            if transition.places == places:
                return Tabled.send(self._context, manifest.tables, transition)
            kept = self._fitting(transition.tables(manifest.tables.step), places)
        kept |= tables or {}
        if not kept:
            return None
        fitting = Transition.between(kept, kept)
        ref = save_tables(self._location, fitting, manifest.version + 1)
        return Tabled.send(self._context, ref, fitting)

    def close(self) -> None:
        """Wait for what goes on beside the batches, and let go of everything."""
        self.housekeeping.close()
        # Executors are asked to let go too, and Spark complains of answers that come when its
        # session was stopped. One that cannot be reached does not answer at all.
        going = threading.Thread(target=self._let_go, name="thalweg-letting-go", daemon=True)
        going.start()
        going.join(_PATIENCE)

    def _let_go(self) -> None:
        self.anchoring.close(wait=True)
        with contextlib.suppress(Py4JError):  # the session may be gone
            self._sent.destroy(blocking=True)

    def _plan(self, places: int) -> Plan:
        return make_plan(self.topology, places, self._settings.fuse, self._settings.shorten)

    def _ship(self, plan: Plan, manifest: Manifest) -> tuple[Program, Shipped]:
        """Send workers what they need to run a plan on the state of a manifest."""
        program = Program(
            plan=for_workers(plan),
            location=self._location,
            settings=dict(self._given),
            key_groups=self._settings.key_groups,
            limits=self._settings.limits,
            marks={**manifest.topology, **marks_of(plan.topology)},
            driver=self._context.getConf().get("spark.driver.host") or "localhost",
        )
        packed = pack(program)
        self._sent = self._context.broadcast(packed)
        return program, Shipped(digest(packed), self._sent)


def _name(tabled: Tabled | None) -> str | None:
    return None if tabled is None else tabled.ref.name
