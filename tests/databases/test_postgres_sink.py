"""What is in PostgreSQL after runs that end well, that are killed, and that lose their server."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from killed_writer import row
from postgresserver import PASSWORD, Server, psycopg

import thalweg as tw
from sparksession import spark_session
from thalweg.connectors.postgres_client import Backoff, Database
from thalweg.connectors.postgres_tables import Target, Writer
from thalweg.connectors.to_postgres import PostgresSink
from thalweg.events import Progress
from thalweg.runtimes.spark.pump import PumpSettings
from thalweg.testing import ManualClock

WORDS = [(f"w{n % 10}", n) for n in range(100)]
LAST = [(f"w{n % 10}", n) for n in range(90, 100)]
FIELDS = {"word": str, "n": int}


def flow(sink: Any, rows: Any = WORDS, fields: Any = FIELDS, **options: Any) -> tw.Flow:
    made = tw.Flow("words")
    made.source("rows", tw.items(rows), fields=fields).sink("out", sink, **options)
    return made


# --- appending and changing -----------------------------------------------------------------------


@pytest.mark.parametrize("runtime", [tw.Inline(), tw.Local()], ids=["inline", "local"])
def test_rows_are_added_to_a_table_that_is_made(server: Server, runtime: Any) -> None:
    table = server.table()
    for _ in range(2):
        flow(tw.to_postgres(server.dsn, table)).run(on=runtime)
    assert server.rows(table) == sorted(WORDS * 2)


@pytest.mark.parametrize("runtime", [tw.Inline(), tw.Local()], ids=["inline", "local"])
def test_the_last_row_of_a_key_stays(server: Server, runtime: Any) -> None:
    table = server.table()
    for _ in range(2):
        flow(tw.to_postgres(server.dsn, table, key=["word"])).run(on=runtime)
    assert server.rows(table) == LAST


def test_tasks_that_share_the_keys_change_rows_beside_each_other(server: Server) -> None:
    table, made = server.table(), tw.Flow("words")
    source = made.source("rows", tw.items(WORDS), fields=FIELDS)
    source.key_by("word").sink("out", tw.to_postgres(server.dsn, table, key=["word"]), degree=3)
    made.run()
    assert server.rows(table) == LAST


def test_tasks_that_could_change_the_same_row_are_refused(server: Server) -> None:
    sink = tw.to_postgres(server.dsn, server.table(), key=["word"])
    with pytest.raises(tw.UsageError, match="rows of a key at one task"):
        flow(sink, degree=2).run()


def test_a_table_of_nothing_but_its_key_holds_each_once(server: Server) -> None:
    table = server.table()
    flow(tw.to_postgres(server.dsn, table, key="word"), ["a", "b", "a"], {"word": str}).run()
    assert server.rows(table) == [("a",), ("b",)]


def test_a_table_may_be_in_a_schema(server: Server, tmp_path: Path) -> None:
    server.ask("CREATE SCHEMA IF NOT EXISTS other")
    table = f"other.{server.table()}"
    flow(tw.to_postgres(server.dsn, table)).run(on=tw.Local(checkpoint=str(tmp_path)))
    assert server.rows(table) == sorted(WORDS)
    (sink,) = server.rows("other.thalweg_commits", "sink, batch")
    assert sink == (f"words/out -> {table}", 1)


def test_a_schema_may_have_a_percent_sign(server: Server, tmp_path: Path) -> None:
    server.ask('CREATE SCHEMA IF NOT EXISTS "a%s"')
    table = server.table()
    sink = tw.to_postgres(server.dsn, f"a%s.{table}")
    for _ in range(2):
        flow(sink).run(on=tw.Local(checkpoint=str(tmp_path)))
    assert server.ask(f'SELECT count(*) FROM "a%s".{table}') == [(100,)]  # noqa: S608 (a test)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("a\0b", "text without the character 0 in 'k'"),
        (float("nan"), "numbers that JSON has in 'k'"),
    ],
)
def test_values_that_json_does_not_have_are_refused_alone(
    server: Server, bad: Any, why: str
) -> None:
    table, refused = server.table(), list[Any]()
    good = "ok" if isinstance(bad, str) else 1.5
    rows = [([good], 1), ([good, bad], 2), (None, 3)]
    sink = tw.to_postgres(server.dsn, table)
    made = flow(sink, rows, {"k": list[type(bad)], "n": int}, on_error="skip")
    made.run(on="inline", listen=refused.append)
    assert server.rows(table, "n") == [(1,), (3,)]
    reasons = [event.reason for event in refused if hasattr(event, "reason")]
    assert reasons == [f"SchemaError: row for table {table!r}: expected {why}"]


SMALL = [("a", 1), ("b", 70_000), ("a", 2), ("c", 3), ("d", -70_000)]


@pytest.mark.parametrize("key", [(), ("word",)], ids=["append", "upsert"])
def test_rows_that_the_table_does_not_take_are_refused_alone(server: Server, key: Any) -> None:
    table, refused = server.table(), list[Any]()
    server.ask(f"CREATE TABLE {table} (word text{' PRIMARY KEY' if key else ''}, n smallint)")
    made = flow(tw.to_postgres(server.dsn, table, key), SMALL, on_error="skip")
    made.run(on="inline", listen=refused.append)
    assert server.rows(table) == ([("a", 2), ("c", 3)] if key else [("a", 1), ("a", 2), ("c", 3)])
    reasons = [event.reason for event in refused if hasattr(event, "reason")]
    assert len(reasons) == 2
    assert all("70000" in reason and "smallint" in reason for reason in reasons)


def test_rows_that_the_table_does_not_take_do_not_keep_a_batch_from_it(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = server.table()
    server.ask(f"CREATE TABLE {table} (word text, n smallint)")
    made = flow(tw.to_postgres(server.dsn, table), SMALL, on_error="skip")
    made.run(on=tw.Local(checkpoint=str(tmp_path)))
    assert server.rows(table) == [("a", 1), ("a", 2), ("c", 3)]
    said = [record.getMessage() for record in caplog.records]
    assert [text.partition(": value")[0] for text in said] == [
        f"table {table!r} does not take {{'word': 'b', 'n': 70000}}",
        f"table {table!r} does not take {{'word': 'd', 'n': -70000}}",
    ]


def test_without_a_policy_a_row_that_the_table_does_not_take_ends_the_run(server: Server) -> None:
    table = server.table()
    server.ask(f"CREATE TABLE {table} (word text, n smallint)")
    with pytest.raises(tw.ThalwegError, match="out of range for type smallint"):
        flow(tw.to_postgres(server.dsn, table), SMALL).run(on="inline")
    assert server.rows(table) == []


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "b", 'a"b', "a,\\.\n", "é"]),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    ),
    max_size=20,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(ROWS, max_size=4), at_once=st.integers(1, 30))
def test_changing_rows_is_what_a_dictionary_does(
    server: Server, parts: list[list[Any]], at_once: int
) -> None:
    schema = pa.schema({"word": pa.string(), "n": pa.int64(), "note": pa.string()})
    names = schema.names
    tables = [
        pa.Table.from_pylist([dict(zip(names, r, strict=True)) for r in rows], schema)
        for rows in parts
    ]
    with psycopg.connect(server.dsn) as connection:
        Writer(connection, Target("model", ("word",), rows=at_once)).write(tables)
        found = connection.execute("SELECT * FROM model").fetchall() if tables else []
        connection.rollback()
    assert {r[0]: r for r in found} == {r[0]: r for rows in parts for r in rows}


# --- types ----------------------------------------------------------------------------------------

MOMENT = dt.datetime(2024, 5, 1, 12, 30, 0, 7)
TYPES: list[tuple[Any, Any, str]] = [
    (int, -(2**63), "bigint"),
    (pa.int16(), 7, "smallint"),
    (pa.uint64(), 2**64 - 1, "numeric"),
    (float, 0.1, "double precision"),
    (bool, True, "boolean"),
    (str, 'a"b\\.\n,', "text"),
    (bytes, b"\x00\xff", "bytea"),
    (dt.datetime, MOMENT, "timestamp without time zone"),
    (pa.timestamp("us", "UTC"), MOMENT.replace(tzinfo=dt.UTC), "timestamp with time zone"),
    (dt.date, MOMENT.date(), "date"),
    (dt.time, MOMENT.time(), "time without time zone"),
    (dt.timedelta, dt.timedelta(days=-1, microseconds=5), "interval"),
    (pa.decimal128(10, 2), decimal.Decimal("1.50"), "numeric"),
    (list[int], [1, None], "jsonb"),
    (dict[str, int], {"a": 1}, "jsonb"),
]


@pytest.mark.parametrize(("type_", "value", "column"), TYPES, ids=[str(t[2]) for t in TYPES])
def test_values_come_back_as_they_were(server: Server, type_: Any, value: Any, column: str) -> None:
    table = server.table()
    rows = [(0, value), (1, None)]
    flow(tw.to_postgres(server.dsn, table), rows, {"n": int, "x": type_}).run()
    assert server.rows(table) == rows
    assert server.rows(table, "DISTINCT pg_typeof(x)::text") == [(column,)]


@pytest.mark.parametrize(
    ("columns", "key", "said"),
    [
        ("word text, n text", None, "'n' in table .* expected bigint, for values of type int64"),
        ("word text", None, "field 'n' in table .* expected a column of that name"),
        ("word text, n bigint, x int NOT NULL", None, "'x' in table .* takes no null"),
        ("word text, n bigint", "word", r"a primary key or a unique index on \(word\) alone"),
        ("word text, n bigint, UNIQUE (word, n)", "word", "unique index"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    server: Server, columns: str, key: Any, said: str
) -> None:
    table = server.table()
    server.ask(f"CREATE TABLE {table} ({columns})")
    with pytest.raises(tw.UsageError, match=said):
        flow(tw.to_postgres(server.dsn, table, key)).run()
    assert server.rows(table) == []


def test_a_table_that_does_not_fit_is_no_matter_of_single_rows(server: Server) -> None:
    table = server.table()
    server.ask(f"CREATE TABLE {table} (word text, n text)")
    with pytest.raises(tw.UsageError, match="expected bigint"):
        flow(tw.to_postgres(server.dsn, table), on_error="skip").run()


def test_a_table_with_more_columns_and_kindred_types_is_used_as_it_is(server: Server) -> None:
    table = server.table()
    server.ask(f"CREATE TABLE {table} (id serial, n integer, word varchar(9) UNIQUE, x int)")
    flow(tw.to_postgres(server.dsn, table, key="word")).run()
    assert server.rows(table, "word, n, x") == [(*r, None) for r in LAST]


def test_a_table_is_not_made_unasked(server: Server) -> None:
    with pytest.raises(tw.UsageError, match="expected to be there, got none"):
        flow(tw.to_postgres(server.dsn, server.table(), create=False)).run()


def test_rows_that_no_table_takes_are_refused_alone(server: Server) -> None:
    table, rows = server.table(), [("a\0b", 1), (None, 2), ("c", 3)]
    with pytest.raises(tw.ThalwegError, match="text without the character 0 in 'word'"):
        flow(tw.to_postgres(server.dsn, table, key="word"), rows).run()
    sink = tw.to_postgres(server.dsn, table, key="word")
    ran = flow(sink, rows, on_error="skip").run()
    assert ran.metrics.errors == 2
    assert server.rows(table) == [("c", 3)]


# --- passwords ------------------------------------------------------------------------------------


def no_retries(sink: PostgresSink) -> PostgresSink:
    assert sink._database is not None
    sink._database._backoff = Backoff(attempts=1)
    return sink


@pytest.mark.parametrize(
    "change",
    [
        lambda dsn: dsn.replace(PASSWORD, "wr0ng-w0rd"),
        lambda dsn: "postgresql://thalweg:wr0ng-w0rd@127.0.0.1:1/postgres",
        lambda dsn: "postgresql://thalweg:wr0ng-w0rd@[nowhere/postgres",
        lambda dsn: "host=127.0.0.1 wr0ng-w0rd",
        lambda dsn: "host=127.0.0.1 wr0ng-w0rd=1",
    ],
    ids=["wrong", "nobody listens", "bad uri", "bad pairs", "bad name"],
)
def test_a_password_is_in_no_message(
    server: Server, change: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    sink = no_retries(tw.to_postgres(change(server.dsn), server.table()))
    with pytest.raises(tw.ThalwegError) as raised:
        flow(sink).run()
    said = "".join(traceback.format_exception(raised.value))
    assert "wr0ng-w0rd" not in said + caplog.text + repr(sink) + repr(sink._database)


@pytest.mark.parametrize("wrong", ["port=no-port", "sslmode=nonsense"])
def test_a_setting_that_cannot_be_is_told_at_once(server: Server, wrong: str) -> None:
    sink = tw.to_postgres(f"{server.dsn} {wrong}", server.table())
    with pytest.raises(tw.UsageError, match="PostgreSQL: expected to be let in"):
        flow(sink).run()


def test_a_password_stays_in_its_process(server: Server, tmp_path: Path) -> None:
    made = flow(tw.to_postgres(server.dsn, server.table()))
    assert PASSWORD.encode() not in cloudpickle.dumps(made.build())
    made.run(on=tw.Local(checkpoint=str(tmp_path)))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(PASSWORD.encode() in path.read_bytes() for path in files)


def test_a_process_of_its_own_is_refused(server: Server) -> None:
    sink = tw.to_postgres(server.dsn, server.table())
    with pytest.raises(tw.ThalwegError, match=r"isolation .* expected 'thread', got 'process'"):
        flow(sink, isolation="process").run()


def test_what_the_dsn_leaves_out_comes_from_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table, given_ = server.table(), psycopg.conninfo.conninfo_to_dict(server.dsn)
    monkeypatch.setenv("PGPASSWORD", str(given_.pop("password")))
    flow(tw.to_postgres(psycopg.conninfo.make_conninfo(**given_), table)).run()
    lines = [f"{name}={value}" for name, value in given_.items()]
    (tmp_path / "services").write_text("\n".join(["[shop]", *lines]))
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    flow(tw.to_postgres("service=shop", table)).run()
    assert len(server.rows(table)) == 200


# --- servers that go away -------------------------------------------------------------------------


class Reviving(logging.Handler):
    """Starts a server again as soon as somebody misses it."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server, self.missed = server, 0

    def emit(self, record: logging.LogRecord) -> None:
        if not self.missed:
            self.server.start()
        self.missed += 1


