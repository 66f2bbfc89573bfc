"""Keys change their tasks while tuples flow, and nobody may notice but those who look at tasks."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keyed_counting import Counting, every_way, running

import thalweg as tw
from conformance.moving import Anywhere
from thalweg.cli.rebalancing import change_degrees, reroute
from thalweg.control.rerouting import Rerouting, Seen, Tables
from thalweg.events import Event, Noticed, Progress, Reconfigured
from thalweg.hashing import hash_key
from thalweg.runtimes.local.runtime import Local
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests

pytestmark = pytest.mark.usefixtures("forked")

KEYS = [i * i % 37 for i in range(3000)]
SMALL: dict[str, Any] = {"workers": 3, "block_rows": 20, "most_block_rows": 20, "window": 8}


class Keys:
    """Gives keys until so many have moved."""

    def __init__(self, moving: Anywhere, enough: int) -> None:
        self.given: list[int] = []
        self._moving, self._enough = moving, enough

    def __call__(self) -> Iterator[int]:
        while self._moving.moved < self._enough:
            self.given.append(len(self.given) ** 2 % 37)
            yield self.given[-1]


def counting(keys: Any, seen: list[Any], **options: Any) -> tw.Topology:
    builder = tw.TopologyBuilder("moving")
    builder.add_spout("keys", tw.items(keys), fields={"key": int})
    builder.add_bolt("count", Counting(), degree=3, **options).fields("keys", "key")
    builder.add_bolt("out", tw.collect(seen), order="total").global_("count")
    return builder.build()


@every_way
@pytest.mark.parametrize("budget", [1 << 62, 60], ids=["at-once", "step-by-step"])
def test_output_is_the_serial_one_while_keys_move_all_the_time(
    way: dict[str, Any], budget: int
) -> None:
    seen: list[Any] = []
    moving = Anywhere({"keys": KEYS}, 1, budget=budget)
    keys = Keys(moving, 300)
    result = counting(keys, seen).run(on=Local(**SMALL, rerouter=moving, **way))
    assert [(t.key, t.count) for t in seen] == running(keys.given)
    assert result.table("counts") == Counter(keys.given)
    assert len({(t.key, t.task) for t in seen}) > 2 * len(set(keys.given))


def test_each_key_is_in_order_where_no_more_is_asked_for() -> None:
    seen: list[Any] = []
    moving = Anywhere({"keys": KEYS}, 2)
    keys = Keys(moving, 100)
    builder = tw.TopologyBuilder("unordered")
    builder.add_spout("keys", tw.items(keys), fields={"key": int})
    builder.add_bolt("count", Counting(), degree=3, order="sender").fields("keys", "key")
    builder.add_bolt("out", tw.collect(seen), order="sender").global_("count")
    builder.build().run(on=Local(**SMALL, assigning="executors", rerouter=moving))
    by_key: dict[int, list[int]] = {}
    for t in seen:
        by_key.setdefault(t.key, []).append(t.count)
    assert by_key == {key: list(range(1, n + 1)) for key, n in Counter(keys.given).items()}


def test_state_moves_between_processes() -> None:
    seen: list[Any] = []
    moving = Anywhere({"keys": KEYS}, 3)
    keys = Keys(moving, 60)
    topology = counting(keys, seen, isolation="process")
    result = topology.run(on=Local(**SMALL, rerouter=moving))
    assert [(t.key, t.count) for t in seen] == running(keys.given)
    assert result.table("counts") == Counter(keys.given)


class Once:
    """Gives some keys other tasks, after the first block."""

    sampling = 0.0

    def __init__(self, places: dict[int, int]) -> None:
        self.places = places
        self.done = False

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        """Decide once."""
        if self.done:
            return None
        self.done = True
        new = {name: table.with_keys(self.places) for name, table in tables.items()}
        return Rerouting(new, reason="because")


def at_task(task: int, count: int = 1) -> list[int]:
    """Find keys that belong to a task."""
    hashes = [(key, hash_key(key)) for key in range(200)]
    return [key for key, found in hashes if found % 1024 * 2 // 1024 == task][:count]


class Slow(Counting):
    """Holds its task until a key of another task was processed."""

    slow = other = -1
    gone = threading.Event()
    arrived: list[int] = []

    def process(self, t: Any) -> None:
        self.arrived.append(t.key)
        if t.key == self.slow:
            assert self.gone.wait(timeout=60), "a key that does not move had to wait"
        if t.key == self.other:
            self.gone.set()
        super().process(t)


def test_only_keys_that_move_have_to_wait() -> None:
    slow, moved = at_task(0, 2)
    (other,) = at_task(1)
    Slow.slow, Slow.other = slow, other
    Slow.gone.clear()
    Slow.arrived.clear()
    moving = Once({moved: 1})

    def keys() -> Iterator[int]:
        yield moved
        yield slow  # task 0 is busy until the other key has been seen
        while not moving.done:
            yield at_task(1, 2)[1]
        for _ in range(50):
            yield moved
        yield other

    seen: list[Any] = []
    builder = tw.TopologyBuilder("slow")
    builder.add_spout("keys", tw.items(keys), fields={"key": int})
    builder.add_bolt("count", Slow(), degree=2).fields("keys", "key")
    builder.add_bolt("out", tw.collect(seen)).global_("count")
    builder.build().run(
        on=Local(assigning="executors", block_rows=1, most_block_rows=1, rerouter=moving)
    )
    assert [t.count for t in seen if t.key == moved] == list(range(1, 52))
    assert Slow.arrived.index(other) < max(i for i, k in enumerate(Slow.arrived) if k == moved)


def test_what_a_reconfiguration_did_is_told() -> None:
    told: list[Event] = []
    moving = Once(dict.fromkeys(set(KEYS), 0))
    local = Local(workers=2, block_rows=100, most_block_rows=100, rerouter=moving)
    counting(KEYS, []).run(on=local, listen=told.append)
    (event,) = [event for event in told if isinstance(event, Reconfigured)]
    assert "epoch 1 (because): moved" in event.text
    assert event.report["keys"] > 0
    assert event.report["steps"] == 1


def test_keys_that_occur_together_are_brought_to_one_task() -> None:
    told: list[Event] = []

    def pairs() -> Iterator[tuple[str, str]]:
        n = 0
        while not any(isinstance(event, Reconfigured) for event in told):
            n += 1
            yield f"region {n % 42}", f"tag {n % 42}"  # three tasks can have as many of them each

    flow = tw.Flow("trending")
    posts = flow.source("posts", tw.items(pairs), fields={"region": str, "tag": str})
    posts = posts.tally("by_region", key="region", degree=3)
    posts.map(lambda region, tag: (region, tag), fields={"region": str, "tag": str}).tally(
        "by_tag", key="tag", degree=3
    )
    learning = tw.Locality(every=2, adopt_every=1000, cost=1.0, sampling=1.0)
    result = flow.run(on=Local(workers=2, locality=learning), listen=told.append)
    (event, *_) = [event for event in told if isinstance(event, Reconfigured)]
    report = event.report
    assert report["after"]["locality"] > 0.95 > 0.6 > report["before"]["locality"]
    assert 0 < report["after"]["error"] <= 0.1
    assert sum(result.table("by_tag").values()) == sum(result.table("by_region").values())
    assert sum(result.table("by_tag").values()) == result.metrics.tuples_in


def pairs_until(done: threading.Event) -> Iterator[tuple[str, str]]:
    n = 0
    while not done.is_set():
        n += 1
        yield f"region {n % 40}", f"tag {n % 40}"


def trending(done: threading.Event) -> tw.Topology:
    flow = tw.Flow("trending")
    rows = tw.items(lambda: pairs_until(done))
    posts = flow.source("posts", rows, fields={"region": str, "tag": str})
    posts.tally("by_region", key="region", degree=3).tally("by_tag", key="tag", degree=3)
    return flow.build()


ASKED = tw.Locality(every=None, sampling=1.0)


def test_a_decision_is_made_when_somebody_asks_for_it() -> None:
    steering, told, done = tw.Steering(), list[str](), threading.Event()

    def listen(event: Event) -> None:
        if isinstance(event, Noticed):
            told.append(event.text)
        if isinstance(event, Reconfigured):
            done.set()
        if isinstance(event, Progress) and not done.is_set():
            steering.reroute(always=True)

    trending(done).run(on=Local(workers=2, locality=ASKED), steering=steering, listen=listen)
    assert any(text.startswith("rerouting: it pays") for text in told)


def test_thalweg_reroute_asks_a_run_with_a_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done, ready = threading.Event(), threading.Event()
    manifests = Manifests(Location.of(tmp_path / "state"))
    local = Local(workers=2, locality=ASKED, checkpoint=tmp_path, snapshot_every=0.05)

    def listen(event: Event) -> None:
        # By then pairs have been counted, and there is a snapshot.
        if isinstance(event, Progress) and event.snapshot.elapsed > 1 and manifests.latest():
            ready.set()

    run = threading.Thread(target=lambda: trending(done).run(on=local, listen=listen))
    run.start()
    try:
        assert ready.wait(60)
        reroute(str(tmp_path / "state"), always=True, patience=60)
    finally:
        done.set()
        run.join()
    assert "rerouting: it pays" in capsys.readouterr().err


def test_what_a_reconfiguration_did_is_told_though_its_effect_cannot_be_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("thalweg.control.achieved.PATIENCE", 0.0)
    told = threading.Event()
    reports: list[Any] = []

    def listen(event: Event) -> None:
        if isinstance(event, Reconfigured):
            reports.append(event.report)
            told.set()

    def keys() -> Iterator[int]:
        for key in range(1_000_000):
            yield key % 37
            if told.is_set():
                return
        pytest.fail("nothing was told while the run went on")

    class Counted(Once):
        sampling = 1.0  # there are no pairs behind the only keyed component

    topology = counting(keys, [])
    topology.run(on=Local(**SMALL, rerouter=Counted({3: 2})), listen=listen)
    (report,) = reports
    assert report["reason"] == "because"
    assert report["after"] is None


def test_a_new_task_has_its_share_of_listed_keys_and_who_is_left_apart_is_said() -> None:
    """All keys have places of their own; the new task gets its share of them all the same."""
    steering, done = tw.Steering(), threading.Event()
    told: list[Event] = []

    class Listed(Once):
        sampling = 1.0

    def listen(event: Event) -> None:
        told.append(event)
        if isinstance(event, Reconfigured):
            if event.report["epoch"] > 1:
                done.set()
            steering.rebalance("by_tag", 4)

    places: Any = {f"{kind} {n}": n % 3 for n in range(40) for kind in ("region", "tag")}
    on = Local(workers=2, rerouter=Listed(places))
    trending(done).run(on=on, steering=steering, listen=listen)
    report = [event.report for event in told if isinstance(event, Reconfigured)][1]
    assert "'by_tag' has 4 tasks in place of 3" in report["reason"]
    assert 4 <= report["keys"] <= 20
    texts = [event.text for event in told if isinstance(event, Noticed)]
    assert texts.count(
        "keys are brought together only while by_region and by_tag have as many tasks"
    )


def test_components_that_get_as_many_tasks_together_keep_their_keys_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done, moved = threading.Event(), threading.Event()
    reports: list[Any] = []
    often = tw.Locality(every=1, adopt_every=1000, cost=1.0, sampling=1.0)
    local = Local(workers=2, locality=often, checkpoint=tmp_path, snapshot_every=0.05)

    def listen(event: Event) -> None:
        if isinstance(event, Reconfigured):
            reports.append(event.report)
            moved.set()

    run = threading.Thread(target=lambda: trending(done).run(on=local, listen=listen))
    run.start()
    try:
        assert moved.wait(60)
        change_degrees(str(tmp_path / "state"), {"by_region": 4, "by_tag": 4}, patience=60)
        change_degrees(str(tmp_path / "state"), {"by_tag": 3}, patience=60)
    finally:
        done.set()
        run.join()
    first, second = capsys.readouterr().err.split("'by_tag' has 3 tasks")
    apart = "keys are brought together only while by_region and by_tag have as many tasks"
    assert apart not in first
    assert apart in second
    both = next(each for each in reports if "'by_region' has 4 tasks" in each["reason"])
    assert both["after"] is None or both["after"]["locality"] > 0.95
