"""Runs that learn which keys occur together, and bring them to one place."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_streams import _callbacks, _no_calls_are_left  # noqa: F401 (fixtures for every stream)
from typer.testing import CliRunner

import thalweg as tw
from sparksession import spark_session
from thalweg.bench.locality_app import Setting, topology
from thalweg.cli.app import app
from thalweg.control.rerouting import Rerouting, Seen, Tables
from thalweg.control.settings import LocalitySettings
from thalweg.events import Event, Noticed, Progress, Reconfigured
from thalweg.routing.table_file import TableFile, write_table_file
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import ABORT, source
from thalweg.workloads.two_keys import TwoKeys

ROWS, KEYS = 4_000, 40
#: Each customer buys what is theirs, and now and then something else.
BOUGHT = [
    (f"c{n % KEYS}", f"i{n % KEYS if n % 7 else n // 7 % KEYS}", f"{n:05}") for n in range(ROWS)
]


def shop(rows: list[Any]) -> tw.Flow:
    flow = tw.Flow("shop")
    fields = {"customer": str, "item": str, "number": str}
    stream = flow.source("sales", source(rows), fields=fields)
    stream.tally("by_customer", key="customer").tally("by_item", key="item")
    return flow


def counts(rows: list[Any]) -> tuple[dict[str, int], dict[str, int]]:
    return dict(Counter(row[0] for row in rows)), dict(Counter(row[1] for row in rows))


def runtime(state: Path, **options: Any) -> tw.Spark:
    pump = PumpSettings(rows=200, block_rows=200)
    given = {"places": 3, "pump": pump, "shorten": False} | options
    return tw.Spark(spark_session(), state=str(state), **given)


class Listener:
    """Notes what happens; does something beside the run after some batches."""

    def __init__(self, after: int = 0, action: Any = None) -> None:
        self.reports: list[Reconfigured] = []
        self.notices: list[str] = []
        self.batches, self.after, self.action = 0, after, action
        self.thread: threading.Thread | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Reconfigured):
            self.reports.append(event)
        if isinstance(event, Noticed):
            self.notices.append(event.text)
        if isinstance(event, Progress):
            self.batches += 1
            if self.batches == self.after and self.action:
                self.thread = threading.Thread(target=self.action)
                self.thread.start()


def check(result: tw.Result, rows: list[Any] = BOUGHT) -> None:
    assert (result.table("by_customer"), result.table("by_item")) == counts(rows)


def test_keys_that_occur_together_come_to_one_place_by_themselves(tmp_path: Path) -> None:
    deciding = LocalitySettings(gain=0.0)
    often = tw.Locality(every=0.2, sampling=1.0, cost=1.0, deciding=deciding)
    listener = Listener()
    result = shop(BOUGHT).run(on=runtime(tmp_path, locality=often), listen=listener)
    check(result)
    report = listener.reports[0].report
    assert report["keys"] > KEYS / 2
    assert report["before"]["locality"] < 0.6
    assert report["predicted"]["locality"] > 0.8
    assert report["after"]["locality"] > 0.8
    assert "locality" in listener.reports[0].text
    # Which keys have another place is told too, those that occur most often first.
    told = listener.reports[0].difference
    assert told is not None
    assert told.keys == len(told.moves) > KEYS / 2
    assert {move.component for move in told.moves} <= {"by_customer", "by_item"}
    assert all(move.before != move.after for move in told.moves)
    assert [move.count for move in told.moves] == sorted(m.count for m in told.moves)[::-1]
    known = {key for row in BOUGHT for key in row[:2]}
    assert {move.key for move in told.moves if not move.key.startswith("0x")} <= known


def test_a_run_can_be_asked_to_decide_now(tmp_path: Path) -> None:
    answers: list[Any] = []

    def ask() -> None:
        answers.append(CliRunner().invoke(app, ["reroute", str(tmp_path), "--always"]))

    listener = Listener(5, ask)
    ask_only = tw.Locality(every=None, sampling=1.0, cost=1.0)
    # With time between batches, since requests are looked for once a second.
    on = runtime(tmp_path, locality=ask_only, trigger="300 ms")
    result = shop(BOUGHT).run(on=on, listen=listener)
    assert listener.thread is not None
    listener.thread.join()
    check(result)
    assert answers[0].exit_code == 0, answers[0].output
    assert "rerouting: it pays" in answers[0].output
    assert len(listener.reports) == 1


def test_a_run_that_does_not_learn_says_so(tmp_path: Path) -> None:
    answers: list[Any] = []

    def ask() -> None:
        answers.append(CliRunner().invoke(app, ["reroute", str(tmp_path)]))

    listener = Listener(2, ask)
    shop(BOUGHT).run(on=runtime(tmp_path, trigger="300 ms"), listen=listener)
    assert listener.thread is not None
    listener.thread.join()
    assert "does not learn which keys" in answers[0].output


# --- tables from files ----------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Give a file that puts each customer with what they buy."""
    fields = {
        "customer": {f"c{n}": n % 3 for n in range(KEYS)},
        "item": {f"i{n}": n % 3 for n in range(KEYS)},
    }
    write_table_file(tmp_path / "table.json", TableFile(3, fields))
    return str(tmp_path / "table.json")