@contextmanager
def reviving(server: Server) -> Iterator[Reviving]:
    handler, logger = Reviving(server), logging.getLogger("thalweg.postgres")
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)


def written(server: Server, table: str) -> int:
    """Count the rows of a table that may not be there yet."""
    with suppress(psycopg.errors.UndefinedTable):
        return len(server.rows(table))
    return 0


@pytest.mark.parametrize("mode", ["fast", "immediate"])
@pytest.mark.parametrize("kept", [True, False], ids=["checkpoint", "no checkpoint"])
def test_a_server_that_goes_away_in_the_middle_is_waited_for(
    server: Server, mode: str, kept: bool, tmp_path: Path
) -> None:
    table = server.table()

    def rows() -> Iterator[tuple[str, int]]:
        for n in range(2000):
            if n == 1000:
                # Without a checkpoint nobody knows a commit whose answer was lost.
                while not kept and written(server, table) < n:
                    time.sleep(0.01)
                server.stop(mode)
            yield f"w{n % 10}", n

    small: dict[str, Any] = {"block_rows": 50, "most_block_rows": 50, "snapshot_every": 0}
    # An executor writes also while the source waits for it.
    small |= {"checkpoint": str(tmp_path)} if kept else {"assigning": "executors"}
    local = tw.Local(**small)
    with reviving(server) as handler:
        flow(tw.to_postgres(server.dsn, table), rows).run(on=local)
    assert handler.missed
    assert server.rows(table, "n") == [(n,) for n in range(2000)]


