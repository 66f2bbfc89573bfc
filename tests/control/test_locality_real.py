"""The replay of real data, on data that was made: drift and new keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from thalweg.bench.locality_real import (
    LINK,
    WAYS,
    Options,
    Tuples,
    locality_real,
    measured,
    promise,
    read_tuples,
)
from thalweg.control.keygraph import fitted
from thalweg.control.links import Observed
from thalweg.control.settings import LocalitySettings
from thalweg.errors import UsageError
from thalweg.hashing import hash_key
from thalweg.routing.table import RoutingTable

GROUPS, ROWS, PERIODS = 6, 6000, 4


@pytest.fixture
def drifting(tmp_path: Path) -> Path:
    """Users like tags of their group; tags change their group, and new ones come, every period."""
    rng = np.random.default_rng(1)
    path = tmp_path / "posts.tsv"
    lines = ["user\ttag"]
    for period in range(PERIODS):
        users = rng.integers(0, 120, ROWS)
        liked = (users + period) % GROUPS + GROUPS * rng.integers(
            10 * period, 10 * period + 30, ROWS
        )
        lines += [f"{user}\t{tag}" for user, tag in zip(users, liked, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_online_follows_drift_and_adopts_new_keys(drifting: Path, tmp_path: Path) -> None:
    said: list[str] = []
    options = Options(str(drifting), "user,tag", GROUPS, PERIODS, plots=str(tmp_path / "plots"))
    found = locality_real(False, said.append, options)
    summary, periods = found["summary"], found["results"]["periods"]
    assert list(periods) == list(WAYS)
    assert all(len(rows) == PERIODS for rows in periods.values())
    assert periods["offline"][0]["fitted"]["locality"] > 0.9
    assert summary["locality, hash"] < 0.3
    assert summary["locality, online, unseen keys"] > summary["locality, online"] + 0.1
    assert summary["locality, online, new keys"] > summary["locality, online"] + 0.1
    assert summary["gap closed, online, unseen keys"] > 0.2
    assert summary["above offline, least"] <= summary["above offline, mean"]
    assert summary["above offline, mean"] > 0.2
    assert summary["promise missed by"] <= 0.02
    assert summary["worst imbalance against its bound"] <= 1
    edges = found["results"]["edges"]
    assert edges[-1]["locality"] >= edges[0]["locality"]
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {
        "locality.svg",
        "imbalance.svg",
        "edges.svg",
    }
    assert len(said) == 2 + PERIODS


def test_it_needs_data_and_keys() -> None:
    with pytest.raises(UsageError, match="--data PATH --keys FIRST,SECOND"):
        locality_real(True, print, Options())


def test_several_sets_of_data_give_one_row_each(drifting: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.tsv"
    other.write_text(drifting.read_text())
    options = Options(f"{drifting};{other}", "user,tag;tag,user", GROUPS, periods=2)
    found = locality_real(False, lambda _: None, options)
    names = ["posts.tsv (user,tag)", "other.tsv (tag,user)"]
    assert [row["data"] for row in found["summary"]] == names
    assert list(found["results"]) == names
    assert found["environment"]["data"] == "posts.tsv;other.tsv"
    with pytest.raises(UsageError, match="as many of both"):
        locality_real(True, print, Options(f"{drifting};{other}", "user,tag"))


@pytest.mark.parametrize(
    ("field", "times"),
    [
        ("at:int", ["9", "11", "14", "100"]),
        ("at", [f"2015-09-12T00:4{time}Z" for time in ("6:59.9", "7:01.5", "7:04", "9:00")]),
        ("at", [f"2013-01-01 05:{time}" for time in ("17:09", "17:11", "17:14", "20:00")]),
    ],
)
def test_batches_go_by_the_time_of_the_data(tmp_path: Path, field: str, times: list[str]) -> None:
    path = tmp_path / "data.tsv"
    path.write_text("a\tb\tat\n" + "".join(f"1\t2\t{time}\n" for time in reversed(times)))
    batch = read_tuples(Options(str(path), "a,b", time=field)).batch
    steps = np.diff(batch).tolist()
    assert steps[:2] == [1, 0]
    assert steps[2] > 10


def test_without_times_batches_have_so_many_rows(drifting: Path) -> None:
    batch = read_tuples(Options(str(drifting), "user,tag", batch_rows=7)).batch
    assert batch[:8].tolist() == [0] * 7 + [1]


def test_a_time_that_is_none_is_refused(drifting: Path) -> None:
    with pytest.raises(UsageError, match="--time ts:int"):
        read_tuples(Options(str(drifting), "user,tag", time="tag"))


def test_the_partition_keeps_what_it_promises_as_far_as_it_was_given_the_pairs() -> None:
    rng = np.random.default_rng(2)
    left = rng.integers(0, 200, 20_000)
    right = np.where(rng.random(20_000) < 0.8, left, rng.integers(0, 200, 20_000))
    numbers = np.array([hash_key(n) for n in range(200)], np.uint64)
    tuples = Tuples(numbers[left], numbers[right], np.zeros(20_000, np.int64))
    pairs, even = tuples.pairs(), {name: RoutingTable.even(GROUPS) for name in LINK}
    seen = Observed({LINK: pairs}, {LINK: pairs}, {LINK: 1.0}, {LINK: 100.0})

    def said_and_found(edges: int) -> tuple[float, float]:
        made = fitted({LINK: pairs}, seen, even, LocalitySettings(edges=edges))
        return promise(pairs, made, edges), measured(tuples, made)

    said, found = said_and_found(len(pairs))
    assert found > 0.7
    assert abs(said - found) < 1e-6
    # What was left out of the graph is not in its promise: the two are measured apart.
    said, found = said_and_found(200)
    assert said - found > 0.05
