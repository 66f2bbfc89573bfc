"""What runs the batches of a run: its plan and program, its state, and what keeps that in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pyspark import SparkContext

from thalweg.errors import ThalwegError
from thalweg.runtimes.spark.anchoring import Anchoring
from thalweg.runtimes.spark.batches import Batches
from thalweg.runtimes.spark.housekeeping import Housekeeping
from thalweg.runtimes.spark.marks import marks_of
from thalweg.runtimes.spark.planning import Plan, make_plan
from thalweg.runtimes.spark.pools import use_pool
from thalweg.runtimes.spark.program import Program, Shipped, digest, for_workers
from thalweg.runtimes.spark.segments import SegmentLog
from thalweg.runtimes.spark.settings import SparkSettings
from thalweg.runtimes.spark.shipping import pack
from thalweg.runtimes.spark.starting import begin_with, spread
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifest, Manifests
from thalweg.topology import Topology


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
        self._context, self._settings, self._topology = context, settings, topology
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
        )

    def rebalance(self, places: int) -> bool:
        """Go on with another number of places, between two batches; False when state cannot move.

        Nothing is committed by that: the next batch does it.
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
        batches.program, batches.shipped, batches.manifest = program, shipped, manifest
        self.plan = plan
        last.destroy()
        return True

    def close(self) -> None:
        """Wait for what goes on beside the batches, and let go of everything."""
        self.housekeeping.close()
        self.anchoring.close()
        self._sent.destroy()

    def _plan(self, places: int) -> Plan:
        return make_plan(self._topology, places, self._settings.fuse, self._settings.shorten)

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