def test_patience_ends_and_the_next_run_goes_on(server: Server, tmp_path: Path) -> None:
    table, waits = server.table(), list[float]()
    local = tw.Local(checkpoint=str(tmp_path), snapshot_every=0)
    sink = tw.to_postgres(server.dsn, table)
    sink._database = Database(server.dsn, Backoff(1, 3, attempts=4), waits.append)

    def rows() -> Iterator[tuple[str, int]]:
        yield from WORDS[:50]
        server.stop()
        yield from WORDS[50:]

    with pytest.raises(tw.StateError, match="an answer, in 4 tries"):
        flow(sink, rows).run(on=local)
    assert waits == [1, 2, 3]
    server.start()
    flow(tw.to_postgres(server.dsn, table), WORDS).run(on=local)
    assert server.rows(table) == sorted(WORDS)


# --- exactly once ---------------------------------------------------------------------------------


def test_a_killed_run_goes_on_without_loss_or_doubles(server: Server, tmp_path: Path) -> None:
    job = {"dsn": server.dsn, "all": server.table(), "last": server.table(), "rows": 4000}
    job["checkpoint"] = str(tmp_path / "checkpoint")
    (tmp_path / "job.json").write_text(json.dumps(job))
    points = ["after run", "before manifest", "after manifest", "before delivery mark"]
    (tmp_path / "armed").write_text("\n".join(f"{p}=kill@2,7" for p in points))
    program = str(Path(__file__).with_name("killed_writer.py"))
    codes: list[int] = []
    while not codes or codes[-1] == -signal.SIGKILL:
        done = subprocess.run(  # noqa: S603 (our own program)
            [sys.executable, program, str(tmp_path / "job.json")],
            env={**os.environ, "THALWEG_FAILPOINTS": str(tmp_path)},
            check=False,
            capture_output=True,
            text=True,
        )
        codes.append(done.returncode)
    assert codes == [-signal.SIGKILL] * 8 + [0], done.stderr
    expected = [row(n) for n in range(4000)]
    assert server.rows(str(job["all"])) == expected
    assert {w: n for n, w in server.rows(str(job["last"]))} == {w: n for n, w in expected}
    manifests = list((tmp_path / "checkpoint/state/manifests").iterdir())
    staged = list((tmp_path / "checkpoint/state/staged").iterdir())
    assert len(staged) <= 2 * len(manifests)  # what failed attempts have left is gone