def test_a_run_begins_with_the_places_of_a_file(tmp_path: Path, table: str) -> None:
    flow = tw.Flow("beside")
    stream = flow.source("sales", source(BOUGHT), fields={"customer": str, "item": str, "n": str})
    for key in ("customer", "item"):
        stream.key_by(key).fold(f"by_{key}", 0, lambda before, n: before + 1, order="key")
    result = flow.run(on=runtime(tmp_path / "tabled", table=table))
    check(result)
    apart = sum(int(item[1:]) % 3 != int(customer[1:]) % 3 for customer, item, _ in BOUGHT)
    # A tuple is sent once where both its keys are at one place, and twice where they are not.
    assert result.metrics.component("sales").shuffled == ROWS + apart


def test_a_state_that_has_tables_goes_on_with_those(tmp_path: Path, table: str) -> None:
    with pytest.raises(tw.Aborted):
        shop([*BOUGHT[:2000], ABORT]).run(on=runtime(tmp_path / "state", table=table))
    listener = Listener()
    result = shop(BOUGHT).run(on=runtime(tmp_path / "state", table=table), listen=listener)
    check(result)
    assert any("is not used" in text for text in listener.notices)


def test_a_file_for_other_places_or_fields_is_refused(tmp_path: Path, table: str) -> None:
    with pytest.raises(tw.UsageError, match=r"2 places, got 3 \(run with --places 3"):
        shop(BOUGHT).run(on=runtime(tmp_path / "a", places=2, table=table))
    write_table_file(table, TableFile(3, {"colour": {"red": 1}}))
    with pytest.raises(tw.UsageError, match=r"of \['colour'\], got none in the topology"):
        shop(BOUGHT).run(on=runtime(tmp_path / "b", table=table))


# --- sources whose partitions have keys of their own ----------------------------------------------


class Together:
    """Puts each first key at the partition that it comes from, and its second key there too."""

    sampling = 0.0

    def __init__(self, batches: int) -> None:
        self.left, self.stop = batches, threading.Event()
        self.moving = 0

    def after(self, seen: Seen, tables: Tables) -> Rerouting | None:
        self.left -= 1
        self.moving += seen.moved_keys > 0
        if not self.left:
            self.stop.set()
        if len(tables["first"].hashes):
            return None
        keys = {"first": range(30), "second": range(30, 60)}
        return Rerouting({n: tables[n].with_keys({k: k % 3 for k in ks}) for n, ks in keys.items()})


@pytest.mark.usefixtures("_callbacks")
def test_tuples_that_a_partition_has_for_its_own_place_skip_the_exchange(tmp_path: Path) -> None:
    batches, rows = 5, 300
    tuples = TwoKeys(keys=30, locality=1.0, padding=400, partitions=3)
    setting = Setting(places=3, tuples=tuples, rows=rows, fuse=True)
    rerouter = Together(batches)
    on = runtime(tmp_path / "state", rerouter=rerouter, checkpoint=str(tmp_path / "offsets"))
    result = topology(setting).run(on=on, stop=rerouter.stop)
    made = result.metrics.component("numbers").emitted
    made_batch = tuples.make(np.arange(made))
    for name in ("first", "second"):
        assert result.table(name) == dict(Counter(made_batch.column(name).to_pylist()))
    # The first batch goes by hash, and while keys move nothing is at its place already.
    assert rerouter.moving == 1
    assert result.metrics.component("tuples").shuffled == 2 * rows
    assert result.metrics.component("tuples").local == made - 2 * rows
