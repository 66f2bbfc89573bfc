"""Time comes behind what was sent before it, also while tasks come and go, and keys move."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from delaying import delayed

import thalweg as tw
from conformance.moving import Anywhere, Restless
from thalweg.blocks import Block, Origin
from thalweg.components import Bolt
from thalweg.events import Event, Reconfigured
from thalweg.execution import Run
from thalweg.routing.load_router import balanced_router
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.local.building import Built, add_tasks, build
from thalweg.runtimes.local.flights import Flights
from thalweg.runtimes.local.links import Wiring
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.local.settings import Settings
from thalweg.runtimes.local.units import Special

FIELDS = {"at": int, "user": str}
USERS = "abcdefgh"
WAYS: dict[str, dict[str, Any]] = {
    "workers": {"workers": 3},
    "one worker": {"workers": 1},
    "executors": {"assigning": "executors"},
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def windows(rows: Any, seen: list[Any], size: int = 2, **options: Any) -> tw.Topology:
    """Count clicks of each user; tuples come in the order of time."""
    flow = tw.Flow("windows")
    stream = flow.source("clicks", tw.items(rows), fields=FIELDS, time="at")
    counts = (
        stream.key_by("user")
        .window(tw.tumbling(size))
        .aggregate("count", n=tw.agg.count(), **options)
    )
    counts.sink("out", tw.call(lambda t: seen.append((t.start.second, t.user, t.n))))
    return flow.build()


# --- what waits for one task, which becomes several ------------------------------------------


def built(times: dict[str, int]) -> Built:
    nobody = [lambda *_: None] * 3
    wiring = Wiring(Flights(8, lambda *_: None), {}, *nobody, now=lambda: 0.0)
    run = Run(steering=tw.Steering())
    return build(Settings(workers=1), windows([], []), run, wiring, watermarks=times)


def arrive(operator: Operator, number: int, users: str) -> None:
    batch = pa.record_batch({"at": [number] * len(users), "user": list(users)})
    operator.arrive(number, operator.inputs[0], [Block.of(batch, Origin("clicks"), 10 * number)])


def waiting(operator: Operator) -> dict[int, list[Any]]:
    """Give what waits for each task: units with their users, or with the time."""
    found: dict[int, list[Any]] = {}
    while (taken := operator.worklist.take(0, 1 << 30)) is not None:
        found[taken.bucket] = [
            (item.unit and item.unit.number, "time" if item.special else item.block.values("user"))
            for item in taken.items
        ]
    return found


def test_what_came_before_the_time_stays_in_front_of_it() -> None:
    made = built({})
    operator = made.operator("count")
    arrive(operator, 0, USERS)
    operator.begin_special(1, Special("count", 0, "advance", 10, time=5))
    arrive(operator, 2, USERS)
    add_tasks(made, operator, 2)
    operator.resize(2, None)
    table, back = RoutingTable.even(2), operator.take_back()
    operator.use(2, [balanced_router(operator.component.inputs[0].grouping, table, None)])
    operator.route_again(back)
    found = waiting(operator)
    assert found[0][:2] == [(0, list(USERS)), (1, "time")]
    split = [users for bucket in (0, 1) for number, users in found[bucket] if number == 2]
    assert len(split) == 2
    assert sorted(user for users in split for user in users) == list(USERS)


def test_a_task_that_is_added_begins_with_the_time_that_others_were_told() -> None:
    times: dict[str, int] = {}
    made = built(times)
    times["count"] = 5
    (task,) = add_tasks(made, made.operator("count"), 2)
    assert task.context.watermark == 5


# --- while a topology runs -------------------------------------------------------------------


class Widened:
    """Gives clicks, then lets the windows have more tasks, then gives clicks that are late."""

    def __init__(self, degree: int) -> None:
        self.steering, self.events, self.degree = tw.Steering(), list[Event](), degree

    def rows(self) -> Iterator[tuple[int, str]]:
        yield from ((0, user) for user in USERS)
        yield (50, "z")
        self.steering.rebalance("count", self.degree)
        while not any(isinstance(event, Reconfigured) for event in self.events):
            yield (50, "z")
        yield from ((1, user) for user in USERS)


LATE_WAYS = [*((way, {}) for way in WAYS.values()), ({"workers": 2}, {"isolation": "process"})]


@pytest.mark.parametrize(("way", "options"), LATE_WAYS, ids=[*WAYS, "processes"])
def test_what_is_late_for_one_task_is_late_for_a_new_one(
    way: dict[str, Any], options: dict[str, Any]
) -> None:
    source, seen = Widened(2 if options else 4), list[Any]()
    made = windows(source.rows, seen, degree=1, **options)
    local = tw.Local(block_rows=1, most_block_rows=1, window=4, **way)
    made.run(on=local, steering=source.steering, listen=source.events.append)
    assert sorted(row for row in seen if row[1] != "z") == [(0, user, 1) for user in USERS]


def in_order(seed: int) -> list[tuple[int, str]]:
    """Make clicks of which each moves time on, or not."""
    chance, now, rows = random.Random(seed), 0, list[tuple[int, str]]()
    for _ in range(120):
        now += chance.choice([0, 0, 1, 1, 3])
        rows.append((now, chance.choice(USERS)))
    return [(at, user) for at, user in rows if at < 60]


def expected(rows: list[tuple[int, str]], size: int) -> Counter[Any]:
    counts = Counter((at // size * size, user) for at, user in rows)
    return Counter((start, user, n) for (start, user), n in counts.items())


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(20))
@every_way
def test_windows_are_whole_while_degrees_change(way: dict[str, Any], seed: int) -> None:
    rows, seen = in_order(seed), list[Any]()
    made = windows(rows, seen)
    chance = random.Random(seed)
    local = tw.Local(
        block_rows=chance.randint(1, 3),
        most_block_rows=3,
        window=chance.choice((3, 8, 50)),
        **delayed(seed),
        **way,
    )
    made.run(on=local, steering=Restless(made, seed, times=30))
    assert Counter(seen) == expected(rows, 2)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(10))
def test_windows_are_whole_while_keys_move(seed: int) -> None:
    rows, seen = in_order(seed), list[Any]()
    made = windows(rows, seen, degree=3)
    moving = Anywhere({"clicks": rows}, seed)
    local = tw.Local(
        block_rows=2, most_block_rows=2, window=8, workers=3, rerouter=moving, **delayed(seed)
    )
    made.run(on=local, steering=Restless(made, seed, times=10))
    assert Counter(seen) == expected(rows, 2)


# --- bolts of users --------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["sender", "key"])
@pytest.mark.parametrize("seed", range(3))
def test_whoever_hears_the_time_has_had_all_tuples_before_it(order: str, seed: int) -> None:
    had, heard = list[int](), list[tuple[int, int]]()

    class Hears(Bolt):
        """Keeps nothing, and asks for no order."""

        timed = True
        commutative = True
        watermark_step = 1_000_000

        def process(self, t: Any) -> None:
            had.append(t.at)

        def process_watermark(self, now: int) -> None:
            heard.append((now // 1_000_000, len(had)))

    builder = tw.TopologyBuilder("hears")
    rows = [(at, "u") for at in range(100)]
    builder.add_spout("clicks", tw.items(rows), fields=FIELDS, time="at")
    builder.add_bolt("same", Same(), degree=3).shuffle("clicks")
    builder.add_bolt("hears", Hears(), order=order).shuffle("same")
    local = tw.Local(block_rows=2, most_block_rows=2, workers=3, window=20, **delayed(seed))
    builder.build().run(on=local)
    assert heard
    assert all(count == now + 1 for now, count in heard)


class Same(Bolt):
    """Passes clicks on."""

    outputs = FIELDS

    def process(self, t: Any) -> None:
        """Pass it on."""
        self.emit(t.at, t.user)
