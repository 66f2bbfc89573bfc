"""Keys change their tasks between two waves of the reference runtime; results do not notice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.clock import ManualClock
from thalweg.control.rerouting import Cost, Rerouting, Seen, Tables
from thalweg.events import Keys, Noticed
from thalweg.execution import Run
from thalweg.hashing import hash_key
from thalweg.routing.table import RoutingTable
from thalweg.sketches.pairs import PairCounts
from thalweg.state import ExpiringState, MemoryState
from thalweg.testing import PAUSE, Outcome, run_inline, source

ROWS = [(f"w{n * 7919 % 31}", f"r{n * 104729 % 7}", f"{n:03}") for n in range(120)]
WORDS = sorted({word for word, _, _ in ROWS})
REGIONS = sorted({region for _, region, _ in ROWS})


class Decides:
    """A rerouter that asks a function for the keys of each table, wave by wave."""

    def __init__(
        self,
        decide: Callable[[int, Tables], Rerouting | None] = lambda wave, tables: None,
        sampling: float = 1.0,
    ) -> None:
        self.decide, self.sampling = decide, sampling
        self.seen: list[Seen] = []
        self.tables: Tables = {}

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        self.seen.append(seen)
        self.tables = tables
        return self.decide(len(self.seen), tables)

    @property
    def pairs(self) -> dict[tuple[str, str], Counter[tuple[int, int]]]:
        found: dict[tuple[str, str], Counter[tuple[int, int]]] = {}
        for ends, pairs in ((e, p) for seen in self.seen for e, p in seen.pairs.items()):
            found.setdefault(ends, Counter()).update(counted(pairs))
        return found


def counted(pairs: PairCounts) -> dict[tuple[int, int], int]:
    columns = zip(pairs.left.tolist(), pairs.right.tolist(), pairs.count.tolist(), strict=True)
    return {(left, right): int(count) for left, right, count in columns}


def hashed(pairs: Iterable[tuple[Any, Any]]) -> Counter[tuple[int, int]]:
    return Counter((hash_key(left), hash_key(right)) for left, right in pairs)


def anywhere(seed: int, keys: dict[str, list[str]], budget: int = 1 << 62) -> Decides:
    """Give keys random tasks after every wave, and take some back."""
    chance = random.Random(seed)

    def table(old: RoutingTable, names: list[str]) -> RoutingTable:
        chosen = chance.sample(names, chance.randint(0, len(names)))
        return old.with_keys({key: chance.randrange(old.places) for key in chosen})

    def decide(_wave: int, tables: Tables) -> Rerouting:
        new = {name: table(tables[name], names) for name, names in keys.items()}
        return Rerouting(new, {name: Cost(size=10.0) for name in keys}, budget)

    return Decides(decide)


def to_task(task: int, *components: str) -> Decides:
    """Send all words and regions to one task, once."""

    def decide(wave: int, tables: Tables) -> Rerouting | None:
        every = dict.fromkeys([*WORDS, *REGIONS], task)
        new = {name: tables[name].with_keys(every) for name in components}
        return Rerouting(new, reason="a test") if wave == 1 else None

    return Decides(decide)


class Chain(tw.Bolt):
    """Strings numbers together, region by region; tells where its state is."""

    kind = tw.Kind.KEYED
    table = "chain"
    outputs = ["region"]

    def __init__(self, states: Callable[[int, Any], object]) -> None:
        self.states = states

    def prepare(self, context):
        self.states(context.task, context.state)

    def process(self, t):
        self.state.put(t.region, f"{self.state.get(t.region, '')}{t.number}/{t.nth} ")


def chaining(states: dict[int, Any]) -> tw.Flow:
    """Count by word, and pass the post on; then chain the numbers of each region in order."""
    flow = tw.Flow("chaining")
    posts = flow.source("posts", source(ROWS), fields=["word", "region", "number"])
    posts.tally("words", key="word", degree=2)
    nth = posts.key_by("word").running_count(into="nth", name="nth", degree=3)
    chain = nth.grouped(tw.groupings.Fields(("region",)))
    note = lambda task, state: states.update({task: state})  # noqa: E731 (functions are not copied)
    chain.through("chain", Chain(note), degree=4, order="key")
    return flow


def undisturbed() -> tuple[dict[str, int], dict[str, str]]:
    counts: Counter[str] = Counter()
    chains: dict[str, str] = {}
    for word, region, number in ROWS:
        counts[word] += 1
        chains[region] = f"{chains.get(region, '')}{number}/{counts[word]} "
    return dict(counts), chains


def run(flow: tw.Flow, rerouter: Any, rows: int = 5, **options: Any) -> Outcome:
    runtime = tw.Inline(block_rows=rows, clock=ManualClock(), rerouter=rerouter, **options)
    return run_inline(flow, runtime=runtime)


KEYS = {"words": WORDS, "nth": WORDS, "chain": REGIONS}


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 1 << 20), st.sampled_from([10, 45, 1 << 62]), st.integers(8, 50))
def test_results_are_those_of_a_run_whose_keys_never_moved(
    seed: int, budget: int, rows: int
) -> None:
    states: dict[int, MemoryState] = {}
    rerouter = anywhere(seed, KEYS, budget)
    outcome = run(chaining(states), rerouter, rows)
    assert (outcome.table("words"), outcome.table("chain")) == undisturbed()
    held = [key for state in states.values() for key, _ in state.items()]
    assert sorted(held) == REGIONS  # each at one task
    assert max(seen.moved_keys for seen in rerouter.seen) <= max(budget // 10, 1)


def test_state_is_at_the_task_that_the_table_says() -> None:
    states: dict[int, MemoryState] = {}
    rerouter = anywhere(3, KEYS)
    rerouter.decide = lambda wave, tables, decide=rerouter.decide: (
        decide(wave, tables) if wave < 10 else None
    )
    run(chaining(states), rerouter)
    hashes = np.array([hash_key(region) for region in REGIONS], dtype=np.uint64)
    owners = rerouter.tables["chain"].places_of(hashes).tolist()
    for region, owner in zip(REGIONS, owners, strict=True):
        assert [task for task in states if states[task].get(region) is not None] == [owner]
    assert sum(seen.moved_keys for seen in rerouter.seen) > 50


def test_key_groups_move_too() -> None:
    def decide(wave: int, tables: Tables) -> Rerouting:
        place = np.int64(wave % 4)
        table = tables["chain"]
        return Rerouting({"chain": replace(table, groups=np.full_like(table.groups, place))})

    states: dict[int, MemoryState] = {}
    rerouter = Decides(decide)
    outcome = run(chaining(states), rerouter)
    assert outcome.table("chain") == undisturbed()[1]
    waves = len(rerouter.seen)
    assert [len(states[task]) for task in range(4)] == [
        len(REGIONS) if task == waves % 4 else 0 for task in range(4)
    ]


def test_all_inputs_of_a_component_follow_its_table() -> None:
    def decide(wave: int, tables: Tables) -> Rerouting:
        return Rerouting({"it": tables["it"].with_keys(dict.fromkeys(range(5), wave % 3))})

    flow = tw.Flow("t")
    one, other = (flow.source(name, tw.items([*range(5)] * 4), fields=["n"]) for name in "ab")
    both = one.merge(other).grouped(tw.groupings.Fields(("n",)))
    both.through("it", Remembers(), degree=3)
    outcome = run(flow, Decides(decide))
    expected = Counter((n, times) for n in range(5) for times in range(1, 9))
    assert Counter(map(tuple, outcome.outputs["it"])) == expected


def test_a_budget_spreads_the_moves_over_waves() -> None:
    rerouter = to_task(1, "nth")
    once = rerouter.decide

    def decide(wave: int, tables: Tables) -> Rerouting | None:
        wanted = once(wave - 6, tables)  # by then there is something to move
        return wanted and replace(wanted, costs={"nth": Cost(size=10.0)}, budget=40)

    rerouter.decide = decide
    outcome = run(chaining({}), rerouter)
    assert outcome.table("chain") == undisturbed()[1]
    moved = [seen.moved_keys for seen in rerouter.seen]
    moving = [seen.moving for seen in rerouter.seen]
    steps = sum(1 for keys in moved if keys)
    assert steps > 2
    assert moved[7 : 7 + steps - 1] == [4] * (steps - 1)
    assert moving == [False] * 7 + [True] * (steps - 1) + [False] * (len(moving) - 6 - steps)


def test_what_is_decided_while_keys_move_is_not_done() -> None:
    def decide(wave: int, tables: Tables) -> Rerouting | None:
        at_one.append(int((tables["nth"].places_of(hashes) == 1).sum()))
        new = {"nth": tables["nth"].with_keys(dict.fromkeys(WORDS, 1 if wave == 6 else 0))}
        return Rerouting(new, {"nth": Cost(size=10.0)}, 50) if wave >= 6 else None

    hashes = np.array([hash_key(word) for word in WORDS], dtype=np.uint64)
    at_one: list[int] = []
    rerouter = Decides(decide)
    run(chaining({}), rerouter)
    moving = [seen.moving for seen in rerouter.seen[6:]]
    done = 6 + moving.index(False)
    assert done > 8
    assert at_one[6 : done + 1] == sorted(at_one[6 : done + 1])  # never back in between
    assert at_one[done] == len(WORDS)
    assert at_one[done + 1] < len(WORDS)


# --- refusals ----------------------------------------------------------------------------------


def refused(wanted: Callable[[Tables], Rerouting]) -> str:
    """Say why a rerouting is not done; the run goes on."""
    events: list[Any] = []
    decides = Decides(lambda wave, tables: wanted(tables) if wave == 1 else None)
    runtime = tw.Inline(block_rows=50, clock=ManualClock(), rerouter=decides)
    outcome = run_inline(chaining({}), runtime=runtime, run=Run(listen=events.append))
    assert outcome.table("chain") == undisturbed()[1]
    (text,) = [event.text for event in events if isinstance(event, Noticed)]
    assert text.startswith("keys stay where they are: ")
    return text


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (
            lambda tables: Rerouting({"posts": tables["nth"]}),
            "expected some of ['chain', 'nth', 'words'], got ['posts']",
        ),
        (lambda tables: Rerouting({"nth": tables["chain"]}), "expected 3 places, its tasks, got 4"),
        (
            lambda tables: Rerouting(
                {"nth": replace(tables["nth"].with_keys({"w1": 0}), key_places=np.array([3]))}
            ),
            "routing table of 'nth': expected places from 0 to 2, got 3",
        ),
        (
            lambda tables: Rerouting({"nth": replace(tables["nth"], groups=np.array([0, -1]))}),
            "expected places from 0 to 2, got -1",
        ),
        (
            lambda tables: Rerouting({"nth": RoutingTable.even(3, groups=7)}),
            "expected 1024 key groups, as before, got 7",
        ),
        (lambda tables: Rerouting({"nth": tables["nth"]}, budget=0), "at least 1, got 0"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    wanted: Callable[[Tables], Rerouting], reason: str
) -> None:
    assert reason in refused(wanted)


def test_only_components_whose_keys_may_move_have_tables() -> None:
    flow = tw.Flow("t")
    numbers = flow.source("s", tw.items(range(9)), fields={"n": int})
    numbers.tally("counts", key="n", degree=2)
    ranged = numbers.grouped(tw.groupings.Fields(("n",), bounds=(4,)))
    ranged.through("ranged", Remembers(), degree=2)
    numbers.map(lambda n: n)
    rerouter = Decides()
    run(flow, rerouter)
    assert set(rerouter.tables) == {"counts"}
    assert set(rerouter.seen[0].state) == {"counts", "ranged"}


class Remembers(tw.Bolt):
    """Sends how often a number has come."""

    kind = tw.Kind.KEYED
    outputs = ["n", "times"]

    def process(self, t):
        times = self.state.get(t.n, 0) + 1
        self.state.put(t.n, times)
        self.emit(t.n, times)


# --- what a rerouter is told -------------------------------------------------------------------


def test_listeners_hear_of_it() -> None:
    events: list[Any] = []
    runtime = tw.Inline(block_rows=50, rerouter=to_task(0, "nth"))
    run_inline(chaining({}), runtime=runtime, run=Run(listen=events.append))
    assert Noticed("rerouting: a test") in events


def test_a_wave_is_told_with_its_clock_time_and_state() -> None:
    flow = tw.Flow("t")
    words = flow.source("s", source(["a", "b", PAUSE(5), "a"]), fields={"word": str})
    words.tally("words", key="word", degree=2).tally("again", key="word", degree=2)
    rerouter = to_task(0, "words")
    run(flow, rerouter, rows=10)
    first, second = rerouter.seen
    assert (first.clock, second.clock) == (0.0, 5.0)
    assert first.seconds > 0
    assert first.work > first.counting > 0
    size, keys = second.state["words"]
    assert keys == 2
    assert size == 2 * sum(map(len, entry_of("a", 2)))


def entry_of(key: str, value: int) -> tuple[bytes, bytes]:
    state = MemoryState()
    state.put(key, value)
    (entry,) = state.entries()
    return entry


def test_values_that_cannot_be_written_down_move_all_the_same() -> None:
    class Keeps(tw.Bolt):
        kind = tw.Kind.KEYED
        table = "kept"
        outputs = ["n"]

        def process(self, t):
            self.state.put(t.n, len)

    def decide(wave: int, tables: Tables) -> Rerouting:
        return Rerouting({"keeps": tables["keeps"].with_keys(dict.fromkeys(range(4), wave % 2))})

    flow = tw.Flow("t")
    numbers = flow.source("s", tw.items([0, 1, 2, 3] * 3), fields={"n": int})
    numbers.grouped(tw.groupings.Fields(("n",))).through("keeps", Keeps(), degree=2)
    rerouter = Decides(decide)
    outcome = run(flow, rerouter, rows=4)
    assert outcome.table("kept") == dict.fromkeys(range(4), len)
    assert (rerouter.seen[2].moved_keys, rerouter.seen[2].moved_bytes) == (4, 400)


# --- pairs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("rows", [7, 1000])
@pytest.mark.parametrize("order", ["sender", "key"])
def test_pairs_are_counted_through_stateless_bolts(degree: int, rows: int, order: str) -> None:
    flow = tw.Flow("t", order)
    posts = flow.source("posts", tw.items(ROWS), fields=["word", "region", "number"])
    words = posts.tally("words", key="word", degree=3)
    twice = words.flat_map(
        lambda word, region, number: [region] * (int(number) % 3), fields=["region"], degree=degree
    )
    seen = twice.filter(lambda region: region != "r3", degree=2)
    seen.tally("regions", key="region", degree=2)
    rerouter = Decides()
    run(flow, rerouter, rows)
    expected = [
        (word, region)
        for word, region, number in ROWS
        for _ in range(int(number) % 3)
        if region != "r3"
    ]
    assert rerouter.pairs == {("words", "regions"): hashed(expected)}


def test_pairs_of_readers_side_by_side_are_those_of_one_tuple() -> None:
    flow = tw.Flow("t")
    posts = flow.source("posts", tw.items(ROWS), fields=["word", "region", "number"])
    posts.tally("words", key="word", degree=2)
    posts.tally("both", key=["word", "region"], degree=2)
    posts.map(lambda region: region, fields=["region"])
    rerouter = Decides()
    run(flow, rerouter, 9)
    expected = [(word, (word, region)) for word, region, _ in ROWS]
    assert rerouter.pairs == {("words", "both"): hashed(expected)}


def test_each_of_two_senders_has_pairs_of_its_own() -> None:
    flow = tw.Flow("t")
    posts = flow.source("posts", tw.items(ROWS), fields=["word", "region", "number"])
    words, numbers = (
        posts.key_by(key).running_count(into="n", name=key, degree=2) for key in ("word", "number")
    )
    both = words.merge(numbers).map(
        lambda word, region, number, n: region, fields=["region"], degree=2
    )
    both.tally("regions", key="region", degree=3)
    rerouter = Decides()
    run(flow, rerouter, 11)
    found = rerouter.pairs
    assert found["word", "regions"] == hashed((word, region) for word, region, _ in ROWS)
    assert found["number", "regions"] == hashed((number, region) for _, region, number in ROWS)


def test_what_stems_from_a_block_as_a_whole_has_no_pairs() -> None:
    flow = tw.Flow("t")
    posts = flow.source("posts", tw.items(ROWS), fields=["word", "region", "number"])
    posts.tally("words", key="word", degree=2)
    flow.table("words").tally("again", key="word", degree=2)
    rerouter = Decides()
    run(flow, rerouter, 120)
    assert rerouter.pairs == {}


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([0.1, 0.25, 0.5]), st.integers(5, 40), st.integers(0, 99))
def test_a_share_of_the_tuples_is_counted(share: float, rows: int, seed: int) -> None:
    flow = tw.Flow("t")
    posts = flow.source("posts", tw.items(ROWS), fields=["word", "region", "number"])
    posts.tally("words", key="word", degree=2).tally("regions", key="region", degree=2)
    rerouter = Decides(sampling=share)
    run(flow, rerouter, rows, seed=seed)
    (found,) = rerouter.pairs.values()
    assert found.total() == pytest.approx(len(ROWS) * share, abs=1)


def test_the_share_may_change_from_wave_to_wave() -> None:
    def decide(wave: int, tables: Tables) -> None:
        rerouter.sampling = float(wave % 2 == 0)

    flow = tw.Flow("t")
    posts = flow.source("posts", tw.items(ROWS), fields=["word", "region", "number"])
    posts.tally("words", key="word", degree=2).tally("regions", key="region", degree=2)
    rerouter = Decides(decide)
    run(flow, rerouter, 10)
    totals = [sum(p.total for p in seen.pairs.values()) for seen in rerouter.seen]
    assert totals == [10.0, 0.0] * 6
    assert [seen.counting > 0 for seen in rerouter.seen] == [True, False] * 6


@pytest.mark.parametrize("sampling", [None, 0.0, 1.0])
def test_lineage_is_asked_for_only_where_pairs_are_counted(
    sampling: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from thalweg.runtimes.block_tasks import BlockBoltTask  # noqa: PLC0415 (to be replaced)

    asked: dict[str, set[bool]] = {}
    process = BlockBoltTask.process

    def noting(self: Any, block: Any, lineage: bool = True) -> Any:
        asked.setdefault(self.component.name, set()).add(lineage)
        return process(self, block, lineage)

    monkeypatch.setattr(BlockBoltTask, "process", noting)
    flow = tw.Flow("t")
    posts = flow.source("posts", tw.items(ROWS), fields=["word", "region", "number"])
    first = posts.map(lambda word, region, number: (word, region), fields=["word", "region"])
    words = first.tally("words", key="word").filter(lambda word: True, name="between")
    words.tally("regions", key="region").filter(lambda word: True, name="last")
    run(flow, None if sampling is None else Decides(sampling=sampling))
    counting = sampling == 1.0
    assert asked["words"] == asked["between"] == {counting}
    assert asked["regions"] == asked["last"] == {False}


# --- time to live ------------------------------------------------------------------------------


def test_a_key_does_not_become_younger_when_it_moves() -> None:
    flow = tw.Flow("t")
    posts = flow.source("s", source([1, PAUSE(6), 2, PAUSE(6), 1, 2]), fields={"n": int})
    by_n = posts.grouped(tw.groupings.Fields(("n",)))
    by_n.through("it", Remembers(), degree=2, ttl="10 s")

    def decide(wave: int, tables: Tables) -> Rerouting:
        return Rerouting({"it": tables["it"].with_keys({1: wave % 2, 2: wave % 2})})

    rerouter = Decides(decide)
    outcome = run(flow, rerouter, rows=1)
    assert [tuple(t) for t in outcome.outputs["it"]] == [(1, 1), (2, 1), (1, 1), (2, 2)]
    assert [seen.moved_keys for seen in rerouter.seen[1:]] == [1, 2, 2]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.booleans()), max_size=30))
def test_states_that_hand_keys_to_each_other_are_like_one(steps: list[Any]) -> None:
    clock = ManualClock()
    one, other, whole = (ExpiringState(clock, ttl=5) for _ in range(3))
    for key, pause, moves in steps:
        clock.advance(pause)
        if moves:
            other.take_over(one.give_away([key, key + 1]))
            one, other = other, one
        else:
            owner = other if other.get(key) is not None else one
            for state in (owner, whole):
                state.put(key, (key, clock.now()))
        assert {**dict(one.items()), **dict(other.items())} == dict(whole.items())
        assert len(one) + len(other) == len(whole)


def test_frequent_keys_are_told_by_name() -> None:
    """At first by their hashes, and by name as soon as they were seen again."""
    heard: list[Any] = []
    flow = tw.Flow("words")
    words = flow.source(
        "words", source(ROWS * 3), fields={"word": str, "region": str, "number": str}
    )
    words.tally("by_word", key="word", degree=2).tally("by_region", key="region", degree=2)
    clock = ManualClock()

    def listen(event: Any) -> None:
        heard.append(event)
        clock.advance(60.0)  # so that keys are looked at again with the next block

    on = tw.Inline(rerouter=Decides(), block_rows=60, clock=clock)
    on.run(flow.build(), Run(listen=listen))
    told = [event for event in heard if isinstance(event, Keys)]
    (first,), (last,) = told[0].links, told[-1].links
    assert (last.sender, last.reader) == ("by_word", "by_region")
    assert all(key.key.startswith("0x") for key in first.left)
    assert {key.key for key in last.right} == set(REGIONS)
    assert {key.key for key in last.left} <= set(WORDS)