def test_a_run_on_another_state_is_refused(server: Server, tmp_path: Path) -> None:
    table = server.table()
    made = flow(tw.to_postgres(server.dsn, table))
    made.run(on=tw.Local(checkpoint=str(tmp_path / "one")))
    with pytest.raises(tw.StateError, match="batches of this state, got batch 1 of another state"):
        made.run(on=tw.Local(checkpoint=str(tmp_path / "two")))
    assert server.rows(table) == sorted(WORDS)


def test_a_run_that_comes_too_late_is_refused(server: Server, tmp_path: Path) -> None:
    table = server.table()
    made = flow(tw.to_postgres(server.dsn, table))
    made.run(on=tw.Local(checkpoint=str(tmp_path)))
    server.ask("UPDATE thalweg_commits SET batch = 9 WHERE sink LIKE %s", f"% {table}")
    (tmp_path / "state/delivered").unlink()
    with pytest.raises(tw.StateError, match="expected a batch behind 9, got batch 1"):
        made.run(on=tw.Local(checkpoint=str(tmp_path)))


def stopping_early(made: tw.Flow, runtime: tw.Spark) -> None:
    stop = threading.Event()
    ran = made.run(
        on=runtime,
        stop=stop,
        listen=lambda event: stop.set() if isinstance(event, Progress) else None,
    )
    assert ran.stopped


