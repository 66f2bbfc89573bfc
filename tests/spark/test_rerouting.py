"""Keys change their places while a run goes on; state and results do not notice."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thalweg as tw
from sparksession import spark_session
from stateplaces import check_owners
from thalweg.control.rerouting import Cost, Rerouting, Seen, Tables
from thalweg.hashing import hash_key
from thalweg.routing.table import RoutingTable
from thalweg.runtimes.spark.limits import Limits
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.sketches.pairs import PairCounts
from thalweg.statelog.location import Location
from thalweg.statelog.manifests import Manifests
from thalweg.statelog.requests import Request, Requests
from thalweg.testing import ABORT, ManualClock, source

ROWS = 600
WORDS = [(f"w{n * 7919 % 31}", f"r{n * 104729 % 7}", f"{n:03}") for n in range(ROWS)]
KEYS = {
    "counts": sorted({word for word, _, _ in WORDS}),
    "chain": sorted({region for _, region, _ in WORDS}),
}


class Anywhere:
    """Gives keys places at random after every batch, and takes some back."""

    sampling = 1.0

    def __init__(self, seed: int, budget: int = 1 << 62) -> None:
        self.random, self.budget = random.Random(seed), budget
        self.seen: list[Seen] = []

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        self.seen.append(seen)
        if seen.moving:
            return None
        return Rerouting(
            {name: self.anywhere(tables[name], keys) for name, keys in KEYS.items()},
            {name: Cost(*heat(keys), 10.0) for name, keys in KEYS.items()},
            self.budget,
        )

    def anywhere(self, table: RoutingTable, keys: list[str]) -> RoutingTable:
        chosen = self.random.sample(keys, self.random.randint(0, len(keys)))
        return table.with_keys({key: self.random.randrange(table.places) for key in chosen})

    def pairs(self, *ends: str) -> PairCounts:
        sent, got = ends
        found = [seen.pairs[sent, got] for seen in self.seen if (sent, got) in seen.pairs]
        left, right = (
            np.concatenate([getattr(p, side) for p in found]) for side in ("left", "right")
        )
        return PairCounts.of(left, right, np.concatenate([p.count for p in found]))


def heat(keys: list[str]) -> tuple[Any, Any]:
    hashes = np.sort(np.array([hash_key(key) for key in keys], dtype=np.uint64))
    return hashes, np.arange(len(hashes), dtype=np.float64)


def chaining(rows: list[tuple[str, str, str]]) -> tw.Flow:
    """Count by word; then chain the numbers of each region in their order."""
    flow = tw.Flow("chaining")
    stream = flow.source("words", source(rows), fields={"word": str, "region": str, "number": str})
    stream.tally("counts", key="word")
    counted = stream.key_by("word").running_count(into="nth")
    chain = counted.key_by("region")
    chain.fold("chain", "", lambda before, number, nth: f"{before}{number}/{nth} ", order="key")
    return flow


def undisturbed(rows: list[tuple[str, str, str]]) -> tuple[dict[str, int], dict[str, str]]:
    counts: Counter[str] = Counter()
    chains: dict[str, str] = {}
    for word, region, number in rows:
        counts[word] += 1
        chains[region] = f"{chains.get(region, '')}{number}/{counts[word]} "
    return dict(counts), chains


def runtime(state: Path, rerouter: Any, places: int = 3, **options: Any) -> tw.Spark:
    return tw.Spark(
        spark_session(),
        places=places,
        state=str(state),
        rerouter=rerouter,
        pump=PumpSettings(rows=30, block_rows=30),
        limits=Limits(runs=3, versions=4),
        **options,
    )


@pytest.mark.parametrize("seed", range(3))
def test_results_are_those_of_a_run_whose_keys_never_moved(tmp_path: Path, seed: int) -> None:
    rerouter = Anywhere(seed)
    result = chaining(WORDS).run(on=runtime(tmp_path, rerouter))
    assert (result.table("counts"), result.table("chain")) == undisturbed(WORDS)
    assert sum(seen.moved_keys for seen in rerouter.seen) > 100
    assert check_owners(tmp_path).tables


def test_a_budget_spreads_the_moves_over_batches(tmp_path: Path) -> None:
    rerouter = Anywhere(7, budget=40)  # four keys of ten bytes
    result = chaining(WORDS).run(on=runtime(tmp_path, rerouter))
    assert (result.table("counts"), result.table("chain")) == undisturbed(WORDS)
    assert max(seen.moved_keys for seen in rerouter.seen) <= 4
    assert any(seen.moving for seen in rerouter.seen)
    assert check_owners(tmp_path).tables


def test_pairs_are_counted_whoever_passes_the_tuples_on(tmp_path: Path) -> None:
    rerouter = Anywhere(1)
    chaining(WORDS).run(on=runtime(tmp_path, rerouter))
    counted = next(name for name, _ in rerouter.seen[3].pairs if name not in KEYS)
    pairs = rerouter.pairs(counted, "chain")
    expected = Counter((hash_key(word), hash_key(region)) for word, region, _ in WORDS)
    columns = zip(pairs.left.tolist(), pairs.right.tolist(), pairs.count.tolist(), strict=True)
    assert {(a, b): n for a, b, n in columns} == expected


@pytest.mark.parametrize("places", [3, 2, 4])
def test_a_run_that_was_interrupted_goes_on_with_its_tables(tmp_path: Path, places: int) -> None:
    slow = 20  # two keys of ten bytes: it is interrupted while keys are on their way
    with pytest.raises(tw.Aborted):
        chaining([*WORDS[:300], ABORT]).run(on=runtime(tmp_path, Anywhere(3, slow)))
    assert is_moving(tmp_path)
    result = chaining(WORDS).run(on=runtime(tmp_path, None, places))
    assert (result.table("counts"), result.table("chain")) == undisturbed(WORDS)
    assert is_moving(tmp_path) is False
    assert check_owners(tmp_path).tables


def test_places_may_change_in_number_between_moves(tmp_path: Path) -> None:
    class Both(Anywhere):
        def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
            if len(self.seen) % 5 == 4:
                places = self.random.randint(2, 5)
                Requests(Location.of(tmp_path)).ask(Request(places))
                clock.advance(1.0)
            return super().after(seen, tables)

    clock, rerouter = ManualClock(), Both(11, 60)
    result = chaining(WORDS).run(on=runtime(tmp_path, rerouter, clock=clock))
    assert (result.table("counts"), result.table("chain")) == undisturbed(WORDS)
    assert check_owners(tmp_path).tables


def is_moving(state: Path) -> bool | None:
    manifest = Manifests(Location.of(state)).latest()
    assert manifest is not None
    return manifest.tables and manifest.tables.step < manifest.tables.steps


# --- one stream, several keys ---------------------------------------------------------------------


class AtOnePlace:
    """Puts all keys at the last place, of both components."""

    sampling = 0.0

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        if len(tables["first"].hashes):
            return None
        keys = {"first": KEYS["counts"], "second": KEYS["chain"]}
        return Rerouting({n: tables[n].with_keys(dict.fromkeys(k, 2)) for n, k in keys.items()})


@pytest.mark.parametrize("rerouter", [None, AtOnePlace()])
def test_a_tuple_is_sent_once_where_its_keys_share_a_place(tmp_path: Path, rerouter: Any) -> None:
    flow = tw.Flow("beside")
    stream = flow.source("words", source(WORDS), fields={"word": str, "region": str, "number": str})
    for name, key in (("first", "word"), ("second", "region")):
        stream.key_by(key).fold(name, "", lambda before, number: before + number, order="key")
    result = flow.run(on=runtime(tmp_path, rerouter))
    chains: dict[str, dict[str, str]] = {"first": {}, "second": {}}
    for word, region, number in WORDS:
        for name, key in (("first", word), ("second", region)):
            chains[name][key] = chains[name].get(key, "") + number
    assert {name: result.table(name) for name in chains} == chains
    sent = result.metrics.component("words").shuffled
    if rerouter is None:
        assert ROWS < sent < 2 * ROWS  # by hash, one in three finds both its keys at one place
    else:
        assert sent < ROWS + 60  # all but the first batch, which has fewer than twice 30 tuples
