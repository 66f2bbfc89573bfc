"""How many executors a run needs: some are asked for, others are given back when they are empty.

>>> three = [Executor("0", "a", 1), Executor("1", "b", 1), Executor("2", "c", 1)]
>>> staff_for(2, three, held=["a", "b"]).leaving
(Executor(id='2', host='c', slots=1),)
>>> staff_for(5, three, held=["a", "b", "c", "a", "b"]).total
5
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import ceil

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from thalweg.clock import Clock
from thalweg.runtimes.spark.anchoring import Anchoring, executors_elsewhere
from thalweg.runtimes.spark.exchange import ask_for, release
from thalweg.runtimes.spark.placement import Executor, typical
from thalweg.runtimes.spark.settings import SparkSettings
from thalweg.runtimes.spark.warming import Warming
from thalweg.statelog.manifests import Manifest

#: Seconds that executors take to come, until some have.
_STARTING = 10.0


@dataclass(frozen=True)
class Staff:
    """The executors that a run needs."""

    #: How many the cluster manager is to keep.
    total: int
    #: Those that are not needed.
    leaving: tuple[Executor, ...] = ()


def staff_for(
    places: int,
    executors: Sequence[Executor],
    held: Sequence[str],
    avoided: Collection[str] = (),
) -> Staff:
    """Decide who is needed, so that there is a slot for each place on hosts that are not avoided.

    ``held`` is the host of each place. Whoever is on avoided hosts goes once the others are enough;
    after that those go whose hosts hold the fewest places.
    """
    usable = [executor for executor in executors if executor.host not in avoided]
    spare = sum(executor.slots for executor in usable) - places
    if spare < 0:
        more = ceil(-spare / typical(executor.slots for executor in executors))
        return Staff(len(executors) + more)
    leaving = [executor for executor in executors if executor.host in avoided]
    held_by = Counter(held)
    for executor in sorted(usable, key=lambda e: (held_by[e.host], e.host, e.id)):
        if executor.slots <= spare:
            leaving.append(executor)
            spare -= executor.slots
    return Staff(len(executors) - len(leaving), tuple(leaving))


def emptied(executors: Sequence[Executor], leaving: Sequence[Executor]) -> frozenset[str]:
    """Name the hosts of which all executors leave.

    >>> a0, a1, b = Executor("0", "a", 1), Executor("1", "a", 1), Executor("2", "b", 1)
    >>> sorted(emptied([a0, a1, b], [a0, b]))
    ['b']
    """
    stay = {executor.host for executor in executors if executor not in leaving}
    return frozenset(executor.host for executor in leaving) - stay


def elastic(
    settings: SparkSettings,
    context: SparkContext,
    anchoring: Anchoring,
    notice: Callable[[str], None],
) -> Elastic | None:
    """Give what asks for executors and gives them back; None where that is not wanted or not done.

    A notice says why it is not done.
    """
    if settings.executors == "fixed":
        return None
    stay = "executors stay as they are: "
    if not executors_elsewhere(context.master or "local"):
        notice(f"{stay}Spark at {context.master} has none besides the driver")
        return None
    if context.getConf().get("spark.dynamicAllocation.enabled") == "true":
        notice(f"{stay}spark.dynamicAllocation.enabled lets Spark decide about them")
        return None
    if settings.scales is None:  # places are changed by hand, and need not wait
        return Elastic(context, anchoring, notice, settings.clock)
    warming = Warming(context)
    anchoring.cold = warming.cold
    return Elastic(context, anchoring, notice, settings.clock, warming)


class Elastic:
    """Has as many executors as the places of a run need, as far as the cluster manager has them.

    Places leave a host first; when a batch without it is committed, its executors are given back.
    """

    def __init__(
        self,
        context: SparkContext,
        anchoring: Anchoring,
        notice: Callable[[str], None],
        clock: Clock,
        warming: Warming | None = None,
    ) -> None:
        self._context, self._anchoring, self._notice = context, anchoring, notice
        self._clock, self._warming = clock, warming
        self._asked: int | None = None
        #: When more were asked for than there are; None when all have come.
        self._since: float | None = None
        #: Seconds from asking for executors until they are there, as far as is known.
        self.starting = _STARTING

    def after(self, committed: Manifest, needed: int = 0) -> None:
        """Look what is needed after a batch; takes no time while nothing changes.

        ``needed`` is the number of places for which there should be executors, if it is larger
        than that of the batch: they are asked for before places need them.
        """
        executors = self._anchoring.executors
        if not executors:
            return
        self._time(len(executors))
        places = max(needed, committed.places)
        staff = staff_for(places, executors, committed.hosts, self._anchoring.avoided)
        leaving = emptied(executors, staff.leaving)
        self._anchoring.leave(leaving)
        if leaving & set(committed.hosts):
            return
        try:
            if self._ask(staff.total, len(executors)):
                self._release(staff.leaving)
        except (Py4JError, PySparkException) as error:
            line = str(error).partition("\n")[0]
            self._notice(f"executors stay as they are: {line}")

    def _ask(self, total: int, there: int) -> bool:
        """Tell how many are needed, if that is news; False when nobody has heard it."""
        if total == self._asked:
            return True
        reached = ask_for(self._context, total)
        self._asked = total if reached else None
        self._since = self._clock.now() if total > there and reached else None
        if self._warming is not None:
            self._warming.expect(total, self._anchoring.executors)
        if total > there and reached:
            self._notice(f"asked for {total} executors; there are {there}")
        return reached

    def close(self) -> None:
        """Stop looking for executors that have not come."""
        if self._warming is not None:
            self._warming.close()

    def _time(self, there: int) -> None:
        """Learn how long executors take to come."""
        if self._since is not None and self._asked is not None and there >= self._asked:
            self.starting, self._since = self._clock.now() - self._since, None

    def _release(self, leaving: Sequence[Executor]) -> None:
        """Give executors back; those that are at work for somebody else are tried again later."""
        if not leaving:
            return
        gone = release(self._context, [executor.id for executor in leaving])
        self._anchoring.gone(gone)
        hosts = sorted(executor.host for executor in leaving if executor.id in gone)
        if hosts:
            self._notice(f"gave back executors on {', '.join(hosts)}")