@pytest.mark.spark
@pytest.mark.parametrize("options", [{}, {"degree": 2}], ids=["one task", "two tasks"])
@pytest.mark.parametrize("key", [None, "word"], ids=["append", "upsert"])
def test_a_batch_on_spark_that_is_delivered_twice_is_there_once(
    server: Server, tmp_path: Path, options: dict[str, Any], key: Any
) -> None:
    table, made = server.table(), tw.Flow("words")
    source = made.source("rows", tw.items(WORDS), fields=FIELDS).key_by("word")
    source.sink("out", tw.to_postgres(server.dsn, table, key), **options)
    runtime = tw.Spark(
        spark_session(),
        places=2,
        clock=ManualClock(),
        state=str(tmp_path),
        pump=PumpSettings(rows=30, block_rows=30),
    )
    stopping_early(made, runtime)
    assert server.rows(table)
    (tmp_path / "delivered").unlink()
    made.run(on=runtime)
    assert server.rows(table) == (LAST if key else sorted(WORDS))


@pytest.mark.spark
def test_runs_on_spark_without_a_state_may_add_to_the_same_table(server: Server) -> None:
    table = server.table()
    for _ in range(2):
        runtime = tw.Spark(spark_session(), places=2, clock=ManualClock())
        flow(tw.to_postgres(server.dsn, table)).run(on=runtime)
    assert server.rows(table) == sorted(WORDS * 2)
